"""Recall: what an agent should know before it answers, as one block for a prompt.

It has the best memories for the user's words, weak ones marked, and the user's standing wishes and limits, such as
"always answer in Chinese" and allergies: those matter for requests that share no word with them. What the running
session said itself is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, Unpack, get_args
from weakref import WeakKeyDictionary

from pydantic import Field

from .. import threads, validation
from ..engine import Engine, changed_since, feed_position
from ..errors import InvalidInput
from ..languages import cue
from ..languages.words import language as language_of
from ..models import MOST_FOR_ANSWER, RELEVANT, Answer, Hit, MemoryItem, Page, SearchResult, Value, utc_now
from ..read.accesses import asked_by
from ..read.context import ContextLanguage, Style, context_block, line_text, log_degraded, sharing_words
from ..roles import role_kind, teller_of
from ..scope import Filters
from ..store.write_set import FeedPosition
from ..text.budget import token_bound
from ..text.fence import Fence, strip_context
from ..validation import MAX_LIMIT
from .sessions import MAX_WAIT_S, TurnQueue

Reason = Literal["weak", "limit", "ended", "repeated", "session"]
MAX_TOKENS = 1000
MOST_INSTRUCTIONS, MOST_LIMITS = 8, 16
OVERFETCH = 4  # hits of the own session are dropped after the search
MOST_HITS = 200
LOOKED_AT = 30  # best hits that are explained
BEGINNING = 24  # characters by which a cut line is recognised
NO_EVIDENCE = ("question", "request", "smalltalk", "joke", "nonanswer")
TYPES = ("preference", "fact", "profile", "pattern", "lesson", "instruction", "constraint")
LONGEST = 300  # characters; a longer memory is no wish
FIRST_SCAN = 1_000  # newest memories that are read for the first recall of a user
SURE = 0.5
MAX_RETURNED = 50
MAX_USERS = 10_000


class UsedMemory(Value):
    """A memory in a recalled block. A standing one is a wish or limit that always applies."""

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
    """The block for a prompt and the way it came about. `left_out` is empty unless an explanation was asked for."""

    block: str
    tokens: int = Field(description="upper bound of its tokens")
    max_tokens: int
    used: tuple[UsedMemory, ...]
    left_out: tuple[LeftOut, ...] = ()
    problems: tuple[str, ...]


class Reads(Protocol):
    """The verbs of a memory that a recall uses."""

    @property
    def search(self) -> Callable[..., Awaitable[Any]]: ...

    @property
    def get_many(self) -> Callable[..., Awaitable[Any]]: ...

    @property
    def list(self) -> Callable[..., Awaitable[Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """Arguments of `Memory.recall`."""

    said: str
    user_id: str
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    private: bool
    skip_session: bool
    limit: int
    min_relevance_score: float
    max_tokens: int
    style: Style
    language: ContextLanguage | None
    explain: bool

    @property
    def query(self) -> str:
        return strip_context(self.said).strip()[: validation.MAX_QUERY]

    @property
    def filters(self) -> dict[str, Any]:
        """Arguments of `search` and `list` that limit reading."""
        return {
            "agent_id": self.agent_id if self.private else None,
            "group_id": self.group_id if self.private else None,
        }

    def said_here(self, memory: Hit | MemoryItem) -> bool:
        """Return True for a message of this session, for a memory derived from one, and for these very words."""
        if isinstance(memory, Hit) and memory.memory_type == "message" and memory.content.strip() == self.query:
            return True
        mine = self.session_id is not None and memory.session_id == self.session_id
        return self.skip_session and mine and bool(memory.source_ids)


async def _recall(memory: Reads, request: RecallRequest, fence: Fence, problems: Sequence[str]) -> RecallReport:
    """Recall for the words of a user."""
    from ..write.classify import is_small_talk  # so that a program that only searches loads nothing of writing

    query = request.query
    if not query:
        return RecallReport(block="", tokens=0, max_tokens=request.max_tokens, used=(), problems=tuple(problems))
    with asked_by(request.session_id, request.agent_id):
        always = await standing_memories(memory, request.user_id, request.filters)
        always = [one for one in always if not request.said_here(one)]
        found, degraded = await _hits(memory, request, hits_to_fetch(request.limit, always))
    found = sharing_words(query, found) if is_small_talk(query) else found
    hits = choose_hits(found, always, request.limit)
    standing = choose_standing(always, hits, found)
    items = await memory.get_many([hit.id for hit in hits], user_id=request.user_id) if hits else ()
    current = [one for one in items if one.status == "active"]
    scores = {hit.id: hit.relevance_score for hit in hits}
    weak = {name for name, score in scores.items() if score < RELEVANT}
    block = await context_block(
        [*standing, *current],
        fence=fence,
        max_tokens=request.max_tokens,
        style=request.style,
        language=request.language or ("zh" if language_of(request.said) == "zh" else "en"),
        weak=weak,
        standing={one.id for one in standing},
    )
    size = sum(len(one.content) for one in (*standing, *current))
    shown = await threads.run(size, lambda: {one.id for one in (*standing, *current) if in_block(one, block)})
    report = RecallReport(
        block=block,
        tokens=await threads.run(len(block), token_bound, block) if block else 0,
        max_tokens=request.max_tokens,
        used=(
            *(UsedMemory(memory=one, relevance_score=None, standing=True) for one in standing if one.id in shown),
            *(
                UsedMemory(memory=one, relevance_score=scores[one.id], weak=one.id in weak)
                for one in current
                if one.id in shown
            ),
        ),
        problems=(*problems, *degraded),
    )
    return await _explained(memory, request, report, hits) if request.explain else report


async def _hits(memory: Reads, request: RecallRequest, wanted: int) -> tuple[list[Hit], Sequence[str]]:
    """Return at least `limit` hits, if there are so many, and the problems of the search."""
    while True:
        found = await memory.search(
            request.query,
            user_id=request.user_id,
            min_relevance_score=request.min_relevance_score,
            limit=wanted,
            **request.filters,
        )
        others = [hit for hit in found.hits if not request.said_here(hit) and not _is_noise(hit)]
        if len(others) >= request.limit or len(found.hits) < wanted or wanted >= MOST_HITS:
            log_degraded(found.degraded)
            return others, found.degraded
        wanted = min(wanted * OVERFETCH, MOST_HITS)


def hits_to_fetch(limit: int, standing: Sequence[MemoryItem]) -> int:
    """Return how many hits to search for: some are dropped, and limits that are too many are ranked by them."""
    return max(OVERFETCH * limit, MOST_HITS if len(standing) > MOST_LIMITS else 0)


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
    from ..write.classify import classify

    if hit.relevance_score >= RELEVANT or hit.memory_type != "message":
        return False
    if role_kind(hit.speaker) == "assistant":
        return True
    return classify(hit.content).kind in NO_EVIDENCE


def in_block(memory: MemoryItem, block: str) -> bool:
    text = line_text(memory)
    return text in block or (len(text) > BEGINNING and text[:BEGINNING] in block)


# -- explanation -------------------------------------------------------------------------------------------------------


async def _explained(memory: Reads, request: RecallRequest, report: RecallReport, hits: Sequence[Hit]) -> RecallReport:
    """Add the memories that were found and left out."""
    with asked_by(request.session_id, request.agent_id):
        found = await memory.search(request.query, user_id=request.user_id, limit=LOOKED_AT, **request.filters)
    used = {one.memory.id for one in report.used}
    others = [hit for hit in found.hits if hit.id not in used]
    items = await memory.get_many([hit.id for hit in others], user_id=request.user_id) if others else ()
    current = {one.id: one for one in items if one.status == "active"}
    left_out = [LeftOut(hit=hit, reason=_reason(hit, current.get(hit.id), hits, request)) for hit in others]
    return report.model_copy(update={"left_out": tuple(left_out)})


def _reason(hit: Hit, memory: MemoryItem | None, best: Sequence[Hit], request: RecallRequest) -> Reason:
    if any(hit.id == one.id for one in best):
        return "ended" if memory is not None and memory.valid_to is not None else "repeated"
    if request.session_id is not None and hit.session_id == request.session_id:
        return "session"
    weakest = min((one.relevance_score for one in best), default=RELEVANT)
    return "limit" if hit.relevance_score >= weakest and best else "weak"


# -- standing memories -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """Ids of the standing memories at a position of the user's change feed, newest first."""

    position: FeedPosition | None
    ids: tuple[str, ...]


