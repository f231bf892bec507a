"""Conversations of a user with an agent: recall before a turn, observe after it; and chat models as functions.

conversation = Conversation(memory, user_id="mei", session_id="monday")
block, _ = await conversation.context("晚饭吃什么？")
await conversation.observe([Message(role="user", text="晚饭吃什么？"), Message(role="assistant", text=answer)])
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .. import sync, validation
from ..engine import runtime
from ..errors import InvalidInput, JiyiError, NotFound
from ..languages.words import language as language_of
from ..memory import Memory
from ..models import RELEVANT, Hit, MemoryItem, Message
from ..read.context import ContextLanguage, Style, log_degraded, render_context
from ..text.fence import strip_context

Turn = dict[str, str]  # role and content
Chat = Callable[[list[Turn]], Any]


async def ask(chat: Chat, messages: Sequence[Turn]) -> str:
    """Return the model's answer. A synchronous `chat` runs in a thread."""
    asked = list(messages)
    if inspect.iscoroutinefunction(chat) or inspect.iscoroutinefunction(getattr(chat, "__call__", None)):  # noqa: B004
        reply = await chat(asked)
    else:
        reply = await asyncio.to_thread(chat, asked)
        if inspect.isawaitable(reply):
            reply = await reply
    return text_of_reply(reply)


def text_of_reply(reply: Any) -> str:
    """Return the text of a reply: a string, a message, or a reply of the OpenAI or Anthropic client."""
    if isinstance(reply, str):
        return reply
    content = part(reply, "content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(text for block in content if isinstance(text := part(block, "text"), str))
    if choices := part(reply, "choices"):
        return part(part(choices[0], "message"), "content") or ""
    if isinstance(text := part(reply, "output_text"), str):
        return text
    raise InvalidInput("chat", f"must return text or a message with text, not {type(reply).__name__}")


def part(value: Any, name: str) -> Any:
    """Return a field of an object or of a mapping, or None: clients return objects, stored chats are mappings."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


logger = logging.getLogger(__name__)
T = TypeVar("T")
Search = Callable[[str, float, int], Awaitable[Sequence[Hit]]]  # query, least relevance, limit

_OVERFETCH = 4  # hits of the own session are dropped after the search


def engine_of(memory: Memory | sync.Memory) -> Memory:
    """Return the asynchronous memory behind either kind."""
    return memory._memory if isinstance(memory, sync.Memory) else memory


async def await_in(memory: Memory | sync.Memory, work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine in the event loop of the memory; a synchronous memory has a loop in its own thread."""
    if isinstance(memory, sync.Memory):
        return await asyncio.wrap_future(memory._begin(work))
    return await work


@dataclass(frozen=True, slots=True)
class Recalled:
    """Hits for a message, best first, and the reasons why some may be missing."""

    hits: tuple[Hit, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation of a user with an agent. `agent_id`, `session_id` and `group_id` mark what is stored; a `private`
    conversation reads only the memories of its agent and group. `recall`, `context` and `observe` log a failing memory
    instead of raising, to not break a chat."""

    memory: Memory
    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    group_id: str | None = None
    private: bool = False

    def __post_init__(self) -> None:
        validation.name("user_id", self.user_id)
        for argument in ("agent_id", "session_id", "group_id"):
            validation.optional_name(argument, getattr(self, argument))
        if self.private and self.agent_id is None and self.group_id is None:
            raise InvalidInput("private", "needs an agent_id or a group_id whose memories it is limited to")

    @property
    def scope(self) -> dict[str, Any]:
        """Arguments of `Memory.add` that say whose a new memory is."""
        return {
            "user_id": self.user_id,
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "group_id": self.group_id,
        }

    @property
    def filters(self) -> dict[str, Any]:
        """Arguments of `Memory.search` and `Memory.list` that limit reading."""
        return {
            "agent_id": self.agent_id if self.private else None,
            "group_id": self.group_id if self.private else None,
        }

    @property
    def actor(self) -> str:
        return self.agent_id or "agent"

    async def get(self, key: str) -> MemoryItem:
        """Return a memory by its key or id; raise NotFound for one that this conversation may not read."""
        memory = await self.memory.get(key, user_id=self.user_id)
        allowed = {name: value for name, value in self.filters.items() if value is not None}
        if any(getattr(memory, name) != value for name, value in allowed.items()):
            raise NotFound(f"no memory {key!r}")
        return memory

    async def recall(
        self,
        said: str,
        *,
        limit: int | None = None,
        min_relevance_score: float | None = None,
        skip_session: bool = True,
        search: Search | None = None,
    ) -> Recalled:
        """Find the best memories for a message of the user, weak ones included. Messages of this session, and memories
        derived from them, are left out unless `skip_session` is False."""
        query = strip_context(said).strip()[: validation.MAX_QUERY]
        settings = runtime(self.memory).settings.tools
        least = settings.proactive_search_threshold if min_relevance_score is None else min_relevance_score
        limit = limit or settings.max_results_per_search
        if not query:
            return Recalled()
        try:
            hits = await (search or self._search)(query, least, limit * _OVERFETCH)
        except JiyiError as error:
            logger.warning("recall failed, continuing without memories: %s", error)
            return Recalled(problems=(f"recall failed: {error}",))
        if skip_session and self.session_id is not None:
            hits = [hit for hit in hits if hit.session_id != self.session_id or not hit.source_ids]
        return Recalled(tuple(hits[:limit]))

    async def context(
        self, said: str, *, max_tokens: int = 800, style: Style = "sections", skip_session: bool = True
    ) -> tuple[str, tuple[str, ...]]:
        """Return the block for a prompt, in the language of the message, and the problems met."""
        recalled = await self.recall(said, skip_session=skip_session)
        language: ContextLanguage = "zh" if language_of(said) == "zh" else "en"
        memories = await self.current(recalled.hits)
        weak = {hit.id for hit in recalled.hits if hit.relevance_score < RELEVANT}
        block = render_context(memories, max_tokens=max_tokens, style=style, language=language, weak=weak)
        return block, recalled.problems

    async def current(self, hits: Sequence[Hit]) -> list[MemoryItem]:
        """Read recalled memories again, without those that were forgotten meanwhile."""
        if not hits:
            return []
        try:
            found = await self.memory.get_many([hit.id for hit in hits], user_id=self.user_id)
        except JiyiError as error:
            logger.warning("recalled memories could not be read: %s", error)
            return []
        return [memory for memory in found if memory.status == "active"]

    async def observe(self, messages: Iterable[Message]) -> str | None:
        """Store messages without recalled blocks in them. Return the problem if that failed."""
        said = [message.model_copy(update={"text": strip_context(message.text)}) for message in messages]
        said = [message for message in said if message.text.strip()]
        if not said:
            return None
        try:
            await self.memory.add(said, **self.scope, wait=False)
        except JiyiError as error:
            logger.warning("a turn could not be stored: %s", error)
            return f"the turn was not stored: {error}"
        return None

    async def _search(self, query: str, least: float, limit: int) -> Sequence[Hit]:
        found = await self.memory.search(
            query, user_id=self.user_id, **self.filters, min_relevance_score=least, limit=limit
        )
        log_degraded(found.degraded)
        return found.hits
