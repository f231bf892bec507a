"""Memories that grow: an episode with its unit, a profile with what is known of somebody. They are updated, not written
anew, and what a person has written into them stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from ..store.contract import NewMemory, SlotEntry, Source
from ..text.summary import summarise
from .extractors.profiles import Attribute, merged_attributes
from .facts import Fact

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

    @property
    def over(self) -> datetime | None:
        """When the last line of a profile ended, if none is left. What a person has written does not end."""
        if self.entry.edited_at is not None or not _says_nothing(self.data):
            return None
        ends = [datetime.fromisoformat(str(item["until"])) for item in _attributes(self.data)]
        return max(ends, default=None)


def grow(
    proposed: Sequence[tuple[NewMemory, Fact]], there: Sequence[SlotEntry], over: Mapping[str, datetime]
) -> tuple[list[NewMemory], list[Grown]]:
    """The memories that begin, and those that have grown. `over`: what has ended, by its words, and when."""
    stored = {entry.slot: entry for entry in there if entry.valid_to is None and entry.memory_type in GROWING}
    grown: dict[str, Grown] = {}
    begun: dict[str, NewMemory] = {}
    for memory, fact in proposed:
        entry = stored.get(fact.slot)
        if entry is not None:
            before = grown.get(fact.slot) or _as_stored(entry)
            grown[fact.slot] = _grown(before, memory, over)
        elif fact.slot in begun:
            first = begun[fact.slot]
            content, data = _together(first.content, first.data, memory, over, edited=False)
            sources = tuple({one.message_id: one for one in (*first.sources, *memory.sources)}.values())
            begun[fact.slot] = replace(
                first, content=content, summary=_summary(first, content), data=data, sources=sources
            )
        else:
            content, data = _together("", {}, memory, over, edited=False)
            begun[fact.slot] = replace(memory, content=content, data=data, slot=fact.slot)
    for entry in stored.values():
        if entry.slot not in grown and tells(entry.data, over):
            grown[entry.slot] = _shortened(entry, over)
    begun = {slot: memory for slot, memory in begun.items() if not _says_nothing(memory.data)}
    return list(begun.values()), [one for one in grown.values() if one != _as_stored(one.entry)]


def tells(data: Mapping[str, Any], over: Mapping[str, datetime]) -> bool:
    """Whether a profile has a line that is over."""
    return any(_ended(item, over) != item for item in _attributes(data))


def _shortened(entry: SlotEntry, over: Mapping[str, datetime]) -> Grown:
    attributes = [_ended(item, over) for item in _attributes(entry.data)]
    gone = {str(item.get("content")) for item in attributes} - set(_lines(attributes))
    content = "\n".join(line for line in entry.content.split("\n") if line not in gone) or entry.content
    own = entry.summary != summarise(entry.content)
    return Grown(
        entry=entry,
        content=content,
        summary=entry.summary if own else summarise(content),
        data={**entry.data, "attributes": _most(attributes)},
        sources=(),
    )


def _as_stored(entry: SlotEntry) -> Grown:
    return Grown(entry=entry, content=entry.content, summary=entry.summary, data=entry.data, sources=())


def _grown(before: Grown, memory: NewMemory, over: Mapping[str, datetime]) -> Grown:
    entry = before.entry
    content, data = _together(before.content, before.data, memory, over, edited=entry.edited_at is not None)
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
    content: str, data: dict[str, Any], memory: NewMemory, over: Mapping[str, datetime], *, edited: bool
) -> tuple[str, dict[str, JsonValue]]:
    if memory.memory_type == EPISODE:
        return _told_on(content, memory.content), {**memory.data, **data}
    attributes = merged_attributes(_attributes(data), _attributes(memory.data))
    attributes = [_ended(item, over) for item in attributes]
    lines = _lines(attributes)
    if edited:
        news = _lines([item for item in attributes if item not in _attributes(data)])
        lines = [content, *(line for line in news if line not in content)]
    return "\n".join(lines) or content or memory.content, {**data, **memory.data, "attributes": _most(attributes)}


def _ended(item: Attribute, over: Mapping[str, datetime]) -> Attribute:
    """A line ends when the fact that it tells does."""
    until = over.get(str(item.get("content")))
    if until is None or "until" in item or until.isoformat() <= str(item.get("since")):
        return item
    return {**item, "until": until.isoformat()}


def _says_nothing(data: Mapping[str, Any]) -> bool:
    """It is about attributes, and none of them holds."""
    return "attributes" in data and not _lines(_attributes(data))


def _lines(attributes: Sequence[Attribute]) -> list[str]:
    """What holds now."""
    return [str(item["content"]) for item in attributes if item.get("content") and "until" not in item]


def _most(attributes: Sequence[Attribute]) -> list[JsonValue]:
    """The newest ones, those that hold before those that are over."""
    kept = sorted(attributes, key=lambda item: "until" not in item)[-MOST_ATTRIBUTES:]
    return [item for item in attributes if item in kept]


def _told_on(content: str, more: str) -> str:
    if not content or more in content:
        return content or more
    return content + ("" if content.endswith("。") else " ") + more


def _attributes(data: Mapping[str, Any]) -> list[Attribute]:
    found = data.get("attributes")
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
