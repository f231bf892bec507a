"""A memory block for LlamaIndex.

from jiyi.agents.llama_index import JiyiMemoryBlock

chat_memory = Memory.from_defaults(session_id="monday", memory_blocks=[JiyiMemoryBlock(memory=memory, user_id="mei")])
"""

from collections.abc import Sequence
from typing import Any

from pydantic import Field, PrivateAttr

from .. import sync
from ..areas.recalls import MAX_TOKENS
from ..errors import MissingExtra
from ..memory import Memory
from ..models import Message
from .recall import observe, recall

try:
    from llama_index.core.base.llms.types import ChatMessage
    from llama_index.core.memory import BaseMemoryBlock
except ImportError as error:
    raise MissingExtra("llama-index", "llama-index-core") from error


class JiyiMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memories of a user. The messages of the chat that LlamaIndex shows before each answer are stored in the
    background, each of them once; so are those that leave its short-term memory."""

    name: str = "jiyi"
    priority: int = 1
    memory: Any = Field(exclude=True)  # a jiyi.Memory or a jiyi.sync.Memory
    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    max_tokens: int = MAX_TOKENS
    _observed: dict[str | None, list[tuple[str, str]]] = PrivateAttr(default_factory=dict)  # by session

    def __init__(self, memory: Memory | sync.Memory, **options: Any) -> None:
        super().__init__(memory=memory, **options)

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        said = [message for message in map(_message, messages or ()) if message is not None]
        session_id = self.session_id or block_kwargs.get("session_id")
        found = await recall(
            self.memory,
            said,
            user_id=self.user_id,
            agent_id=self.agent_id,
            session_id=session_id,
            max_tokens=self.max_tokens,
        )
        await self._observe(said, session_id)
        return found.block

    async def _aput(self, messages: list[ChatMessage]) -> None:
        sessions = [message.additional_kwargs.get("session_id") for message in messages]
        session_id = self.session_id or next(filter(None, sessions), None)
        said = [message for message in map(_message, messages) if message is not None]
        await self._observe(said, session_id)

    async def _observe(self, said: Sequence[Message], session_id: str | None) -> None:
        """Store the messages that were not stored before; a history begins as it did before, or later."""
        known = self._observed.setdefault(session_id, [])
        texts = [(message.role, message.text) for message in said]
        same = next((size for size in range(min(len(known), len(texts)), 0, -1) if known[-size:] == texts[:size]), 0)
        known += texts[same:]
        if new := said[same:]:
            await observe(self.memory, new, user_id=self.user_id, agent_id=self.agent_id, session_id=session_id)


def _message(message: ChatMessage) -> Message | None:
    """Return a message of the user or the assistant with text in it."""
    role = str(getattr(message.role, "value", message.role))
    text = (message.content or "").strip()
    return Message(role=role, text=text) if text and role in ("user", "assistant") else None
