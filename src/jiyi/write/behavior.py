"""Behaviour history: a memory of the type `behavior` says what somebody does, and collects the times of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

BEHAVIOR = "behavior"
MOST_TIMES = 100  # the latest ones; `count` counts all

Data = dict[str, JsonValue]


def with_time(data: Data, at: datetime) -> Data:
    """Return the data of a new behaviour, with the time at which it happened."""
    return data if "times" in data else {**data, "times": [at.isoformat()], "count": 1}


def accrued(old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]) -> Data:
    """Return the data of a behaviour with the times of two memories of it. A time that is known counts once."""
    there, more = _times(old), _times(new)
    times = sorted({*there, *more})
    counted = old.get("count")
    before = counted if isinstance(counted, int) else len(there)
    return {**old, "times": [*times[-MOST_TIMES:]], "count": before + len(set(more) - set(there))}


def last_time(data: Mapping[str, JsonValue]) -> datetime | None:
    times = _times(data)
    return datetime.fromisoformat(times[-1]) if times else None


def _times(data: Mapping[str, JsonValue]) -> Sequence[str]:
    times = data.get("times")
    return sorted(one for one in times if isinstance(one, str)) if isinstance(times, list) else []
