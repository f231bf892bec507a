"""The hits of mem0's search, with wishes and limits that bear on the query, as ids and scores."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ...areas.standing import standing_memories
from ...memory import Memory
from ...models import Hit
from ...roles import role_kind
from ...validation import MAX_LIMIT

NO_EVIDENCE = ("question", "request", "smalltalk", "joke", "nonanswer")


async def recalled_scores(
    memory: Memory, query: str, owner: str, scope: Mapping[str, Any], *, limit: int, asked_at: datetime | None
) -> dict[str, float]:
    """Return ids and scores: the best hits without small talk, among them wishes and limits of the user that bear on
    the query though they share no word with it."""
    standing = await standing_memories(memory, owner, scope)
    ids = [one.id for one in standing]
    options: Any = {"limit": MAX_LIMIT, "asked_at": asked_at, "with_messages": False, **scope}
    result = await memory._search(query, user_id=owner, also_read=ids, **options)
    return {hit.id: hit.relevance_score for hit in [hit for hit in result.hits if not _is_noise(hit)][:limit]}


def _is_noise(hit: Hit) -> bool:
    """Return True for a weak hit that states nothing: a question, a greeting, or words of the assistant."""
    from ...write.classify import classify

    if hit.relevant or hit.memory_type != "message":
        return False
    return role_kind(hit.speaker) == "assistant" or classify(hit.content).kind in NO_EVIDENCE
