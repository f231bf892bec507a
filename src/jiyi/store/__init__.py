"""SQL repositories: `open_store` turns a path or URL into a `Store`."""

from pathlib import Path

from ..errors import MissingExtra, SettingsError
from ..settings import Settings
from .store import Store


def open_store(where: str | Path | None, settings: Settings) -> Store:
    """Return the store at a path or URL; by default a file in the user's data directory."""
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
    from .sqlite import SqliteDatabase
    from .store import Store

    return Store(SqliteDatabase(path.absolute(), busy_timeout_s=settings.busy_timeout_s))


def _postgres(url: str, settings: Settings) -> Store:
    try:
        from .postgres import PostgresDatabase
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "asyncpg":
            raise
        raise MissingExtra("postgres", "asyncpg") from error
    from .store import Store

    return Store(PostgresDatabase(url, settings.postgres, busy_timeout_s=settings.busy_timeout_s))


def _default_path() -> Path:
    from ..settings import data_dir

    return data_dir() / "memory.db"
