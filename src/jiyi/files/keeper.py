"""The files of a running memory: written shortly after the index has changed, read before the index is asked."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from ..errors import JiyiError, WorkspaceError
from . import safe
from .checking import rebuild_user, verify_user
from .layout import Workspace, has_notes, init_workspace
from .report import report
from .sync import SYNCING, Filing, look, sync_user
from .values import Drift, SyncReport, WorkspaceFile, WorkspaceStatus

if TYPE_CHECKING:
    from ..embed import Embedder
    from ..settings import Settings
    from ..store.store import Store
    from ..write.index import KeywordRules

SOON_S = 0.05  # changes that come together are written together
AGAIN_S = 2.0  # until files that could not be taken in are tried again

Signature = tuple[tuple[int, int, int] | None, ...]  # of a user's files: inode, size and time

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failed:
    """Files that could not be taken in."""

    files: Signature
    at: float
    problem: str


class Files:
    def __init__(self, folder: Path, user: str | None, settings: Settings) -> None:
        self._folder = folder.expanduser()
        self._user = user
        self._settings = settings
        self._filing: Filing | None = None
        self._locks: dict[str, asyncio.Lock] = {}
        self._seen: dict[str, Signature | None] = {}  # by user: the files as they were taken in
        self._failed: dict[str, Failed] = {}
        self._waiting: dict[str, None] = {}  # users whose memories have changed
        self._writing: asyncio.Task[None] | None = None

    async def start(self, store: Store, embedder: Embedder, rules: KeywordRules) -> None:
        chosen = self._settings.workspace
        if not await asyncio.to_thread(has_notes, self._folder) and (
            lines := await store.files.count_lines(self._user)
        ):
            raise WorkspaceError(
                f"{self._folder} is empty, but the index knows {lines:,} lines of a workspace. Is its disk not there,"
                f" or was it moved? `jiyi workspace init {self._folder}` begins a new one"
            )
        workspace = await asyncio.to_thread(
            init_workspace,
            self._folder,
            user=self._user,
            language=chosen.language,
            daily_notes=chosen.daily_notes,
        )
        self._filing = Filing(
            workspace=workspace,
            store=store,
            embedder=embedder,
            rules=rules,
            with_facts=self._settings.extraction.enabled,
        )
        store.database.after_write = self._after_write

    async def close(self) -> None:
        """Write what is still to be written."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])
        self._filing = None

    @property
    def filing(self) -> Filing:
        if self._filing is None:
            raise WorkspaceError("the memory is not open: use it inside `async with Memory.open(…) as memory`")
        return self._filing

    @property
    def workspace(self) -> Workspace:
        return self.filing.workspace

    async def users(self) -> list[str]:
        """Those who have files here, or memories that belong into some."""
        if self.workspace.user is not None:
            return [self.workspace.user]
        there = await asyncio.to_thread(self.workspace.users)
        return sorted({*there, *await self.filing.store.memories.users()})

    async def sync(
        self, user_id: str, *, confirm: bool = False, restore: bool = False, dry_run: bool = False
    ) -> SyncReport:
        """One at a time for each user; other processes are kept out by a lock in the workspace."""
        async with self._locks.setdefault(user_id, asyncio.Lock()):
            self._waiting.pop(user_id, None)
            done = await asyncio.create_task(
                sync_user(self.filing, user_id, confirm=confirm, restore=restore, dry_run=dry_run)
            )
            if not dry_run:
                self._seen[user_id] = await asyncio.to_thread(self._taken_in, user_id)
            return done

    async def status(self, user_id: str) -> WorkspaceStatus:
        looked = await look(self.filing, user_id)
        files = looked.scan.files.values()
        return WorkspaceStatus(
            root=str(self.workspace.root),
            user_id=user_id,
            files=tuple(
                WorkspaceFile(
                    path=file.path,
                    exists=file.checksum is not None or file.problem is not None,
                    lines=sum(line.path == file.path for line in looked.scan.lines),
                    problem=file.problem,
                )
                for file in files
            ),
            synced_at=looked.known.agreed.synced_at,
            pending=report(looked.plan, dry_run=True),
        )

    async def verify(self, user_id: str, *, vectors: bool) -> list[Drift]:
        return await verify_user(self.filing, user_id, vectors=vectors)

    async def rebuild(self, user_id: str, *, confirm: bool) -> SyncReport:
        async with self._locks.setdefault(user_id, asyncio.Lock()):
            done = await asyncio.create_task(rebuild_user(self.filing, user_id, confirm=confirm))
            self._seen[user_id] = await asyncio.to_thread(self._taken_in, user_id)
            return done

    async def fresh(self, user_id: str) -> str | None:
        """Take in what a person has changed in the files. → what went wrong; reading goes on without it"""
        if SYNCING.get() or self._filing is None or not self.workspace.covers(user_id):
            return None
        now = signature(self.workspace, user_id)
        if self._seen.get(user_id) == now:
            return None
        failed = self._failed.get(user_id)
        if failed and failed.files == now and monotonic() - failed.at < AGAIN_S:
            return failed.problem
        try:
            async with self._locks.setdefault(user_id, asyncio.Lock()):
                pass  # perhaps another call is taking them in already
            if self._seen.get(user_id) != signature(self.workspace, user_id):
                await self.sync(user_id)
        except (JiyiError, OSError) as error:
            logger.warning("the files of user %r were not looked at: %s", user_id, error)
            problem = f"answered without looking at the files: {error}"
            self._failed[user_id] = Failed(now, monotonic(), problem)
            return problem
        return None

    def _taken_in(self, user_id: str) -> Signature | None:
        """The files as they are, if that is what was read or written; None if somebody has saved one since."""
        now = signature(self.workspace, user_id)
        agreed = self.filing.agreements.get(user_id)
        return now if agreed is not None and checksums(self.workspace, user_id) == dict(agreed.checksums) else None

    def _after_write(self, users: Sequence[str]) -> None:
        if SYNCING.get() or self._filing is None:
            return
        self._waiting |= dict.fromkeys(user for user in users if user and self.workspace.covers(user))
        if self._waiting and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_soon(), name="jiyi-files")

    async def _write_soon(self) -> None:
        while self._waiting:
            await asyncio.sleep(SOON_S)
            for user_id in list(self._waiting):
                self._waiting.pop(user_id, None)
                try:
                    done = await self.sync(user_id)
                    for problem in (*done.conflicts, *done.problems):
                        logger.warning("files of user %r: %s", user_id, problem)
                except (JiyiError, OSError) as error:
                    logger.warning("the files of user %r were not written: %s", user_id, error)


def signature(workspace: Workspace, user_id: str) -> Signature:
    """Another one, if a file was written to since."""
    found: list[tuple[int, int, int] | None] = []
    for path in workspace.files(user_id):
        try:
            stat = (workspace.root / path).lstat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)


def checksums(workspace: Workspace, user_id: str) -> dict[str, str]:
    """Of what is in a user's files; those that cannot be read are left out."""
    found = {}
    for path in workspace.files(user_id):
        try:
            data = safe.read(safe.check_path(workspace.root, path))
        except (OSError, safe.Refused):
            continue
        if data is not None:
            found[path] = safe.checksum(data)
    return found
