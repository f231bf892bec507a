"""Memories: list, add, look at, change, undo, delete."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel

from ... import validation
from ...errors import InvalidInput
from ...models import Deletion, Layer, MemoryItem, Receipt, ReceiptState, Revision, SourceMessage, Status, Time
from ..bodies import AddBody, Limit, Name, Names, RestoreBody, UpdateBody
from ..callers import JsonRoute, UserCaller, UserDeleter, UserReader, UserWriter
from ..problems import Refused
from ..replies import Groups, Listing, MemoryPage, Related, reply, reply_memory

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)

MemoryId = Annotated[str, Path(min_length=1, max_length=validation.MAX_NAME, description="an id or a memory_key")]
IfMatch = Annotated[str | None, Header(max_length=64, description='the ETag that the change was made for, as `"3"`')]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1, max_length=validation.MAX_NAME, description="a repeated call with it returns the first receipt"
    ),
]
Cursor = Annotated[str | None, Query(min_length=1, max_length=validation.MAX_NAME)]
Types = Annotated[Names | None, Query(description="any of these; repeat it for several")]


@router.get("/memories", response_model=MemoryPage, summary="List memories, the newest first")
async def list_memories(
    caller: UserReader,
    session_id: Name | None = None,
    agent_id: Name | None = None,
    group_id: Name | None = None,
    memory_types: Types = None,
    layers: Annotated[list[Layer] | None, Query()] = None,
    tags: Types = None,
    since: Annotated[Time | None, Query(description="what happened then or later")] = None,
    until: Annotated[Time | None, Query(description="what happened before")] = None,
    as_of: Annotated[Time | None, Query(description="what was valid then")] = None,
    status: Status = "active",
    min_trust: Annotated[float | None, Query(ge=0, le=1)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    include_total: bool = False,
) -> Response:
    filters: dict[str, Any] = {
        "user_id": caller.user_id,
        "session_id": session_id,
        "agent_id": agent_id,
        "group_id": group_id,
        "memory_types": memory_types,
        "layers": layers,
        "tags": tags,
        "time_range": None if since is None and until is None else (since, until),
        "as_of": as_of,
        "status": status,
        "min_trust": min_trust,
    }
    page = await caller.memory.list(**filters, limit=limit, cursor=cursor)
    total = await caller.memory.count(**filters) if include_total else None
    return reply(MemoryPage(items=page.items, next_cursor=page.next_cursor, total=total))


@router.post(
    "/memories",
    response_model=Receipt,
    status_code=201,
    responses={202: {"model": Receipt, "description": "Accepted: it is durable, and work goes on at `Location`"}},
    summary="Add a statement, a conversation or ready candidates",
)
async def add_memories(caller: UserWriter, body: AddBody, idempotency_key: IdempotencyKey = None) -> Response:
    receipt = await caller.memory.add(
        body.what(),
        user_id=caller.user_id,
        session_id=body.session_id,
        agent_id=body.agent_id,
        group_id=body.group_id,
        memory_type=body.memory_type,
        importance=body.importance,
        tags=body.tags,
        metadata=body.metadata,
        occurred_at=body.occurred_at,
        expires_at=body.expires_at,
        trust=body.trust,
        idempotency_key=idempotency_key,
        wait=body.wait,
        actor=caller.access.actor(body.actor),
    )
    return reply_receipt(receipt)


def reply_receipt(receipt: Receipt) -> Response:
    return reply_accepted(receipt, [receipt])


def reply_accepted(told: BaseModel, receipts: list[Receipt]) -> Response:
    """201 if all is done; 202 and where to look if work goes on."""
    waiting = next((receipt for receipt in receipts if receipt.state is ReceiptState.ACCEPTED), None)
    if waiting is None:
        return reply(told, 201)
    return reply(told, 202, {"Location": f"/v1/jobs/{waiting.id}"})


@router.delete("/memories", response_model=Deletion, summary="Delete everything of a user")
async def delete_everything(
    caller: UserDeleter, all_: Annotated[bool, Query(alias="all", description="must be true: everything")]
) -> Response:
    if not all_:
        raise InvalidInput("all", "must be true: this deletes everything of the user")
    await caller.house.spool.forget(caller.user_id)
    deletion = await caller.memory.delete_all(caller.user_id)
    await note_deletion(caller, "user.delete", None, deletion)
    return reply(deletion)


@router.get("/memories/{memory_id}", response_model=MemoryItem, summary="One memory")
async def get_memory(caller: UserReader, memory_id: MemoryId) -> Response:
    return reply_memory(await caller.memory.get(memory_id, user_id=caller.user_id))


@router.patch("/memories/{memory_id}", response_model=MemoryItem, summary="Change some fields of a memory")
async def update_memory(
    caller: UserWriter, memory_id: MemoryId, body: UpdateBody, if_match: IfMatch = None
) -> Response:
    memory = await caller.memory.update(
        memory_id,
        user_id=caller.user_id,
        version=version_in(if_match),
        reason=body.reason,
        actor=caller.access.actor(body.actor),
        **body.changes(),
    )
    return reply_memory(memory)


@router.delete("/memories/{memory_id}", response_model=Deletion, summary="Delete a memory and its history for good")
async def delete_memory(
    caller: UserDeleter,
    memory_id: MemoryId,
    with_sources: Annotated[bool, Query(description="also the messages that it came from")] = False,
) -> Response:
    deletion = await caller.memory.delete(memory_id, user_id=caller.user_id, with_sources=with_sources)
    await note_deletion(caller, "memory.delete", memory_id, deletion)
    return reply(deletion)


async def note_deletion(caller: UserCaller, action: str, target: str | None, deletion: Deletion) -> None:
    """The audit log keeps that something was deleted and with which key: not what, and not whose it was."""
    known = target if target is not None and re.fullmatch("[0-9a-z]{26}", target) else None
    detail = f"{deletion.memories} memories, {deletion.messages} messages"
    await caller.memory.keys.log(action, target=known, detail=detail, by=caller.access.key_id)


@router.get("/memories/{memory_id}/history", response_model=Listing[Revision], summary="Every change of a memory")
async def get_history(caller: UserReader, memory_id: MemoryId) -> Response:
    changes = await caller.memory.history(memory_id, user_id=caller.user_id)
    return reply(Listing[Revision](items=list(changes)))


@router.get("/memories/{memory_id}/relations", response_model=Related, summary="What it does to others, and they to it")
async def get_relations(caller: UserReader, memory_id: MemoryId) -> Response:
    relations = await caller.memory.relations(memory_id, user_id=caller.user_id)
    own = (await caller.memory.get(memory_id, user_id=caller.user_id)).id
    ends = {end for relation in relations for end in (relation.memory_id, relation.target_id)} - {own}
    others = await caller.memory.get_many(sorted(ends)[: validation.MAX_LIMIT], user_id=caller.user_id)
    return reply(Related(items=list(relations), memories=list(others)))


@router.get(
    "/memories/{memory_id}/sources", response_model=Listing[SourceMessage], summary="The messages that it came from"
)
async def get_sources(caller: UserReader, memory_id: MemoryId) -> Response:
    found = await caller.memory.sources(memory_id, user_id=caller.user_id)
    return reply(Listing[SourceMessage](items=list(found)))


@router.post("/memories/{memory_id}/restore", response_model=MemoryItem, summary="Undo the last change, or go back")
async def restore_memory(
    caller: UserWriter, memory_id: MemoryId, body: RestoreBody, if_match: IfMatch = None
) -> Response:
    expected = version_in(if_match)
    if expected is not None:
        present = await caller.memory.get(memory_id, user_id=caller.user_id)
        if present.version != expected:
            raise Refused(412, "version_conflict", f"the memory is at version {present.version}, not {expected}")
    memory = await caller.memory.restore(
        memory_id,
        user_id=caller.user_id,
        version=body.version,
        reason=body.reason,
        actor=caller.access.actor(body.actor),
    )
    return reply_memory(memory)


def version_in(if_match: str | None) -> int | None:
    """The version that an ETag names; `*` is any."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = re.fullmatch(r'\s*"([0-9]{1,9})"\s*', if_match)
    if found is None:
        raise Refused(412, "version_conflict", f"If-Match must be an ETag of this memory, not {if_match!r}")
    return int(found[1])


@router.get("/timeline", response_model=MemoryPage, summary="What was valid when, what is over included")
async def get_timeline(
    caller: UserReader,
    since: Time | None = None,
    until: Time | None = None,
    memory_types: Types = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> Response:
    page = await caller.memory.timeline(
        user_id=caller.user_id,
        time_range=None if since is None and until is None else (since, until),
        memory_types=memory_types,
        limit=limit,
        cursor=cursor,
    )
    return reply(MemoryPage(items=page.items, next_cursor=page.next_cursor))


@router.get("/profile", response_model=MemoryPage, summary="What is known of the user and of their groups")
async def get_profile(caller: UserReader, limit: Limit = 100, cursor: Cursor = None) -> Response:
    page = await caller.memory.list(
        user_id=caller.user_id, memory_types=["profile", "group_profile"], limit=limit, cursor=cursor
    )
    return reply(MemoryPage(items=page.items, next_cursor=page.next_cursor))


@router.get("/groups", response_model=Groups, summary="The groups of a user, with how many memories each has")
async def get_groups(caller: UserReader, memory_types: Types = None) -> Response:
    return reply(Groups(groups=await caller.memory.usage.groups(user_id=caller.user_id, memory_types=memory_types)))
