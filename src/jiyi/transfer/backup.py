"""Back up a whole store to one SQLite file, and restore it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

from pydantic import Field

from ..errors import InvalidInput, StoreUnavailable
from ..models import Value
from ..settings import Settings
from ..store.store import Store
from .export import Progress, check_target, no_progress, replace_file

SQLITE_LOGS = ("-wal", "-shm", "-journal")


class BackupReport(Value):
    """Result of a backup or a restore."""

    path: str = Field(description="file of the backup")
    store: str = Field(description="store that was backed up or restored")
    users: int
    memories: int = Field(description="active memories")
    size_bytes: int


async def back_up(store: Store, path: Path, progress: Progress) -> BackupReport:
    """Write a snapshot of the store; the file appears when it is complete."""
    with replace_file(path) as part:
        await store.database.backup(part, progress)
    return await asyncio.to_thread(_report, path, (await store.info()).url)


async def restore_backup(
    backup: str | Path,
    where: str | Path | None = None,
    *,
    force: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> BackupReport:
    """Replace a store by a backup, all at once: a file is swapped, a database is filled in one transaction.

    The backup is checked first and never changed. A store that is not empty is only replaced with `force`. Stop all
    processes that use the store before.

        await restore_backup("memory-2026-05-07.db", "memory.db")
    """
    from ..settings import load_settings
    from ..store import open_store
    from ..store.sqlite import SqliteDatabase, examine

    settings = settings or load_settings()
    report = progress or no_progress
    source = Path(backup)
    report("checking", 0, 0)
    await asyncio.to_thread(examine, source)
    with tempfile.TemporaryDirectory(prefix="jiyi-restore-") as folder:
        copy = await _migrated_copy(source, Path(folder) / "checked.db", settings)
        store = open_store(where or settings.url, settings)
        if isinstance(store.database, SqliteDatabase):
            target = str(store.database.path)
            try:
                await asyncio.to_thread(_replace_store_file, copy, store.database.path, force)
            except OSError as error:
                raise StoreUnavailable(f"{target} could not be replaced: {error}") from error
        else:
            target = await _fill_database(copy, store, force, settings, report)
    return await asyncio.to_thread(_report, source, target)


async def _migrated_copy(source: Path, copy: Path, settings: Settings) -> Path:
    """Copy the backup and migrate the copy to the current schema: opening the backup itself would change it."""
    from ..store import open_store

    await asyncio.to_thread(shutil.copyfile, source, copy)
    store = open_store(copy, settings.model_copy(update={"auto_migrate": True}))
    try:
        await store.start()
    finally:
        await store.close()
    return copy


def _replace_store_file(copy: Path, target: Path, force: bool) -> None:
    from ..store.sqlite import take_away_log

    check_target("where", target, overwrite=force)
    if target.exists() and target.stat().st_size:
        take_away_log(target)
    for suffix in SQLITE_LOGS:  # SQLite would apply the old store's log to the new file
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    with replace_file(target) as part:
        shutil.copyfile(copy, part)


async def _fill_database(copy: Path, store: Store, force: bool, settings: Settings, progress: Progress) -> str:
    from ..store.sqlite import SqliteDatabase
    from ..store.upkeep.row_copies import is_empty, replace

    source = SqliteDatabase(copy, busy_timeout_s=settings.busy_timeout_s)
    try:
        await source.start()
        await store.start()
        if not force and not await is_empty(store.database):
            raise InvalidInput("where", "is not empty: name an empty database, or pass force=True")
        await replace(source, store.database, progress)
        return (await store.info()).url
    finally:
        await source.close()
        await store.close()


def _report(path: Path, store: str) -> BackupReport:
    from ..store.sqlite_files import counted

    users, memories = counted(path)
    return BackupReport(path=str(path), store=store, users=users, memories=memories, size_bytes=path.stat().st_size)
