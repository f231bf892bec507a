"""Importing past chats: a file is uploaded, and its progress can be followed."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from ... import checks
from ..bodies import Name
from ..callers import JsonRoute, UserReader, UserWriter
from ..events import follow, stream
from ..replies import Import, Listing, reply
from .jobs import STREAM

router = APIRouter(prefix="/v1", tags=["import"], route_class=JsonRoute)

ImportId = Annotated[str, Path(min_length=1, max_length=checks.MAX_NAME)]
FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "the file's bytes",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "/imports", response_model=Import, status_code=202, openapi_extra=FILE, summary="Upload a chat file to be imported"
)
async def start_import(
    request: Request,
    caller: UserWriter,
    filename: Annotated[Name, Query(description="its ending tells what it is: .json, .jsonl, .gz or .zip")],
    agent_id: Name | None = None,
    group_id: Name | None = None,
) -> Response:
    started = await caller.house.spool.take(
        request.stream(),
        user_id=caller.user_id,
        filename=filename,
        agent_id=checks.optional_name("agent_id", agent_id),
        group_id=checks.optional_name("group_id", group_id),
        actor=caller.access.actor("import"),
    )
    return reply(started, 202, {"Location": f"/v1/imports/{started.id}"})


@router.get("/imports", response_model=Listing[Import], summary="Imports, the newest first")
async def list_imports(caller: UserReader) -> Response:
    return reply(Listing[Import](items=caller.house.spool.of(caller.user_id)))


@router.get("/imports/{import_id}", response_model=Import, summary="One import")
async def get_import(caller: UserReader, import_id: ImportId) -> Response:
    return reply(caller.house.spool.get(import_id, caller.user_id))


@router.get(
    "/imports/{import_id}/events", response_class=Response, responses=STREAM, summary="An import's progress, as it goes"
)
async def follow_import(request: Request, caller: UserReader, import_id: ImportId) -> Response:
    async def look() -> Import:
        return caller.house.spool.get(import_id, caller.user_id)

    await look()
    return stream(request, follow("import", look, lambda now: now.state != "running", caller.house.streams))
