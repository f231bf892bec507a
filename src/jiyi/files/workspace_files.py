"""The files of an open memory: written shortly after the index changes, read before the index is searched."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from ..embed import Embedder
from ..errors import JiyiError, MissingExtra, WorkspaceError
from ..settings import Settings
from ..store.store import Store
from ..write.index import KeywordRules
from . import safe
from .steps import Drift, SyncReport, WorkspaceFile, WorkspaceStatus, make_report
from .sync import SYNCING, SyncContext, plan_sync, rebuild_user, sync_user, verify_user
from .workspace import Workspace, has_notes, init_workspace

WRITE_DELAY_S = 0.05  # changes within this time are written together
RETRY_S = 2.0  # after a failed sync
DEBOUNCE_MS = 200  # edits within this time are one sync
POLL_MS = 500  # interval of checks for changes by other processes

Signature = tuple[tuple[int, int, int] | None, ...]  # inode, size and time of each file

Report = Callable[[SyncReport], None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FailedSync:
    """The files of a failed sync."""

    files: Signature
    at: float
    problem: str


class WorkspaceFiles:
    """Syncs the files of a workspace with an open memory."""

    def __init__(self, folder: Path, user: str | None, settings: Settings) -> None:
        self._folder = folder.expanduser()
        self._user = user
        self._settings = settings
        self._context: SyncContext | None = None
        self._locks: dict[str, asyncio.Lock] = {}
        self._seen: dict[str, Signature | None] = {}  # by user: the files at the last sync
        self._failed: dict[str, FailedSync] = {}
        self._waiting: dict[str, None] = {}  # users whose files must be written
        self._writing: asyncio.Task[None] | None = None

    async def start(self, store: Store, embedder: Embedder, rules: KeywordRules) -> None:
        settings = self._settings.workspace
        empty = not await asyncio.to_thread(has_notes, self._folder)
        if empty and (lines := await store.files.count_lines(self._user)):
            raise WorkspaceError(
                f"{self._folder} is empty, but the index has {lines:,} lines of a workspace. Is its disk not mounted,"
                f" or was it moved? `jiyi workspace init {self._folder}` creates a new one"
            )
        workspace = await asyncio.to_thread(
            init_workspace,
            self._folder,
            user=self._user,
            language=settings.language,
            daily_notes=settings.daily_notes,
        )
        self._context = SyncContext(
            workspace=workspace,
            store=store,
            embedder=embedder,
            rules=rules,
            with_facts=self._settings.extraction.enabled,
        )
        store.database.after_write = self._after_write

    async def close(self) -> None:
        """Wait until pending changes are written."""
        while self._writing is not None and not self._writing.done():
            await asyncio.wait([self._writing])
        self._context = None

    @property
    def context(self) -> SyncContext:
        if self._context is None:
            raise WorkspaceError("the memory is not open: use it inside `async with Memory.open(…) as memory`")
        return self._context

    @property
    def workspace(self) -> Workspace:
        return self.context.workspace

    async def users(self) -> list[str]:
        """Return the users with files or memories."""
        if self.workspace.user is not None:
            return [self.workspace.user]
        with_files = await asyncio.to_thread(self.workspace.users)
        return sorted({*with_files, *await self.context.store.memories.users()})

    async def sync(
        self, user_id: str, *, confirm: bool = False, restore: bool = False, dry_run: bool = False
    ) -> SyncReport:
        """Sync the files of a user, one sync at a time."""
        async with self._locks.setdefault(user_id, asyncio.Lock()):
            self._waiting.pop(user_id, None)
            done = await asyncio.create_task(
                sync_user(self.context, user_id, confirm=confirm, restore=restore, dry_run=dry_run)
            )
            if not dry_run:
                self._seen[user_id] = await asyncio.to_thread(self._synced_signature, user_id)
            return done

    async def status(self, user_id: str) -> WorkspaceStatus:
        planned = await plan_sync(self.context, user_id)
        files = planned.scan.files.values()
        return WorkspaceStatus(
            root=str(self.workspace.root),
            user_id=user_id,
            files=tuple(
                WorkspaceFile(
                    path=file.path,
                    exists=file.checksum is not None or file.problem is not None,
                    lines=sum(line.path == file.path for line in planned.scan.lines),
                    problem=file.problem,
                )
                for file in files
            ),
            synced_at=planned.index.agreed.synced_at,
            pending=make_report(planned.plan, dry_run=True),
        )

    async def verify(self, user_id: str, *, vectors: bool) -> list[Drift]:
        return await verify_user(self.context, user_id, vectors=vectors)

    async def rebuild(self, user_id: str, *, confirm: bool) -> SyncReport:
        async with self._locks.setdefault(user_id, asyncio.Lock()):
            done = await asyncio.create_task(rebuild_user(self.context, user_id, confirm=confirm))
            self._seen[user_id] = await asyncio.to_thread(self._synced_signature, user_id)
            return done

    async def fresh(self, user_id: str) -> str | None:
        """Sync if a person has changed the files. Return the problem of a failed sync; reading continues."""
        if SYNCING.get() or self._context is None or not self.workspace.covers(user_id):
            return None
        now = signature(self.workspace, user_id)
        if self._seen.get(user_id) == now:
            return None
        failed = self._failed.get(user_id)
        if failed and failed.files == now and monotonic() - failed.at < RETRY_S:
            return failed.problem
        try:
            async with self._locks.setdefault(user_id, asyncio.Lock()):
                pass  # another call may be syncing already
            if self._seen.get(user_id) != signature(self.workspace, user_id):
                await self.sync(user_id)
        except (JiyiError, OSError) as error:
            logger.warning("the files of a user could not be read: %s", error)
            problem = f"the files could not be read: {error}"
            self._failed[user_id] = FailedSync(now, monotonic(), problem)
            return problem
        return None

    def _synced_signature(self, user_id: str) -> Signature | None:
        """Return the signature of the files if they are as synced; None if one was saved since."""
        now = signature(self.workspace, user_id)
        agreed = self.context.agreements.get(user_id)
        return now if agreed is not None and checksums(self.workspace, user_id) == dict(agreed.checksums) else None

    def _after_write(self, users: Sequence[str]) -> None:
        if SYNCING.get() or self._context is None:
            return
        self._waiting |= dict.fromkeys(user for user in users if user and self.workspace.covers(user))
        if self._waiting and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write_soon(), name="jiyi-files")

    async def _write_soon(self) -> None:
        while self._waiting:
            await asyncio.sleep(WRITE_DELAY_S)
            for user_id in list(self._waiting):
                self._waiting.pop(user_id, None)
                try:
                    done = await self.sync(user_id)
                    for problem in (*done.conflicts, *done.problems):
                        logger.warning("files of a user: %s", problem)
                except (JiyiError, OSError) as error:
                    logger.warning("the files of a user were not written: %s", error)


def signature(workspace: Workspace, user_id: str) -> Signature:
    """Return a value that changes when a file is written."""
    found: list[tuple[int, int, int] | None] = []
    for path in workspace.files(user_id):
        try:
            stat = (workspace.root / path).lstat()
            found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
        except OSError:
            found.append(None)
    return tuple(found)


def checksums(workspace: Workspace, user_id: str) -> dict[str, str]:
    """Return the checksums of a user's readable files."""
    found = {}
    for path in workspace.files(user_id):
        try:
            data = safe.read(safe.check_path(workspace.root, path))
        except (OSError, safe.Refused):
            continue
        if data is not None:
            found[path] = safe.checksum(data)
    return found


