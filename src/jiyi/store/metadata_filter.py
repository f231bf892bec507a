"""Conditions on metadata as SQL, with the same results in SQLite and PostgreSQL: a value matches only values of its own
kind (text, number, boolean, null), a list what one of its values equals, and a missing key matches nothing. A key is
taken as it is written."""

import json
from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any

from sqlalchemy import ColumnElement, TableValuedAlias, Text, bindparam, cast, exists, false, func, or_
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import ARRAY, Boolean, NullType, UserDefinedType

from ..scope import MetadataCondition, Scalar

RANGES: dict[str, Callable[[ColumnElement[Any], Any], ColumnElement[bool]]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
SQLITE_TYPES: dict[type, tuple[str, ...]] = {str: ("text",), int: ("integer", "real"), float: ("integer", "real")}


class JSONB(UserDefinedType[Any]):
    """PostgreSQL's type, without importing its dialect: a program with a file never needs it."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "JSONB"


class _ByDialect(FunctionElement[bool]):
    """A condition that is written differently for SQLite and for PostgreSQL."""

    type = Boolean()
    inherit_cache = True


@compiles(_ByDialect, "sqlite")
def _for_sqlite(element: _ByDialect, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(next(iter(element.clauses)), **kw)


@compiles(_ByDialect, "postgresql")
def _for_postgres(element: _ByDialect, compiler: SQLCompiler, **kw: Any) -> str:
    return compiler.process(list(element.clauses)[1], **kw)


def metadata_condition(metadata: ColumnElement[Any], condition: MetadataCondition) -> ColumnElement[bool]:
    """Return one condition on a column of metadata."""
    if not condition.values:
        return false()
    return _ByDialect(_sqlite(metadata, condition), _postgres(metadata, condition))


def _sqlite(metadata: ColumnElement[Any], condition: MetadataCondition) -> ColumnElement[bool]:
    # Not a JSON path: not every version of SQLite finds a key with a quote or a \\u escape by one.
    member = func.json_each(metadata).table_valued("key", "value", "type")
    held = or_(*(_sqlite_value(member, condition, value) for value in condition.values))
    if not condition.is_range:
        element = func.json_each(member.c.value).table_valued("value", "type")
        equal = or_(*(_sqlite_value(element, condition, value) for value in condition.values))
        held = or_(held, (member.c.type == "array") & exists().select_from(element).where(equal))
    return exists().select_from(member).where(member.c.key == condition.key, held)


def _sqlite_value(member: TableValuedAlias, condition: MetadataCondition, value: Scalar) -> ColumnElement[bool]:
    kind, held = member.c.type, member.c.value
    if value is None or isinstance(value, bool):
        return kind == json.dumps(value)
    # SQLite reads both numbers by the same function, so that equal ones stay equal.
    wanted = value if isinstance(value, str) else func.json_extract(json.dumps(value), "$", type_=NullType())
    matches = RANGES[condition.operator](held, wanted) if condition.is_range else held == wanted
    return kind.in_(SQLITE_TYPES[type(value)]) & matches


def _postgres(metadata: ColumnElement[Any], condition: MetadataCondition) -> ColumnElement[bool]:
    held = cast(metadata, JSONB).op("->", return_type=JSONB())(cast(bindparam(None, condition.key, Text), Text))
    return or_(*(_postgres_value(held, condition, value) for value in condition.values))


def _postgres_value(held: ColumnElement[Any], condition: MetadataCondition, value: Scalar) -> ColumnElement[bool]:
    wanted = cast(bindparam(None, json.dumps(value), Text), JSONB)
    if not condition.is_range:
        return held.op("@>", return_type=Boolean())(wanted)  # of an array: it has such an element
    if isinstance(value, str):
        text = held.op("#>>", return_type=Text())(cast(bindparam(None, "{}", Text), ARRAY(Text)))
        return (func.jsonb_typeof(held) == "string") & RANGES[condition.operator](text.collate("C"), value)
    return (func.jsonb_typeof(held) == "number") & RANGES[condition.operator](held, wanted)
