"""Recall: what an agent should know before it answers, as one block for a prompt.

It has the best memories for the user's words, weak ones marked, and the user's standing wishes and limits, such as
"always answer in Chinese" and allergies: those matter for requests that share no word with them. `Memory.context`,
`Memory.recall`, tools, hooks and adapters all choose memories with `select`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, Unpack, get_args

from pydantic import Field

from .. import threads, validation
from ..engine import Engine
from ..errors import InvalidInput
from ..languages.words import language as language_of
from ..models import MOST_FOR_ANSWER, RELEVANT, Answer, Hit, MemoryItem, SearchResult, Value
from ..read.accesses import asked_by
from ..read.context import ContextLanguage, Style, context_block, line_text, log_degraded, sharing_words
from ..read.hits import as_they_were, to_the_point
from ..scope import Filters
from ..text.budget import token_bound
from ..text.fence import Fence, strip_context
from .sessions import MAX_WAIT_S, TurnQueue
from .standing import is_instruction, standing_memories

Reason = Literal["weak", "limit", "ended", "repeated", "session"]
Depth = Literal["normal", "wide"]
MAX_TOKENS = 1000
MAX_CONTEXT_TOKENS = 1500
MAX_HITS: Mapping[Depth, int] = {"normal": 12, "wide": 60}
# For a question by itself, more than a few unrelated lines cost more than an answer among them gains.
MAX_CLOSE, MAX_WEAK = 6, 2
WEAK_BESIDE = 0.35  # least score of a hit beside relevant ones
WEAK_ALONE = 0.12  # least score of a hit where nothing is relevant
# Least score of a hit in a turn. A higher one loses answers: on everyday chats 0.003 keeps 98 %, 0.02 keeps
# 93 %, 0.05 90 %, 0.12 81 %. A model that judges better allows a higher one.
LEAST_SCORE = 0.003
MOST_INSTRUCTIONS, MOST_LIMITS = 8, 16
OVERFETCH = 4  # hits of the own session are dropped after the search
MOST_FETCHED = 200
LOOKED_AT = 30  # best hits that are explained
BEGINNING = 24  # characters by which a cut line is recognised
OF_SCOPE = {"session_id", "agent_id", "group_id"}  # filters that standing memories are filtered by, too


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


class Selection(NamedTuple):
    """Memories that are shown for a request, and the search behind them."""

    hits: list[Hit]
    standing: list[MemoryItem]
    found: SearchResult


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """Arguments of `Memory.context` and `Memory.recall`."""

    said: str
    user_id: str
    filters: Mapping[str, Any]  # of `search`
    limit: int
    min_relevance_score: float
    max_tokens: int
    style: Style
    language: ContextLanguage | None
    asked_at: datetime | None = None
    only_close: bool = False  # a few hits that come close to the query, and nothing else
    in_turn: bool = False  # of a conversation, whose own words are not recalled
    skipped_session: str | None = None
    asked_in: tuple[str | None, str | None] = field(default=(None, None))  # session and agent, for the record
    explain: bool = False

    @property
    def query(self) -> str:
        return strip_context(self.said).strip()[: validation.MAX_QUERY]

    @property
    def at(self) -> datetime | None:
        at: datetime | None = self.filters.get("as_of") or self.asked_at
        return at

    @property
    def has_standing(self) -> bool:
        """Return True if no filter but the scope selects memories, and others than close ones are wanted."""
        return not self.only_close and OF_SCOPE.issuperset(self.filters)

    def said_here(self, memory: Hit | MemoryItem) -> bool:
        """Return True for a message of this session, for a memory derived from one, and for these very words."""
        is_message = isinstance(memory, Hit) and memory.memory_type == "message"
        if self.in_turn and is_message and memory.content.strip() == self.query:
            return True
        mine = self.skipped_session is not None and memory.session_id == self.skipped_session
        return mine and bool(memory.source_ids)


async def select(
    search: Callable[[int], Awaitable[SearchResult]],
    query: str,
    standing: Sequence[MemoryItem],
    *,
    limit: int,
    only_close: bool = False,
    said_here: Callable[[Hit | MemoryItem], bool] | None = None,
) -> Selection:
    """Choose the memories to show for a request: the best hits, and of the standing memories the instructions, which
    hold for every answer, and the limits that come closest to it; of equal ones the newest. `search` takes a limit.

    Weak hits that have ended, and those that were `said_here`, are left out. For small talk, only hits that have one of
    its words are chosen. `only_close`: the relevant hits with those that may belong to them, or at most two."""
    from ..write.classify import is_small_talk  # so that a program that only searches loads nothing of writing

    apart = {one for memory in standing for one in (memory.id, *memory.source_ids)}

    def is_shown(hit: Hit) -> bool:
        """Return False for a weak hit that has ended or is shown among the standing memories."""
        if said_here is not None and said_here(hit):
            return False
        return hit.relevant or (not hit.outdated and apart.isdisjoint((hit.id, *hit.source_ids)))

    wanted = min(limit * (1 if said_here is None else OVERFETCH) + len(apart), MOST_FETCHED)
    if len(standing) > MOST_LIMITS:  # they are ranked by the hits
        wanted = MOST_FETCHED
    while True:
        found = await search(wanted)
        hits = [hit for hit in found.hits if is_shown(hit)]
        if len(hits) >= limit or len(found.hits) < wanted or wanted >= MOST_FETCHED:
            break
        wanted = min(wanted * OVERFETCH, MOST_FETCHED)
    rank = {hit.id: at for at, hit in enumerate(found.hits)}
    hits = sharing_words(query, hits) if is_small_talk(query) else hits
    hits = close(hits)[:limit] if only_close else hits[:limit]
    shown = {hit.id for hit in hits}
    others = sorted((one for one in standing if one.id not in shown), key=lambda one: rank.get(one.id, len(rank)))
    instructions = [one for one in others if is_instruction(one)]
    limits = [one for one in others if one not in instructions]
    return Selection(hits, [*instructions[:MOST_INSTRUCTIONS], *limits[:MOST_LIMITS]], found)


def close(hits: Sequence[Hit]) -> list[Hit]:
    """Return the relevant hits and those that may belong to them; without a relevant one, at most two that may help."""
    if hits and hits[0].relevant:
        return [hit for hit in hits if hit.relevance_score >= WEAK_BESIDE]
    return [hit for hit in hits if hit.relevance_score >= WEAK_ALONE][:MAX_WEAK]


async def _recall(memory: Reads, request: RecallRequest, fence: Fence, problems: Sequence[str]) -> RecallReport:
    """Recall for the words of a user."""
    query = request.query
    if not query:
        return RecallReport(block="", tokens=0, max_tokens=request.max_tokens, used=(), problems=tuple(problems))

    async def search(limit: int) -> SearchResult:
        least: Any = {"min_relevance_score": request.min_relevance_score, "asked_at": request.asked_at}
        found: SearchResult = await memory.search(
            query, user_id=request.user_id, limit=limit, **least, **request.filters
        )
        return found

    with asked_by(*request.asked_in):
        always = []
        if request.has_standing:
            always = await standing_memories(memory, request.user_id, request.filters)
        always = [one for one in always if not request.said_here(one)]
        skips = request.said_here if request.in_turn else None
        hits, standing, found = await select(
            search, query, always, limit=request.limit, only_close=request.only_close, said_here=skips
        )
    log_degraded(found.degraded)
    items = await memory.get_many([hit.id for hit in hits], user_id=request.user_id) if hits else ()
    current = [one for one in as_they_were(items, request.at) if request.at or one.status == "active"]
    cut = [to_the_point(one, query) for one in (*standing, *current)]
    scores = {hit.id: hit.relevance_score for hit in hits}
    weak = {name for name, score in scores.items() if score < RELEVANT}
    block = await context_block(
        cut,
        fence=fence,
        max_tokens=request.max_tokens,
        style=request.style,
        language=request.language or ("zh" if language_of(request.said) == "zh" else "en"),
        as_of=request.at,
        weak=weak,
        standing={one.id for one in standing},
    )
    size = sum(len(one.content) for one in cut)
    shown = await threads.run(size, lambda: {one.id for one in cut if in_block(one, block)})
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
        problems=(*problems, *found.degraded),
    )
    return await _explained(memory, request, report, hits) if request.explain else report


def in_block(memory: MemoryItem, block: str) -> bool:
    text = line_text(memory)
    return text in block or (len(text) > BEGINNING and text[:BEGINNING] in block)


# -- explanation -------------------------------------------------------------------------------------------------------


async def _explained(memory: Reads, request: RecallRequest, report: RecallReport, hits: Sequence[Hit]) -> RecallReport:
    """Add the memories that were found and left out."""
    options: Any = {"limit": LOOKED_AT, "asked_at": request.asked_at, **request.filters}
    with asked_by(*request.asked_in):
        found = await memory.search(request.query, user_id=request.user_id, **options)
    used = {one.memory.id for one in report.used}
    others = [hit for hit in found.hits if hit.id not in used]
    items = await memory.get_many([hit.id for hit in others], user_id=request.user_id) if others else ()
    current = {one.id: one for one in items if one.status == "active"}
    left_out = [LeftOut(hit=hit, reason=_reason(hit, current.get(hit.id), hits, request)) for hit in others]
    return report.model_copy(update={"left_out": tuple(left_out)})


def _reason(hit: Hit, memory: MemoryItem | None, best: Sequence[Hit], request: RecallRequest) -> Reason:
    if hit.outdated:
        return "ended"
    if any(hit.id == one.id for one in best):
        return "ended" if memory is not None and memory.valid_to is not None else "repeated"
    if request.asked_in[0] is not None and hit.session_id == request.asked_in[0]:
        return "session"
    weakest = min((one.relevance_score for one in best), default=RELEVANT)
    return "limit" if hit.relevance_score >= weakest and best else "weak"


class Recalls:
    """The verbs `context`, `recall` and `answer` of a memory."""

    _engine: Engine
    _turns: TurnQueue
    search: Callable[..., Coroutine[Any, Any, SearchResult]]
    get_many: Callable[..., Coroutine[Any, Any, Sequence[MemoryItem]]]

    async def context(
        self,
        query: str,
        *,
        user_id: str,
        max_tokens: int = MAX_CONTEXT_TOKENS,
        style: Style = "sections",
        language: ContextLanguage | None = None,
        depth: Depth = "normal",
        min_relevance_score: float | None = None,
        asked_at: datetime | None = None,
        **filters: Unpack[Filters],
    ) -> str:
        """Return the best memories for a query as one block for a prompt, fenced as data, within `max_tokens`. It may
        be empty.

        Hits below 0.6 are marked as possibly related. `depth="wide"` fills the budget with further ones and adds the
        user's standing wishes and limits, unless a filter is about more than session, agent or group;
        `min_relevance_score` is the least score of a hit. The block's language is that of the query unless one is
        named. The filters are those of `search`.

            prompt = await memory.context("晚饭吃什么？", user_id="mei", max_tokens=400)
        """
        request = RecallRequest(
            said=validation.text("query", query, longest=validation.MAX_QUERY),
            user_id=validation.name("user_id", user_id),
            filters={name: value for name, value in filters.items() if value is not None},
            asked_at=asked_at,
            only_close=depth == "normal",
            **self._options(
                max_tokens, style, language, depth, MAX_CLOSE if depth == "normal" else None, min_relevance_score
            ),
        )
        await self._turns.settle(user_id)
        return (await _recall(self, request, await self._engine.fence(), ())).block

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
        depth: Depth = "normal",
        limit: int | None = None,
        min_relevance_score: float | None = None,
        max_tokens: int = MAX_TOKENS,
        style: Style = "sections",
        language: ContextLanguage | None = None,
        explain: bool = False,
    ) -> RecallReport:
        """Return the block of `context` for the user's words in a conversation, and the memories in it.

        What `session_id` said itself is left out unless `skip_session` is False. `private` limits reading to the agent
        and the group. `limit` is the largest number of hits. `explain` adds what was left out, and why.

            recalled = await memory.recall("订个餐厅", user_id="mei", session_id="monday")
        """
        session_id = validation.optional_name("session_id", session_id)
        agent_id = validation.optional_name("agent_id", agent_id)
        group_id = validation.optional_name("group_id", group_id)
        request = RecallRequest(
            said=said,
            user_id=validation.name("user_id", user_id),
            filters={"agent_id": agent_id, "group_id": group_id} if private else {},
            in_turn=True,
            skipped_session=session_id if skip_session else None,
            asked_in=(session_id, agent_id),
            explain=explain,
            **self._options(max_tokens, style, language, depth, limit, min_relevance_score),
        )
        late = await self._turns.settle(user_id, min(MAX_WAIT_S, self._engine.settings.tools.recall_timeout_s / 2))
        return await _recall(self, request, await self._engine.fence(), ("the last turns are not stored yet",) * late)

    def _options(
        self,
        max_tokens: int,
        style: Style,
        language: ContextLanguage | None,
        depth: Depth,
        limit: int | None,
        min_relevance_score: float | None,
    ) -> dict[str, Any]:
        """Check the arguments that both verbs have."""
        validation.choice("style", style, get_args(Style))
        validation.choice("language", "en" if language is None else language, get_args(ContextLanguage))
        validation.choice("depth", depth, get_args(Depth))
        least = self._engine.settings.tools.proactive_search_threshold
        if min_relevance_score is not None:
            least = validation.share("min_relevance_score", min_relevance_score)
        return {
            "max_tokens": validation.whole("max_tokens", max_tokens, highest=1_000_000),
            "style": style,
            "language": language,
            "limit": validation.whole("limit", MAX_HITS[depth] if limit is None else limit),
            "min_relevance_score": max(least, LEAST_SCORE if depth == "normal" else 0.0),
        }

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
