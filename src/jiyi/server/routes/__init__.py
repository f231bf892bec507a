"""The routes of the REST API. A route checks the key and calls a verb."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from fastapi.routing import APIRoute

from ... import validation
from ...models import MemoryItem, Receipt, ReceiptState
from ..json_body import json_response, parse_json

Id = Annotated[str, Path(min_length=1, max_length=validation.MAX_NAME)]


class JsonRequest(Request):
    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = await parse_json(await self.body())
        return self._json


class JsonRoute(APIRoute):
    """Serialises returned values. A memory gets an ETag; a new receipt whose jobs are not done is a 202."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        endpoint: Any = self.endpoint

        async def serialised(**arguments: Any) -> Response:
            return await self.respond(await endpoint(**arguments))

        self.dependant.call = serialised
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_json

    async def respond(self, found: Any) -> Response:
        if isinstance(found, Response):
            return found
        if isinstance(found, Receipt) and self.status_code == 201 and found.state is ReceiptState.ACCEPTED:
            return await json_response(found, 202, {"Location": f"/v1/jobs/{found.id}"})
        headers = {"ETag": f'"{found.version}"'} if isinstance(found, MemoryItem) else None
        return await json_response(found, self.status_code or 200, headers)


def make_router(tag: str, prefix: str = "/v1") -> APIRouter:
    return APIRouter(prefix=prefix, tags=[tag], route_class=JsonRoute)
