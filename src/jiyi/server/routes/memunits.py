"""The MemUnit API: retrieve, fetch and memorize. Users are named in the body; the key still decides."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from pydantic import JsonValue

from ...errors import InvalidInput
from ...models import Receipt, SearchMode
from ..auth import Caller, Reader, UserId, Writer
from ..requests import FetchMemoryRequest, JsonRoute, MemorizeRequest, RetrieveMemoryRequest, RetrieveMethod
from ..responses import FetchMemoryResponse, MemorizeResponse, MemoryModel, RetrieveMemoryResponse, json_response
from .memories import IdempotencyKey, accepted_response

router = APIRouter(prefix="/v1", tags=["memunits"], route_class=JsonRoute)

MODES: dict[RetrieveMethod, SearchMode] = {"KEYWORD": "keyword", "VECTOR": "semantic", "HYBRID": "hybrid"}
SUB_TYPES: dict[str | None, dict[str, Any]] = {
    None: {},
    "episode": {"memory_types": ["episode"]},
    "semantic_memory": {"layers": ["semantic"]},
    "event_log": {"memory_types": ["event"]},
}
MAX_SOURCES = 100  # memories user messages are sent along


@router.post("/retrieve", response_model=RetrieveMemoryResponse, summary="Search memories by words, vectors or both")
async def retrieve(caller: Reader, body: RetrieveMemoryRequest, user_id: UserId = None) -> Response:
    user = _user(caller, user_id, body.user_id)
    memory = caller.memory
    spanned = body.start_time is not None or body.end_time is not None
    found = await memory.search(
        body.query,
        user_id=user,
        search_mode=MODES[body.retrieve_method],
        limit=body.top_k,
        time_range=(body.start_time, body.end_time) if spanned else None,
        min_relevance_score=body.radius or 0.0,
        **SUB_TYPES[body.memory_sub_type],
    )
    items = {item.id: item for item in await memory.get_many([hit.id for hit in found.hits], user_id=user)}
    hits = [hit for hit in found.hits if hit.id in items]  # one may have been deleted meanwhile
    original: list[dict[str, JsonValue]] = []
    for hit in hits[:MAX_SOURCES]:
        sources = await memory.sources(hit.id, user_id=user)
        original += [{"event_id": hit.id, **source.model_dump(mode="json")} for source in sources]
    response = RetrieveMemoryResponse(
        memories=[MemoryModel.of(items[hit.id]) for hit in hits],
        scores=[hit.relevance_score for hit in hits],
        importance_scores=[hit.importance for hit in hits],
        original_data=original,
        total_count=found.total_found,
    )
    return json_response(response)


@router.post("/fetch", response_model=FetchMemoryResponse, summary="Get memories by ids or memory_keys")
async def fetch(caller: Reader, body: FetchMemoryRequest, user_id: UserId = None) -> Response:
    user = _user(caller, user_id, body.user_id)
    found = list(await caller.memory.get_many(body.memory_ids, user_id=user))
    known = {name for item in found for name in (item.id, item.memory_key)}
    missing = [name for name in dict.fromkeys(body.memory_ids) if name not in known]
    return json_response(FetchMemoryResponse(memories=found, total_count=len(found), missing=missing))


@router.post(
    "/memorize",
    response_model=MemorizeResponse,
    status_code=201,
    responses={
        202: {"model": MemorizeResponse, "description": "Accepted: stored; extraction continues, see `Location`"}
    },
    summary="Add a conversation for each of its users",
)
async def memorize(
    caller: Writer, body: MemorizeRequest, user_id: UserId = None, idempotency_key: IdempotencyKey = None
) -> Response:
    """Messages of the history that are stored already are not added again."""
    users = [_user(caller, user_id, named) for named in dict.fromkeys(body.user_id_list)]
    receipts: list[Receipt] = []
    for user in users or [_user(caller, user_id, None)]:
        receipt = await caller.memory.add(
            [*body.history_raw_data_list, *body.new_raw_data_list],
            user_id=user,
            session_id=body.session_id,
            group_id=body.group_id,
            idempotency_key=idempotency_key,
            wait=False,
            actor=caller.access.actor("memorize"),
        )
        receipts.append(receipt)
    return accepted_response(MemorizeResponse(receipts=receipts), receipts)


def _user(caller: Caller, in_query: str | None, in_body: str | None) -> str:
    if in_query is not None and in_body is not None and in_query != in_body:
        raise InvalidInput("user_id", "differs between the query string and the body")
    return caller.access.user(in_query if in_body is None else in_body)
