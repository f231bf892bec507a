"""What a route asks for in its signature: a caller who may read, write, delete or administer, and for whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import from_json

from .. import validation
from ..keys import Scope
from ..memory import Memory
from .access import Access
from .events import Streams
from .measures import Measures
from .spool import Spool

MAX_JSON_DEPTH = 64
WHOSE = "whose memory; left out: the only user that the key is for"
UserId = Annotated[str | None, Query(min_length=1, max_length=validation.MAX_NAME, description=WHOSE)]


@dataclass(frozen=True, slots=True)
class House:
    """What all requests share."""

    memory: Memory
    spool: Spool
    streams: Streams
    measures: Measures


@dataclass(frozen=True, slots=True)
class Caller:
    """A request that may go on."""

    house: House
    access: Access

    @property
    def memory(self) -> Memory:
        return self.house.memory


@dataclass(frozen=True, slots=True)
class UserCaller(Caller):
    """…and is about one user."""

    user_id: str


class May:
    """For a route that is about no single user."""

    def __init__(self, scope: Scope | None) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Caller:
        access: Access = request.scope["access"]
        if self.scope is not None:
            access.need(self.scope)
        return Caller(request.app.state.house, access)


class MayFor(May):
    """For a route that is about one user."""

    async def __call__(self, request: Request, user_id: UserId = None) -> UserCaller:
        access: Access = request.scope["access"]
        assert self.scope is not None  # noqa: S101 - for types
        access.need(self.scope)
        return UserCaller(request.app.state.house, access, access.user(user_id))


Anybody = Annotated[Caller, Depends(May(None))]
Reader = Annotated[Caller, Depends(May("read"))]
Writer = Annotated[Caller, Depends(May("write"))]
Admin = Annotated[Caller, Depends(May("admin"))]
UserReader = Annotated[UserCaller, Depends(MayFor("read"))]
UserWriter = Annotated[UserCaller, Depends(MayFor("write"))]
UserDeleter = Annotated[UserCaller, Depends(MayFor("delete"))]


class JsonRequest(Request):
    """Parses by pydantic's parser: quicker, strict about NaN, and with a bound for nesting."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            try:
                self._json = from_json(await self.body(), allow_inf_nan=False)
            except ValueError:
                raise HTTPException(400, "the body is not JSON") from None
            if _deeper(self._json, MAX_JSON_DEPTH):
                raise HTTPException(400, f"the body is nested more than {MAX_JSON_DEPTH} deep")
        return self._json


def _deeper(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


class JsonRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_json
