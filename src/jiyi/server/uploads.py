"""Uploaded files of chats or memories. A file is on disk before its upload is acknowledged; if the server ends, the
next one starts the import again, which is idempotent. Other server processes read the progress from the disk. An upload
has the erasure epoch of its user: whoever deletes the user removes its folder, and it is not imported afterwards."""

import asyncio
import logging
import os
import re
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import TypeVar

from pydantic import ValidationError
from pydantic_core import to_json

from ..durable import flush, make_folder
from ..engine import runtime
from ..errors import InvalidInput, JiyiError, NotFound, UserErased
from ..ids import new_id
from ..memory import Memory
from ..models import ImportReport, utc_now
from ..store.repositories.change_feed import NEVER
from ..transfer.export import replace_file
from ..transfer.imports import MemoryImportReport
from ..transfer.readers import kind_of
from ..transfer.spool import SPOOL_STATUS, remove_folder, spool_of
from .errors import HttpError
from .responses import Import, ImportState
from .spool import Spool

logger = logging.getLogger("jiyi.server")

MAX_FINISHED = 200  # finished imports that are remembered
MAX_CONCURRENT = 2
MAX_WAITING = 10  # imports of one user
TELL_S = 1.0  # between two reports of the progress to other processes
Report = TypeVar("Report", ImportReport, MemoryImportReport)
ENDINGS = (".json", ".jsonl", ".ndjson", ".gz", ".zip", ".md")


class Upload(Import):
    """An import with its private fields."""

    agent_id: str | None
    group_id: str | None
    actor: str
    epoch: str = NEVER  # erasure epoch of the user when it began
    received: bool = True  # the whole file is on disk

    def public(self) -> Import:
        return Import(**{name: getattr(self, name) for name in Import.model_fields})


