"""Jiyi's own export: one JSON line per record, between a header and a line with the number of records."""

from collections.abc import Iterator
from typing import Any

from pydantic import ValidationError

from ...errors import InvalidInput
from ...store.upkeep.export_records import EXPORT, LINE, VERSION, Line
from ..records import JsonReader
from ..sources import Source, Values


def read(values: Values, source: Source) -> Iterator[Line]:
    """Yield the records of an export, each validated."""
    lines = iter(values)
    version = next(lines)[1].get("version")
    if version != VERSION:
        problem = f"is an export of version {version}; this Jiyi reads version {VERSION}: upgrade"
        raise InvalidInput(source.name, problem)
    count, total, complete = 0, None, False
    for place, value in lines:
        if not isinstance(value, dict):
            raise InvalidInput(place, "is not a JSON object")
        if complete:
            raise InvalidInput(place, "comes after the last line of the export")
        if value.get("kind") == "end":
            complete, total = True, value.get("records")
        else:
            count += 1
            yield _record(place, value)
    if not complete:
        raise InvalidInput(source.name, "is truncated: its last line is missing")
    if total != count:
        raise InvalidInput(source.name, f"has {count:,} records but its last line says {total}: it was cut or edited")


def _record(place: str, value: dict[str, Any]) -> Line:
    try:
        return LINE.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"][1:])
        problem = first["msg"].removeprefix("Value error, ")
        raise InvalidInput(place, f"{field}: {problem}" if field else problem) from None


READER = JsonReader("jiyi", "memories", lambda value: value.get("kind") == EXPORT, read)
