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
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from .. import sync, validation
from ..engine import fence_of, runtime
from ..errors import InvalidInput, JiyiError, NotFound
from ..languages.words import language as language_of
from ..memory import Memory
from ..models import RELEVANT, Hit, MemoryItem, Message, SearchResult
from ..read.accesses import asked_by
from ..read.context import ContextLanguage, Style, context_block, log_degraded, sharing_words
from ..roles import role_kind
from ..text.fence import Fence, strip_context, without_context
from ..write.classify import classify, is_small_talk
from .chat import part
from .standing import is_instruction, standing_memories

logger = logging.getLogger(__name__)
T = TypeVar("T")
Search = Callable[[str, float, int], Awaitable[Sequence[Hit]]]  # query, least relevance, limit

MAX_TOKENS = 1000
PENDING_S = 2.0  # longest wait for the user's turns that are being stored
MOST_INSTRUCTIONS, MOST_LIMITS = 8, 16
OVERFETCH = 4  # hits of the own session are dropped after the search
_MOST = 200
_NO_EVIDENCE = ("question", "request", "smalltalk", "joke", "nonanswer")


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
    limit: int | None = None,
    max_tokens: int = MAX_TOKENS,
    style: Style = "sections",
    language: ContextLanguage | None = None,
) -> Recalled:
    """Recall for a message of the user, or for the last one of a conversation, as a block for a prompt."""
    conversation = Conversation(
        memory=engine_of(memory),
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        group_id=group_id,
        private=private,
    )
    words = said if isinstance(said, str) else last_words(said)
    return await await_in(
        memory, conversation.context(words, limit=limit, max_tokens=max_tokens, style=style, language=language)
    )


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


def hits_to_fetch(limit: int, standing: Sequence[MemoryItem]) -> int:
    """Return how many hits to search for: some are dropped, and limits that are too many are ranked by them."""
    return max(OVERFETCH * limit, _MOST if len(standing) > MOST_LIMITS else 0)


def choose_hits(found: Sequence[Hit], standing: Sequence[MemoryItem], limit: int) -> list[Hit]:
    """Choose the hits to show beside the standing memories: no weak hit that is shown among those anyway, no message
    behind one, and no small talk takes the place of another."""
    apart = {one for memory in standing for one in (memory.id, *memory.source_ids)}
    hits = [hit for hit in found if hit.relevance_score >= RELEVANT or apart.isdisjoint((hit.id, *hit.source_ids))]
    return [hit for hit in hits if not _is_noise(hit)][:limit]


def choose_standing(standing: Sequence[MemoryItem], hits: Sequence[Hit], found: Sequence[Hit]) -> list[MemoryItem]:
    """Choose the standing memories to show beside the hits: instructions, which apply to every answer, and the limits
    that come closest to the query; of equal ones the newest."""
    shown, rank = {hit.id for hit in hits}, {hit.id: at for at, hit in enumerate(found)}
    others = sorted((one for one in standing if one.id not in shown), key=lambda one: rank.get(one.id, len(rank)))
    instructions = [one for one in others if is_instruction(one)]
    return [*instructions[:MOST_INSTRUCTIONS], *[one for one in others if one not in instructions][:MOST_LIMITS]]


