"""The database: `open_store` turns a place into a store; `base` says what a store can do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import MissingExtra, SettingsError

if TYPE_CHECKING:
    from ..settings import Settings
    from .base import Store


def open_store(where: str | Path | None, settings: Settings) -> Store:
    """The store at a path or URL; by default a file in the user's data directory."""
    if where == ":memory:":
        raise SettingsError("url: a memory needs a file; for a passing one use a temporary folder")
    scheme, separator, rest = str(where or "").partition("://")
    if scheme in ("postgresql", "postgres", "postgresql+asyncpg"):
        return _postgres(str(where), settings)
    if not separator:
        path = Path(where or _default_path()).expanduser()
    elif scheme == "sqlite" and rest.startswith("/"):
        path = Path(rest[1:])
    else:
        raise SettingsError(
            f"url: {scheme}:// is not supported by this version; use a path, sqlite:///PATH or postgresql://…"
        )
    from .sqlite import SqliteStore

    return SqliteStore(path.absolute(), busy_timeout_s=settings.busy_timeout_s, cache_mb=settings.cache_mb)


def _postgres(url: str, settings: Settings) -> Store:
    try:
        from .postgres import PostgresStore
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "asyncpg":
            raise
        raise MissingExtra("postgres", "asyncpg") from error
    return PostgresStore(url, settings.postgres, busy_timeout_s=settings.busy_timeout_s, cache_mb=settings.cache_mb)


def _default_path() -> Path:
    from ..settings import data_dir

    return data_dir() / "memory.db"
