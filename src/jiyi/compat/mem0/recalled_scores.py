"""The recall behind mem0's search, as ids and scores."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...areas.recalls import LEAST_SCORE, select
from ...areas.standing import standing_memories
from ...memory import Memory
from ...models import RELEVANT, SearchResult

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

    hits, standing, found = await select(search, query, await standing_memories(memory, owner, scope), limit=limit)
    scores = {hit.id: hit.relevance_score for hit in found.hits}
    weak = limit - sum(hit.relevance_score >= RELEVANT for hit in hits)
    kept = [one.id for one in standing[: min(limit // STANDING_SHARE, weak)]]
    others = [*(hit.id for hit in hits), *(one.id for one in standing if one.id not in kept)]
    best = sorted(others, key=lambda one: -scores.get(one, 0.0))[: limit - len(kept)]
    return {one: scores.get(one, 0.0) for one in (*best, *kept)}
