"""Memories as they were. A profile grows line by line; asked for an earlier moment, it tells what held then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from ..models import MemoryItem
from ..text.summary import summarise


def as_they_were(memories: Iterable[MemoryItem], as_of: datetime | None) -> list[MemoryItem]:
    """Profiles without what was learned later and with what has ended since; one that said nothing yet is left out."""
    if as_of is None:
        return list(memories)
    return [was for memory in memories if (was := _as_it_was(memory, as_of)) is not None]


def _as_it_was(memory: MemoryItem, as_of: datetime) -> MemoryItem | None:
    attributes = memory.data.get("attributes")
    if memory.memory_type not in ("profile", "group_profile") or not isinstance(attributes, list):
        return memory
    held = [item for item in attributes if isinstance(item, dict) and _held(item, as_of)]
    content = "\n".join(str(item["content"]) for item in held if item.get("content"))
    if not content:
        return None
    data = {**memory.data, "attributes": list(held)}
    return memory.model_copy(update={"content": content, "summary": summarise(content), "data": data})


def _held(item: Mapping[str, object], as_of: datetime) -> bool:
    since, until = (_moment(item.get(name)) for name in ("since", "until"))
    return (since is None or since <= as_of) and (until is None or until > as_of)


def _moment(written: object) -> datetime | None:
    return datetime.fromisoformat(written) if isinstance(written, str) else None
