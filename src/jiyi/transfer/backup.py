"""Backups: everything of all users in one SQLite file, whatever the database, and back."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput, StoreUnavailable
from ..keep.values import Backup
from .atomic_file import becoming, free

if TYPE_CHECKING:
    from ..settings import Settings
    from ..store.base import Store
    from ..store.contract import Advance

BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a file


async def back_up(store: Store, path: Path, advance: Advance) -> Backup:
    """The file appears under its name when it is whole."""
    with becoming(path) as part:
        await store.backup(part, advance)
    return await asyncio.to_thread(_told, path, (await store.info()).url)


async def restore_backup(
    backup: str | Path,
    where: str | Path | None = None,
    *,
    force: bool = False,
    settings: Settings | None = None,
    progress: Advance | None = None,
) -> Backup:
    """Put a backup in place of a store, all at once: a file is replaced, a database is filled in one transaction.

    The backup is checked first, and not changed. A store that holds anything is only replaced with `force`. Stop what
    uses it before.

        await restore_backup("memory-2026-05-07.db", "memory.db")
    """
    from ..settings import load_settings
    from ..store import open_store
    from ..store.sqlite import SqliteStore, examine

    settings = settings or load_settings()
    advance = progress or _quietly
    source = Path(backup)
    advance("checking", 0, 0)
    await asyncio.to_thread(examine, source)
    with tempfile.TemporaryDirectory(prefix="jiyi-restore-") as folder:
        checked = await _checked(source, Path(folder) / "checked.db", settings)
        store = open_store(where or settings.url, settings)
        if isinstance(store, SqliteStore):
            shown = str(store.path)
            try:
                await asyncio.to_thread(_replace_file, checked, store.path, force)
            except OSError as error:
                raise StoreUnavailable(f"{shown} could not be replaced: {error}") from error
        else:
            shown = await _fill(checked, store, force, settings, advance)
    return await asyncio.to_thread(_told, source, shown)


async def _checked(source: Path, copy: Path, settings: Settings) -> Path:
    """A copy of the backup, brought to today's schema. Opening a store changes its file, and a backup stays as it
    is."""
    from ..store import open_store

    await asyncio.to_thread(shutil.copyfile, source, copy)
    store = open_store(copy, settings)
    try:
        await store.start()
    finally:
        await store.close()
    return copy


def _replace_file(checked: Path, target: Path, force: bool) -> None:
    from ..store.sqlite import take_away_log

    free("where", target, overwrite=force)
    if target.exists() and target.stat().st_size:
        take_away_log(target)
    for suffix in BESIDE:  # of a store that is gone; SQLite would take its log for that of the new file
        with contextlib.suppress(FileNotFoundError):
            target.with_name(target.name + suffix).unlink()
    with becoming(target) as part:
        shutil.copyfile(checked, part)


async def _fill(checked: Path, store: Store, force: bool, settings: Settings, advance: Advance) -> str:
    from ..store import open_store
    from ..store.moving import is_empty, replace

    source = open_store(checked, settings)
    try:
        await source.start()
        await store.start()
        if not force and not await is_empty(store):
            raise InvalidInput("where", "is not empty: name an empty database, or say that it may be replaced")
        await replace(source, store, advance)
        return (await store.info()).url
    finally:
        await source.close()
        await store.close()


def _told(path: Path, store: str) -> Backup:
    from ..store.sqlite import counted

    users, memories = counted(path)
    return Backup(path=str(path), store=store, users=users, memories=memories, size_bytes=path.stat().st_size)


def _quietly(what: str, done: int, whole: int) -> None:
    """Progress that nobody looks at."""
