"""The file of a SQLite store: created for its owner only, counted without being changed; and its errors as Jiyi's, by
their codes."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import URL, create_engine, distinct, func, select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ..durable import make_folder
from ..errors import NotAStore, StoreError, StoreUnavailable
from .schema.tables import MemoryRow

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


def counted(path: Path) -> tuple[int, int]:
    """Count users and active memories of a file without changing it."""
    where = URL.create("sqlite", database=f"file:{path.absolute()}", query={"mode": "ro", "uri": "true"})
    engine = create_engine(where)
    active = select(func.count(), func.count(distinct(MemoryRow.user_id))).where(MemoryRow.status == "active")
    try:
        with translated(path), engine.connect() as connection:
            memories, users = connection.execute(active).one()
    finally:
        engine.dispose()
    return users, memories


def create_private(path: Path) -> None:
    """Create a file that only its owner can read."""
    if path.is_dir():
        raise StoreError(f"{path} is a folder: name a file in it, such as {path / 'memory.db'}")
    try:
        make_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StoreUnavailable(f"{path} cannot be opened for writing: {error.strerror}") from error
