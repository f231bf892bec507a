"""Memories whose words an earlier version of Jiyi worked out, or one of which nothing is known, are indexed anew. Until
it is their turn they are found by what they were found by before, and by meaning."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..store.checking import Checked, Repair
from ..store.contract import IndexEntry
from ..write.index import KeywordRules, index_entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..store.base import Store

AT_ONCE = 200  # memories, in one transaction; it takes itself off the list, so a run that was stopped goes on there


async def renew(store: Store, rules: KeywordRules, user_id: str, *, most: int) -> int:
    """Index some memories of a user anew. → how many"""
    done = 0
    while done < most and (found := await store.outdated(user_id, limit=min(AT_ONCE, most - done))):
        entries = await asyncio.to_thread(_entries, found, rules)
        wanted = [
            Repair(user_id=user_id, id=memory.id, version=memory.version, index=entry)
            for memory, entry in zip(found, entries, strict=True)
        ]
        done += len(await store.repair(wanted))  # one that was changed meanwhile is up to date by that
    return done


def _entries(found: Sequence[Checked], rules: KeywordRules) -> list[IndexEntry]:
    return [index_entry(memory.content, memory.summary, memory.tags, memory.data, rules) for memory in found]
