"""Routes of memories (list, add, read, change, restore, delete) and of search."""

import re
from typing import Annotated, Any

from fastapi import Depends, Header, Query, Request

from ... import validation
from ...errors import InvalidInput
from ...ids import new_id
from ...models import (
    Answer,
    Deletion,
    MemoryItem,
    MessagePage,
    Page,
    Recall,
    Receipt,
    Relation,
    Revision,
    SearchResult,
    SourceMessage,
    Time,
)
from ...read.profile import Profile
from ..auth import Caller, UserDeleter, UserEditor, UserReader, UserWriter
from ..errors import HttpError
from ..requests import (
    AddBody,
    AnswerBody,
    ContextBody,
    DeletesBody,
    Limit,
    Name,
    Names,
    RelationBody,
    RestoreBody,
    SearchBody,
    UpdateBody,
    UpdatesBody,
    filter_query,
    time_range,
)
from ..responses import ContextReply, Groups, Listing, MemoryPage, Related, Removed
from . import Id, make_router

router = make_router("memories")
finding = make_router("search")

IfMatch = Annotated[str | None, Header(max_length=64, description='the ETag of the version to change, such as `"3"`')]
REPEATED = "a repeated call with it returns the first receipt"
IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=validation.MAX_NAME, description=REPEATED)]
Cursor = Annotated[str | None, Query(min_length=1, max_length=validation.MAX_NAME)]
Types = Annotated[Names | None, Query(description="any of these; repeat it for several")]
ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"model": Receipt, "description": "Accepted: stored; extraction continues, see `Location`"}
}


@router.get("/memories", summary="List memories, newest first; messages only if `memory_types` names them")
async def list_memories(
    caller: UserReader,
    filters: Annotated[dict[str, Any], Depends(filter_query)],
    limit: Limit = 100,
    cursor: Cursor = None,
    include_total: bool = False,
) -> MemoryPage:
    page = await caller.memory.list(user_id=caller.user_id, limit=limit, cursor=cursor, **filters)
    total = await caller.memory.count(user_id=caller.user_id, **filters) if include_total else None
    return _page(page, total)


def _page(page: Page, total: int | None = None) -> MemoryPage:
    return MemoryPage(items=page.items, next_cursor=page.next_cursor, total=total)


@router.post(
    "/memories", status_code=201, responses=ACCEPTED, summary="Add a statement, a conversation or ready candidates"
)
async def add_memories(
    request: Request, caller: UserWriter, body: AddBody, idempotency_key: IdempotencyKey = None
) -> Receipt:
    # A request that takes too long is answered with its key, so that the client can ask what became of it.
    key = request.scope["idempotency_key"] = idempotency_key or new_id()
    return await caller.memory.add(
        body.content(),
        user_id=caller.user_id,
        idempotency_key=key,
        actor=caller.access.actor(body.actor),
        **body.fields(),
    )


@router.delete("/memories", summary="Delete all data of a user")
async def delete_everything(
    caller: UserDeleter, all_: Annotated[bool, Query(alias="all", description="must be true: everything")]
) -> Deletion:
    if not all_:
        raise InvalidInput("all", "must be true: this deletes everything of the user")
    deletion = await caller.memory.delete_all(caller.user_id)
    await caller.app.uploads.forget(caller.user_id)
    await log_deletion(caller, "user.delete", None, deletion)
    return deletion


@router.get("/memories/{memory_id}", summary="One memory, by its id or memory_key")
async def get_memory(caller: UserReader, memory_id: Id) -> MemoryItem:
    return await caller.memory.get(memory_id, user_id=caller.user_id)


@router.post("/memories/update", summary="Change several memories, or none of them")
async def update_memories(caller: UserEditor, body: UpdatesBody) -> Listing[MemoryItem]:
    changes = [one.changes() for one in body.changes]
    actor = caller.access.actor(body.actor)
    done = await caller.memory.update_many(changes, user_id=caller.user_id, reason=body.reason, actor=actor)
    return Listing(items=done)


@router.post("/memories/delete", summary="Delete several memories, or none of them")
async def delete_memories(caller: UserDeleter, body: DeletesBody) -> Deletion:
    ids, sources = body.memory_ids, body.with_sources
    deletion = await caller.memory.delete_many(ids, user_id=caller.user_id, with_sources=sources)
    await log_deletion(caller, "memory.delete", None, deletion)
    return deletion


@router.patch("/memories/{memory_id}", summary="Change some fields of a memory")
async def update_memory(caller: UserEditor, memory_id: Id, body: UpdateBody, if_match: IfMatch = None) -> MemoryItem:
    return await caller.memory.update(
        memory_id,
        user_id=caller.user_id,
        expected_version=_version_in(if_match),
        reason=body.reason,
        actor=caller.access.actor(body.actor),
        **body.changes(),
    )


@router.delete("/memories/{memory_id}", summary="Delete a memory and its history")
async def delete_memory(
    caller: UserDeleter,
    memory_id: Id,
    with_sources: Annotated[bool, Query(description="also delete its source messages")] = False,
) -> Deletion:
    deletion = await caller.memory.delete(memory_id, user_id=caller.user_id, with_sources=with_sources)
    await log_deletion(caller, "memory.delete", memory_id, deletion)
    return deletion


