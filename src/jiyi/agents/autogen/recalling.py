"""What is recalled for the user's last message without being asked."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from autogen_core.models import ChatCompletionClient

from ... import validation
from ...errors import JiyiError
from ...models import Hit
from .. import MemRecallAgent
from ..tools import Bound, ToolLanguage, key_of, notes
from .chat import chat_of

logger = logging.getLogger(__name__)

_HEADINGS: dict[ToolLanguage, str] = {
    "en": "Memories that may matter for the user's last message (summaries; get_memory_detail gives the full text):",
    "zh": "可能与用户最后一条消息有关的记忆（摘要；完整内容用 get_memory_detail 获取）：",
}


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a turn recalled. It is rendered anew each time, so that what was changed or forgotten meanwhile is."""

    hits: tuple[Hit, ...]

    @property
    def keys(self) -> list[str]:
        return [key_of(hit) for hit in self.hits]

    async def render(self, bound: Bound, language: ToolLanguage) -> str:
        if not self.hits:
            return ""
        try:
            now = await bound.memory.get_many([hit.id for hit in self.hits], user_id=bound.user_id)
        except JiyiError as error:
            logger.warning("what was recalled could not be read again: %s", error)
            return ""
        summaries = {memory.id: memory.summary for memory in now if memory.status == "active"}
        present = [hit.model_copy(update={"summary": summaries[hit.id]}) for hit in self.hits if hit.id in summaries]
        return f"{_HEADINGS[language]}\n{notes(present, language)}" if present else ""


async def recall_for(
    said: str, bound: Bound, threshold: float, model_client: ChatCompletionClient | None, *, skip_session: bool
) -> Recalled:
    """Memories from the threshold on, but not what stands in the conversation anyway. A failure recalls nothing."""
    most = 2 * bound.memory.settings.tools.max_results_per_search
    try:
        hits = await _search(said[: validation.MAX_QUERY], bound, threshold, most, model_client)
    except JiyiError as error:
        logger.warning("nothing could be recalled for a message: %s", error)
        return Recalled(())
    here = bound.session_id if skip_session else None
    # What was worked out of this session's messages says what they say.
    hits = [hit for hit in hits if not (here and hit.session_id == here and hit.source_ids)]
    return Recalled(tuple(hits[: most // 2]))


async def _search(
    said: str, bound: Bound, threshold: float, most: int, model_client: ChatCompletionClient | None
) -> list[Hit]:
    if model_client is None:
        found = await bound.memory.search(
            said,
            user_id=bound.user_id,
            agent_id=bound.seen_agent,
            group_id=bound.seen_group,
            min_relevance_score=threshold,
            limit=most,
        )
        return list(found.hits)
    agent = MemRecallAgent(
        bound.memory,
        user_id=bound.user_id,
        agent_id=bound.seen_agent,
        group_id=bound.seen_group,
        chat=chat_of(model_client),
    )
    return list((await agent.recall(said, min_relevance_score=threshold, limit=most)).hits)
