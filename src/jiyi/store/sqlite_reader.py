"""Reading with plain sqlite3. Every search runs the same few statements; through SQLAlchemy and its sessions they cost
ten times as much as in SQLite itself."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from .database import Read, Rows

Processor = Callable[[Any], Any]

_DIALECT = SQLiteDialect(paramstyle="named")
_LIST = re.compile(r"\(__\[POSTCOMPILE_(\w+)]\)")


class SqliteReader:
    """One connection, used by the event loop itself: the statements take less time than a switch to a thread. It never
    waits for a lock but raises; a read sees the newest commit."""

    def __init__(self, path: Path, read_only: str) -> None:
        self._path, self._read_only = path, read_only
        self._connection: sqlite3.Connection | None = None

    def rows(self, reads: Iterable[Read]) -> list[Rows]:
        if self._connection is None:
            self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
            self._connection.execute(self._read_only)
        found = []
        for statement, values in reads:
            text, constants, processors = _compiled(statement)
            lists = {name: json.dumps(value) for name, value in values.items() if isinstance(value, list)}
            rows = self._connection.execute(text, {**constants, **values, **lists}).fetchall()
            found.append([_processed(row, processors) for row in rows] if processors else rows)
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@cache
def _compiled(statement: Any) -> tuple[str, dict[str, Any], list[tuple[int, Processor]]]:
    """Return the text of a statement, with lists taken from JSON, its constants, and how values of some columns are
    read."""
    compiled = statement.compile(dialect=_DIALECT)
    text = _LIST.sub(r"(SELECT value FROM json_each(:\1))", str(compiled))
    processors = [
        (at, processor)
        for at, column in enumerate(statement.selected_columns)
        if (processor := column.type.dialect_impl(_DIALECT).result_processor(_DIALECT, None)) is not None
    ]
    return text, dict(compiled.params), processors


def _processed(row: Sequence[Any], processors: Sequence[tuple[int, Processor]]) -> Sequence[Any]:
    values = list(row)
    for at, processor in processors:
        values[at] = processor(values[at])
    return values
