"""Asynchronous work on a synchronous connection to SQLite. Through an asynchronous driver every statement switches
threads twice; here a whole transaction runs in one thread, and its functions stay the same as for PostgreSQL."""

import json
import re
import sqlite3
from collections.abc import Callable, Coroutine, Iterable, Sequence
from datetime import datetime
from functools import cache
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from sqlalchemy import JSON, Connection, LargeBinary, Table, insert
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.orm import Session

from ..models import to_micros

T = TypeVar("T")
Processor = Callable[[Any], Any]


class ThreadSession:
    """The methods of an `AsyncSession` that repositories use; each has finished when it returns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._opened: Session | None = None  # most transactions need none, and it costs as much as several statements
        self.plain = PlainStatements(cast(sqlite3.Connection, connection.connection.dbapi_connection))

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


# -- plain statements -------------------------------------------------------------------------------------------------

# Every search and every `add` runs the same few statements; through SQLAlchemy they cost ten times as much as in SQLite
# itself.
_DIALECT = SQLiteDialect(paramstyle="named")
_LIST = re.compile(r"\(__\[POSTCOMPILE_(\w+)]\)")
_LITERAL = re.compile(r"__\[POSTCOMPILE_(\w+)]")


class PlainStatements:
    """Statements that are built once, run by Python's sqlite3 itself. Each is compiled the first time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, reads: Iterable[tuple[Any, dict[str, Any]]]) -> list[list[Sequence[Any]]]:
        """Run statements that only read, each with its values, and return their rows."""
        found = []
        for statement, values in reads:
            text, constants, processors = _compiled(statement)
            given = {name: _bound(value) for name, value in values.items()}
            rows = self._connection.execute(text, constants | given).fetchall()
            found.append([_processed(row, processors) for row in rows] if processors else rows)
        return found

    def insert(self, table: Table, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows, which all have the columns of the first one."""
        text, columns = _insertion(table, tuple(rows[0]))
        values: list[Iterable[Any]] = []
        for name, processor in columns:
            column = [row[name] for row in rows]
            values.append(column if processor is None else map(processor, column))
        self._connection.executemany(text, zip(*values, strict=True))


def _bound(value: Any) -> Any:
    """Return a value as SQLite takes it."""
    if isinstance(value, list):
        return json.dumps(value)
    return to_micros(value) if isinstance(value, datetime) else value


@cache
def _compiled(statement: Any) -> tuple[str, dict[str, Any], list[tuple[int, Processor]]]:
    """Return the text of a statement, with lists taken from JSON, its constants, and how values of some columns are
    read."""
    compiled = statement.compile(dialect=_DIALECT)
    text = _LITERAL.sub(r":\1", _LIST.sub(r"(SELECT value FROM json_each(:\1))", str(compiled)))
    processors = [
        (at, processor)
        for at, column in enumerate(statement.selected_columns)
        if (processor := _processor(column.type)) is not None
    ]
    return text, {name: _bound(value) for name, value in compiled.params.items()}, processors


@cache
def _insertion(table: Table, names: tuple[str, ...]) -> tuple[str, list[tuple[str, Processor | None]]]:
    """Return the text of an insert statement, and its columns in order with how their values are bound."""
    dialect = SQLiteDialect(paramstyle="qmark")
    compiled = insert(table).compile(dialect=dialect, column_keys=list(names))
    impls = {name: table.c[name].type.dialect_impl(dialect) for name in names}
    return str(compiled), [(name, impls[name].bind_processor(dialect)) for name in compiled.positiontup or ()]


def _from_json(value: str | None) -> Any:
    """Return what a text means; most are empty."""
    return None if value is None else [] if value == "[]" else {} if value == "{}" else json.loads(value)


def _processor(kind: Any) -> Processor | None:
    if isinstance(kind, JSON):  # SQLAlchemy's own is three functions around this one
        return _from_json
    if isinstance(kind, LargeBinary):  # SQLite returns bytes
        return None
    return kind.dialect_impl(_DIALECT).result_processor(_DIALECT, None)  # type: ignore[no-any-return]


def _processed(row: Sequence[Any], processors: Sequence[tuple[int, Processor]]) -> Sequence[Any]:
    values = list(row)
    for at, processor in processors:
        values[at] = processor(values[at])
    return values
