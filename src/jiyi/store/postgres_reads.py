"""Statements that are built once and only read, run by asyncpg itself: through SQLAlchemy's sessions they take nine
messages and twice the time where five do. Each runs in a transaction that sees one user's rows, as all others do."""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import asyncpg
from sqlalchemy import JSON, LargeBinary, func, select
from sqlalchemy.dialects.postgresql.base import PGDialect

from ..models import to_micros
from .database import Read, Rows

Processor = Callable[[Any], Any]

_DIALECT = PGDialect(paramstyle="named")  # type: ignore[no-untyped-call]
# The transaction and its limits are one message, which takes no values: the user's name is written in hexadecimal.
_LIMITS = select(
    func.set_config("jiyi.user_id", func.convert_from(func.decode("{}", "hex"), "UTF8"), True),
    func.set_config("jiyi.everybody", "{}", True),
)
_WRITTEN_OUT = _LIMITS.compile(dialect=_DIALECT, compile_kwargs={"literal_binds": True})
BEGIN = f"BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY; {_WRITTEN_OUT}"
END = "ROLLBACK"
_LIST = re.compile(r"IN \(__\[POSTCOMPILE_(\w+)]\)")
_LITERAL = re.compile(r"__\[POSTCOMPILE_(\w+)]")
_VALUE = re.compile(r"(?<!:):(\w+)")


async def begin(connection: asyncpg.Connection, user_id: str | None) -> None:
    """Begin a transaction that reads one user's rows, or those of all users."""
    await connection.execute(BEGIN.format((user_id or "").encode().hex(), "on" if user_id is None else ""))


async def end(connection: asyncpg.Connection) -> None:
    """End the transaction. A connection on which that fails is not used again."""
    try:
        await connection.execute(END)
    except BaseException:
        connection.terminate()
        raise


async def rows(connection: asyncpg.Connection, reads: Iterable[Read]) -> list[Rows]:
    found: list[Rows] = []
    for statement, values in reads:
        text, names, constants, processors = _compiled(statement)
        given = constants | values
        lines = await connection.fetch(text, *(_bound(given[name]) for name in names))
        found.append([_processed(line, processors) for line in lines])
    return found


def _bound(value: Any) -> Any:
    return to_micros(value) if isinstance(value, datetime) else value


@cache
def _compiled(statement: Any) -> tuple[str, list[str], dict[str, Any], list[tuple[int, Processor]]]:
    """Return the text of a statement, the names of its values in order, its constants, and how values of some columns
    are read."""
    compiled = statement.compile(dialect=_DIALECT)
    text = _LITERAL.sub(r":\1", _LIST.sub(r"= ANY(:\1)", str(compiled)))
    names = list(dict.fromkeys(_VALUE.findall(text)))
    text = _VALUE.sub(lambda match: f"${names.index(match[1]) + 1}", text)
    processors = [
        (at, processor)
        for at, column in enumerate(statement.selected_columns)
        if (processor := _processor(column.type)) is not None
    ]
    return text, names, dict(compiled.params), processors


def _processor(kind: Any) -> Processor | None:
    if isinstance(kind, (JSON, LargeBinary)):  # the connection reads them
        return None
    return kind.dialect_impl(_DIALECT).result_processor(_DIALECT, None)  # type: ignore[no-any-return]


def _processed(line: Sequence[Any], processors: Sequence[tuple[int, Processor]]) -> Sequence[Any]:
    values = list(line)
    for at, processor in processors:
        values[at] = processor(values[at])
    return values
