"""The recall behind mem0's search, as ids and scores."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...areas.recalls import LEAST_SCORE, select
from ...areas.standing import standing_memories
from ...memory import Memory
from ...models import SearchResult

STANDING_SHARE = 10  # at most one result of so many is there because it always applies


async def recalled_scores(
    memory: Memory, query: str, owner: str, scope: Mapping[str, Any], *, limit: int, asked_at: datetime | None
) -> dict[str, float]:
    """Return ids and scores of what `Memory.recall` chooses. Wishes and limits of the user, which share no word with
    what they matter for, take the place of the last weak ones."""

    async def search(most: int) -> SearchResult:
        return await memory.search(
            query, user_id=owner, min_relevance_score=LEAST_SCORE, limit=most, asked_at=asked_at, **scope
        )

    first = await select(search, query, await standing_memories(memory, owner, scope), limit=limit)
    weak = limit - sum(hit.relevant for hit in first.hits)
    kept = first.standing[: min(limit // STANDING_SHARE, weak)]

    async def found(_: int) -> SearchResult:
        return first.found

    hits = (await select(found, query, kept, limit=limit - len(kept))).hits if len(kept) < limit else []
    scores = {hit.id: hit.relevance_score for hit in first.found.hits}
    return {one.id: scores.get(one.id, 0.0) for one in (*hits, *kept)}
