"""Checks of arguments. Each raises `InvalidInput` with the name of the argument and what would be valid."""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from pydantic import JsonValue, TypeAdapter, ValidationError

from .errors import InvalidInput
from .languages.words import normalise
from .memory_types import Layer, type_name
from .models import Status, in_utc

MAX_TEXT = 200_000
MAX_QUERY = 8_000
MAX_NAME = 256
MAX_TYPE = 64
MAX_LIMIT = 1_000
MAX_TAGS = 64
MAX_JSON = 65_536  # characters; every memory of a message gets its metadata, and every search reads them
MAX_DEPTH = 32  # of JSON objects; some databases and parsers fail on deep ones
_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
LAYER_NAMES: tuple[Layer, ...] = ("episodic", "semantic", "procedural")


def text(argument: str, value: object, *, longest: int = MAX_TEXT) -> str:
    """Check that a text is not empty, not too long and valid Unicode; return it unchanged."""
    if not isinstance(value, str):
        raise InvalidInput(argument, f"must be text, not {type(value).__name__}")
    if not value.strip():
        raise InvalidInput(argument, "is empty")
    if len(value) > longest:
        raise InvalidInput(argument, f"has {len(value):,} characters; the limit is {longest:,}: split it")
    if "\x00" in value:
        raise InvalidInput(argument, "contains a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(argument, f"is not valid Unicode (lone surrogate at position {error.start})") from None
    return value


def content(argument: str, value: object) -> str:
    """Check the text of a memory or a message."""
    return text(argument, value)


def name(argument: str, value: object) -> str:
    """Check an id or a short name."""
    return text(argument, value, longest=MAX_NAME)


def ids(user_id: object, memory_id: object) -> tuple[str, str]:
    return name("user_id", user_id), name("memory_id", memory_id)


def memory_type(argument: str, value: object) -> str:
    return type_name(text(argument, value, longest=MAX_TYPE))


def memory_types(argument: str, values: object) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(type_name, names(argument, values))))


def optional_name(argument: str, value: str | None) -> str | None:
    return None if value is None else name(argument, value)


def time(argument: str, value: object) -> datetime:
    if not isinstance(value, datetime):
        raise InvalidInput(argument, f"must be a datetime, not {type(value).__name__}")
    try:
        return in_utc(value)
    except ValueError as error:
        raise InvalidInput(argument, str(error)) from None


def optional_time(argument: str, value: datetime | None) -> datetime | None:
    return None if value is None else time(argument, value)


def share(argument: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidInput(argument, f"must be a number from 0 to 1, not {value!r}")
    return float(value)


def whole(argument: str, value: object, *, lowest: int = 1, highest: int = MAX_LIMIT) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise InvalidInput(argument, f"must be a whole number from {lowest:,} to {highest:,}, not {value!r}")
    return value


def seconds(argument: str, value: object, *, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most:
        raise InvalidInput(argument, f"must be a number of seconds from 0 to {most:,}, not {value!r}")
    return float(value)


def choice(argument: str, value: object, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise InvalidInput(argument, f"must be one of {', '.join(allowed)}, not {value!r}")
    return str(value)


def names(argument: str, values: object, *, most: int = MAX_TAGS) -> tuple[str, ...]:
    """Check a list of names. A single string is rejected, because it would be iterated by character."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InvalidInput(argument, f"must be a list of names, not {values!r}")
    found = tuple(name(f"{argument}[{at}]", value) for at, value in enumerate(values))
    if len(found) > most:
        raise InvalidInput(argument, f"has {len(found):,} entries; the limit is {most:,}")
    return tuple(dict.fromkeys(found))


def json_object(argument: str, value: object) -> dict[str, JsonValue]:
    """Check that a value is an object of plain JSON values."""
    try:
        found = _OBJECT.validate_python(value)
        written = json.dumps(found, allow_nan=False, ensure_ascii=False)
        written.encode()
    except (ValidationError, ValueError, RecursionError) as error:
        raise InvalidInput(argument, f"must be an object of plain JSON values ({str(error).splitlines()[0]})") from None
    if len(written) > MAX_JSON:
        raise InvalidInput(argument, f"has {len(written):,} characters as JSON; the limit is {MAX_JSON:,}")
    if "\\u0000" in written.replace("\\\\", ""):
        raise InvalidInput(argument, "contains a NUL character")
    if _depth(found) > MAX_DEPTH:
        raise InvalidInput(argument, f"is nested more than {MAX_DEPTH} deep")
    return found


def json_text(argument: str, value: str) -> dict[str, JsonValue]:
    """Read an object from JSON."""
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(argument, f"is not JSON ({error})") from None
    return json_object(argument, parsed)


def memory_data(argument: str, value: object) -> dict[str, JsonValue]:
    """Check the `data` of a memory: names of people and roles in it are text."""
    found = json_object(argument, value)
    for key in ("speaker", "role", "subject"):
        if found.get(key) is not None:
            text(f"{argument}.{key}", found[key], longest=MAX_NAME)
    return found


def _inside(value: JsonValue) -> list[JsonValue]:
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []


def _depth(value: JsonValue) -> int:
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        level, depth = [inner for one in level for inner in _inside(one)], depth + 1
    return depth


def tags(argument: str, values: object) -> tuple[str, ...]:
    """Return the tags as written, without those that differ only in case or width."""
    found = {normalise(tag): tag for tag in names(argument, values)}
    for normal in found:  # normalising can lengthen a tag or leave nothing of it
        name(argument, normal)
    return tuple(found.values())


def status(argument: str, value: object) -> Status:
    return choice(argument, value, ("active", "archived"))  # type: ignore[return-value]


def layers(argument: str, values: object) -> tuple[Layer, ...]:
    return tuple(choice(argument, value, LAYER_NAMES) for value in names(argument, values))  # type: ignore[misc]


def time_span(
    time_range: tuple[datetime | None, datetime | None] | None, time_range_days: int | None, now: datetime
) -> tuple[datetime | None, datetime | None]:
    """Return start and end (exclusive) from either argument."""
    if time_range is not None and time_range_days is not None:
        raise InvalidInput("time_range", "cannot be used together with time_range_days")
    if time_range_days is not None:
        days = whole("time_range_days", time_range_days, highest=100_000)
        try:
            return now - timedelta(days=days), None
        except OverflowError:
            return None, None
    if time_range is None:
        return None, None
    if not isinstance(time_range, (tuple, list)) or len(time_range) != 2:
        raise InvalidInput("time_range", "must be a pair (start, end)")
    start, end = (optional_time(f"time_range[{at}]", value) for at, value in enumerate(time_range))
    if start is not None and end is not None and start >= end:
        raise InvalidInput("time_range", "ends before it starts")
    return start, end
