"""SQL repositories: `open_store` turns a path or URL into a `Store`."""

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from ..errors import MissingExtra, SettingsError
from ..settings import Settings
from .store import Store

POSTGRES = ("postgresql", "postgres", "postgresql+asyncpg")


def open_store(where: str | Path | None, settings: Settings) -> Store:
    """Return the store at a path or URL; by default a file in the user's data directory."""
    scheme = str(where or "").partition("://")[0]
    if scheme in POSTGRES:
        return _postgres(str(where), settings)
    from .sqlite import SqliteDatabase
    from .store import Store

    migrates = settings.auto_migrate is not False
    return Store(SqliteDatabase(file_of(where), busy_timeout_s=settings.busy_timeout_s, auto_migrate=migrates))


def file_of(where: str | Path | None) -> Path:
    """Return the file of a store that is one."""
    if where == ":memory:":
        raise SettingsError("url: a memory needs a file; for a passing one use a temporary folder")
    scheme, separator, rest = str(where or "").partition("://")
    if not separator:
        return Path(where or _default_path()).expanduser().absolute()
    if scheme == "sqlite" and rest.startswith("/"):
        return Path(rest[1:]).absolute()
    raise SettingsError(
        f"url: {scheme}:// is not supported by this version; use a path, sqlite:///PATH or postgresql://…"
    )


def location_of(where: str | Path | None) -> str:
    """Return a name of the database that is the same in every process, whatever its working directory and its user."""
    if str(where or "").partition("://")[0] not in POSTGRES:
        return str(file_of(where).resolve())
    parts = urlsplit(str(where))
    given = dict(parse_qsl(parts.query))
    host = parts.hostname or given.get("host", "")
    host = "localhost" if host in ("", "127.0.0.1", "::1") else host
    return f"postgresql://{host}:{parts.port or given.get('port', 5432)}{parts.path}"


def _postgres(url: str, settings: Settings) -> Store:
    try:
        from .postgres.postgres_database import PostgresDatabase
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "asyncpg":
            raise
        raise MissingExtra("postgres", "asyncpg") from error
    from .store import Store

    return Store(PostgresDatabase(url, settings))


def _default_path() -> Path:
    from ..settings_files import data_dir

    return data_dir() / "memory.db"