class Uploads:
    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._spool = Spool(spool_of(runtime(memory).settings, runtime(memory).where))
        self._uploads: dict[str, Upload] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)

    async def start(self) -> None:
        """Resume imports that an earlier server left unfinished."""
        await asyncio.to_thread(self._spool.open)
        for upload in await asyncio.to_thread(self._unfinished):
            self._uploads[upload.id] = upload
            self._start_task(upload)

    async def close(self) -> None:
        """Cancel running imports, whose files stay on disk for the next server, and forget finished ones."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        for upload in self._uploads.values():
            if upload.state != "running":
                await self._remove(upload)
        await asyncio.to_thread(self._spool.close)

    async def start_import(
        self,
        chunks: AsyncIterator[bytes],
        *,
        user_id: str,
        filename: str,
        agent_id: str | None,
        group_id: str | None,
        epoch: str | None,
        actor: str,
    ) -> Import:
        """Store an uploaded file and start to import it. Raise `UserErased` if the user is deleted meanwhile."""
        if epoch is None:
            epoch = await self._memory.jobs.epoch(user_id=user_id)
        waiting = sum(one.state == "running" for one in await self.list(user_id))
        if waiting >= MAX_WAITING:
            raise HttpError(429, "too_many_requests", f"{waiting} imports of this user are not done: try again later")
        upload = Upload(
            id=new_id(),
            user_id=user_id,
            filename=_safe_name(filename),
            agent_id=agent_id,
            group_id=group_id,
            actor=actor,
            epoch=epoch,
            received=False,
        )
        folder = self._dir(upload)
        try:
            await asyncio.to_thread(make_folder, folder)
            await asyncio.to_thread(self._write_status, upload)  # names the user to whoever deletes them meanwhile
            size = await self._store(folder / upload.filename, chunks)
            if not size:
                raise InvalidInput("body", "is empty")
            upload.received = True
            await asyncio.to_thread(self._write_status, upload)
            if await self._memory.jobs.epoch(user_id=user_id) != epoch:
                raise UserErased(user_id=user_id)
        except FileNotFoundError:  # whoever deletes the user removes the folder
            raise UserErased(user_id=user_id) from None
        except BaseException:
            await asyncio.to_thread(remove_folder, folder)
            raise
        self._uploads[upload.id] = upload
        self._start_task(upload)
        return upload.public()

    async def get(self, import_id: str, user_id: str) -> Import:
        folder = await asyncio.to_thread(self._spool.find, import_id)
        upload = None if folder is None else await asyncio.to_thread(self._read, folder)
        if upload is None or upload.user_id != user_id:
            raise NotFound(f"user {user_id!r} has no import {import_id!r}")
        return upload.public()

    async def list(self, user_id: str) -> tuple[Import, ...]:
        def read() -> Sequence[Upload | None]:
            return [self._read(folder) for folder in self._spool.folders()]

        found = [one.public() for one in await asyncio.to_thread(read) if one is not None and one.user_id == user_id]
        return tuple(sorted(found, key=lambda upload: upload.id, reverse=True))

    def _read(self, folder: Path) -> Upload | None:
        """Return the upload in a folder; None if there is none, or it is not complete yet."""
        own = self._uploads.get(folder.name.rpartition(".")[2])
        if own is not None:
            return own if folder.exists() else None
        try:
            found = Upload.model_validate_json((folder / SPOOL_STATUS).read_bytes())
        except (OSError, ValidationError):
            return None
        return found if found.received else None

    async def forget(self, user_id: str) -> None:
        """Delete the uploads of a user that began before the last deletion of all their data."""
        epoch = await self._memory.jobs.epoch(user_id=user_id)
        mine = [upload for upload in self._uploads.values() if upload.user_id == user_id and upload.epoch != epoch]
        for upload in mine:
            task = self._tasks.pop(upload.id, None)
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            self._uploads.pop(upload.id, None)
            await self._remove(upload)

    async def export_folder(self, user_id: str | None) -> Path:
        """Make a folder for an export, of one user or of all; what a killed server leaves there is removed when the
        next one starts, or with its user."""
        epoch = NEVER if user_id is None else await self._memory.jobs.epoch(user_id=user_id)
        folder = await asyncio.to_thread(self._spool.export_folder)
        (folder / SPOOL_STATUS).write_bytes(to_json({"user_id": user_id, "epoch": epoch, "state": "export"}))
        return folder

    def _start_task(self, upload: Upload) -> None:
        task = self._tasks[upload.id] = asyncio.create_task(self._run(upload), name="jiyi-import")
        task.add_done_callback(lambda _: self._tasks.pop(upload.id, None))

    async def _run(self, upload: Upload) -> None:
        async with self._slots:
            file = self._dir(upload) / upload.filename
            told_at = monotonic()

            def progress(done: int, total: int) -> None:
                nonlocal told_at
                upload.done, upload.total, upload.updated_at = done, total, utc_now()
                if monotonic() - told_at > TELL_S:
                    told_at = monotonic()
                    self._write_status(upload)

            try:
                await self._import(upload, file, progress)
                upload.report = _without_path(upload.report, file)
                upload.memories = _without_path(upload.memories, file)
                await self._end(upload, "done")
            except UserErased:
                await self._end_erased(upload)
            except JiyiError as error:
                upload.problem = _shortened(str(error), file)
                await self._end(upload, "failed")
            except Exception as error:
                logger.error("an import failed", exc_info=error)
                upload.problem = "internal error: see the server's log"
                await self._end(upload, "failed")

    async def _import(self, upload: Upload, file: Path, progress: Callable[[int, int], None]) -> None:
        """Import chats or memories. Nothing is written for other users, whatever the file says."""
        if await asyncio.to_thread(kind_of, file) == "conversations":
            upload.report = await self._memory.transfer.import_chats(
                file,
                user_id=upload.user_id,
                agent_id=upload.agent_id,
                group_id=upload.group_id,
                epoch=upload.epoch,
                progress=progress,
                actor=upload.actor,
            )
        else:
            upload.memories = await self._memory.transfer.import_memories(
                file,
                user_id=upload.user_id,
                epoch=upload.epoch,
                progress=lambda _, done, total: progress(done, total),
                actor=upload.actor,
            )

    async def _end(self, upload: Upload, state: ImportState) -> None:
        """Remove the file; the result is remembered until the server stops."""
        ended = upload.model_copy(update={"state": state, "updated_at": utc_now()})
        try:
            await asyncio.to_thread(self._write_status, ended)
        except UserErased:
            await self._end_erased(upload)
            return
        await asyncio.to_thread((self._dir(upload) / upload.filename).unlink, missing_ok=True)
        self._uploads[upload.id] = ended
        finished = sorted((one for one in self._uploads.values() if one.state != "running"), key=lambda one: one.id)
        for old in finished[:-MAX_FINISHED]:
            del self._uploads[old.id]
            await self._remove(old)

    async def _end_erased(self, upload: Upload) -> None:
        """Forget an upload whose user was deleted, by this process or another one."""
        logger.info("import %s ended: its user was deleted", upload.id)
        self._uploads.pop(upload.id, None)
        await self._remove(upload)

    async def _remove(self, upload: Upload) -> None:
        await asyncio.to_thread(remove_folder, self._dir(upload))

    def _dir(self, upload: Upload) -> Path:
        return self._spool.folder_of(upload.id)

    async def _store(self, file: Path, chunks: AsyncIterator[bytes]) -> int:
        handle = await asyncio.to_thread(os.open, file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as kept:
            async for chunk in chunks:
                await asyncio.to_thread(kept.write, chunk)
            size = kept.tell()
        await asyncio.to_thread(flush, file)
        return size

    def _write_status(self, upload: Upload) -> None:
        """Write the state for other processes. Raise `UserErased` if one of them has removed the folder."""
        try:
            with replace_file(self._dir(upload) / SPOOL_STATUS) as part:
                part.write_text(upload.model_dump_json(), encoding="utf-8")
        except InvalidInput:
            if self._dir(upload).exists():
                raise
            raise UserErased(user_id=upload.user_id) from None

    def _unfinished(self) -> Sequence[Upload]:
        found = []
        for folder in self._spool.take_over():
            upload = self._read(folder)
            if upload is not None and upload.state == "running" and folder == self._dir(upload):
                found.append(upload)
            else:  # finished, or incomplete and never acknowledged, or being removed
                shutil.rmtree(folder, ignore_errors=True)
        return found


def _shortened(text: str, file: Path) -> str:
    """Replace the file's path on this server by its name."""
    return text.replace(str(file), file.name)


def _without_path(report: Report | None, file: Path) -> Report | None:
    if report is None:
        return None
    return report.model_copy(update={"notes": tuple(_shortened(note, file) for note in report.notes)})


def _safe_name(filename: str) -> str:
    """Return the last part of a name without special characters. Chats without a title are named after their file."""
    last = re.split(r"[/\\]", filename)[-1]
    kept = re.sub(r"[^\w.()\- ]", "_", last).lstrip(". ")[-120:]
    if not kept.lower().endswith(ENDINGS):
        raise InvalidInput("filename", f"must end in one of {', '.join(ENDINGS)}")
    while len(kept.encode()) > 240:  # the limit of file systems
        kept = kept[1:]
    return "chat" + kept if kept.lower() in ENDINGS or kept == SPOOL_STATUS else kept
