"""Keeping a memory in order: compress what is old and unused, look after it, take back what came from a source.

What would be done can be looked at first. It is worked out again when it is done: a plan that came from outside would
be a way to write whatever one likes.
"""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...keep.compress import CompressPlan, CompressReport
from ...keep.maintain import MaintenanceReport
from ...keep.undo import UndoPlan, UndoReport
from ..bodies import UndoBody
from ..callers import JsonRoute, UserReader, UserWriter
from ..replies import reply

router = APIRouter(prefix="/v1", tags=["keeping"], route_class=JsonRoute)


@router.post("/compress/plan", response_model=CompressPlan, summary="What compressing would do now")
async def plan_compress(caller: UserReader) -> Response:
    return reply(await caller.memory.maintenance.compress_plan(user_id=caller.user_id))


@router.post("/compress", response_model=CompressReport, summary="Replace many old, unused memories by a few")
async def compress(caller: UserWriter) -> Response:
    actor = caller.access.actor("compress")
    return reply(await caller.memory.maintenance.compress(user_id=caller.user_id, actor=actor))


@router.post("/upkeep/plan", response_model=MaintenanceReport, summary="What there is to archive and to compress")
async def plan_upkeep(caller: UserReader) -> Response:
    return reply(await caller.memory.maintenance.run(user_id=caller.user_id, dry_run=True))


@router.post("/upkeep", response_model=MaintenanceReport, summary="Archive what has run out, and compress")
async def upkeep(caller: UserWriter) -> Response:
    return reply(await caller.memory.maintenance.run(user_id=caller.user_id))


@router.post("/undo/plan", response_model=UndoPlan, summary="What undoing would do")
async def plan_undo(caller: UserReader, body: UndoBody) -> Response:
    return reply(await caller.memory.maintenance.undo_plan(user_id=caller.user_id, **dict(body)))


@router.post(
    "/undo", response_model=UndoReport, summary="Take back a change, what came from a source, or all since a moment"
)
async def undo(caller: UserWriter, body: UndoBody) -> Response:
    by = caller.access.actor(None)
    return reply(await caller.memory.maintenance.undo(user_id=caller.user_id, by=by, **dict(body)))
