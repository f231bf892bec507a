"""Routes of memories: list, add, read, change, restore, delete."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from pydantic import BaseModel

from ... import validation
from ...errors import InvalidInput
from ...models import Deletion, MemoryItem, MessagePage, Receipt, ReceiptState, Revision, SourceMessage, Time
from ..auth import UserCaller, UserDeleter, UserReader, UserWriter
from ..errors import HttpError
from ..requests import AddBody, JsonRoute, Limit, Name, Names, RestoreBody, UpdateBody, filter_query
from ..responses import Groups, Listing, MemoryPage, Related, json_response, memory_response

router = APIRouter(prefix="/v1", tags=["memories"], route_class=JsonRoute)

MemoryId = Annotated[str, Path(min_length=1, max_length=validation.MAX_NAME, description="an id or a memory_key")]
IfMatch = Annotated[str | None, Header(max_length=64, description='the ETag of the version to change, such as `"3"`')]
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
    filters: Annotated[dict[str, Any], Depends(filter_query)],
    limit: Limit = 100,
    cursor: Cursor = None,
    include_total: bool = False,
) -> Response:
    user_id = caller.user_id
    page = await caller.memory.list(user_id=user_id, limit=limit, cursor=cursor, **filters)
    total = await caller.memory.count(user_id=user_id, **filters) if include_total else None
    return json_response(MemoryPage(items=page.items, next_cursor=page.next_cursor, total=total))


@router.post(
    "/memories",
    response_model=Receipt,
    status_code=201,
    responses={202: {"model": Receipt, "description": "Accepted: stored; extraction continues, see `Location`"}},
    summary="Add a statement, a conversation or ready candidates",
)
async def add_memories(caller: UserWriter, body: AddBody, idempotency_key: IdempotencyKey = None) -> Response:
    receipt = await caller.memory.add(
        body.content(),
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
    return receipt_response(receipt)


def receipt_response(receipt: Receipt) -> Response:
    return accepted_response(receipt, [receipt])


def accepted_response(value: BaseModel, receipts: list[Receipt]) -> Response:
    """Return 201 if everything is done, or 202 with the location of the job."""
    waiting = next((receipt for receipt in receipts if receipt.state is ReceiptState.ACCEPTED), None)
    if waiting is None:
        return json_response(value, 201)
    return json_response(value, 202, {"Location": f"/v1/jobs/{waiting.id}"})


@router.delete("/memories", response_model=Deletion, summary="Delete everything of a user")
async def delete_everything(
    caller: UserDeleter, all_: Annotated[bool, Query(alias="all", description="must be true: everything")]
) -> Response:
    if not all_:
        raise InvalidInput("all", "must be true: this deletes everything of the user")
    await caller.app.uploads.forget(caller.user_id)
    deletion = await caller.memory.delete_all(caller.user_id)
    await log_deletion(caller, "user.delete", None, deletion)
    return json_response(deletion)


@router.get("/memories/{memory_id}", response_model=MemoryItem, summary="One memory")
async def get_memory(caller: UserReader, memory_id: MemoryId) -> Response:
    return memory_response(await caller.memory.get(memory_id, user_id=caller.user_id))


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
    return memory_response(memory)


@router.delete("/memories/{memory_id}", response_model=Deletion, summary="Delete a memory and its history")
async def delete_memory(
    caller: UserDeleter,
    memory_id: MemoryId,
    with_sources: Annotated[bool, Query(description="also delete its source messages")] = False,
) -> Response:
    deletion = await caller.memory.delete(memory_id, user_id=caller.user_id, with_sources=with_sources)
    await log_deletion(caller, "memory.delete", memory_id, deletion)
    return json_response(deletion)


async def log_deletion(caller: UserCaller, action: str, target: str | None, deletion: Deletion) -> None:
    """Record a deletion and its key in the audit log, without the content and the user."""
    known = target if target is not None and re.fullmatch("[0-9a-z]{26}", target) else None
    detail = f"{deletion.memories} memories, {deletion.messages} messages"
    await caller.memory.keys.log(action, target=known, detail=detail, by=caller.access.key_id)


@router.get(
    "/memories/{memory_id}/history", response_model=Listing[Revision], summary="The changes of a memory, oldest first"
)
async def get_history(caller: UserReader, memory_id: MemoryId) -> Response:
    changes = await caller.memory.history(memory_id, user_id=caller.user_id)
    return json_response(Listing[Revision](items=list(changes)))


@router.get(
    "/memories/{memory_id}/relations",
    response_model=Related,
    summary="The relations of a memory, and the related memories",
)
async def get_relations(caller: UserReader, memory_id: MemoryId) -> Response:
    relations = await caller.memory.relations(memory_id, user_id=caller.user_id)
    own = (await caller.memory.get(memory_id, user_id=caller.user_id)).id
    ends = {end for relation in relations for end in (relation.memory_id, relation.target_id)} - {own}
    others = await caller.memory.get_many(sorted(ends)[: validation.MAX_LIMIT], user_id=caller.user_id)
    return json_response(Related(items=list(relations), memories=list(others)))


@router.get(
    "/memories/{memory_id}/sources", response_model=Listing[SourceMessage], summary="The source messages of a memory"
)
async def get_sources(caller: UserReader, memory_id: MemoryId) -> Response:
    found = await caller.memory.sources(memory_id, user_id=caller.user_id)
    return json_response(Listing[SourceMessage](items=list(found)))


@router.post("/memories/{memory_id}/restore", response_model=MemoryItem, summary="Restore an earlier version")
async def restore_memory(
    caller: UserWriter, memory_id: MemoryId, body: RestoreBody, if_match: IfMatch = None
) -> Response:
    expected = version_in(if_match)
    if expected is not None:
        present = await caller.memory.get(memory_id, user_id=caller.user_id)
        if present.version != expected:
            raise HttpError(412, "version_conflict", f"the memory is at version {present.version}, not {expected}")
    memory = await caller.memory.restore(
        memory_id,
        user_id=caller.user_id,
        version=body.version,
        reason=body.reason,
        actor=caller.access.actor(body.actor),
    )
    return memory_response(memory)


def version_in(if_match: str | None) -> int | None:
    """Return the version of an ETag; None for `*`."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = re.fullmatch(r'\s*"([0-9]{1,9})"\s*', if_match)
    if found is None:
        raise HttpError(412, "version_conflict", f"If-Match must be an ETag of this memory, not {if_match!r}")
    return int(found[1])


