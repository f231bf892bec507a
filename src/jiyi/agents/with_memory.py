"""An agent with memory in plain Python: retrieve, augment, run, extract."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from .. import sync, validation
from ..errors import InvalidInput, JiyiError
from ..ids import new_id
from ..languages.script import language as language_of
from ..memory import Memory
from ..models import Message, Value
from ..read.context import ContextLanguage, Style
from ..text.fence import strip_context
from .chat import Chat, Turn, ask

logger = logging.getLogger(__name__)

_WORDS: dict[ContextLanguage, tuple[str, str]] = {
    "en": (
        "You are an AI assistant with long-term memory.",
        "Use the user memory to personalize your responses.\nIf information conflicts, ask the user for clarification.",
    ),
    "zh": (
        "你是一个拥有长期记忆的智能助手。",
        "请利用用户记忆让回答更贴合用户。\n如果信息有冲突，请向用户确认。",
    ),
}


class AgentReply(Value):
    """What the agent answered, what it was reminded of, and what the memory could not do, if anything."""

    text: str
    memories: str
    problems: tuple[str, ...] = ()


class AgentWithMemory:
    """Before each answer it recalls, after each answer it takes in what was said.

    agent = AgentWithMemory(memory, chat, user_id="mei")
    reply = await agent.run("晚饭吃什么？")

    `chat` is any function, synchronous or not, from messages (role and content) to an answer. A failure of the memory
    never breaks the chat: it is in the reply's `problems` and in the log. What `chat` raises is raised.
    """

    def __init__(
        self,
        memory: Memory | sync.Memory,
        chat: Chat,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        instructions: str | None = None,
        max_tokens: int = 1500,
        style: Style = "sections",
        min_relevance_score: float | None = None,
        max_history: int = 40,
    ) -> None:
        self._owner = memory if isinstance(memory, sync.Memory) else None
        self._memory = memory._memory if isinstance(memory, sync.Memory) else memory
        self._chat = chat
        self._user_id = validation.name("user_id", user_id)
        self.session_id = validation.optional_name("session_id", session_id) or new_id()
        self._add = partial(
            self._memory.add,
            user_id=user_id,
            session_id=self.session_id,
            agent_id=validation.optional_name("agent_id", agent_id),
            group_id=validation.optional_name("group_id", group_id),
            wait=False,
        )
        self._instructions = instructions
        self._max_tokens = validation.whole("max_tokens", max_tokens, highest=1_000_000)
        self._style: Style = style
        floor = self._memory.settings.tools.relevance_floor
        self._at_least = floor if min_relevance_score is None else min_relevance_score
        self._max_history = validation.whole("max_history", max_history)
        self.messages: list[Turn] = []

    async def run(self, user_message: str, context: Mapping[str, Any] | None = None) -> AgentReply:
        """Answer a message. `context` may bring a `summary` of the conversation, and `messages` in place of its own."""
        validation.text("user_message", user_message)
        if self._owner is not None:
            raise InvalidInput("memory", "is a synchronous one: call run_sync, or open a jiyi.Memory")
        return await self._run(user_message, dict(context or {}))

    def run_sync(self, user_message: str, context: Mapping[str, Any] | None = None) -> AgentReply:
        """The same for synchronous programs, with a `jiyi.sync.Memory`."""
        validation.text("user_message", user_message)
        if self._owner is None:
            raise InvalidInput("memory", "is an asynchronous one: await run, or open a jiyi.sync.Memory")
        return self._owner._run(self._run(user_message, dict(context or {})))

    async def _run(self, said: str, context: dict[str, Any]) -> AgentReply:
        problems: list[str] = []
        memories = await self._retrieve(said, problems)
        history: Sequence[Turn] = context.get("messages", self.messages)
        system = self._augment(said, memories, context.get("summary"))
        asked: Turn = {"role": "user", "content": said}
        text = await ask(self._chat, [{"role": "system", "content": system}, *history, asked])
        self.messages = [*self.messages, asked, {"role": "assistant", "content": text}][-self._max_history :]
        await self._extract(said, text, problems)
        return AgentReply(text=text, memories=memories, problems=tuple(problems))

    async def _retrieve(self, said: str, problems: list[str]) -> str:
        try:
            return await self._memory.context(
                said[: validation.MAX_QUERY],
                user_id=self._user_id,
                max_tokens=self._max_tokens,
                style=self._style,
                min_relevance_score=self._at_least,
            )
        except JiyiError as error:
            logger.warning("an agent answers without its memories: %s", error)
            problems.append(f"nothing could be recalled: {error}")
            return ""

    def _augment(self, said: str, memories: str, summary: str | None) -> str:
        opening, closing = _WORDS["zh" if language_of(said) == "zh" else "en"]
        parts = (self._instructions or opening, memories, summary, closing if memories else None)
        return "\n\n".join(filter(None, parts))

    async def _extract(self, said: str, answered: str, problems: list[str]) -> None:
        turns = (("user", strip_context(said)), ("assistant", strip_context(answered)))
        try:
            await self._add([Message(role=role, text=text) for role, text in turns if text.strip()])
        except JiyiError as error:
            logger.warning("a turn could not be taken into the memory: %s", error)
            problems.append(f"the turn was not taken in: {error}")
