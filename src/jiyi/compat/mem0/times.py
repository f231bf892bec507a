"""Times as mem0 writes them: Unix seconds, ISO 8601 without a zone (UTC), or a date."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from ...errors import InvalidInput


def parse_time(argument: str, value: Any) -> datetime:
    try:
        if isinstance(value, bool):
            raise ValueError
        if isinstance(value, (int, float)):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, datetime):
            return value if value.tzinfo else value.replace(tzinfo=UTC)
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidInput(argument, f"{value!r} is neither Unix seconds nor a time in ISO 8601")


def end_of(argument: str, value: Any) -> datetime:
    """Return the end of an expiration date, which is the last day on which the memory is valid."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    found = parse_time(argument, value)
    if not isinstance(value, str) or len(value) != len("2026-01-31"):
        return found
    return found.replace(hour=23, minute=59, second=59) if found.date() == date.max else found + timedelta(days=1)


def last_day(expires_at: datetime | None) -> str | None:
    """Return the expiration date of a memory that expires at this time."""
    return None if expires_at is None else (expires_at - timedelta(microseconds=1)).date().isoformat()
