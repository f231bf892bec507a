"""Statements that every search and `add` runs, past SQLAlchemy: through it they cost ten times as much."""

import json
import re
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime
from functools import cache
from time import perf_counter
from typing import Any

from pydantic_core import from_json
from sqlalchemy import JSON, LargeBinary, Table, insert
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from ..models import to_micros
from .session import Processor, Read, Rows, processed, processors_of

_DIALECT = SQLiteDialect(paramstyle="named")
_LIST = re.compile(r"\(__\[POSTCOMPILE_(\w+)]\)")
_LITERAL = re.compile(r"__\[POSTCOMPILE_(\w+)]")


FETCHED = 8  # rows


class TakesLong(Exception):
    """Reading takes more than the given time."""


class PlainStatements:
    """Statements that are built once, run by Python's sqlite3 itself. Each is compiled the first time."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def rows(self, reads: Iterable[Read], *, most_s: float | None = None) -> list[Rows]:
        """Run statements that only read, and return their rows. With `most_s`, raise `TakesLong` if they are so many or
        so large that they take longer to read."""
        ends_at = None if most_s is None else perf_counter() + most_s
        return [self._rows(statement, values, ends_at) for statement, values in reads]

    def _rows(self, statement: Any, values: dict[str, Any], ends_at: float | None) -> Rows:
        text, constants, processors = _compiled(statement)
        given = {name: _bound(value) for name, value in values.items()}
        with closing(self._connection.execute(text, constants | given)) as cursor:
            found: Rows = []
            while rows := cursor.fetchmany(FETCHED):
                found += [processed(row, processors) for row in rows] if processors else rows
                if ends_at is not None and len(rows) == FETCHED and perf_counter() > ends_at:
                    raise TakesLong
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
    processors = processors_of(statement, _processor)
    return text, {name: _bound(value) for name, value in compiled.params.items()}, processors


@cache
def _insertion(table: Table, names: tuple[str, ...]) -> tuple[str, list[tuple[str, Processor | None]]]:
    """Return the text of an insert statement, and its columns in order with how their values are bound."""
    dialect = SQLiteDialect(paramstyle="qmark")
    compiled = insert(table).compile(dialect=dialect, column_keys=list(names))
    impls = {name: table.c[name].type.dialect_impl(dialect) for name in names}
    return str(compiled), [(name, impls[name].bind_processor(dialect)) for name in compiled.positiontup or ()]


def _from_json(value: str | None) -> Any:
    """Return what a text means; most are empty. Pydantic's parser is much faster but refuses half of a pair."""
    if value is None:
        return None
    try:
        return [] if value == "[]" else {} if value == "{}" else from_json(value)
    except ValueError:
        return json.loads(value)


def _processor(kind: Any) -> Processor | None:
    if isinstance(kind, JSON):  # SQLAlchemy's own is three functions around this one
        return _from_json
    if isinstance(kind, LargeBinary):  # SQLite returns bytes
        return None
    return kind.dialect_impl(_DIALECT).result_processor(_DIALECT, None)  # type: ignore[no-any-return]
