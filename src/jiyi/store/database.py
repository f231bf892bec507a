"""Transactions of a SQL database, repositories over them, bulk inserts, and values made from rows.

A transaction is a plain function over SQLAlchemy's `Session`. It awaits nothing, so that nobody can wait for a network
while holding a lock: SQLite runs it in a thread, PostgreSQL by `AsyncConnection.run_sync`.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, cast, overload

from sqlalchemy import Connection, CursorResult, Engine, Insert, Table, UpdateBase, insert
from sqlalchemy.orm import Session

from ..forks import Owner
from ..models import Value, utc_now
from .schema.columns import METADATA, Base
from .schema.tables import ChangeRow
from .write_set import Advance, StoreInfo

T = TypeVar("T")
P = ParamSpec("P")

Work = Callable[[Session], T]
SchemaWork = Callable[[Connection, str], T]  # called with the address of the database too
Values = dict[str, Any]
Columns = tuple[Any, ...]  # of a row of a whole table

PAGE_SIZE = 4_000_000  # characters; a page that has more ends, and the next one continues


def open_session(bind: Engine | Connection) -> Session:
    """Return a session that sends nothing by itself, and whose objects stay readable after its end."""
    options = {"synchronize_session": False}  # there are no objects to be kept in step: reads return rows
    return Session(bind, autoflush=False, expire_on_commit=False, execution_options=options)


class Database(ABC):
    """A SQL database: functions that read, transactions that write, and what dialects do differently."""

    has_pgvector = False  # vectors of very large users can stay in the database

    def __init__(self) -> None:
        self.owner = Owner()
        self._unfinished: set[asyncio.Future[Any]] = set()
        self.after_write: Callable[[Sequence[str]], None] = lambda users: None  # called after each commit

    @abstractmethod
    async def start(self) -> None: ...

    async def close(self) -> None:
        """Wait for running transactions."""
        while self._unfinished:
            await asyncio.gather(*self._unfinished, return_exceptions=True)

    @abstractmethod
    async def on_schema(self, work: SchemaWork[T], *, changes: bool) -> T:
        """Run a function on the schema, whatever its version, in a transaction that excludes other writers if it
        `changes` it. The database need not be started."""

    @abstractmethod
    async def info(self) -> StoreInfo: ...

    @abstractmethod
    async def scrub(self, *, everything: bool) -> list[str]:
        """Remove traces of deleted rows without making anybody wait; return what is left, and what removes it."""

    @abstractmethod
    async def backup(self, path: Path, advance: Advance) -> None:
        """Write a snapshot of all rows into an existing empty SQLite file."""

    @abstractmethod
    async def vacuum(self) -> list[str]:
        """Rewrite the database without deleted rows while others wait; return what is left, and what removes it."""

    def writers(self, session: Session) -> frozenset[str]:
        """Return the running transactions that may have numbers of the change feed below the newest visible one."""
        return frozenset()  # SQLite has one writer at a time, so numbers are in the order of commits

    async def finish_copy(self) -> None:  # noqa: B027 - nothing to do on SQLite
        """Continue number sequences after the rows that were copied in."""

    async def count_rows(self, added: int) -> None:  # noqa: B027 - SQLite plans without counts
        """Have the database count its rows if these memories are many for it, so that it plans its reads well."""

    def version(self) -> int | None:
        """Return a number that stays the same while nobody commits; None if that takes as long as a read."""
        return None

    async def read(self, user_id: str | None, work: Work[T]) -> T:
        """Run a function that reads the rows of one user, or of all users; each statement sees the newest commit.
        Driver errors become Jiyi's errors. It runs to its end even if the caller is cancelled: a connection is given
        back without a running statement."""
        return await self._read(user_id, work)

    async def write(self, users: Sequence[str], work: Work[T]) -> T:
        """Run a function in one transaction with the write lock of these users, to its end even if the caller is
        cancelled: half of one would hold the lock. Without users it may only change rows that are nobody's memory,
        such as the state of jobs."""
        done = await self._write(users, work)
        self.after_write(users)
        return done

    async def snapshot(self, user_id: str | None, work: Work[T]) -> T:
        """Run a function that reads a snapshot: later commits are not visible in it."""
        async with aclosing(self.pages(user_id, lambda session: iter([work(session)]))) as pages:
            return await anext(pages)

    @abstractmethod
    def pages(self, user_id: str | None, work: Work[Iterator[T]]) -> AsyncGenerator[T, None]:
        """Yield what a plain generator makes of one snapshot, page by page, however long the caller takes for each."""

    @abstractmethod
    def _read(self, user_id: str | None, work: Work[T]) -> Awaitable[T]: ...

    @abstractmethod
    def _write(self, users: Sequence[str], work: Work[T]) -> Awaitable[T]: ...

    def _begin(self, work: Awaitable[T]) -> asyncio.Future[T]:
        """Start something that continues if its caller is cancelled; `close` waits for it."""
        task = asyncio.ensure_future(work)
        self._unfinished.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Future[Any]) -> None:
        self._unfinished.discard(task)
        if not task.cancelled():
            task.exception()  # the caller has seen it, or has left; either way asyncio need not complain


class Repository:
    """Statements about one kind of rows."""

    def __init__(self, database: Database) -> None:
        self._database = database


R = TypeVar("R", bound=Repository)
Plain = Callable[Concatenate[R, Session, P], T]
Method = Callable[Concatenate[R, P], Coroutine[Any, Any, T]]


@overload
def reads(work: Plain[R, P, T], /) -> Method[R, P, T]: ...
@overload
def reads(*, everybody: Literal[True]) -> Callable[[Plain[R, P, T]], Method[R, P, T]]: ...
def reads(work: Any = None, /, *, everybody: bool = False) -> Any:
    """Make a method of a plain function that reads the rows of a user, its first argument or the `user_id` of that, or
    the rows of everybody."""

    def decorate(work: Plain[R, P, T]) -> Method[R, P, T]:
        @wraps(work)
        async def method(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
            user_id = None if everybody else _user_of(args, kwargs)
            return await self._database.read(user_id, lambda session: work(self, session, *args, **kwargs))

        return method

    return decorate if work is None else decorate(work)


@overload
def writes(work: Plain[R, P, T], /) -> Method[R, P, T]: ...
@overload
def writes(*, locks: Sequence[str]) -> Callable[[Plain[R, P, T]], Method[R, P, T]]: ...
def writes(work: Any = None, /, *, locks: Sequence[str] | None = None) -> Any:
    """Make a method of a plain function that runs in one transaction, with the write lock of a user, its first argument
    or the `user_id` of that, or with these locks."""

    def decorate(work: Plain[R, P, T]) -> Method[R, P, T]:
        @wraps(work)
        async def method(self: R, /, *args: P.args, **kwargs: P.kwargs) -> T:
            users = [str(_user_of(args, kwargs))] if locks is None else locks
            return await self._database.write(users, lambda session: work(self, session, *args, **kwargs))

        return method

    return decorate if work is None else decorate(work)


def _user_of(args: Sequence[Any], kwargs: Values) -> str | None:
    first = args[0] if args else kwargs["user_id"]
    user_id: str | None = first if first is None or isinstance(first, str) else first.user_id
    return user_id


def chunks(values: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Split a sequence into parts that fit into one IN list."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


def count_changed(session: Session, statement: UpdateBase) -> int:
    """Run a statement that changes or removes rows, and return their number."""
    return cast(CursorResult[Any], session.execute(statement)).rowcount


def ids_by_user(keys: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group users and ids by user: SQLite reads a whole table to find pairs of both."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for user_id, memory_id in keys:
        found[user_id].append(memory_id)
    return found


def from_row(kind: type[T], row: Any, **more: Any) -> T:
    """Build a value from the columns with the names of its fields; `more` are its other fields."""
    names: Iterable[str] = kind.model_fields if issubclass(kind, Value) else getattr(kind, "__dataclass_fields__", ())
    values = {name: getattr(row, name) for name in names if name not in more}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}, **more)


def values_of(value: Any, **more: Any) -> Values:
    """Return the fields of a dataclass as the values of a row; `more` are its other columns."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__} | more


