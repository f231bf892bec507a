"""Asynchronous work on a synchronous connection to SQLite. Through an asynchronous driver every statement switches
threads twice; here a whole transaction runs in one thread, and its functions stay the same as for PostgreSQL."""

import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from ..errors import NotAStore, StoreError, StoreUnavailable

T = TypeVar("T")


class Plain(Protocol):
    """Runs statements that are built once on the connection of a session, past SQLAlchemy."""

    def rows(self, reads: Iterable[tuple[Any, dict[str, Any]]], /) -> list[list[Sequence[Any]]]: ...

    def insert(self, table: Table, rows: Sequence[dict[str, Any]], /) -> None: ...


class ThreadSession:
    """The methods of an `AsyncSession` that repositories use; each has finished when it returns."""

    def __init__(self, connection: Connection, plain: Plain) -> None:
        self._connection = connection
        self._opened: Session | None = None  # most transactions need none, and it costs as much as several statements
        self.plain = plain

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _session(self) -> Session:
        if self._opened is None:
            self._opened = Session(self._connection, expire_on_commit=False)
        return self._opened

    def add(self, row: object) -> None:
        self._session.add(row)

    def add_all(self, rows: Iterable[object]) -> None:
        self._session.add_all(rows)

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.execute(*args, **kwargs)

    async def scalars(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.scalars(*args, **kwargs)

    async def scalar(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.scalar(*args, **kwargs)

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.get(*args, **kwargs)

    async def get_one(self, *args: Any, **kwargs: Any) -> Any:
        return self._session.get_one(*args, **kwargs)

    async def flush(self) -> None:
        if self._opened is not None:
            self._opened.flush()

    async def connection(self) -> "ThreadConnection":
        return ThreadConnection(self._connection)

    def finish(self) -> None:
        """Write what has changed in the session; the connection commits it."""
        if self._opened is not None:
            self._opened.commit()


class ThreadConnection:
    """The same for an `AsyncConnection`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def execute(self, *args: Any, **kwargs: Any) -> Any:
        return self._connection.execute(*args, **kwargs)

    async def scalar(self, *args: Any, **kwargs: Any) -> Any:
        return self._connection.scalar(*args, **kwargs)

    async def run_sync(self, work: Callable[..., T], *args: Any) -> T:
        return work(self._connection, *args)


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
