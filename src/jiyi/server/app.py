"""The FastAPI application and its middleware."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.middleware.gzip import GZipMiddleware

from .. import __version__
from ..engine import runtime
from ..errors import InvalidInput
from ..http_server import AsgiApp, HostOriginGuard, host_names, is_loopback
from ..memory import Memory
from ..models import Health
from . import errors
from .auth import AppState, Requires
from .console_files import add_console
from .events import Streams
from .json_body import json_response
from .metrics import RequestMetrics
from .middleware import Authentication, Limits, RequestLog
from .routes import admin, agents, jobs, mem0, memories, overview, transfer
from .uploads import Uploads

ROUTERS = (
    memories.router,
    memories.finding,
    admin.synonyms,
    agents.sessions,
    jobs.router,
    transfer.router,
    agents.memunits,
    overview.router,
    admin.maintenance,
    admin.server,
    admin.keys,
    mem0.router,
)
DESCRIPTION = """Long-term memory for AI agents · 记忆

Send the key as `Authorization: Bearer KEY`. A key for one user needs no `user_id`; with a key for several or all users,
name the user with `user_id`. Errors are problem details (RFC 9457)."""


def make_app(
    memory: Memory, *, host: str, keyless: bool, allowed_hosts: Sequence[str] = ()
) -> tuple[AsgiApp, AppState]:
    """Build the application for an open memory. `keyless`: no key is needed before the first one is created,
    which is allowed on the local machine only."""
    if keyless and not is_loopback(host):
        raise InvalidInput(
            "--host", f"{host} can be reached from other machines: create a key first (`jiyi keys create`)"
        )
    shared = AppState(memory=memory, uploads=Uploads(memory), streams=Streams(), metrics=RequestMetrics())
    settings = runtime(memory).settings.server
    wrapped: AsgiApp = GZipMiddleware(_routes(shared), minimum_size=2048, compresslevel=2)
    wrapped = Authentication(wrapped, memory, keyless=keyless)
    wrapped = Limits(wrapped, settings)
    wrapped = HostOriginGuard(wrapped, host_names(host, (*settings.allow_hosts, *allowed_hosts)), same_origin=True)
    return RequestLog(mem0.PlainErrors(wrapped), shared.metrics), shared


def _routes(shared: AppState) -> FastAPI:
    app = FastAPI(title="Jiyi", version=__version__, description=DESCRIPTION, openapi_url=None)
    app.state.shared = shared
    errors.install(app)
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # include_router would copy them, and make matching slower

    @app.get(
        "/readyz",
        response_model=Health,
        tags=["server"],
        summary="Readiness: this process can serve, because the store answers",
        responses={503: {"model": Health, "description": "The store fails"}},
    )
    async def readyz(request: Request) -> Response:
        found = await shared.memory.health()
        return await json_response(admin.for_anybody(found), 200 if found.ready else 503)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """Build the schema once, in a thread: it takes a second."""
        async with lock:
            return Response(to_json(await asyncio.to_thread(app.openapi)), media_type="application/json")

    lock = asyncio.Lock()
    add_console(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's schema with our authentication, scopes and errors."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = schema["components"]["schemas"]
    for foreign in ("HTTPValidationError", "ValidationError"):
        schemas.pop(foreign, None)
    own = errors.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= own.pop("$defs", {}) | {"Problem": own}
    schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    refused = {
        "description": "A problem",
        "content": {errors.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for route in routes_of(app):
        for method in route.methods or ():
            operation = schema["paths"][route.path][method.lower()]
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = refused
            requirement = requirement_of(route)
            if requirement is not None:
                operation["security"] = [{"key": []}]
                operation["x-scope"] = " and ".join(requirement.scopes) or "any"
    app.openapi_schema = schema
    return schema


def routes_of(app: FastAPI) -> list[APIRoute]:
    return [route for route in app.routes if isinstance(route, APIRoute) and route.include_in_schema]


def requirement_of(route: APIRoute) -> Requires | None:
    """Return the permission that a route requires; None if it needs no key."""
    calls = [dependency.call for dependency in route.dependant.dependencies]
    return next((call for call in calls if isinstance(call, Requires)), None)