class Inserts:
    """Rows to insert. Rows of one table must have the same columns."""

    def __init__(self) -> None:
        self._rows: defaultdict[str, list[Values]] = defaultdict(list)

    def add(self, table: type[Base], rows: Iterable[Values]) -> None:
        self._rows[table.__tablename__].extend(rows)

    def add_tables(self, rows: dict[str, list[Values]]) -> None:
        """Add rows by table name."""
        for name, values in rows.items():
            self._rows[name].extend(values)

    def tell(self, user_id: str, ids: Iterable[str], action: str, at: datetime | None = None) -> None:
        """Add changes of memories, or of units, to the change feed."""
        change = {"user_id": user_id, "action": action, "changed_at": at or utc_now()}
        self.add(ChangeRow, ({**change, "memory_id": one} for one in ids))

    def run(self, session: Session) -> None:
        """Insert everything, referenced tables first."""
        connection = session.connection()
        for table in _tables():
            rows = self._rows.pop(table.name, None)
            if rows:
                connection.execute(_insert(table), rows)


@cache
def _insert(table: Table) -> Insert:
    """Return the statement, which is built once: every `add` inserts into ten tables."""
    return insert(table)


@cache
def _tables() -> list[Table]:
    """Return all tables, referenced ones first; SQLAlchemy sorts them each time that it is asked."""
    return METADATA.sorted_tables
