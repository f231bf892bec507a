"""The rows of messages that changes of memories divide."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...embed import Embedder
from ...models import MemoryItem
from ...store.store import Store
from ...store.write_set import Change, Division
from ..index import KeywordRules, embed_entries
from .divide import division


def takes_words(memory: MemoryItem, values: Mapping[str, Any]) -> bool:
    """Return True if a person's change of a memory takes words back: it has another text, or holds no longer."""
    if memory.memory_type == "message":
        return False
    return (
        values.get("content", memory.content) != memory.content
        or values.get("status", "active") != "active"
        or values.get("valid_to") is not None
    )


async def with_divisions(
    changes: Sequence[Change],
    memories: Sequence[MemoryItem],
    *,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> list[Change]:
    """Add to changes the divisions of the messages that say the same. The first change of a message has them."""
    done = list(changes)
    for user_id in dict.fromkeys(memory.user_id for memory in memories):
        own = {
            memory.id: at
            for at, memory in enumerate(memories)
            if memory.user_id == user_id and memory.source_ids and takes_words(memory, changes[at].values)
        }
        divisions = await divisions_of(list(own), user_id, store=store, embedder=embedder, rules=rules) if own else ()
        if divisions:
            first = min(own.values())
            done[first] = replace(done[first], divisions=tuple(divisions))
    return done


async def divisions_of(
    memory_ids: Sequence[str], user_id: str, *, store: Store, embedder: Embedder, rules: KeywordRules
) -> list[Division]:
    """Return the divisions of the messages of some memories, with index entries."""
    repeated = await store.messages.repeated(user_id, memory_ids)
    found = await asyncio.to_thread(lambda: [division(one, rules) for one in repeated])
    divisions = [one for one in found if one is not None]
    rows = [row for one in divisions for row in one.left]
    entries, _ = await embed_entries([row.index for row in rows], [row.content for row in rows], embedder)
    indexed = dict(zip((row.id for row in rows), entries, strict=True))
    return [replace(one, left=tuple(replace(row, index=indexed[row.id]) for row in one.left)) for one in divisions]
