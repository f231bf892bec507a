"""Routes of imports and exports."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from ... import validation
from ...errors import InvalidInput, UserErased
from ..auth import UserReader, UserWriter
from ..events import follow, stream
from ..json_body import json_response
from ..requests import Name
from ..responses import Import, Listing
from . import Id, make_router
from .jobs import STREAM

router = make_router("transfer")
CHUNK = 1024 * 1024
ExportFormat = Literal["jsonl", "markdown"]
ENDING: dict[ExportFormat, str] = {"jsonl": "jsonl", "markdown": "md"}
MEDIA_TYPE: dict[ExportFormat, str] = {"jsonl": "application/jsonl", "markdown": "text/markdown; charset=utf-8"}
FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "the file's bytes",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "/imports",
    response_model=Import,
    status_code=202,
    openapi_extra=FILE,
    summary="Upload chats or memories to be imported",
)
async def start_import(
    request: Request,
    caller: UserWriter,
    filename: Annotated[Name, Query(description="ends in .json, .jsonl, .gz, .zip or .md")],
    agent_id: Name | None = None,
    group_id: Name | None = None,
    epoch: Annotated[str | None, Query(max_length=validation.MAX_NAME, description="as in `POST /v1/memories`")] = None,
) -> Response:
    started = await caller.app.uploads.start_import(
        request.stream(),
        user_id=caller.user_id,
        filename=filename,
        agent_id=validation.optional_name("agent_id", agent_id),
        group_id=validation.optional_name("group_id", group_id),
        epoch=epoch,
        actor=caller.access.actor("import"),
    )
    return await json_response(started, 202, {"Location": f"/v1/imports/{started.id}"})


@router.get("/imports", summary="Imports, newest first")
async def list_imports(caller: UserReader) -> Listing[Import]:
    return Listing(items=await caller.app.uploads.list(caller.user_id))


@router.get("/imports/{import_id}", summary="One import")
async def get_import(caller: UserReader, import_id: Id) -> Import:
    return await caller.app.uploads.get(import_id, caller.user_id)


@router.get(
    "/imports/{import_id}/events",
    response_class=Response,
    responses=STREAM,
    summary="The progress of an import, as events",
)
async def follow_import(caller: UserReader, import_id: Id) -> Response:
    look = partial(get_import, caller, import_id)
    await look()
    streams = caller.app.streams
    return stream(follow("import", look, lambda now: now.state != "running", streams), streams)


@router.get(
    "/export",
    response_class=StreamingResponse,
    responses={200: {"content": {"application/jsonl": {}, "text/markdown": {}}, "description": "The file"}},
    summary="All memories of a user as a file",
)
async def export(caller: UserReader, format_: Annotated[ExportFormat, Query(alias="format")] = "jsonl") -> Response:
    """`jsonl` is complete, and `POST /v1/imports` accepts it; `markdown` is for reading."""
    folder = await caller.app.uploads.export_folder(caller.user_id)
    try:
        written = await caller.memory.transfer.export(folder / "memories", user_id=caller.user_id, format=format_)
    except BaseException as error:
        removed = not folder.exists()  # by whoever deletes the user
        if removed and isinstance(error, (InvalidInput, OSError)):
            raise UserErased(user_id=caller.user_id) from None
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        raise
    headers = {
        "Content-Disposition": f'attachment; filename="memories.{ENDING[format_]}"',
        "Content-Length": str(written.size_bytes),
    }
    return StreamingResponse(file_chunks(folder), 200, headers, MEDIA_TYPE[format_])


async def file_chunks(folder: Path) -> AsyncIterator[bytes]:
    try:
        file = await asyncio.to_thread((folder / "memories").open, "rb")
        with file:
            while chunk := await asyncio.to_thread(file.read, CHUNK):
                yield chunk
    finally:
        shutil.rmtree(folder, ignore_errors=True)
