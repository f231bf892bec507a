"""The recall core of all integrations: recall before a turn, observe after it.

    found = await recall(memory, "Book a table for us", user_id="mei", session_id="monday")
    prompt = f"{instructions}\n\n{found.block}"
    await observe(memory, [{"role": "user", "content": …}, {"role": "assistant", "content": …}], user_id="mei")

A recall has the best memories for the user's words, weak ones marked, and the user's standing wishes and limits. What
this session said itself is left out. Observing puts the turn into a queue and returns; `Memory.close` empties it. A
failing memory is logged and never breaks a chat.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pydantic import ValidationError

from .. import sync, validation
from ..areas.recalls import MAX_TOKENS, Depth, RecallReport
from ..areas.standing import standing_memories
from ..engine import fence_of, runtime, settle_turns
from ..errors import InvalidInput, JiyiError, NotFound
from ..memory import Memory
from ..models import RELEVANT, Hit, MemoryItem, Message, SearchResult
from ..read.accesses import asked_by
from ..read.context import ContextLanguage, Style
from ..read.hits import hit as hit_of
from ..roles import role_kind
from ..text.fence import Fence, strip_context, without_context
from .chat import part

logger = logging.getLogger(__name__)
T = TypeVar("T")
MAX_FOUND_TOKENS = 8000  # of the hits of a tool, which shows their beginnings
LOADING_S = 30.0  # longest wait for the first recall of a memory in this process, which loads its models


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
    """Hits for the user's words, best first and weak ones included, standing wishes and limits that are not among them,
    the block for a prompt, and the reasons why something may be missing."""

    hits: tuple[Hit, ...] = ()
    standing: tuple[MemoryItem, ...] = ()
    block: str = ""
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, report: RecallReport, query: str) -> Self:
        return cls(
            hits=tuple(
                hit_of(one.memory, query, one.relevance_score or 0.0) for one in report.used if not one.standing
            ),
            standing=tuple(one.memory for one in report.used if one.standing),
            block=report.block,
            problems=report.problems,
        )

    @property
    def ids(self) -> list[str]:
        return [*(memory.id for memory in self.standing), *(hit.id for hit in self.hits)]

    @property
    def weak(self) -> frozenset[str]:
        """Ids of the hits that may be unrelated."""
        return frozenset(hit.id for hit in self.hits if hit.relevance_score < RELEVANT)


async def recall(
    memory: Memory | sync.Memory,
    said: str | Sequence[Message | Mapping[str, Any]],
    *,
    user_id: str,
    session_id: str | None = None,
    agent_id: str | None = None,
    group_id: str | None = None,
    private: bool = False,
    depth: Depth = "normal",
    limit: int | None = None,
    min_relevance_score: float | None = None,
    max_tokens: int = MAX_TOKENS,
    style: Style = "sections",
    language: ContextLanguage | None = None,
) -> Recalled:
    """Recall for a message of the user, or for the last one of a conversation, as a block for a prompt. The options are
    those of `Memory.recall`."""
    conversation = Conversation(
        memory=engine_of(memory),
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        group_id=group_id,
        private=private,
    )
    words = said if isinstance(said, str) else last_words(said)
    options: dict[str, Any] = {"depth": depth, "limit": limit, "min_relevance_score": min_relevance_score}
    options |= {"max_tokens": max_tokens, "style": style, "language": language}
    return await await_in(memory, conversation.recall(words, **options))


async def observe(
    memory: Memory | sync.Memory,
    messages: Sequence[Message | Mapping[str, Any]],
    *,
    user_id: str,
    session_id: str | None = None,
    agent_id: str | None = None,
    group_id: str | None = None,
    user_names: Sequence[str] = (),
) -> None:
    """Queue the messages of a turn to be stored, without recalled blocks in them."""
    conversation = Conversation(
        memory=engine_of(memory),
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        group_id=group_id,
        user_names=tuple(user_names),
    )
    read = [message for one in messages if (message := _message(one)) is not None]
    await await_in(memory, conversation.observe(read))


def last_words(messages: Sequence[Message | Mapping[str, Any]]) -> str:
    """Return the user's last message, or "": neither an assistant nor a tool says what the user wants."""
    for one in reversed(messages):
        if role_kind(str(part(one, "role") or "")) == "person" and (message := _message(one)) is not None:
            return message.text
    return ""