async def log_deletion(caller: Caller, action: str, target: str | None, deletion: Deletion) -> None:
    """Record a deletion and its key in the audit log, without the content and the user."""
    known = target if target is not None and re.fullmatch("[0-9a-z]{26}", target) else None
    detail = f"{deletion.memories} memories, {deletion.messages} messages"
    await caller.memory.keys.log(action, target=known, detail=detail, actor=caller.access.key_id)


@router.get("/memories/{memory_id}/history", summary="The changes of a memory, oldest first")
async def get_history(caller: UserReader, memory_id: Id) -> Listing[Revision]:
    return Listing(items=await caller.memory.history(memory_id, user_id=caller.user_id))


@router.get("/memories/{memory_id}/relations", summary="The relations of a memory, and the related memories")
async def get_relations(caller: UserReader, memory_id: Id) -> Related:
    relations = await caller.memory.relations.list(memory_id, user_id=caller.user_id)
    own = (await caller.memory.get(memory_id, user_id=caller.user_id)).id
    ends = {end for relation in relations for end in (relation.memory_id, relation.target_id)} - {own}
    others = await caller.memory.get_many(sorted(ends)[: validation.MAX_LIMIT], user_id=caller.user_id)
    return Related(items=list(relations), memories=list(others))


@router.post("/memories/{memory_id}/relations", status_code=201, summary="Relate a memory to another one")
async def add_relation(caller: UserWriter, memory_id: Id, body: RelationBody) -> Relation:
    return await caller.memory.relations.add(memory_id, user_id=caller.user_id, **dict(body))


@router.delete("/memories/{memory_id}/relations", summary="Remove the relations from a memory to another one")
async def remove_relations(caller: UserWriter, memory_id: Id, target_id: Name) -> Removed:
    return Removed(removed=await caller.memory.relations.remove(memory_id, target_id, user_id=caller.user_id))


@router.get("/memories/{memory_id}/sources", summary="The source messages of a memory")
async def get_sources(caller: UserReader, memory_id: Id) -> Listing[SourceMessage]:
    return Listing(items=await caller.memory.sources(memory_id, user_id=caller.user_id))


@router.post("/memories/{memory_id}/restore", summary="Restore an earlier version")
async def restore_memory(caller: UserEditor, memory_id: Id, body: RestoreBody, if_match: IfMatch = None) -> MemoryItem:
    expected = _version_in(if_match) or body.expected_version
    fields = {**dict(body), "actor": caller.access.actor(body.actor), "expected_version": expected}
    return await caller.memory.restore(memory_id, user_id=caller.user_id, **fields)


def _version_in(if_match: str | None) -> int | None:
    """Return the version of an ETag; None for `*`."""
    if if_match is None or if_match.strip() == "*":
        return None
    found = re.fullmatch(r'\s*"([0-9]{1,9})"\s*', if_match)
    if found is None:
        raise HttpError(412, "version_conflict", f"If-Match must be an ETag of this memory, not {if_match!r}")
    return int(found[1])


@router.get("/messages", summary="List stored messages, newest first")
async def list_messages(
    caller: UserReader, session_id: Name | None = None, limit: Limit = 100, cursor: Cursor = None
) -> MessagePage:
    return await caller.memory.messages(user_id=caller.user_id, session_id=session_id, limit=limit, cursor=cursor)


@router.get("/timeline", summary="Memories by validity, including ended ones")
async def get_timeline(
    caller: UserReader,
    since: Time | None = None,
    until: Time | None = None,
    memory_types: Types = None,
    limit: Limit = 200,
    cursor: Cursor = None,
) -> MemoryPage:
    page = await caller.memory.timeline(
        user_id=caller.user_id,
        time_range=time_range(since, until),
        memory_types=memory_types,
        limit=limit,
        cursor=cursor,
    )
    return _page(page)


@router.get("/profile", summary="What is known of the user, or of one of their groups, each line once")
async def get_profile(
    caller: UserReader, group_id: Name | None = None, limit: Limit = 100, cursor: Cursor = None
) -> Profile:
    return await caller.memory.usage.profile(user_id=caller.user_id, group_id=group_id, limit=limit, cursor=cursor)


@router.get("/groups", summary="The groups of a user, with the number of memories in each")
async def get_groups(caller: UserReader, memory_types: Types = None) -> Groups:
    return Groups(groups=await caller.memory.usage.groups(user_id=caller.user_id, memory_types=memory_types))


@finding.post("/search", summary="Search memories; `explain` adds the parts of each score")
async def search(caller: UserReader, body: SearchBody) -> SearchResult:
    return await caller.memory.search(user_id=caller.user_id, **dict(body))


@finding.post("/answer", summary="Answer a question from memories; needs a language model")
async def answer(caller: UserReader, body: AnswerBody) -> Answer:
    return await caller.memory.answer(user_id=caller.user_id, **dict(body))


@finding.post("/context", summary="The best memories as one block for a prompt")
async def context(caller: UserReader, body: ContextBody) -> ContextReply:
    return ContextReply(context=await caller.memory.context(user_id=caller.user_id, **dict(body)))


@finding.get("/recalls", summary="Recent searches and the memories they returned")
async def recalls(caller: UserReader, since: Time | None = None, limit: Limit = 100) -> Listing[Recall]:
    return Listing(items=await caller.memory.usage.recalls(user_id=caller.user_id, since=since, limit=limit))
