"""The routes of the REST API, and how they read and write JSON. A route checks the key and calls a verb."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic_core import from_json

from ... import validation
from ...models import MemoryItem, Receipt, ReceiptState

MAX_JSON_DEPTH = 64
Id = Annotated[str, Path(min_length=1, max_length=validation.MAX_NAME)]


class JsonRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body())
        return self._json


def parse_json(body: bytes) -> Any:
    """Parse JSON with pydantic's parser, which is faster and rejects NaN, and limit the nesting."""
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise HTTPException(400, "the body is not JSON") from None
    if _nested_deeper(found, MAX_JSON_DEPTH):
        raise HTTPException(400, f"the body is nested more than {MAX_JSON_DEPTH} deep")
    return found


def _nested_deeper(value: Any, most: int) -> bool:
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


def json_response(value: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Serialise a value with pydantic, without FastAPI's detour."""
    return Response(value.__pydantic_serializer__.to_json(value), status, headers, "application/json")


class JsonRoute(APIRoute):
    """Serialises returned values. A memory gets an ETag; a new receipt whose jobs are not done is a 202."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        endpoint: Any = self.endpoint

        async def serialised(**arguments: Any) -> Response:
            return self.respond(await endpoint(**arguments))

        self.dependant.call = serialised
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_json

    def respond(self, found: Any) -> Response:
        if isinstance(found, Response):
            return found
        if isinstance(found, Receipt) and self.status_code == 201 and found.state is ReceiptState.ACCEPTED:
            return json_response(found, 202, {"Location": f"/v1/jobs/{found.id}"})
        headers = {"ETag": f'"{found.version}"'} if isinstance(found, MemoryItem) else None
        return json_response(found, self.status_code or 200, headers)


def make_router(tag: str, prefix: str = "/v1") -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], route_class=JsonRoute)
