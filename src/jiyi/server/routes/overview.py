"""Routes of overviews: change log, people and things, review, the view of an agent, settings, verification."""

import asyncio
import shutil
from typing import Annotated, Literal

from fastapi import Query, Response
from fastapi.responses import StreamingResponse

from ...areas.recalls import RecallReport
from ...areas.standing import standing_memories
from ...engine import runtime
from ...keep.verify import VerifyReport
from ...models import MemoryItem
from ...read.overview import ChangePage, ReviewItem, Subject, UserSize
from ...store.units import MemUnitPage
from ..auth import Admin, Reader, UserReader
from ..requests import Limit, Name, RecallBody
from ..responses import Listing
from ..settings_report import EffectiveSetting, effective_settings
from . import make_router
from .memories import Cursor
from .transfer import file_chunks

router = make_router("overview")
ChangeSource = Literal["chat", "file", "agent", "model", "person", "jiyi"]


@router.get("/changes", summary="The change log, newest first")
async def changes(
    caller: UserReader, source: ChangeSource | None = None, limit: Limit = 100, cursor: Cursor = None
) -> ChangePage:
    return await caller.memory.usage.changes(user_id=caller.user_id, source=source, limit=limit, cursor=cursor)


@router.get("/units", summary="Units of conversation with subject, summary and narrative, the last begun first")
async def units(
    caller: UserReader, session_id: Name | None = None, limit: Limit = 100, cursor: Cursor = None
) -> MemUnitPage:
    return await caller.memory.usage.units(user_id=caller.user_id, session_id=session_id, limit=limit, cursor=cursor)


@router.get("/subjects", summary="People, places, organisations, projects and things that memories name")
async def subjects(caller: UserReader) -> Listing[Subject]:
    return Listing(items=await caller.memory.usage.subjects(user_id=caller.user_id))


@router.get("/mentions", summary="The memories that name a subject, also ended ones")
async def mentions(
    caller: UserReader, name: Annotated[Name, Query(description="a name or alias")], limit: Limit = 500
) -> Listing[MemoryItem]:
    return Listing(items=await caller.memory.usage.mentions(name, user_id=caller.user_id, limit=limit))


@router.get(
    "/review",
    summary="Memories that need a look: conflicts, unclear endings, repetitions, uncertain ones",
)
async def review(caller: UserReader, limit: Limit = 100) -> Listing[ReviewItem]:
    return Listing(items=await caller.memory.usage.review(user_id=caller.user_id, limit=limit))


@router.post("/recall", summary="What an agent receives for a message, and why")
async def recall(caller: UserReader, body: RecallBody) -> RecallReport:
    options = body.model_dump(exclude={"said", "private"})
    private = body.private and (body.agent_id is not None or body.group_id is not None)
    return await caller.memory.recall(body.said, user_id=caller.user_id, private=private, **options)


@router.get("/standing", summary="Wishes and limits of the user that apply to every answer, newest first")
async def standing(
    caller: UserReader, session_id: Name | None = None, agent_id: Name | None = None, group_id: Name | None = None
) -> Listing[MemoryItem]:
    scope = {"session_id": session_id, "agent_id": agent_id, "group_id": group_id}
    return Listing(items=await standing_memories(caller.memory, caller.user_id, scope))


@router.get("/sizes", summary="All users with the numbers of their memories and messages")
async def sizes(caller: Reader) -> Listing[UserSize]:
    caller.access.need_all_users()
    return Listing(items=await caller.memory.usage.sizes())


@router.get("/settings", summary="The settings in effect with their sources, without secrets")
async def settings(caller: Admin) -> Listing[EffectiveSetting]:
    caller.access.need_all_users()
    return Listing(items=await asyncio.to_thread(effective_settings, runtime(caller.memory).settings))


@router.post("/verify", summary="Compare the index with the memories; nothing is changed")
async def verify(caller: UserReader) -> VerifyReport:
    return await caller.memory.maintenance.verify(user_id=caller.user_id)


@router.get(
    "/backup",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/vnd.sqlite3": {}}, "description": "The file"}},
    summary="A backup of the whole store",
)
async def backup(caller: Admin) -> Response:
    caller.access.need_all_users()
    folder = await caller.app.uploads.export_folder(None)
    try:
        written = await caller.memory.transfer.backup(folder / "memories")
        await caller.memory.keys.log("store.backup", actor=caller.access.key_id)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        raise
    headers = {
        "Content-Disposition": 'attachment; filename="memory-backup.db"',
        "Content-Length": str(written.size_bytes),
    }
    return StreamingResponse(file_chunks(folder), 200, headers, "application/vnd.sqlite3")
