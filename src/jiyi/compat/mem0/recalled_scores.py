"""The hits of mem0's search, with wishes and limits that always apply among the last ones, as ids and scores."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ...areas.recalls import MOST_INSTRUCTIONS, MOST_LIMITS
from ...areas.standing import is_instruction, standing_memories
from ...memory import Memory
from ...models import Hit, MemoryItem
from ...roles import role_kind
from ...validation import MAX_LIMIT

STANDING_SHARE = 10  # at most one result of so many is there because it always applies
NO_EVIDENCE = ("question", "request", "smalltalk", "joke", "nonanswer")


async def recalled_scores(
    memory: Memory, query: str, owner: str, scope: Mapping[str, Any], *, limit: int, asked_at: datetime | None
) -> dict[str, float]:
    """Return ids and scores: the best hits without small talk, and wishes and limits of the user, which share no word
    with what they matter for, in the place of the last weak ones."""
    result = await memory.search(query, user_id=owner, limit=min(2 * limit, MAX_LIMIT), asked_at=asked_at, **scope)
    found = [hit for hit in result.hits if not _is_noise(hit)]
    best = found[:limit]
    weak = limit - sum(hit.relevant for hit in best)
    standing = _nearest(await standing_memories(memory, owner, scope), best, result.hits)
    kept = standing[: min(limit // STANDING_SHARE, weak)]
    apart = {name for one in kept for name in (one.id, *one.source_ids)}
    hits = [hit for hit in found if hit.relevant or apart.isdisjoint((hit.id, *hit.source_ids))]
    scores = {hit.id: hit.relevance_score for hit in result.hits}
    chosen: list[Hit | MemoryItem] = [*hits[: limit - len(kept)], *kept]
    return {one.id: scores.get(one.id, 0.0) for one in chosen}


def _nearest(standing: Sequence[MemoryItem], best: Sequence[Hit], found: Sequence[Hit]) -> list[MemoryItem]:
    """Return the standing memories that are not among the best hits: instructions, then the limits nearest to them."""
    shown, rank = {hit.id for hit in best}, {hit.id: at for at, hit in enumerate(found)}
    others = sorted((one for one in standing if one.id not in shown), key=lambda one: rank.get(one.id, len(rank)))
    instructions = [one for one in others if is_instruction(one)]
    return [*instructions[:MOST_INSTRUCTIONS], *[one for one in others if one not in instructions][:MOST_LIMITS]]


def _is_noise(hit: Hit) -> bool:
    """Return True for a weak hit that states nothing: a question, a greeting, or words of the assistant."""
    from ...write.classify import classify

    if hit.relevant or hit.memory_type != "message":
        return False
    return role_kind(hit.speaker) == "assistant" or classify(hit.content).kind in NO_EVIDENCE
