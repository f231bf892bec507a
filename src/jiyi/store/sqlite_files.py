"""SQLite's errors as Jiyi's, by their codes."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ..errors import NotAStore, StoreError, StoreUnavailable

LOCKED = "another process kept it locked for too long: try again"
TEMPORARY = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: "the disk is full: make room, then try again",
    sqlite3.SQLITE_IOERR: "the disk answered with an error",
    sqlite3.SQLITE_READONLY: "it is read-only: check the file's and the folder's permissions",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: check the file's and the folder's permissions",
}
DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into Jiyi's."""
    try:
        yield
    except PoolTimeout as error:
        raise StoreUnavailable(f"{path}: all connections were busy for too long: try again") from error
    except UnicodeDecodeError as error:
        raise NotAStore(f"{path} is damaged: it holds text that is not UTF-8") from error
    except (DBAPIError, sqlite3.Error) as error:
        problem = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF  # the higher bits say more about the same
        if code in TEMPORARY:
            raise StoreUnavailable(f"{path}: {TEMPORARY[code]} ({problem})") from error
        if code in DAMAGED:
            raise NotAStore(f"{path} is not a SQLite database, or it is damaged ({problem})") from error
        raise StoreError(f"{path}: {problem}") from error
