"""Routes of maintenance: compress, expire, undo.

A plan is only shown. The server makes it again when it acts: with a plan from outside, a client could write anything.
"""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...keep.compress import CompressPlan, CompressReport
from ...keep.maintain import MaintenanceReport
from ...keep.undo import UndoPlan, UndoReport
from ..auth import UserReader, UserWriter
from ..requests import JsonRoute, UndoBody
from ..responses import json_response

router = APIRouter(prefix="/v1", tags=["maintenance"], route_class=JsonRoute)


@router.post("/compress/plan", response_model=CompressPlan, summary="Plan a compression")
async def plan_compress(caller: UserReader) -> Response:
    return json_response(await caller.memory.maintenance.compress_plan(user_id=caller.user_id))


@router.post("/compress", response_model=CompressReport, summary="Replace old, unused memories by a few")
async def compress(caller: UserWriter) -> Response:
    actor = caller.access.actor("compress")
    return json_response(await caller.memory.maintenance.compress(user_id=caller.user_id, actor=actor))


@router.post(
    "/maintenance/plan", response_model=MaintenanceReport, summary="Count the memories to archive and to compress"
)
async def plan_maintenance(caller: UserReader) -> Response:
    return json_response(await caller.memory.maintenance.run(user_id=caller.user_id, dry_run=True))


@router.post("/maintenance", response_model=MaintenanceReport, summary="Archive expired memories, and compress")
async def run_maintenance(caller: UserWriter) -> Response:
    return json_response(await caller.memory.maintenance.run(user_id=caller.user_id))


@router.post("/undo/plan", response_model=UndoPlan, summary="Plan an undo")
async def plan_undo(caller: UserReader, body: UndoBody) -> Response:
    return json_response(await caller.memory.maintenance.undo_plan(user_id=caller.user_id, **dict(body)))


@router.post(
    "/undo", response_model=UndoReport, summary="Undo a change, everything from a source, or everything since a time"
)
async def undo(caller: UserWriter, body: UndoBody) -> Response:
    by = caller.access.actor(None)
    return json_response(await caller.memory.maintenance.undo(user_id=caller.user_id, by=by, **dict(body)))
