"""Standing memories: wishes and limits of a user that hold for every request, such as "always answer in Chinese" and
allergies, which share no word with what they matter for. `select` chooses them and the hits that a recall shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..engine import changed_since, feed_position
from ..languages import cue
from ..models import Hit, MemoryItem, SearchResult, utc_now
from ..read.context import sharing_words
from ..roles import teller_of
from ..store.write_set import FeedPosition
from ..validation import MAX_LIMIT

TYPES = ("preference", "fact", "profile", "pattern", "lesson", "instruction", "constraint")
LONGEST = 300  # characters; a longer memory is no wish
FIRST_SCAN = 1_000  # newest memories that are read for the first recall of a user
SURE = 0.5
MAX_RETURNED = 50
MAX_USERS = 10_000
MAX_WEAK = 2  # lines where no hit is relevant
MAX_BEARING = 2  # standing wishes and limits beside the hits
# Least scores, chosen on stories that the reader was not trained on (bench/recall_lines.py).
WEAK = 0.35  # of a hit that may belong to the query
BEARING = 0.2  # of a standing wish or limit that may bear on it: a missed one costs more than a line
MAX_INSTRUCTIONS, MAX_LIMITS = 8, 16  # standing ones where nothing reads them
OVERFETCH = 4  # hits of the own session are dropped after the search
MOST_FETCHED = 200


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


# -- what a recall shows ----------------------------------------------------------------------------------------------


class Selection(NamedTuple):
    """Memories that are shown for a request, with the scores of all that were found, and the search behind them."""

    hits: list[Hit]
    standing: list[MemoryItem]
    scores: Mapping[str, float]  # by the id of a hit or of a standing memory
    found: SearchResult


async def select(
    search: Callable[[int], Awaitable[SearchResult]],
    query: str,
    standing: Sequence[MemoryItem],
    *,
    limit: int,
    min_relevance_score: float | None = None,
    are_read: bool = True,
    said_here: Callable[[Hit | MemoryItem], bool] | None = None,
) -> Selection:
    """Choose the memories to show: the hits that may belong to the query, or all from a given score on, and standing
    memories that may bear on it, by the score of a hit that states the same; without a relevant hit at most two in all.
    `search` takes a limit and finds standing memories too. If they are not read (`are_read`), all of them are shown
    beside the hits: the instructions, and the limits that come closest.

    Weak hits that have ended, and those that were `said_here`, are left out. For small talk, only hits that have one of
    its words are chosen."""
    # Imported here so that a program that only searches loads nothing of writing.
    from ..write.classify import is_small_talk

    wanted = min(limit * (1 if said_here is None else OVERFETCH) + len(standing), MOST_FETCHED)
    if not are_read and len(standing) > MAX_LIMITS:  # they are ranked by the hits
        wanted = MOST_FETCHED
    while True:
        found = await search(wanted)
        hits = [hit for hit in found.hits if (hit.relevant or not hit.outdated) and not (said_here and said_here(hit))]
        if len(hits) >= limit or len(found.hits) < wanted or wanted >= MOST_FETCHED:
            break
        wanted = min(wanted * OVERFETCH, MOST_FETCHED)
    hits = sharing_words(query, hits) if is_small_talk(query) else hits
    scores = {hit.id: hit.relevance_score for hit in found.hits}
    for memory in standing:
        scores[memory.id] = max((hit.relevance_score for hit in found.hits if _share_source(hit, memory)), default=0.0)
    if not are_read:
        hits = [hit for hit in hits if hit.relevant or not any(_share_source(hit, one) for one in standing)]
    hits = (close(hits) if min_relevance_score is None else hits)[:limit]
    others = [one for one in standing if not any(_states(hit, one) for hit in hits)]
    if not are_read:
        return Selection(hits, _nearest(others, scores), scores, found)
    bearing = sorted((one for one in others if scores[one.id] >= BEARING), key=lambda one: -scores[one.id])
    most = limit if min_relevance_score is not None or (hits and hits[0].relevant) else min(limit, MAX_WEAK)
    bearing = bearing[: min(MAX_BEARING, max(most - len(hits), most // 2))]
    hits = hits[: most - len(bearing)]
    # A weak hit that is a wish or limit itself stands among those, not among what may be unrelated.
    weak = {hit.id for hit in hits if not hit.relevant}
    chosen = [*(one for one in standing if one.id in weak), *bearing]
    apart = {one.id for one in chosen}
    return Selection([hit for hit in hits if hit.id not in apart], chosen, scores, found)


def _states(hit: Hit, memory: MemoryItem) -> bool:
    """Return True for the memory and for the message that it was made of."""
    return hit.id == memory.id or (hit.memory_type == "message" and _share_source(hit, memory))


def _share_source(hit: Hit, memory: MemoryItem) -> bool:
    return not {hit.id, *hit.source_ids}.isdisjoint((memory.id, *memory.source_ids))


def _nearest(standing: Sequence[MemoryItem], scores: Mapping[str, float]) -> list[MemoryItem]:
    """Return the instructions, which hold for every answer, and the limits that come closest to the request."""
    some = sorted(standing, key=lambda one: -scores[one.id])
    instructions = [one for one in some if is_instruction(one)]
    limits = [one for one in some if one not in instructions]
    return [*instructions[:MAX_INSTRUCTIONS], *limits[:MAX_LIMITS]]


def close(hits: Sequence[Hit]) -> list[Hit]:
    """Return the relevant hits and those that may belong to them; without a relevant one, at most two that may help."""
    some = [hit for hit in hits if hit.relevance_score >= WEAK]
    return some if some and some[0].relevant else some[:MAX_WEAK]
