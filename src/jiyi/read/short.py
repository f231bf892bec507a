"""What was worked out of a message says the same in fewer words: where a budget is tight, it is told in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..models import MemoryItem
from ..text.budget import token_bound
from .earlier import as_they_were
from .pointing import to_the_point

if TYPE_CHECKING:
    from ..scope import Filter
    from ..store.store import Store

WHOLE = 3  # the best ones are told in their own words


def tokens_of(memories: Sequence[MemoryItem]) -> int:
    return sum(token_bound(memory.content) for memory in memories)


def in_short(memories: Sequence[MemoryItem], gists: Mapping[str, Sequence[MemoryItem]]) -> Iterator[MemoryItem]:
    """The memories, best first, where that is shorter each as what was worked out of it."""
    for place, memory in enumerate(memories):
        short = gists.get(memory.id, ())
        if place < WHOLE or not short or tokens_of(short) >= token_bound(memory.content):
            yield memory
        else:
            yield from short


async def shorten(memories: Sequence[MemoryItem], where: Filter, store: Store) -> Sequence[MemoryItem]:
    """Replace messages by the memories derived from them, except for the best ones."""
    messages = [memory.id for memory in memories if memory.memory_type == "message"]
    return list(in_short(memories, await store.memories.derived(where, messages)))


async def fit(
    memories: Sequence[MemoryItem], query: str, where: Filter, at: datetime | None, max_tokens: int, store: Store
) -> Sequence[MemoryItem]:
    """Return the memories as they were at a time, cut to what the query needs, and shortened if they are too long."""
    memories = [to_the_point(memory, query) for memory in as_they_were(memories, at)]
    if where.memory_types is None and tokens_of(memories) > max_tokens:
        memories = await shorten(memories, replace(where, session_id=None), store)
    return memories