_known: WeakKeyDictionary[Any, dict[tuple[Any, ...], Known]] = WeakKeyDictionary()


def is_standing(memory: MemoryItem) -> bool:
    """Return True for a wish or limit that the user stated, or a trusted source for the user, and that still holds."""
    ended = any(end is not None and end <= utc_now() for end in (memory.valid_to, memory.expires_at))
    if memory.status != "active" or ended or memory.superseded_by or memory.trust < 1 or len(memory.content) > LONGEST:
        return False
    if teller_of(memory.data, memory.user_id) is not None:
        return False
    return is_instruction(memory) or memory.memory_type == "constraint" or is_limit(memory.content)


def is_limit(text: str) -> bool:
    """Return True for a text such as "I'm allergic to peanuts" or "我不喝酒"."""
    return bool(cue("limit").search(text))


def is_instruction(memory: MemoryItem) -> bool:
    """Return True for a wish how to answer or address the user."""
    from ..write.classify import classify

    if memory.memory_type == "instruction" or memory.data.get("kind") == "instruction":
        return True
    if cue("instruction").search(memory.content):
        return True
    return memory.memory_type == "preference" and classify(memory.content).probability("instruction") >= SURE


async def standing_memories(memory: Reads, user_id: str, filters: Mapping[str, Any]) -> list[MemoryItem]:
    """Return the standing memories, newest first. The memories of a user are read once; later calls read those that
    the change feed names, whoever changed them."""
    users = _known.setdefault(memory, {})
    key = user_id, *sorted((name, value) for name, value in filters.items() if value is not None)
    known = await _current(memory, user_id, filters, users.get(key))
    users.pop(key, None)
    users[key] = known  # as the last one: the first ones leave
    while len(users) > MAX_USERS:
        users.pop(next(iter(users)))
    ids = known.ids
    while ids:
        found = await memory.get_many(ids[:MAX_RETURNED], user_id=user_id)
        standing = [one for one in found if is_standing(one)]
        if len(standing) == len(ids[:MAX_RETURNED]):
            return standing
        ids = (*(one.id for one in standing), *ids[MAX_RETURNED:])  # some ended by now
    return []


