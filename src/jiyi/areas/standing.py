"""Standing memories: wishes and limits of a user that hold for every request, such as "always answer in Chinese" and
allergies, which share no word with what they matter for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ..engine import changed_since, feed_position
from ..languages import cue
from ..models import MemoryItem, utc_now
from ..roles import teller_of
from ..store.write_set import FeedPosition
from ..validation import MAX_LIMIT

TYPES = ("preference", "fact", "profile", "pattern", "lesson", "instruction", "constraint")
LONGEST = 300  # characters; a longer memory is no wish
FIRST_SCAN = 1_000  # newest memories that are read for the first recall of a user
SURE = 0.5
MAX_RETURNED = 50
MAX_USERS = 10_000


@dataclass(frozen=True, slots=True)
class Known:
    """Ids of the standing memories at a position of the user's change feed, newest first."""

    position: FeedPosition | None
    ids: tuple[str, ...]


_known: WeakKeyDictionary[Any, dict[tuple[Any, ...], Known]] = WeakKeyDictionary()


def is_standing(memory: MemoryItem) -> bool:
    """Return True for a wish or limit that the user stated, or a trusted source for the user, and that still holds."""
    ended = any(end is not None and end <= utc_now() for end in (memory.valid_to, memory.expires_at))
    if memory.status != "active" or ended or memory.superseded_by or memory.trust < 1 or len(memory.content) > LONGEST:
        return False
    if teller_of(memory.data, memory.user_id) is not None:
        return False
    return is_instruction(memory) or memory.memory_type == "constraint" or is_limit(memory.content)


def is_limit(text: str) -> bool:
    """Return True for a text such as "I'm allergic to peanuts" or "我不喝酒"."""
    return bool(cue("limit").search(text))


def is_instruction(memory: MemoryItem) -> bool:
    """Return True for a wish how to answer or address the user."""
    from ..write.classify import classify

    if memory.memory_type == "instruction" or memory.data.get("kind") == "instruction":
        return True
    if cue("instruction").search(memory.content):
        return True
    return memory.memory_type == "preference" and classify(memory.content).probability("instruction") >= SURE


async def standing_memories(memory: Any, user_id: str, filters: Mapping[str, Any]) -> list[MemoryItem]:
    """Return the standing memories, newest first. The memories of a user are read once; later calls read those that
    the change feed names, whoever changed them."""
    users = _known.setdefault(memory, {})
    key = user_id, *sorted((name, value) for name, value in filters.items() if value is not None)
    known = await _current(memory, user_id, filters, users.get(key))
    users.pop(key, None)
    users[key] = known  # as the last one: the first ones leave
    while len(users) > MAX_USERS:
        users.pop(next(iter(users)))
    ids = known.ids
    while ids:
        found = await memory.get_many(ids[:MAX_RETURNED], user_id=user_id)
        standing = [one for one in found if is_standing(one)]
        if len(standing) == len(ids[:MAX_RETURNED]):
            return standing
        ids = (*(one.id for one in standing), *ids[MAX_RETURNED:])  # some ended by now
    return []


async def _current(memory: Any, user_id: str, filters: Mapping[str, Any], known: Known | None) -> Known:
    """Return the ids at the present position of the change feed."""
    # The position is read first: what is committed while memories are read is then looked at again, not missed.
    position = await feed_position(memory, user_id)
    if known is not None and known.position == position:
        return known
    changed = None if known is None else await changed_since(memory, user_id, known.position, TYPES)
    if known is None or changed is None:
        return Known(position, await _first_scan(memory, user_id, filters))
    found: list[str] = []
    for start in range(0, len(changed), MAX_LIMIT):
        page = await memory.get_many(changed[start : start + MAX_LIMIT], user_id=user_id)
        found += await asyncio.to_thread(_standing_ids, [one for one in page if _matches(one, filters)])
    return Known(position, tuple(sorted({*known.ids, *found} - ({*changed} - {*found}), reverse=True)))


async def _first_scan(memory: Any, user_id: str, filters: Mapping[str, Any]) -> tuple[str, ...]:
    page = await memory.list(user_id=user_id, memory_types=TYPES, limit=FIRST_SCAN, **filters)
    return tuple(await asyncio.to_thread(_standing_ids, page.items))


def _standing_ids(memories: Iterable[MemoryItem]) -> list[str]:
    return [one.id for one in memories if is_standing(one)]


def _matches(memory: MemoryItem, filters: Mapping[str, Any]) -> bool:
    return all(value is None or getattr(memory, name) == value for name, value in filters.items())
