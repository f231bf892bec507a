"""Memories as they were. A profile grows line by line, a compressed memory tells of one day after the other; asked for
an earlier moment, they tell what held then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from ..models import MemoryItem
from ..text.passages import COMPRESSED
from ..text.summary import summarise

_DAY = re.compile(r"(\d{4}-\d{2}-\d{2}): ")


def as_they_were(memories: Iterable[MemoryItem], as_of: datetime | None) -> list[MemoryItem]:
    """Profiles without what was learned later and with what has ended since, compressed memories without the days that
    came later; one that said nothing yet is left out."""
    if as_of is None:
        return list(memories)
    return [was for memory in memories if (was := _as_it_was(memory, as_of)) is not None]


def _as_it_was(memory: MemoryItem, as_of: datetime) -> MemoryItem | None:
    if COMPRESSED in memory.data and as_of < memory.occurred_at:
        return _until(memory, as_of)
    attributes = memory.data.get("attributes")
    if memory.memory_type not in ("profile", "group_profile") or not isinstance(attributes, list):
        return memory
    held = [item for item in attributes if isinstance(item, dict) and _held(item, as_of)]
    content = "\n".join(str(item["content"]) for item in held if item.get("content"))
    if not content:
        return None
    data = {**memory.data, "attributes": list(held)}
    return memory.model_copy(update={"content": content, "summary": summarise(content), "data": data})


def _until(memory: MemoryItem, as_of: datetime) -> MemoryItem | None:
    """With the lines of that day and those before. A language model's text names no days, and stays whole."""
    last = as_of.astimezone(UTC).date().isoformat()
    lines = memory.content.splitlines()
    told = [line for line in lines if (day := _DAY.match(line)) is None or day.group(1) <= last]
    if not told or len(told) == len(lines):
        return memory if told else None
    content = "\n".join(told)
    return memory.model_copy(update={"content": content, "summary": summarise(content)})


def _held(item: Mapping[str, object], as_of: datetime) -> bool:
    since, until = (_moment(item.get(name)) for name in ("since", "until"))
    return (since is None or since <= as_of) and (until is None or until > as_of)


def _moment(written: object) -> datetime | None:
    return datetime.fromisoformat(written) if isinstance(written, str) else None
