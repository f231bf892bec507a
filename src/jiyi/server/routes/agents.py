"""Routes for agents: sessions (turns, summaries, skills) and the MemUnit API (retrieve, fetch, memorize)."""

from collections.abc import Sequence
from typing import Any

from fastapi import Response
from pydantic import JsonValue

from ...errors import InvalidInput
from ...models import Hit, Message, Receipt, ReceiptState, SearchMode
from ..auth import Caller, Reader, UserId, UserWriter, Writer
from ..json_body import json_response
from ..requests import (
    FetchMemoryRequest,
    MemorizeRequest,
    RetrieveMemoryRequest,
    RetrieveMethod,
    SessionEndBody,
    SkillBody,
    SummaryBody,
    TurnBody,
    time_range,
)
from ..responses import FetchMemoryResponse, Listing, MemorizeResponse, MemoryModel, RetrieveMemoryResponse
from . import make_router
from .memories import ACCEPTED, IdempotencyKey

sessions = make_router("sessions")
memunits = make_router("memunits")

MODES: dict[RetrieveMethod, SearchMode] = {"KEYWORD": "keyword", "VECTOR": "semantic", "HYBRID": "hybrid"}
SUB_TYPES: dict[str | None, dict[str, Any]] = {
    None: {},
    "episode": {"memory_types": ["episode"]},
    "semantic_memory": {"layers": ["semantic"]},
    "event_log": {"memory_types": ["event"]},
}
MAX_SOURCES = 100  # hits whose source messages are sent along


@sessions.post("/turns", status_code=201, responses=ACCEPTED, summary="Add a turn of a chat")
async def add_turn(caller: UserWriter, body: TurnBody, idempotency_key: IdempotencyKey = None) -> Receipt:
    """Unlike the engine's `observe`, it answers when the turn is stored."""
    turn = [Message(text=body.user_text)]
    if body.assistant_text is not None:
        turn.append(Message(text=body.assistant_text, role="assistant"))
    return await caller.memory.add(
        turn,
        user_id=caller.user_id,
        session_id=body.session_id,
        agent_id=body.agent_id,
        group_id=body.group_id,
        metadata=body.metadata,
        idempotency_key=idempotency_key,
        wait=False,
        actor=caller.access.actor("observe"),
    )


@sessions.post("/sessions/end", summary="End a session: wait for its jobs")
async def end_session(caller: UserWriter, body: SessionEndBody) -> Listing[Receipt]:
    return Listing(items=await caller.memory.sessions.end(body.session_id, user_id=caller.user_id))


@sessions.post("/summaries", status_code=201, responses=ACCEPTED, summary="Store a context summary")
async def add_summary(caller: UserWriter, body: SummaryBody) -> Receipt:
    return await caller.memory.sessions.add_summary(user_id=caller.user_id, **dict(body))


@sessions.post("/skills", status_code=201, responses=ACCEPTED, summary="Store the workflow of a successful skill")
async def record_skill(caller: UserWriter, body: SkillBody) -> Receipt:
    return await caller.memory.sessions.record_skill(user_id=caller.user_id, **dict(body))


@memunits.post("/retrieve", summary="Search memories by words, vectors or both")
async def retrieve(caller: Reader, body: RetrieveMemoryRequest, user_id: UserId = None) -> RetrieveMemoryResponse:
    user = _user(caller, user_id, body.user_id)
    memory = caller.memory
    found = await memory.search(
        body.query,
        user_id=user,
        search_mode=MODES[body.retrieve_method],
        limit=body.top_k,
        time_range=time_range(body.start_time, body.end_time),
        radius=body.radius,
        group_id=body.group_id,
        **SUB_TYPES[body.memory_sub_type],
    )
    items = {item.id: item for item in await memory.get_many([hit.id for hit in found.hits], user_id=user)}
    hits = [hit for hit in found.hits if hit.id in items]  # one may have been deleted meanwhile
    original: list[dict[str, JsonValue]] = []
    for hit in hits[:MAX_SOURCES]:
        sources = await memory.sources(hit.id, user_id=user)
        original += [{"event_id": hit.id, **source.model_dump(mode="json")} for source in sources]
    return RetrieveMemoryResponse(
        memories=[MemoryModel.of(items[hit.id]) for hit in hits],
        scores=[hit.relevance_score for hit in hits],
        importance_scores=[hit.importance for hit in hits],
        original_data=original,
        groups=_by_group(hits),
        total_count=found.total_found,
    )


def _by_group(hits: Sequence[Hit]) -> dict[str, list[str]]:
    """Return the ids of the hits by group, the group of the best hit first."""
    groups: dict[str, list[str]] = {}
    for hit in hits:
        groups.setdefault(hit.group_id or "", []).append(hit.id)
    return groups


@memunits.post("/fetch", summary="Get memories by ids or memory_keys")
async def fetch(caller: Reader, body: FetchMemoryRequest, user_id: UserId = None) -> FetchMemoryResponse:
    user = _user(caller, user_id, body.user_id)
    found = list(await caller.memory.get_many(body.memory_ids, user_id=user))
    known = {name for item in found for name in (item.id, item.memory_key)}
    missing = [name for name in dict.fromkeys(body.memory_ids) if name not in known]
    return FetchMemoryResponse(memories=found, total_count=len(found), missing=missing)


@memunits.post(
    "/memorize",
    response_model=MemorizeResponse,
    status_code=201,
    responses={202: {**ACCEPTED[202], "model": MemorizeResponse}},
    summary="Add a conversation for each of its users",
)
async def memorize(
    caller: Writer, body: MemorizeRequest, user_id: UserId = None, idempotency_key: IdempotencyKey = None
) -> Response:
    """Messages of the history that are stored already are not added again. Each of several users gets only memories of
    what he told himself or what is about him, and his own episodes."""
    users = [_user(caller, user_id, named) for named in dict.fromkeys(body.user_id_list)]
    if body.user_names and len(users) > 1:
        raise InvalidInput("user_names", "are those of one user; name the messages of several users by their ids")
    receipts = [
        await caller.memory.add(
            [*body.history_raw_data_list, *body.new_raw_data_list],
            user_id=user,
            session_id=body.session_id,
            group_id=body.group_id,
            user_names=body.user_names,
            own_only=len(users) > 1,
            idempotency_key=idempotency_key,
            wait=False,
            actor=caller.access.actor("memorize"),
        )
        for user in users or [_user(caller, user_id, None)]
    ]
    waiting = next((receipt for receipt in receipts if receipt.state is ReceiptState.ACCEPTED), None)
    location = {} if waiting is None else {"Location": f"/v1/jobs/{waiting.id}"}
    return await json_response(MemorizeResponse(receipts=receipts), 201 if waiting is None else 202, location)


def _user(caller: Caller, in_query: str | None, in_body: str | None) -> str:
    if in_query is not None and in_body is not None and in_query != in_body:
        raise InvalidInput("user_id", "differs between the query string and the body")
    return caller.access.user(in_query if in_body is None else in_body)
