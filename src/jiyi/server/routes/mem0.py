"""mem0's REST API: the paths that its Python and npm clients call, all with a slash at the end.

They are left out of the OpenAPI document, which describes Jiyi's own API; docs/integrations/mem0.md lists them.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ... import __version__
from ...compat.mem0.api import Mem0, own_id_of, told_of
from ...compat.mem0.filters import ENTITIES
from ...compat.mem0.times import end_of, parse_time
from ...errors import InvalidInput
from ...http_server import AsgiApp, AsgiScope, Message, Receive, Send
from ...models import Deletion
from ..auth import Anybody, Caller, Requires
from ..errors import MEDIA_TYPE, HttpError
from ..json_body import json_response
from ..requests import MAX_ENTRIES, Limit, Name, QueryText
from . import Id, make_router
from .memories import log_deletion

router = make_router("mem0", prefix="")

OWN_PATHS = ("ping", "entities", "batch", "exports", "summary", "feedback")
PREFIXES = ("/v2/", "/v3/", "/api/", *(f"/v1/{name}/" for name in OWN_PATHS))
MAX_BATCH = 1_000

Page = Annotated[int, Query(ge=1, le=1_000_000)]
Filters = dict[str, JsonValue]


async def _refuse_others(request: Request) -> None:
    """Refuse parameters that the route does not have, and a body where it has none: a condition that is ignored could
    delete what it excludes."""
    route: APIRoute = request.scope["route"]
    known = {field.alias for field in route.dependant.query_params} | {"org_id", "project_id"}
    for name, times in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            raise InvalidInput(name, f"is not a parameter of {request.method} {request.url.path}")
        if times > 1:
            raise InvalidInput(name, "is given more than once")
    if route.body_field is None and await request.body():
        raise InvalidInput("body", f"{request.method} {request.url.path} takes none")


class Exactly(Requires):
    """Dependency of a route that takes its own parameters only; of an organisation and a project there is one each."""

    async def __call__(
        self, request: Request, org_id: Literal["jiyi"] | None = None, project_id: Literal["default"] | None = None
    ) -> Caller:
        caller = await super().__call__(request)
        await _refuse_others(request)
        return caller


AnyKey = Annotated[Caller, Depends(Exactly())]
Reader = Annotated[Caller, Depends(Exactly("read"))]
Writer = Annotated[Caller, Depends(Exactly("write"))]
Editor = Annotated[Caller, Depends(Exactly("write", "read"))]  # the reply holds what was stored
Deleter = Annotated[Caller, Depends(Exactly("delete"))]


class Body(BaseModel):
    """Unknown fields are refused: one that is ignored could be a condition."""

    model_config = ConfigDict(extra="forbid")

    output_format: Literal["v1.1"] | None = None
    org_id: Literal["jiyi"] | None = None
    project_id: Literal["default"] | None = None


class AddBody(Body):
    messages: Annotated[list[JsonValue], Field(min_length=1, max_length=MAX_ENTRIES)] | str | dict[str, JsonValue]
    user_id: Name | None = None
    agent_id: Name | None = None
    app_id: Name | None = None
    run_id: Name | None = None
    filters: Filters | None = None
    metadata: dict[str, JsonValue] | None = None
    infer: bool | None = True
    timestamp: JsonValue = None
    expiration_date: str | None = None
    async_mode: bool | None = None

    def entities(self) -> dict[str, str | None]:
        """Return the owner: given beside the messages or, by clients with typed options, in `filters`."""
        filters = self.filters or {}
        if filters.keys() - set(ENTITIES) or not all(isinstance(value, str) for value in filters.values()):
            raise InvalidInput("filters", "must name the owner of new memories, such as {'user_id': 'mei'}")
        own = {name: value for name in ENTITIES if (value := getattr(self, name)) is not None}
        if twice := [name for name, value in own.items() if filters.get(name, value) != value]:
            raise InvalidInput("filters", f"{twice[0]} differs from the one beside the messages")
        return {name: str(value) for name, value in {**filters, **own}.items()}


class ReadBody(Body):
    filters: Filters | None = None
    categories: list[Name] | None = None
    metadata: dict[str, JsonValue] | None = None
    show_expired: Literal[False] | None = None  # expired memories are not returned
    latest_only: Literal[True] | None = None  # superseded memories are not returned
    fields: list[Name] | None = None

    def tree(self) -> Filters:
        given: Filters = {**(self.filters or {})}
        of_metadata: Filters = {"metadata": self.metadata}
        return {"AND": [given, of_metadata]} if self.metadata else given

    def project(self, memories: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not self.fields:
            return memories
        return [{name: value for name, value in one.items() if name in (*self.fields, "id")} for one in memories]


class ListBody(ReadBody):
    start_date: str | None = None
    end_date: str | None = None

    def tree(self) -> Filters:
        dates: dict[str, JsonValue] = {"gte": self.start_date}
        if self.end_date is not None:
            end = end_of("end_date", self.end_date)  # a day counts until its end
            dates["lte" if end == parse_time("end_date", self.end_date) else "lt"] = end.isoformat()
        given: JsonValue = {name: date for name, date in dates.items() if date is not None}
        return {"AND": [super().tree(), {"created_at": given}]} if given else super().tree()


class SearchBody(ReadBody):
    query: QueryText
    top_k: Limit | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    reference_date: JsonValue = None
    rerank: bool | None = None  # hits are always read
    keyword_search: bool | None = None  # words always count


class Named(Body):
    """Fields that clients before 2.0 send with each request: the owner beside the filters, and the API's version."""

    user_id: Name | None = None
    agent_id: Name | None = None
    app_id: Name | None = None
    run_id: Name | None = None
    version: Literal["v1", "v2"] | None = None
    enable_graph: Literal[False] | None = None

    def with_owner(self, given: Filters) -> Filters:
        own: Filters = {name: value for name in ENTITIES if (value := getattr(self, name)) is not None}
        return {"AND": [given, own]} if own and given else own or given


