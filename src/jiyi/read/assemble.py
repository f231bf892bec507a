"""The last stage of `search`: from ranked candidates to hits."""

from __future__ import annotations

from ..languages.tokens import tokens
from ..models import Explanation, Hit, MemoryItem
from .pointing import to_the_point

PREVIEW = 200


def hit(memory: MemoryItem, query: str, relevance_score: float, explanation: Explanation | None) -> Hit:
    speaker = memory.data.get("speaker") or memory.data.get("role")
    return Hit(
        id=memory.id,
        memory_key=memory.memory_key,
        content=memory.content,
        summary=dated_text(memory) or memory.summary,
        speaker=speaker if isinstance(speaker, str) else None,
        content_preview=to_the_point(memory, query, PREVIEW).content[:PREVIEW],
        memory_type=memory.memory_type,
        layer=memory.layer,
        relevance_score=relevance_score,
        importance=memory.importance,
        created_at=memory.created_at,
        occurred_at=memory.occurred_at,
        keywords=memory.keywords,
        tags=memory.tags,
        metadata=memory.metadata,
        session_id=memory.session_id,
        agent_id=memory.agent_id,
        group_id=memory.group_id,
        source_ids=memory.source_ids,
        explanation=explanation,
    )


def dated_text(memory: MemoryItem) -> str | None:
    """Return a message's text with absolute dates, if it speaks of relative ones."""
    dated = memory.data.get("dated")
    return dated if isinstance(dated, str) else None


def matched_terms(memory: MemoryItem, terms: tuple[str, ...]) -> tuple[str, ...]:
    """The query's terms that stand in the memory, for people to see."""
    speaker = memory.data.get("speaker")
    there = set(tokens(" ".join((memory.content, memory.summary, str(speaker or ""), *memory.tags))))
    return tuple(term for term in dict.fromkeys(terms) if term in there)
