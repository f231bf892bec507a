"""Statements that are built once and only read, run by asyncpg itself: each is one message to the server, where a
session of SQLAlchemy takes four, and half the time. Each sees one user's rows, as all others do."""

import re
from collections.abc import Iterable
from datetime import datetime
from functools import cache
from typing import Any

import asyncpg
from sqlalchemy import JSON, Integer, LargeBinary, bindparam, cast, func, select
from sqlalchemy.dialects.postgresql.base import PGDialect

from ..models import to_micros
from .session import Processor, Read, Rows, processed, processors_of

_DIALECT = PGDialect(paramstyle="named")  # type: ignore[no-untyped-call]
# Both settings end with the statement, which is a transaction of its own.
_SCOPE = select(
    func.set_config("jiyi.user_id", bindparam("jiyi_user_id"), True),
    func.set_config("jiyi.everybody", bindparam("jiyi_everybody"), True),
    cast(0, Integer).label("skipped"),
).subquery("scope")
_LIST = re.compile(r"IN \(__\[POSTCOMPILE_(\w+)]\)")
_LITERAL = re.compile(r"__\[POSTCOMPILE_(\w+)]")
_VALUE = re.compile(r"(?<!:):(\w+)")


async def rows(connection: asyncpg.Connection, scope: dict[str, str], reads: Iterable[Read]) -> list[Rows]:
    """Run statements with the settings that limit them to one user's rows."""
    found: list[Rows] = []
    for statement, values in reads:
        text, names, constants, processors = _compiled(statement)
        given = constants | values | scope
        lines = await connection.fetch(text, *(_bound(given[name]) for name in names))
        found.append([processed(line, processors) for line in lines])
    return found


def _bound(value: Any) -> Any:
    return to_micros(value) if isinstance(value, datetime) else value


@cache
def _compiled(statement: Any) -> tuple[str, list[str], dict[str, Any], list[tuple[int, Processor]]]:
    """Return the text of a statement that first limits what it sees, the names of its values in order, its constants,
    and how values of some columns are read."""
    # The statement refers to the settings (LATERAL) and stays a query of its own (OFFSET), so they are made before it
    # reads its first row. Without them row-level security shows nothing.
    limited = select(statement.offset(_SCOPE.c.skipped).lateral("found"))
    compiled = limited.select_from(_SCOPE).compile(dialect=_DIALECT)
    text = _LITERAL.sub(r":\1", _LIST.sub(r"= ANY(:\1)", str(compiled)))
    names = list(dict.fromkeys(_VALUE.findall(text)))
    text = _VALUE.sub(lambda match: f"${names.index(match[1]) + 1}", text)
    processors = processors_of(statement, _processor)
    return text, names, dict(compiled.params), processors


def _processor(kind: Any) -> Processor | None:
    if isinstance(kind, (JSON, LargeBinary)):  # the connection reads them
        return None
    return kind.dialect_impl(_DIALECT).result_processor(_DIALECT, None)  # type: ignore[no-any-return]