class OldListBody(ListBody, Named):
    output_format: Literal["v1.0", "v1.1"] | None = None  # type: ignore[assignment]
    page: int | None = Field(default=None, ge=1, le=1_000_000)
    page_size: Annotated[int, Field(ge=1, le=1_000)] | None = None

    def tree(self) -> Filters:
        return self.with_owner(super().tree())


class OldSearchBody(SearchBody, Named):
    output_format: Literal["v1.0", "v1.1"] | None = None  # type: ignore[assignment]
    limit: Annotated[int, Field(ge=1, le=1_000)] | None = None
    filter_memories: bool | None = None

    def tree(self) -> Filters:
        return self.with_owner(super().tree())


class OldAddBody(AddBody):
    output_format: Literal["v1.0", "v1.1"] | None = None  # type: ignore[assignment]
    version: Literal["v1", "v2"] | None = None
    enable_graph: Literal[False] | None = None


class UpdateBody(Body):
    text: str | None = None
    metadata: dict[str, JsonValue] | None = None
    timestamp: JsonValue = None
    expiration_date: str | None = None

    def changes(self) -> dict[str, Any]:
        return self.model_dump(exclude_unset=True, include={"text", "metadata", "timestamp", "expiration_date"})


class BatchedUpdate(UpdateBody):
    memory_id: Name


class BatchedDelete(BaseModel):
    model_config = ConfigDict(extra="forbid")

    memory_id: Name


class UpdatesBody(Body):
    memories: Annotated[list[BatchedUpdate], Field(min_length=1, max_length=MAX_BATCH)]


class DeletesBody(Body):
    memories: Annotated[list[BatchedDelete], Field(min_length=1, max_length=MAX_BATCH)]


def _each_once(memories: Sequence[BatchedUpdate | BatchedDelete]) -> None:
    ids = [own_id_of(one.memory_id) for one in memories]
    if twice := [name for name, times in Counter(ids).items() if times > 1]:
        raise InvalidInput("memories", f"has the memory {twice[0]} more than once")


def _api(caller: Caller) -> Mem0:
    async def erase(user_id: str) -> Deletion:
        deletion = await caller.memory.delete_all(user_id)
        await caller.app.uploads.forget(user_id)
        await log_deletion(caller, "user.delete", None, deletion)
        return deletion

    return Mem0(memory=caller.memory, reach=caller.access, actor=caller.access.actor("mem0"), erase=erase)


