"""Taking a conversation into the memory, at the end of each turn. A failure never breaks the chat."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from autogen_core.models import AssistantMessage, LLMMessage, UserMessage

from ...errors import JiyiError
from ...models import Message
from ...text.fence import strip_context
from ..tools import Bound
from .binding import Source

logger = logging.getLogger(__name__)


class Observer:
    """How far a conversation has been taken in."""

    def __init__(self, source: Source, bound: Bound) -> None:
        self._source = source
        self._bound = bound
        self.observed = 0

    async def take(self, messages: Sequence[LLMMessage]) -> None:
        """What is new goes in; if that fails, it is tried again with the next turn."""
        new = [said for message in messages[self.observed :] if (said := _said(message)) is not None]
        if new:
            try:
                memory = await self._source.get()
                await memory.add(
                    new,
                    user_id=self._bound.user_id,
                    agent_id=self._bound.agent_id,
                    session_id=self._bound.session_id,
                    group_id=self._bound.group_id,
                    wait=False,
                )
            except JiyiError as error:
                logger.warning("a turn could not be taken into the memory, and is tried again later: %s", error)
                return
        self.observed = len(messages)


def _said(message: LLMMessage) -> Message | None:
    """What a person or the assistant said; calls of tools and their results are no conversation."""
    if isinstance(message, UserMessage):
        content = message.content
        text = content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))
        speaker = None if message.source == "user" else message.source
        return _message(text, "user", speaker)
    if isinstance(message, AssistantMessage) and isinstance(message.content, str):
        return _message(message.content, "assistant", None)
    return None


def _message(text: str, role: str, speaker: str | None) -> Message | None:
    text = strip_context(text)
    return Message(text=text, role=role, speaker=speaker) if text.strip() else None