def _message(given: Message | Mapping[str, Any]) -> Message | None:
    """Return a message, or None for one without text, such as a tool call."""
    try:
        return given if isinstance(given, Message) else Message.model_validate(dict(given))
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation of a user with an agent. `agent_id`, `session_id` and `group_id` mark what is stored; a `private`
    conversation reads only the memories of its agent and group. `user_names` are names of the user in messages.
    `recall` and `observe` log a failing memory instead of raising, to not break a chat."""

    memory: Memory
    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    group_id: str | None = None
    private: bool = False
    user_names: tuple[str, ...] = ()

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

    async def recall(self, said: str, **options: Any) -> Recalled:
        """Recall for the user's words; `options` are those of `Memory.recall`. It takes `tools.recall_timeout_s` at
        most; a memory that was late or failed is asked again beside the next turns, which do not wait for it."""
        query = strip_context(said).strip()[: validation.MAX_QUERY]
        if not query:
            return Recalled()

        async def ask() -> RecallReport:
            return await self.memory.recall(query, **self.scope, private=self.private, **options)

        try:
            return Recalled.of(await self.in_time(ask), query)
        except JiyiError as error:
            logger.warning("recall failed, continuing without memories: %s", error)
            return Recalled(problems=(f"recall failed: {error}",))

    async def in_time(self, work: Callable[[], Coroutine[Any, Any, T]], *, probe: bool = True) -> T:
        """Await work of the memory as long as a turn may wait for it; raise StoreUnavailable if that is not enough.
        Work that is no `probe` is not done while the memory is away."""
        here = runtime(self.memory)
        timeout_s = here.settings.tools.recall_timeout_s
        if not here.is_remote and not here.breaker.has_run:
            timeout_s = max(timeout_s, LOADING_S)
        # A server fails for all users; in this process one user's many memories may be slow.
        return await here.breaker.run("" if here.is_remote else self.user_id, work, timeout_s, probe=probe)

    async def standing(self, *, skip_session: bool = True) -> list[MemoryItem]:
        """Return the user's standing wishes and limits, newest first."""
        if runtime(self.memory).is_remote:
            client: Any = self.memory
            found = list(await client.standing(user_id=self.user_id, **self.filters))
        else:
            found = await standing_memories(self.memory, self.user_id, self.filters)
        return [memory for memory in found if not (skip_session and self.said_here(memory))]

    def said_here(self, memory: Hit | MemoryItem) -> bool:
        """Return True for a message of this session and for a memory derived from one."""
        return self.session_id is not None and memory.session_id == self.session_id and bool(memory.source_ids)

    async def fence(self) -> Fence:
        """Return the fence for blocks: the store's, or one of this process if it cannot be read."""
        try:
            return await fence_of(self.memory)
        except JiyiError as error:
            logger.warning("the store's secret could not be read: %s", error)
            return Fence()

    async def current(self, ids: Sequence[str]) -> list[MemoryItem]:
        """Read recalled memories again, without those that were forgotten meanwhile."""
        if not ids:
            return []

        async def read() -> Sequence[MemoryItem]:
            return await self.memory.get_many(ids, user_id=self.user_id)

        try:
            found = await self.in_time(read)
        except JiyiError as error:
            logger.warning("recalled memories could not be read: %s", error)
            return []
        return [memory for memory in found if memory.status == "active"]

    async def observe(self, messages: Iterable[Message]) -> None:
        """Queue messages to be stored, without recalled blocks in them and without results of tools, which nobody said;
        `Memory.sessions.flush` waits for that."""
        messages = (message for message in messages if role_kind(message.role) != "tool")
        said = [message.model_copy(update={"text": without_context(message.text)}) for message in messages]
        said = [message for message in said if message.text.strip()]
        if said:
            await self.memory.sessions.observe(said, **self.scope, user_names=self.user_names)

    async def find(self, query: str, limit: int | None) -> RecallReport:
        """Recall for words of the agent, from all sessions."""
        return await self.memory.recall(
            query, **self.scope, private=self.private, skip_session=False, limit=limit, max_tokens=MAX_FOUND_TOKENS
        )

    async def search(self, query: str, **options: Any) -> SearchResult:
        """Search what this conversation may read. The recall is recorded with its session and agent."""
        await settle_turns(self.memory, self.user_id)
        with asked_by(self.session_id, self.agent_id):
            return await self.memory.search(query, **{**options, **self.filters, "user_id": self.user_id})
