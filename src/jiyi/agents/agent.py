"""A chat agent with memory in plain Python, and callbacks for other agents. A failing memory is logged and never breaks
the caller. Calling a hook twice with the same data stores nothing new."""

import hashlib
import json
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from .. import sync, validation
from ..errors import InvalidInput, JiyiError
from ..ids import new_id
from ..languages.words import language as language_of
from ..memory import Memory
from ..models import Message, Receipt, Value
from ..read.context import ContextLanguage, Style
from ..text.fence import strip_context
from .chat import Chat, Turn, ask, with_text
from .recall import Conversation, engine_of

_TEXTS: dict[ContextLanguage, tuple[str, str]] = {
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
    """An answer, the memory block that was in its prompt, and the problems of the memory."""

    text: str
    memories: str
    problems: tuple[str, ...] = ()


class AgentWithMemory:
    """A chat agent that recalls before each answer and stores each turn.

    agent = AgentWithMemory(memory, chat, user_id="mei")
    reply = await agent.run("晚饭吃什么？")

    `chat` is a function, synchronous or not, from messages (role and content) to an answer. A failing memory never
    breaks the chat: it is reported in the reply's `problems` and in the log. Exceptions of `chat` are raised.
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
        max_history: int = 40,
    ) -> None:
        self._owner = memory if isinstance(memory, sync.Memory) else None
        self._chat = chat
        self.session_id = session_id or new_id()
        self._conversation = Conversation(
            memory=engine_of(memory),
            user_id=user_id,
            agent_id=agent_id,
            session_id=self.session_id,
            group_id=group_id,
        )
        self._instructions = instructions
        self._max_tokens = validation.whole("max_tokens", max_tokens, highest=1_000_000)
        self._style: Style = style
        self._max_history = validation.whole("max_history", max_history)
        self.messages: list[Turn] = []

    async def run(self, user_message: str, context: Mapping[str, Any] | None = None) -> AgentReply:
        """Answer a message. `context` may have a `summary` of the conversation, and `messages` as its history."""
        validation.text("user_message", user_message)
        if self._owner is not None:
            raise InvalidInput("memory", "is a synchronous one: call run_sync, or open a jiyi.Memory")
        return await self._run(user_message, dict(context or {}))

    def run_sync(self, user_message: str, context: Mapping[str, Any] | None = None) -> AgentReply:
        """Answer a message in a synchronous program, with a `jiyi.sync.Memory`."""
        validation.text("user_message", user_message)
        if self._owner is None:
            raise InvalidInput("memory", "is an asynchronous one: await run, or open a jiyi.sync.Memory")
        return self._owner._run(self._run(user_message, dict(context or {})))

    async def _run(self, said: str, context: dict[str, Any]) -> AgentReply:
        history: Sequence[Turn] = context.get("messages", self.messages)
        recalled = await self._conversation.recall(said, max_tokens=self._max_tokens, style=self._style)
        opening, closing = _TEXTS["zh" if language_of(said) == "zh" else "en"]
        block = recalled.block
        parts = (self._instructions or opening, context.get("summary"))
        system: Turn = {"role": "system", "content": "\n\n".join(filter(None, parts))}
        asked: Turn = {"role": "user", "content": said}
        told: Turn = {**asked, "content": with_text(said, f"{block}\n\n{closing}")} if block else asked
        answer = await ask(self._chat, [system, *history, told])
        self.messages = [*self.messages, asked, {"role": "assistant", "content": answer}][-self._max_history :]
        turn = (Message(role=role, text=text) for role, text in (("user", said), ("assistant", answer)) if text.strip())
        await self._conversation.observe(turn)
        return AgentReply(text=answer, memories=block, problems=recalled.problems)


logger = logging.getLogger(__name__)


class MemoryHooks:
    """Callbacks for one agent of one user."""

    def __init__(
        self, memory: Memory, *, user_id: str, agent_id: str | None = None, group_id: str | None = None
    ) -> None:
        self._memory = memory
        self._scope: dict[str, Any] = {
            "user_id": validation.name("user_id", user_id),
            "agent_id": validation.optional_name("agent_id", agent_id),
            "group_id": validation.optional_name("group_id", group_id),
        }

    async def on_summary_created(self, summary: str, *, session_id: str | None = None) -> Receipt | None:
        """Store a summary of the context as an `episode` of the session."""
        text = strip_context(summary).strip()
        if not text:
            return None
        return await self._store(
            "a summary", self._memory.sessions.add_summary(text, session_id=session_id, **self._scope)
        )

    async def on_session_end(
        self,
        session_id: str,
        messages: Sequence[Message | Mapping[str, Any]] | None = None,
        *,
        summary: str | None = None,
    ) -> Receipt | None:
        """Store the messages of a session, unless an agent has done so already, and its summary."""
        if summary is not None:
            stored = await self.on_summary_created(summary, session_id=session_id)
            if not messages:
                return stored
        if not messages:
            return None
        said = [dict(message) if isinstance(message, Mapping) else message.model_dump() for message in messages]
        text = json.dumps(said, ensure_ascii=False, default=str, sort_keys=True)
        key = "session:" + hashlib.sha256(f"{session_id}\n{text}".encode()).hexdigest()
        adding = self._memory.add(
            list(messages), session_id=session_id, idempotency_key=key, wait=False, actor="session", **self._scope
        )
        return await self._store("a session", adding)

    async def after_skill_success(
        self,
        skill_name: str,
        workflow: Sequence[Any],
        *,
        task: str | None = None,
        session_id: str | None = None,
    ) -> Receipt | None:
        """Store the workflow of a skill that worked. A step is a name, or an object with a `tool`."""
        recording = self._memory.sessions.record_skill(
            skill_name, list(workflow), note=task, session_id=session_id, **self._scope
        )
        return await self._store("a skill", recording)

    async def _store(self, what: str, adding: Awaitable[Receipt]) -> Receipt | None:
        try:
            return await adding
        except JiyiError as error:
            logger.warning("%s could not be stored: %s", what, error)
            return None
