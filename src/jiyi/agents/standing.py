"""Standing wishes and limits of a user, such as "always answer in Chinese" and allergies. They matter for requests that
share no word with them, so a recall has them always."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from ..languages import cue
from ..memory import Memory
from ..models import MemoryItem, utc_now
from ..roles import teller_of
from ..write.classify import classify

TYPES = ("preference", "fact", "profile", "pattern", "lesson", "instruction", "constraint")
LONGEST = 300  # characters; a longer memory is no wish
FIRST_SCAN = 1_000  # newest memories that are read for the first recall of a user
PAGE = 20
SURE = 0.5
KEPT = 50  # ids of a user
MAX_USERS = 10_000


@dataclass(slots=True)
class Known:
    """Ids of standing memories, newest first, and the newest id that was looked at."""

    ids: list[str] = field(default_factory=list)
    newest: str = ""


_known: WeakKeyDictionary[Memory, dict[tuple[Any, ...], Known]] = WeakKeyDictionary()


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
    if memory.memory_type == "instruction" or memory.data.get("kind") == "instruction":
        return True
    if cue("instruction").search(memory.content):
        return True
    return memory.memory_type == "preference" and classify(memory.content).probability("instruction") >= SURE


async def standing_memories(memory: Memory, user_id: str, filters: Mapping[str, Any]) -> list[MemoryItem]:
    """Return the standing memories, newest first. The memories of a user are read once; later calls read the new ones,
    whose ids are higher."""
    users = _known.setdefault(memory, {})
    known = users.setdefault((user_id, *filters.values()), Known())
    while len(users) > MAX_USERS:
        users.pop(next(iter(users)))
    new: list[MemoryItem] = []
    cursor, limit, scanned = None, PAGE if known.newest else FIRST_SCAN, 0
    while scanned < FIRST_SCAN:
        page = await memory.list(user_id=user_id, memory_types=TYPES, limit=limit, cursor=cursor, **filters)
        fresh = [one for one in page.items if one.id > known.newest]
        new += fresh
        scanned += len(page.items)
        cursor = page.next_cursor
        if cursor is None or len(fresh) < len(page.items):
            break
    if new:
        known.newest = new[0].id
    candidates = [one.id for one in new if is_standing(one)]
    known.ids = [*candidates, *(one for one in known.ids if one not in candidates)]
    if not known.ids:
        return []
    there = await memory.get_many(known.ids[:KEPT], user_id=user_id)
    known.ids = [one.id for one in there]
    return [one for one in there if is_standing(one)]