def _is_noise(hit: Hit) -> bool:
    """Return True for a weak hit that states nothing: a question, a greeting, or words of the assistant."""
    if hit.relevance_score >= RELEVANT or hit.memory_type != "message":
        return False
    if role_kind(hit.speaker) == "assistant":
        return True
    return classify(hit.content).kind in _NO_EVIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """A conversation of a user with an agent. `agent_id`, `session_id` and `group_id` mark what is stored; a `private`
    conversation reads only the memories of its agent and group. `user_names` are names of the user in messages.
    `recall`, `context` and `observe` log a failing memory instead of raising, to not break a chat."""

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

    async def recall(
        self,
        said: str,
        *,
        limit: int | None = None,
        min_relevance_score: float | None = None,
        skip_session: bool = True,
        search: Search | None = None,
    ) -> Recalled:
        """Find the best memories for the user's words, weak ones included, and the standing ones. Words of this session
        are left out unless `skip_session` is False."""
        query = strip_context(said).strip()[: validation.MAX_QUERY]
        settings = runtime(self.memory).settings.tools
        least = settings.proactive_search_threshold if min_relevance_score is None else min_relevance_score
        limit = limit or settings.max_results_per_search
        if not query:
            return Recalled()
        try:
            problem = await self._wait_for_turns()
            standing = await self.standing(skip_session=skip_session)
            found = await self._hits(query, least, limit, standing, search or self._search, skip_session)
            found = sharing_words(query, found) if is_small_talk(query) else found
        except JiyiError as error:
            logger.warning("recall failed, continuing without memories: %s", error)
            return Recalled(problems=(f"recall failed: {error}",))
        hits = choose_hits(found, standing, limit)
        others = choose_standing(standing, hits, found)
        return Recalled(tuple(hits), tuple(others), problems=(problem,) if problem else ())

    async def standing(self, *, skip_session: bool = True) -> list[MemoryItem]:
        """Return the user's standing wishes and limits, newest first."""
        found = await standing_memories(self.memory, self.user_id, self.filters)
        return [memory for memory in found if not (skip_session and self._said_here(memory))]

    async def _wait_for_turns(self) -> str | None:
        """Wait a moment for turns of the user that are being stored; return the problem if they take longer."""
        try:
            await asyncio.wait_for(self.memory.sessions.flush(user_id=self.user_id), PENDING_S)
        except TimeoutError:
            return "the last turns are not stored yet"
        return None

    async def _hits(
        self,
        query: str,
        least: float,
        limit: int,
        standing: Sequence[MemoryItem],
        search: Search,
        skip_session: bool,
    ) -> list[Hit]:
        """Return at least `limit` hits, if there are so many."""
        wanted = hits_to_fetch(limit, standing)
        while True:
            found = await search(query, least, wanted)
            others = [hit for hit in found if not (skip_session and self._said_here(hit)) and not _is_noise(hit)]
            if len(others) >= limit or len(found) < wanted or wanted >= _MOST:
                return others
            wanted *= OVERFETCH

    def _said_here(self, memory: Hit | MemoryItem) -> bool:
        """Return True for a message of this session and for a memory derived from one."""
        return self.session_id is not None and memory.session_id == self.session_id and bool(memory.source_ids)

    async def context(
        self,
        said: str,
        *,
        limit: int | None = None,
        max_tokens: int = MAX_TOKENS,
        style: Style = "sections",
        language: ContextLanguage | None = None,
        skip_session: bool = True,
    ) -> Recalled:
        """Recall, with the block for a prompt, by default in the language of the message."""
        recalled = await self.recall(said, limit=limit, skip_session=skip_session)
        block = await context_block(
            [*recalled.standing, *await self.current([hit.id for hit in recalled.hits])],
            fence=await self.fence(),
            max_tokens=max_tokens,
            style=style,
            language=language or ("zh" if language_of(said) == "zh" else "en"),
            weak=recalled.weak,
            standing={memory.id for memory in recalled.standing},
        )
        return replace(recalled, block=block)

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
        try:
            found = await self.memory.get_many(ids, user_id=self.user_id)
        except JiyiError as error:
            logger.warning("recalled memories could not be read: %s", error)
            return []
        return [memory for memory in found if memory.status == "active"]

    async def observe(self, messages: Iterable[Message]) -> None:
        """Queue messages to be stored, without recalled blocks in them; `Memory.sessions.flush` waits for that."""
        said = [message.model_copy(update={"text": without_context(message.text)}) for message in messages]
        said = [message for message in said if message.text.strip()]
        if said:
            await self.memory.sessions.observe(said, **self.scope, user_names=self.user_names)

    async def search(self, query: str, **options: Any) -> SearchResult:
        """Search what this conversation may read. The recall is recorded with its session and agent."""
        with asked_by(self.session_id, self.agent_id):
            return await self.memory.search(query, **{**options, **self.filters, "user_id": self.user_id})

    async def _search(self, query: str, least: float, limit: int) -> Sequence[Hit]:
        found = await self.search(query, min_relevance_score=least, limit=limit)
        log_degraded(found.degraded)
        return found.hits