@router.get("/messages", response_model=MessagePage, summary="List stored messages, the last stored first")
async def list_messages(
    caller: UserReader, session_id: Name | None = None, limit: Limit = 100, cursor: Cursor = None
) -> Response:
    page = await caller.memory.messages(user_id=caller.user_id, session_id=session_id, limit=limit, cursor=cursor)
    return json_response(page)


@router.get("/timeline", response_model=MemoryPage, summary="Memories by validity, including ended ones")
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
    return json_response(MemoryPage(items=page.items, next_cursor=page.next_cursor))


@router.get("/profile", response_model=MemoryPage, summary="The profiles of the user and of their groups")
async def get_profile(caller: UserReader, limit: Limit = 100, cursor: Cursor = None) -> Response:
    page = await caller.memory.list(
        user_id=caller.user_id, memory_types=["fact", "preference", "pattern"], limit=limit, cursor=cursor
    )
    return json_response(MemoryPage(items=page.items, next_cursor=page.next_cursor))


@router.get("/groups", response_model=Groups, summary="The groups of a user, with the number of memories in each")
async def get_groups(caller: UserReader, memory_types: Types = None) -> Response:
    return json_response(
        Groups(groups=await caller.memory.usage.groups(user_id=caller.user_id, memory_types=memory_types))
    )