async def watch(files: WorkspaceFiles, report: Report | None) -> None:
    """Sync edits as they happen, until cancelled; wait for a folder that is gone."""
    try:
        import watchfiles
    except ImportError as error:
        raise MissingExtra("files", "watchfiles") from error
    store = files.context.store
    seen, _ = await store.changes.users_since(0)
    while True:
        try:
            started = False
            async for changes in watchfiles.awatch(
                files.workspace.root,
                watch_filter=lambda _, path: files.workspace.owner(Path(path)) is not None,
                debounce=DEBOUNCE_MS,
                rust_timeout=POLL_MS,
                yield_on_timeout=True,
                ignore_permission_denied=True,
            ):
                seen, changed = await store.changes.users_since(seen)
                edited = {files.workspace.owner(Path(path)) for _, path in changes}
                users = sorted({user for user in edited if user} | set(changed)) if started else await files.users()
                started = True  # the first round syncs all users, after the watcher has started
                for user_id in users:
                    if not files.workspace.covers(user_id):
                        continue
                    done = await files.sync(user_id)
                    if report is not None and (done.steps or done.conflicts or done.problems):
                        report(done)
        except (JiyiError, OSError) as error:
            logger.warning("watching failed, retrying in %.0f s: %s", RETRY_S, error)
        await asyncio.sleep(RETRY_S)
