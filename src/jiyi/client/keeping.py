"""The verbs that keep a memory in order, and carry it out and in."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any, cast

from pydantic import BaseModel

from .. import validation
from ..errors import AccessDenied, InvalidInput
from ..keep.plans import Compressed, CompressPlan, Undone, UndoPlan, Upkept
from ..keep.upkeep import Progress
from ..keep.values import Exported, MemoryImport
from ..memory.carrying import FORMATS, Advance
from ..models import Stats
from ..store.records import EXPORT
from ..transfer.atomic_file import free, written
from .connection import Connection

LOOK_EVERY_S = 0.3
PART = 1024 * 1024


class Import(BaseModel):
    id: str
    state: str
    done: int
    total: int | None
    memories: MemoryImport | None
    problem: str | None


class Keeping:
    _server: Connection

    async def compress_plan(self, *, user_id: str) -> CompressPlan:
        """What `compress` would do now. Nothing is changed."""
        return await self._server.ask(
            "POST", "/v1/compress/plan", CompressPlan, params=_whose(user_id), repeatable=True
        )

    async def compress(self, *, user_id: str, plan: CompressPlan | None = None, actor: str = "compress") -> Compressed:
        """Let few memories take the place of many that are old and seldom used, by a plan that the server makes."""
        validation.name("actor", actor)
        _own_plan(plan)
        return await self._server.ask("POST", "/v1/compress", Compressed, params=_whose(user_id))

    async def upkeep(
        self, *, user_id: str | None = None, dry_run: bool = False, progress: Progress | None = None
    ) -> Upkept:
        """Look after the memories of one user; those of all are looked after where the store is."""
        if user_id is None:
            raise AccessDenied("upkeep of all users is not served: `jiyi worker` or `jiyi upkeep` where the store is")
        path = "/v1/upkeep/plan" if dry_run else "/v1/upkeep"
        return await self._server.ask("POST", path, Upkept, params=_whose(user_id), repeatable=dry_run)

    async def undo_plan(
        self,
        memory_id: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        since: datetime | None = None,
        to: datetime | None = None,
    ) -> UndoPlan:
        """What `undo` would do with the same arguments. Nothing is changed."""
        body = _undoing(memory_id, session_id, actor, metadata, since, to)
        return await self._server.ask(
            "POST", "/v1/undo/plan", UndoPlan, params=_whose(user_id), body=body, repeatable=True
        )

    async def undo(
        self,
        memory_id: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        actor: str | None = None,
        metadata: Mapping[str, str] | None = None,
        since: datetime | None = None,
        to: datetime | None = None,
        plan: UndoPlan | None = None,
        by: str = "user",
    ) -> Undone:
        """Take back a change, what came from a source, or everything after a moment. The server notes the key."""
        validation.name("by", by)
        _own_plan(plan)
        body = _undoing(memory_id, session_id, actor, metadata, since, to)
        return await self._server.ask("POST", "/v1/undo", Undone, params=_whose(user_id), body=body)

    async def export(
        self,
        path: str | Path,
        *,
        user_id: str | None = None,
        format: str = "jsonl",  # noqa: A002 - the word that people look for
        overwrite: bool = False,
        progress: Advance | None = None,
    ) -> Exported:
        """Write all memories of one user into a file here."""
        if user_id is None:
            raise AccessDenied("export of all users is not served: run `jiyi export` where the store is")
        validation.choice("format", format, FORMATS)
        where = free("path", Path(path), overwrite=overwrite)
        with written(where) as file:
            await self._server.download("/v1/export", {**_whose(user_id), "format": format}, file.write)
        if format == "jsonl":
            records = await asyncio.to_thread(_kinds, where)
        else:
            held = await self._server.get("/v1/stats", Stats, **_whose(user_id))
            records = {name: number for name, number in held.by_type.items() if name != "message"}
        if progress is not None:
            whole = sum(records.values())
            progress("exporting", whole, whole)
        return Exported(path=str(where), format=format, records=records, size_bytes=where.stat().st_size)

    async def _import_export(self, path: Path, user_id: str | None, advance: Advance) -> MemoryImport:
        """An export of Jiyi goes to the server as it is; what other systems kept is added from here."""
        whose = user_id or await asyncio.to_thread(_user_in, path)
        if whose is None:
            raise AccessDenied("an export of all users is not taken by a server: name one, with user_id")
        params = {**_whose(whose), "filename": path.name}
        now = await self._server.upload("/v1/imports", params, _parts(path), Import)
        while now.state == "running":
            await asyncio.sleep(LOOK_EVERY_S)
            now = await self._server.get(f"/v1/imports/{now.id}", Import, **_whose(whose))
            advance("importing", now.done, now.total or now.done)
        if now.memories is None:
            raise InvalidInput(str(path), (now.problem or "was not taken in").removeprefix(f"{path.name}: "))
        return now.memories


def _whose(user_id: str) -> dict[str, Any]:
    return {"user_id": validation.name("user_id", user_id)}


def _own_plan(plan: object) -> None:
    if plan is not None:
        raise AccessDenied("a server makes its own plan when it acts: leave `plan` out")


def _undoing(
    memory_id: str | None,
    session_id: str | None,
    actor: str | None,
    metadata: Mapping[str, str] | None,
    since: datetime | None,
    to: datetime | None,
) -> dict[str, Any]:
    return {
        "memory_id": memory_id,
        "session_id": session_id,
        "actor": actor,
        "metadata": None if metadata is None else dict(metadata),
        "since": validation.optional_time("since", since),
        "to": validation.optional_time("to", to),
    }


def _lines(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.name.endswith(".gz") else path.open("rb")


def _kinds(path: Path) -> dict[str, int]:
    with _lines(path) as lines:
        counted = Counter(str(json.loads(line)["kind"]) for line in lines)
    return {kind: number for kind, number in counted.items() if kind not in (EXPORT, "end")}


def _user_in(path: Path) -> str | None:
    """Whose an export is, by its first line; None: of all."""
    try:
        with _lines(path) as lines:
            found = json.loads(lines.readline()).get("user_id")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


async def _parts(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while part := await asyncio.to_thread(file.read, PART):
            yield part
