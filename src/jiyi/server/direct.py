"""Direct routes: requests with a JSON body about one user are answered without FastAPI's routing and injection of
arguments, which take most of the time of REST. Invalid requests go on to FastAPI, which describes the problem."""

from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException as AnyHttpException

from .. import validation
from ..errors import JiyiError
from ..http_server import AsgiApp, AsgiScope, Message, Receive, Send, header
from . import errors
from .auth import AppState, RequiresForUser
from .json_body import parse_json
from .routes import JsonRoute

IDEMPOTENCY_KEY = "idempotency_key"


class NotDirect(Exception):
    """The request is left to FastAPI."""


@dataclass(frozen=True, slots=True)
class DirectRoute:
    route: JsonRoute
    requires: RequiresForUser
    body_name: str
    body_type: type[BaseModel]

    @classmethod
    def of(cls, route: APIRoute) -> Self | None:
        """Return None if the route takes more than a caller, a body, the request and an idempotency key."""
        given = route.dependant
        if not isinstance(route, JsonRoute) or route.methods != {"POST"} or len(given.body_params) != 1:
            return None
        if given.path_params or given.query_params or given.cookie_params or len(given.dependencies) != 1:
            return None
        if any(one.name != IDEMPOTENCY_KEY for one in given.header_params):
            return None
        requires, body = given.dependencies[0].call, given.body_params[0]
        kind = body.field_info.annotation
        if not isinstance(requires, RequiresForUser) or not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            return None
        return cls(route, requires, body.name, kind)

    async def arguments(self, request: Request, shared: AppState, content: bytes) -> dict[str, Any]:
        """Return the arguments of the endpoint."""
        scope, given = request.scope, self.route.dependant
        user_id = _user_id(scope)
        if (header(scope, b"content-type") or "").partition(";")[
            0
        ].strip().lower() != "application/json" or not content:
            raise NotDirect
        try:
            body = self.body_type.__pydantic_validator__.validate_python(await parse_json(content))
        except ValidationError:
            raise NotDirect from None
        found: dict[str, Any] = {self.body_name: body}
        if given.header_params:
            key = found[IDEMPOTENCY_KEY] = header(scope, b"idempotency-key")
            if key is not None and not 0 < len(key) <= validation.MAX_NAME:
                raise NotDirect
        if given.request_param_name is not None:
            found[given.request_param_name] = request
        name = given.dependencies[0].name or "caller"
        found[name] = self.requires.admit(shared, scope["access"], user_id)
        return found


class DirectRoutes:
    """Middleware of the FastAPI application."""

    def __init__(self, app: AsgiApp, routes: FastAPI, shared: AppState) -> None:
        self._app = app
        self._shared = shared
        found = [DirectRoute.of(route) for route in routes.routes if isinstance(route, APIRoute)]
        self._routes = {one.route.path: one for one in found if one is not None}

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        direct = self._routes.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if direct is None:
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        scope["route"] = direct.route  # for the log and the metrics
        body: list[Message] = []
        try:
            arguments = await direct.arguments(request, self._shared, await _read(receive, body))
            response = await direct.route.respond(await direct.route.endpoint(**arguments))
        except NotDirect:
            await self._app(scope, _again(body, receive), send)
            return
        except JiyiError as error:
            response = errors.from_error(request, error)
        except AnyHttpException as error:
            response = errors.from_http_error(request, error)
        await response(scope, receive, send)


def _user_id(scope: AsgiScope) -> str | None:
    match parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True):
        case []:
            return None
        case [("user_id", str(user_id))] if 0 < len(user_id) <= validation.MAX_NAME:
            return user_id
    raise NotDirect


async def _read(receive: Receive, body: list[Message]) -> bytes:
    """Return the body; its messages are appended to `body`."""
    while not body or body[-1].get("more_body", False):
        body.append(await receive())
        if body[-1]["type"] != "http.request":  # the client is gone
            raise NotDirect
    return b"".join(message.get("body", b"") for message in body)


def _again(body: list[Message], receive: Receive) -> Receive:
    """Return a function that receives the messages once more, and then further ones."""

    async def again() -> Message:
        return body.pop(0) if body else await receive()

    return again
