"""Memories that grow: an episode with its unit, a profile with what is known of somebody. They are updated, not written
anew, and what a person has written into them stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from ..store.contract import NewMemory, SlotEntry, Source
from .extractors.profiles import merged_attributes
from .facts import Fact
from .summary import summarise

EPISODE = "episode"
PROFILES = frozenset({"profile", "group_profile"})
GROWING = PROFILES | {EPISODE}
MOST_ATTRIBUTES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """A stored memory with what was added to it."""

    entry: SlotEntry
    content: str
    summary: str
    data: dict[str, Any]
    sources: tuple[Source, ...]


def grow(proposed: Sequence[tuple[NewMemory, Fact]], there: Sequence[SlotEntry]) -> tuple[list[NewMemory], list[Grown]]:
    """The memories that begin, and those that have grown."""
    stored = {entry.slot: entry for entry in there if entry.valid_to is None and entry.memory_type in GROWING}
    grown: dict[str, Grown] = {}
    begun: dict[str, NewMemory] = {}
    for memory, fact in proposed:
        entry = stored.get(fact.slot)
        if entry is not None:
            before = grown.get(fact.slot) or _as_stored(entry)
            grown[fact.slot] = _grown(before, memory)
        elif fact.slot in begun:
            first = begun[fact.slot]
            content, data = _together(first.content, first.data, memory, edited=False)
            sources = tuple({one.message_id: one for one in (*first.sources, *memory.sources)}.values())
            begun[fact.slot] = replace(
                first, content=content, summary=_summary(first, content), data=data, sources=sources
            )
        else:
            content, data = _together("", {}, memory, edited=False)
            begun[fact.slot] = replace(memory, content=content, data=data, slot=fact.slot)
    return list(begun.values()), [one for one in grown.values() if one != _as_stored(one.entry)]


def _as_stored(entry: SlotEntry) -> Grown:
    return Grown(entry=entry, content=entry.content, summary=entry.summary, data=entry.data, sources=())


def _grown(before: Grown, memory: NewMemory) -> Grown:
    entry = before.entry
    content, data = _together(before.content, before.data, memory, edited=entry.edited_at is not None)
    own = entry.memory_type == EPISODE or entry.summary != summarise(entry.content)
    return Grown(
        entry=entry,
        content=content,
        summary=entry.summary if own else summarise(content),
        data=data,
        sources=(*before.sources, *memory.sources),
    )


def _summary(first: NewMemory, content: str) -> str:
    return first.summary if first.memory_type == EPISODE else summarise(content)


def _together(
    content: str, data: dict[str, Any], memory: NewMemory, *, edited: bool
) -> tuple[str, dict[str, JsonValue]]:
    if memory.memory_type == EPISODE:
        return _told_on(content, memory.content), {**memory.data, **data}
    old, new = (_attributes(one) for one in (data, memory.data))
    latest = {_key(item): str(item.get("since")) for item in old if item.get("single")}
    news = [item for item in new if latest.get(_key(item), "") <= str(item.get("since"))]
    attributes = merged_attributes(list(old), list(news))[-MOST_ATTRIBUTES:]
    lines = [str(item["content"]) for item in attributes if isinstance(item, dict) and item.get("content")]
    if edited:
        added = [line for item in news if (line := str(item.get("content"))) in lines and line not in content]
        lines = [content, *added]
    return "\n".join(lines) or content or memory.content, {**data, **memory.data, "attributes": attributes}


def _told_on(content: str, more: str) -> str:
    if not content or more in content:
        return content or more
    return content + ("" if content.endswith("。") else " ") + more


def _attributes(data: dict[str, Any]) -> list[dict[str, JsonValue]]:
    found = data.get("attributes")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _key(item: dict[str, JsonValue]) -> JsonValue:
    return item.get("attribute")
