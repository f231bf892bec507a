"""Uploaded files of chats or memories on their way in. A file is on disk before its upload is acknowledged, and is
imported again from the start if the server was stopped meanwhile: what is known already makes nothing new."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError

from ..errors import InvalidInput, JiyiError, NotFound
from ..ids import new_id
from ..memory import Memory
from ..models import utc_now
from ..settings import data_dir
from ..transfer.readers import kind_of
from .replies import Import, ImportState

logger = logging.getLogger("jiyi.server")

KEPT = 200  # imports that are over, over all users
AT_ONCE = 2
STATUS = "import.json"
ENDINGS = (".json", ".jsonl", ".ndjson", ".gz", ".zip", ".md")


class Upload(Import):
    """An import with what is not told to clients."""

    agent_id: str | None
    group_id: str | None
    actor: str

    def shown(self) -> Import:
        return Import(**{name: getattr(self, name) for name in Import.model_fields})


class Spool:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        where = str(Path(memory.where or memory.settings.url or "").absolute())
        place = memory.settings.server.upload_dir or data_dir() / "imports"
        self._folder = place / sha256(where.encode()).hexdigest()[:16]  # one server's uploads are not another's
        self._uploads: dict[str, Upload] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def start(self) -> None:
        """Go on with what a server before this one has left."""
        for upload in await asyncio.to_thread(self._left_behind):
            self._uploads[upload.id] = upload
            self._begin(upload)

    async def close(self) -> None:
        """What is not done stays on disk; the next server goes on with it."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def take(
        self,
        parts: AsyncIterator[bytes],
        *,
        user_id: str,
        filename: str,
        agent_id: str | None,
        group_id: str | None,
        actor: str,
    ) -> Import:
        """Keep a file that is being uploaded, and begin to import it."""
        now = utc_now()
        upload = Upload(
            id=new_id(),
            user_id=user_id,
            filename=_harmless(filename),
            state="running",
            done=0,
            total=None,
            report=None,
            memories=None,
            problem=None,
            created_at=now,
            updated_at=now,
            agent_id=agent_id,
            group_id=group_id,
            actor=actor,
        )
        folder = self._place(upload)
        try:
            await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True)
            size = await self._keep(folder / upload.filename, parts)
            if not size:
                raise InvalidInput("body", "is empty: send the file's bytes")
            await asyncio.to_thread(self._note, upload)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        self._uploads[upload.id] = upload
        self._begin(upload)
        return upload.shown()

    def get(self, import_id: str, user_id: str) -> Import:
        upload = self._uploads.get(import_id)
        if upload is None or upload.user_id != user_id:
            raise NotFound(f"user {user_id!r} has no import {import_id!r}")
        return upload.shown()

    def of(self, user_id: str) -> list[Import]:
        mine = [upload.shown() for upload in self._uploads.values() if upload.user_id == user_id]
        return sorted(mine, key=lambda upload: upload.id, reverse=True)

    async def forget(self, user_id: str) -> None:
        """Everything of a user is gone: so are their uploads."""
        mine = [upload for upload in self._uploads.values() if upload.user_id == user_id]
        for upload in mine:
            task = self._tasks.pop(upload.id, None)
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            del self._uploads[upload.id]
            await asyncio.to_thread(shutil.rmtree, self._place(upload), ignore_errors=True)

    # -- one import -----------------------------------------------------------------------------------------------

    def _begin(self, upload: Upload) -> None:
        task = self._tasks[upload.id] = asyncio.create_task(self._run(upload), name="jiyi-import")
        task.add_done_callback(lambda _: self._tasks.pop(upload.id, None))

    async def _run(self, upload: Upload) -> None:
        async with self._turn:
            file = self._place(upload) / upload.filename

            def progress(done: int, total: int) -> None:
                upload.done, upload.total, upload.updated_at = done, total, utc_now()

            try:
                await self._import(upload, file, progress)
                await self._end(upload, "done")
            except JiyiError as error:
                upload.problem = str(error).replace(str(file), upload.filename)
                await self._end(upload, "failed")
            except Exception as error:
                logger.error("an import failed", exc_info=error)
                upload.problem = "the server failed; its log says why"
                await self._end(upload, "failed")

    async def _import(self, upload: Upload, file: Path, progress: Callable[[int, int], None]) -> None:
        """As what it is; nothing is written for anybody else, whatever the file says."""
        if await asyncio.to_thread(kind_of, file) == "conversations":
            upload.report = await self._memory.transfer.import_chats(
                file,
                user_id=upload.user_id,
                agent_id=upload.agent_id,
                group_id=upload.group_id,
                progress=progress,
                actor=upload.actor,
            )
        else:
            upload.memories = await self._memory.transfer.import_memories(
                file,
                user_id=upload.user_id,
                progress=lambda _, done, total: progress(done, total),
                actor=upload.actor,
            )

    async def _end(self, upload: Upload, state: ImportState) -> None:
        """How it ended is known as long as this server runs; nothing of it stays on disk."""
        upload.state, upload.updated_at = state, utc_now()
        await asyncio.to_thread(shutil.rmtree, self._place(upload), ignore_errors=True)
        over = sorted(one.id for one in self._uploads.values() if one.state != "running")
        for old in over[:-KEPT]:
            del self._uploads[old]

    # -- the disk -------------------------------------------------------------------------------------------------

    def _place(self, upload: Upload) -> Path:
        return self._folder / upload.id

    async def _keep(self, file: Path, parts: AsyncIterator[bytes]) -> int:
        with await asyncio.to_thread(_new_file, file) as kept:
            size = 0
            async for part in parts:
                size += len(part)
                await asyncio.to_thread(kept.write, part)
            await asyncio.to_thread(kept.flush)
            await asyncio.to_thread(os.fsync, kept.fileno())
        return size

    def _note(self, upload: Upload) -> None:
        folder = self._place(upload)
        with _new_file(folder / f"{STATUS}.new") as file:
            file.write(upload.model_dump_json().encode())
            file.flush()
            os.fsync(file.fileno())
        (folder / f"{STATUS}.new").replace(folder / STATUS)
        if os.name == "posix":  # elsewhere a folder cannot be opened
            for changed in (folder, self._folder):
                descriptor = os.open(changed, os.O_RDONLY)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)

    def _left_behind(self) -> list[Upload]:
        found = []
        for folder in sorted(self._folder.glob("*/")):
            try:
                found.append(Upload.model_validate_json((folder / STATUS).read_bytes()))
            except (OSError, ValidationError):  # an upload that never arrived as a whole, and was not acknowledged
                shutil.rmtree(folder, ignore_errors=True)
        return found


def _new_file(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _harmless(filename: str) -> str:
    """The last part of a name, in letters that mean nothing to a file system. It stays, because chats without a title
    are called after their file."""
    last = re.split(r"[/\\]", filename)[-1]
    kept = re.sub(r"[^\w.()\- ]", "_", last).lstrip(". ")[-120:]
    if not kept.lower().endswith(ENDINGS):
        raise InvalidInput("filename", f"must end in one of {', '.join(ENDINGS)}")
    while len(kept.encode()) > 240:  # what file systems take
        kept = kept[1:]
    return "chat" + kept if kept.lower() in ENDINGS or kept == STATUS else kept