async def _current(memory: Reads, user_id: str, filters: Mapping[str, Any], known: Known | None) -> Known:
    """Return the ids at the present position of the change feed."""
    # The position is read first: what is committed while memories are read is then looked at again, not missed.
    position = await feed_position(memory, user_id)
    if known is not None and known.position == position:
        return known
    changed = None if known is None else await changed_since(memory, user_id, known.position, TYPES)
    if known is None or changed is None:
        return Known(position, await _first_scan(memory, user_id, filters))
    found: list[str] = []
    for start in range(0, len(changed), MAX_LIMIT):
        page = await memory.get_many(changed[start : start + MAX_LIMIT], user_id=user_id)
        found += await asyncio.to_thread(_standing_ids, [one for one in page if _matches(one, filters)])
    return Known(position, tuple(sorted({*known.ids, *found} - ({*changed} - {*found}), reverse=True)))


async def _first_scan(memory: Reads, user_id: str, filters: Mapping[str, Any]) -> tuple[str, ...]:
    page = await memory.list(user_id=user_id, memory_types=TYPES, limit=FIRST_SCAN, **filters)
    return tuple(await asyncio.to_thread(_standing_ids, page.items))


def _standing_ids(memories: Iterable[MemoryItem]) -> list[str]:
    return [one.id for one in memories if is_standing(one)]


def _matches(memory: MemoryItem, filters: Mapping[str, Any]) -> bool:
    return all(value is None or getattr(memory, name) == value for name, value in filters.items())


class Recalls:
    """The verbs `recall` and `answer` of a memory."""

    _engine: Engine
    _turns: TurnQueue
    search: Callable[..., Coroutine[Any, Any, SearchResult]]
    get_many: Callable[..., Coroutine[Any, Any, Sequence[MemoryItem]]]
    list: Callable[..., Coroutine[Any, Any, Page]]

    async def recall(
        self,
        said: str,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        private: bool = False,
        skip_session: bool = True,
        limit: int | None = None,
        min_relevance_score: float | None = None,
        max_tokens: int = 1000,
        style: Style = "sections",
        language: ContextLanguage | None = None,
        explain: bool = False,
    ) -> RecallReport:
        """Return what an agent should know before it answers: the best memories for the user's words, weak ones marked,
        and the user's standing wishes and limits, with the block for a prompt.

        What `session_id` said itself is left out unless `skip_session` is False. `private` limits reading to the agent
        and the group. `explain` adds what was left out, and why.

            recalled = await memory.recall("订个餐厅", user_id="mei", session_id="monday")
        """
        validation.choice("style", style, get_args(Style))
        validation.choice("language", "en" if language is None else language, get_args(ContextLanguage))
        tools = self._engine.settings.tools
        least = tools.proactive_search_threshold if min_relevance_score is None else min_relevance_score
        request = RecallRequest(
            said=said,
            user_id=validation.name("user_id", user_id),
            session_id=validation.optional_name("session_id", session_id),
            agent_id=validation.optional_name("agent_id", agent_id),
            group_id=validation.optional_name("group_id", group_id),
            private=private,
            skip_session=skip_session,
            limit=validation.whole("limit", tools.max_results_per_search if limit is None else limit),
            min_relevance_score=least,
            max_tokens=validation.whole("max_tokens", max_tokens, highest=1_000_000),
            style=style,
            language=language,
            explain=explain,
        )
        late = await self._turns.settle(user_id, min(MAX_WAIT_S, tools.recall_timeout_s / 2))
        return await _recall(self, request, await self._engine.fence(), ("the last turns are not stored yet",) * late)

    async def answer(
        self,
        question: str,
        *,
        user_id: str,
        limit: int = 12,
        asked_at: datetime | None = None,
        **filters: Unpack[Filters],
    ) -> Answer:
        """Answer a question from the best memories, with the ids of those that the answer rests on, or `text=None` if
        it is not known from them. Needs a language model; the filters are those of `search`, `limit` is 16 at most.

            told = await memory.answer("what can't she eat?", user_id="mei")
        """
        from ..llm.answer import NO_MODEL, answer

        limit = validation.whole("limit", limit, highest=MOST_FOR_ANSWER)
        if self._engine.llm is None:
            raise InvalidInput("llm.model", NO_MODEL)
        found = await self.search(question, user_id=user_id, limit=limit, asked_at=asked_at, **filters)
        return await answer(found, self._engine.llm, await self._engine.fence(), user_id=user_id)