async def _delete_all(caller: Caller, **entities: str | None) -> str:
    deleted = await _api(caller).delete_all(**entities)
    for deletion in deleted:
        await log_deletion(caller, "memories.delete", None, deletion)
    return told_of(deleted)


@router.get("/v1/ping/", include_in_schema=False)
async def ping(caller: AnyKey) -> Response:
    """mem0's clients check their key with it; they need some organisation and project."""
    return await json_response({"status": "ok", "org_id": "jiyi", "project_id": "default", "version": __version__})


async def _add(caller: Caller, body: AddBody) -> dict[str, Any]:
    return await _api(caller).add(
        body.messages,
        metadata=body.metadata,
        infer=body.infer is not False,
        timestamp=body.timestamp,
        expiration_date=body.expiration_date,
        wait=body.async_mode is not True,
        **body.entities(),
    )


@router.post("/v3/memories/add/", include_in_schema=False)
async def add(caller: Writer, body: AddBody) -> Response:
    return await json_response(await _add(caller, body))


@router.post("/v1/memories/", include_in_schema=False)
async def add_old(caller: Writer, body: OldAddBody) -> Response:
    done = await _add(caller, body)
    return await json_response(done["results"] if body.output_format == "v1.0" else done)


@router.post("/v3/memories/", include_in_schema=False)
async def get_all(request: Request, caller: Reader, body: ListBody, page: Page = 1, page_size: Limit = 100) -> Response:
    total, found = await _api(caller).get_all(body.tree(), page=page, page_size=page_size, categories=body.categories)

    def link(number: int) -> str:
        return str(request.url.include_query_params(page=number, page_size=page_size))

    following = link(page + 1) if page * page_size < total else None
    previous = link(page - 1) if page > 1 else None
    return await json_response(
        {"count": total, "next": following, "previous": previous, "results": body.project(found)}
    )


@router.post("/v3/memories/search/", include_in_schema=False)
async def search(caller: Reader, body: SearchBody) -> Response:
    found = await _api(caller).search(
        body.query,
        body.tree(),
        top_k=body.top_k or 20,
        threshold=body.threshold,
        reference_date=body.reference_date,
        categories=body.categories,
        rerank=body.rerank is True,
    )
    return await json_response({"results": body.project(found)})


async def _list_old(caller: Caller, body: OldListBody) -> Response:
    api, size = _api(caller), body.page_size or 100
    total, found = await api.get_all(body.tree(), page=body.page or 1, page_size=size, categories=body.categories)
    results = body.project(found)
    if body.page is None and body.page_size is None:
        return await json_response({"results": results} if body.output_format == "v1.1" else results)
    return await json_response({"count": total, "next": None, "previous": None, "results": results})


@router.post("/v2/memories/", include_in_schema=False)
async def list_v2(
    caller: Reader, body: OldListBody, page: Page | None = None, page_size: Limit | None = None
) -> Response:
    return await _list_old(caller, body.model_copy(update={"page": page, "page_size": page_size}))


@router.get("/v1/memories/", include_in_schema=False)
async def list_v1(
    caller: Reader,
    user_id: str | None = None,
    agent_id: str | None = None,
    app_id: str | None = None,
    run_id: str | None = None,
    page: Page | None = None,
    page_size: Limit | None = None,
    output_format: Literal["v1.0", "v1.1"] | None = None,
) -> Response:
    owner = {"user_id": user_id, "agent_id": agent_id, "app_id": app_id, "run_id": run_id}
    body = OldListBody.model_validate({**owner, "page": page, "page_size": page_size, "output_format": output_format})
    return await _list_old(caller, body)


@router.post("/v2/memories/search/", include_in_schema=False)
@router.post("/v1/memories/search/", include_in_schema=False)
async def search_old(caller: Reader, body: OldSearchBody) -> Response:
    """Search, for clients before 2.0."""
    found = await _api(caller).search(
        body.query,
        body.tree(),
        top_k=body.top_k or body.limit or 20,
        threshold=body.threshold,
        categories=body.categories,
        rerank=body.rerank is True,
    )
    results = body.project(found)
    return await json_response({"results": results} if body.output_format == "v1.1" else results)


