"""Sessions of SQLite, whose driver is synchronous. A transaction runs in one thread from beginning to end: through an
asynchronous driver every statement would switch threads twice. Its functions stay the same as for PostgreSQL."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy import Connection, Executable, Row, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.sql.selectable import TypedReturnsRows

from ..errors import NotAStore, StoreError, StoreUnavailable
from ..forks import NoFork
from .session import Read, Rows, Session, Values
from .sqlite_plain import PlainStatements

NO_FORK = NoFork()  # around all calls of SQLite: it has locks for the whole process

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class ThreadSession(Session):
    """A session whose methods have finished when they return: for work that has a thread of its own."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._plain = PlainStatements(connection.connection.dbapi_connection)

    async def rows(self, statement: TypedReturnsRows[*Ts]) -> Sequence[Row[*Ts]]:
        return self._connection.execute(statement).all()

    async def execute(self, statement: Executable, values: Values | Sequence[Values] | None = None) -> int:
        return self._connection.execute(statement, values).rowcount

    async def select(self, *reads: Read) -> list[Rows]:
        return self._plain.rows(reads)

    async def insert(self, table: Table, rows: Sequence[Values]) -> None:
        self._plain.insert(table, rows)


class LoopSession(Session):
    """A session of the event loop: each method runs in a thread."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._session = ThreadSession(connection)
        self._running: asyncio.Future[Any] | None = None

    async def rows(self, statement: TypedReturnsRows[*Ts]) -> Sequence[Row[*Ts]]:
        return await self._to_end(self._session.rows(statement))

    async def execute(self, statement: Executable, values: Values | Sequence[Values] | None = None) -> int:
        return await self._to_end(self._session.execute(statement, values))

    async def select(self, *reads: Read) -> list[Rows]:
        return await self._to_end(self._session.select(*reads))

    async def insert(self, table: Table, rows: Sequence[Values]) -> None:
        await self._to_end(self._session.insert(table, rows))

    async def _to_end(self, work: Coroutine[Any, Any, T]) -> T:
        return await self.run(lambda: run_to_end(work))

    async def run(self, work: Callable[[], T]) -> T:
        """Run something in a thread. If the caller is cancelled it goes on there, and uses the connection."""
        running = asyncio.ensure_future(asyncio.to_thread(NO_FORK(work)))
        self._running = running
        return await asyncio.shield(running)

    async def close(self) -> None:
        """Give the connection back, with what was not committed undone, as soon as no thread uses it."""
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)
        with NO_FORK:
            self._connection.close()


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that only awaits methods of a `ThreadSession`, so that it never pauses."""
    try:
        work.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    work.close()
    raise RuntimeError("work in a transaction may only wait for its session")


_TEMPORARY = {
    "locked": "another process kept it locked for too long: try again",
    "disk is full": "the disk is full: make room, then try again",
    "disk I/O error": "the disk answered with an error",
    "readonly": "it is read-only: check the file's and the folder's permissions",
    "unable to open": "it cannot be opened: check the file's and the folder's permissions",
}


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
        problem = str(error.orig if isinstance(error, DBAPIError) else error)
        for sign, meaning in _TEMPORARY.items():
            if sign in problem:
                raise StoreUnavailable(f"{path}: {meaning} ({problem})") from error
        if "not a database" in problem or "malformed" in problem:
            raise NotAStore(f"{path} is not a SQLite database, or it is damaged ({problem})") from error
        raise StoreError(f"{path}: {problem}") from error
