"""The application: routes inside, walls around them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic_core import to_json
from starlette.middleware.gzip import GZipMiddleware

from .. import __version__
from ..errors import InvalidInput
from ..http_guards import AsgiApp, HostAndOrigin, is_loopback, own_names
from ..memory import Memory
from ..models import Health
from . import page, problems
from .callers import House, May
from .events import Streams
from .guards import Accounted, Door, Limits
from .measures import Measures
from .replies import Alive, reply
from .routes import ROUTERS
from .routes.about import without_reasons
from .spool import Spool

ABOUT = """Long-term memory for AI agents · 记忆

Show a key as `Authorization: Bearer KEY`. A key for one user needs no `user_id`; with a key for several or all users,
`user_id` says whose memory is meant. Errors are problem details (RFC 9457)."""


def make_app(memory: Memory, *, host: str, keyless: bool, allowed_hosts: Sequence[str] = ()) -> tuple[AsgiApp, House]:
    """The server over an open memory, and what its requests share. `keyless`: as long as there are no keys, none is
    needed; that is for this machine only."""
    if keyless and not is_loopback(host):
        raise InvalidInput(
            "--host", f"{host} can be reached from other machines: make a key first (`jiyi keys create`)"
        )
    house = House(memory=memory, spool=Spool(memory), streams=Streams(), measures=Measures())
    settings = memory.settings.server
    guarded: AsgiApp = GZipMiddleware(_routes(house), minimum_size=2048, compresslevel=2)
    guarded = Door(guarded, memory, keyless=keyless)
    guarded = Limits(guarded, settings)
    guarded = HostAndOrigin(guarded, own_names(host, (*settings.allow_hosts, *allowed_hosts)), same_origin=True)
    return Accounted(guarded, house.measures), house


def _routes(house: House) -> FastAPI:
    app = FastAPI(title="Jiyi", version=__version__, description=ABOUT, openapi_url=None)
    app.state.house = house
    problems.install(app)
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # as they are: including them anew would only make matching slower

    @app.get("/livez", response_model=Alive, tags=["server"], summary="Whether the process answers")
    async def livez() -> Response:
        return reply(Alive())

    @app.get(
        "/readyz",
        response_model=Health,
        tags=["server"],
        summary="Whether the store answers, jobs get done, and search has all its parts",
        responses={503: {"model": Health, "description": "Something fails"}},
    )
    async def readyz(request: Request) -> Response:
        found = await house.memory.health()
        return reply(without_reasons(found), 200 if found.ready else 503)

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        """Worked out once, beside the requests: it takes a second."""
        async with writing:
            return Response(to_json(await asyncio.to_thread(app.openapi)), media_type="application/json")

    writing = asyncio.Lock()
    page.install(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's, with the key, the scopes and the errors as they are here."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    told = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    schemas = told["components"]["schemas"]
    for foreign in ("HTTPValidationError", "ValidationError"):
        schemas.pop(foreign, None)
    own = problems.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= own.pop("$defs", {}) | {"Problem": own}
    told["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    refused = {
        "description": "A problem",
        "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for route in routes_of(app):
        for method in route.methods or ():
            operation = told["paths"][route.path][method.lower()]
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = refused
            gate = gate_of(route)
            if gate is not None:
                operation["security"] = [{"key": []}]
                operation["x-scope"] = gate.scope or "any"
    app.openapi_schema = told
    return told


def routes_of(app: FastAPI) -> list[APIRoute]:
    return [route for route in app.routes if isinstance(route, APIRoute) and route.include_in_schema]


def gate_of(route: APIRoute) -> May | None:
    """What stands at the entrance of a route; None: nothing, it needs no key."""
    gates = [needed.call for needed in route.dependant.dependencies]
    return next((gate for gate in gates if isinstance(gate, May)), None)