@router.delete("/v1/memories/", include_in_schema=False)
async def delete_all(
    caller: Deleter,
    user_id: str | None = None,
    agent_id: str | None = None,
    app_id: str | None = None,
    run_id: str | None = None,
) -> Response:
    return await json_response(
        {"message": await _delete_all(caller, user_id=user_id, agent_id=agent_id, app_id=app_id, run_id=run_id)}
    )


@router.get("/v1/memories/{memory_id}/", include_in_schema=False)
async def get(caller: Reader, memory_id: Id) -> Response:
    return await json_response(await _api(caller).get(memory_id))


@router.put("/v1/memories/{memory_id}/", include_in_schema=False)
async def update(caller: Editor, memory_id: Id, body: UpdateBody) -> Response:
    return await json_response(await _api(caller).update(memory_id, body.changes()))


@router.delete("/v1/memories/{memory_id}/", include_in_schema=False)
async def delete(caller: Deleter, memory_id: Id) -> Response:
    deletion = await _api(caller).delete(memory_id)
    await log_deletion(caller, "memory.delete", own_id_of(memory_id), deletion)
    return await json_response({"message": "Memory deleted successfully!"})


@router.get("/v1/memories/{memory_id}/history/", include_in_schema=False)
async def history(caller: Reader, memory_id: Id) -> Response:
    return await json_response(await _api(caller).history(memory_id))


@router.put("/v1/batch/", include_in_schema=False)
async def batch_update(caller: Writer, body: UpdatesBody) -> Response:
    _each_once(body.memories)
    await _api(caller).update_many({one.memory_id: one.changes() for one in body.memories})
    return await json_response({"message": f"Successfully updated {len(body.memories)} memories"})


@router.delete("/v1/batch/", include_in_schema=False)
async def batch_delete(caller: Deleter, body: DeletesBody) -> Response:
    _each_once(body.memories)
    for deletion in await _api(caller).delete_many([one.memory_id for one in body.memories]):
        await log_deletion(caller, "memories.delete", None, deletion)
    return await json_response({"message": f"Successfully deleted {len(body.memories)} memories"})


@router.get("/v1/entities/", include_in_schema=False)
async def entities(request: Request, caller: Reader, page: Page = 1, page_size: Limit = 100) -> Response:
    found = await _api(caller).entities()
    some = found[(page - 1) * page_size : page * page_size]
    more = str(request.url.include_query_params(page=page + 1)) if page * page_size < len(found) else None
    return await json_response({"count": len(found), "next": more, "previous": None, "results": some})


@router.delete("/v2/entities/{kind}/{name}/", include_in_schema=False)
@router.delete("/v1/entities/{kind}/{name}/", include_in_schema=False)
async def delete_entity(caller: Deleter, kind: Id, name: Id) -> Response:
    if f"{kind}_id" not in ENTITIES:
        raise InvalidInput("entity_type", f"{kind!r} is none of user, agent, app and run")
    return await json_response({"message": await _delete_all(caller, **{f"{kind}_id": name})})


NOT_OFFERED = {
    "/api/{rest:path}": "organisations, projects and webhooks; for changes see GET /v1/changes",
    "/v2/{rest:path}": "profiles; see GET /v1/profile",
    "/v1/exports/": "exports by schema; see GET /v1/export",
    "/v1/exports/get/": "exports by schema; see GET /v1/export",
    "/v1/summary/": "summaries",
    "/v1/feedback/": "feedback",
}


def _refuse(what: str) -> Any:
    async def refuse(caller: Anybody) -> Response:
        raise HttpError(501, "not_offered", f"Jiyi does not offer mem0's {what}")

    return refuse


for path, what in NOT_OFFERED.items():
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    router.add_api_route(path, _refuse(what), methods=methods, include_in_schema=False)


def is_mem0(path: str) -> bool:
    return path.startswith(PREFIXES) or (path.startswith("/v1/memories/") and path.endswith("/"))


class PlainErrors:
    """Sends errors to mem0's clients as `application/json`: only then do they read `detail`."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_mem0(scope["path"]):
            await self._app(scope, receive, send)
            return
        problem = (b"content-type", MEDIA_TYPE.encode())

        async def send_plain(message: Message) -> None:
            if message["type"] == "http.response.start":
                plain = (b"content-type", b"application/json")
                message["headers"] = [plain if tuple(one) == problem else one for one in message["headers"]]
            await send(message)

        await self._app(scope, receive, send_plain)
