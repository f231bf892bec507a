"""A recall with its reasons: the block that an agent receives, the memories in it, and those that were left out."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from .. import threads
from ..models import RELEVANT, Hit, MemoryItem, Value
from ..read.context import Style, line_text
from ..text.budget import token_bound
from .recall import MAX_TOKENS, Conversation

Reason = Literal["weak", "limit", "ended", "repeated", "session"]
LOOKED_AT = 30  # best hits that are explained
BEGINNING = 24  # characters by which a cut line is recognised


class UsedMemory(Value):
    """A memory in the block. A standing one is a wish or limit that always applies."""

    memory: MemoryItem
    relevance_score: float | None
    standing: bool = False
    weak: bool = Field(default=False, description="it may be unrelated, and is marked so")


class LeftOut(Value):
    """A memory that was found and left out: too weak, beyond the limit, no longer valid, said by another line or
    without room, or said in this session."""

    hit: Hit
    reason: Reason


class RecallReport(Value):
    """The block for a prompt and the way it came about."""

    block: str
    tokens: int = Field(description="upper bound of its tokens")
    max_tokens: int
    used: tuple[UsedMemory, ...]
    left_out: tuple[LeftOut, ...]
    problems: tuple[str, ...]


async def recall_report(
    conversation: Conversation, said: str, *, max_tokens: int = MAX_TOKENS, style: Style = "sections"
) -> RecallReport:
    """Recall as an agent does, and explain it."""
    recalled = await conversation.context(said, max_tokens=max_tokens, style=style)
    memories = {memory.id: memory for memory in await conversation.current(recalled.ids)}
    size = sum(len(memory.content) for memory in memories.values())
    shown = await threads.run(size, lambda: [one for one in memories.values() if in_block(one, recalled.block)])
    scores = {hit.id: hit.relevance_score for hit in recalled.hits}
    standing = {memory.id for memory in recalled.standing}
    used = {memory.id for memory in shown}
    found = await conversation.search(said, limit=LOOKED_AT)
    others = [hit for hit in found.hits if hit.id not in used]
    current = {memory.id: memory for memory in await conversation.current([hit.id for hit in others])}
    return RecallReport(
        block=recalled.block,
        tokens=await threads.run(len(recalled.block), token_bound, recalled.block) if recalled.block else 0,
        max_tokens=max_tokens,
        used=tuple(
            UsedMemory(
                memory=memory,
                relevance_score=scores.get(memory.id),
                standing=memory.id in standing,
                weak=memory.id in scores and scores[memory.id] < RELEVANT,
            )
            for memory in shown
        ),
        left_out=tuple(
            LeftOut(hit=hit, reason=_reason(hit, current.get(hit.id), scores, recalled.hits, conversation))
            for hit in others
        ),
        problems=recalled.problems,
    )


def in_block(memory: MemoryItem, block: str) -> bool:
    text = line_text(memory)
    return text in block or (len(text) > BEGINNING and text[:BEGINNING] in block)


def _reason(
    hit: Hit, memory: MemoryItem | None, scores: dict[str, float], best: Sequence[Hit], conversation: Conversation
) -> Reason:
    if hit.id in scores:
        return "ended" if memory is not None and memory.valid_to is not None else "repeated"
    if conversation.session_id is not None and hit.session_id == conversation.session_id:
        return "session"
    weakest = min((one.relevance_score for one in best), default=RELEVANT)
    return "limit" if hit.relevance_score >= weakest and best else "weak"
