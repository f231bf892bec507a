"""Recall: what an agent should know before it answers, as one block for a prompt.

It has the best memories for the user's words, weak ones marked, and standing wishes and limits of the user, such as
allergies, which may share no word with them. For a question by itself the reader reads those and leaves out what does
not bear on it; in a turn of a conversation all are there. `Memory.context`, `Memory.recall`, tools, hooks and adapters
all choose memories with `select`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol, Unpack, get_args

from pydantic import Field

from .. import threads, validation
from ..engine import Engine, has_reader
from ..errors import InvalidInput
from ..languages.words import language as language_of
from ..models import MOST_FOR_ANSWER, RELEVANT, Answer, Hit, MemoryItem, SearchResult, Value
from ..read.accesses import asked_by
from ..read.context import ContextLanguage, Style, context_block, line_texts, log_degraded
from ..read.hits import as_they_were, to_the_point
from ..scope import Filters
from ..text.budget import token_bound
from ..text.fence import Fence, strip_context
from .sessions import MAX_WAIT_S, TurnQueue
from .standing import BEARING, select, standing_memories

Reason = Literal["weak", "limit", "ended", "repeated", "session"]
Depth = Literal["normal", "wide"]
MAX_TOKENS = 1000
MAX_CONTEXT_TOKENS = 1500
MAX_HITS: Mapping[Depth, int] = {"normal": 6, "wide": 60}
MAX_IN_TURN = 12  # hits: the reader sees only half of what a limit bears on, and a missed one costs more than a line
READING_SHARE = 0.4  # of the time that a turn may wait for memories
LOOKED_AT = 30  # best hits that are explained
BEGINNING = 24  # characters by which a cut line is recognised
OF_SCOPE = {"session_id", "agent_id", "group_id"}  # filters that standing memories are filtered by, too


class UsedMemory(Value):
    """A memory in a recalled block. A standing one is a wish or limit of the user."""

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
    total_found: int = Field(default=0, description="memories that may belong to the words, shown or not")
    problems: tuple[str, ...]


class Reads(Protocol):
    """The verbs of a memory that a recall uses."""

    @property
    def _search(self) -> Callable[..., Awaitable[SearchResult]]: ...

    @property
    def get_many(self) -> Callable[..., Awaitable[Any]]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallRequest:
    """Arguments of `Memory.context` and `Memory.recall`."""

    said: str
    user_id: str
    filters: Mapping[str, Any]  # of `search`
    limit: int
    min_relevance_score: float | None  # None: what may belong to the query
    depth: Depth
    max_tokens: int
    style: Style
    language: ContextLanguage | None
    asked_at: datetime | None = None
    in_turn: bool = False  # of a conversation, whose own words are not recalled
    skipped_session: str | None = None
    asked_in: tuple[str | None, str | None] = field(default=(None, None))  # session and agent, for the record
    explain: bool = False
    reading_s: float | None = None  # longest time of reading
    reads_standing: bool = False  # and shows those which may bear on the query; otherwise all

    @property
    def query(self) -> str:
        return strip_context(self.said).strip()[: validation.MAX_QUERY]

    @property
    def at(self) -> datetime | None:
        at: datetime | None = self.filters.get("as_of") or self.asked_at
        return at

    @property
    def has_standing(self) -> bool:
        """Return True if no filter but the scope selects memories."""
        return OF_SCOPE.issuperset(self.filters)

    @property
    def least_score(self) -> float:
        """Return the least score of what the search shall find."""
        if self.min_relevance_score is not None:
            return self.min_relevance_score
        return 0.0 if self.depth == "wide" else BEARING

    def said_here(self, memory: Hit | MemoryItem) -> bool:
        """Return True for a message of this session, for a memory derived from one, and for these very words."""
        is_message = isinstance(memory, Hit) and memory.memory_type == "message"
        if self.in_turn and is_message and memory.content.strip() == self.query:
            return True
        mine = self.skipped_session is not None and memory.session_id == self.skipped_session
        return mine and bool(memory.source_ids)


async def _recall(memory: Reads, request: RecallRequest, fence: Fence, problems: Sequence[str]) -> RecallReport:
    """Recall for the words of a user."""
    query = request.query
    if not query:
        return RecallReport(block="", tokens=0, max_tokens=request.max_tokens, used=(), problems=tuple(problems))

    with asked_by(*request.asked_in):
        always = []
        if request.has_standing:
            always = await standing_memories(memory, request.user_id, request.filters)
        always = [one for one in always if not request.said_here(one)]
        are_read = request.reads_standing and has_reader(memory)

        async def search(limit: int) -> SearchResult:
            return await memory._search(
                query,
                user_id=request.user_id,
                limit=limit,
                min_relevance_score=request.least_score,
                asked_at=request.asked_at,
                also_read=[one.id for one in always] if are_read else [],
                reading_s=request.reading_s,
                **request.filters,
            )

        hits, standing, scores, found = await select(
            search,
            query,
            always,
            limit=request.limit,
            min_relevance_score=0.0 if request.depth == "wide" else request.min_relevance_score,
            are_read=are_read,
            said_here=request.said_here if request.in_turn else None,
        )
    log_degraded(found.degraded)
    items = await memory.get_many([hit.id for hit in hits], user_id=request.user_id) if hits else ()
    current = [one for one in as_they_were(items, request.at) if request.at or one.status == "active"]
    cut = [to_the_point(one, query) for one in (*standing, *current)]
    weak = {hit.id for hit in hits if not hit.relevant}
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
            *(
                UsedMemory(memory=one, relevance_score=scores[one.id], standing=True)
                for one in standing
                if one.id in shown
            ),
            *(
                UsedMemory(memory=one, relevance_score=scores[one.id], weak=one.id in weak)
                for one in current
                if one.id in shown
            ),
        ),
        total_found=found.total_found,
        problems=(*problems, *found.degraded),
    )
    return await _explained(memory, request, report, hits) if request.explain else report


def in_block(memory: MemoryItem, block: str) -> bool:
    texts = line_texts(memory)
    return any(text in block or (len(text) > BEGINNING and text[:BEGINNING] in block) for text in texts)


# -- explanation -------------------------------------------------------------------------------------------------------


async def _explained(memory: Reads, request: RecallRequest, report: RecallReport, hits: Sequence[Hit]) -> RecallReport:
    """Add the memories that were found and left out."""
    options: Any = {"limit": LOOKED_AT, "asked_at": request.asked_at, **request.filters}
    with asked_by(*request.asked_in):
        found = await memory._search(request.query, user_id=request.user_id, **options)
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
    _search: Callable[..., Coroutine[Any, Any, SearchResult]]
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
        """Return the memories that bear on a query as one block for a prompt, fenced as data, within `max_tokens`. It
        is empty if none does.

        These are a few hits, of which those below 0.6 are marked as possibly related, and standing wishes and limits of
        the user that may bear on it, unless a filter is about more than session, agent or group. `depth="wide"` fills
        the budget with further hits and all of those; `min_relevance_score` is the least score of a hit. The block's
        language is that of the query unless one is named. The filters are those of `search`.

            prompt = await memory.context("晚饭吃什么？", user_id="mei", max_tokens=400)
        """
        request = RecallRequest(
            said=validation.text("query", query, longest=validation.MAX_QUERY),
            user_id=validation.name("user_id", user_id),
            filters={name: value for name, value in filters.items() if value is not None},
            asked_at=asked_at,
            reads_standing=depth == "normal",
            **self._options(max_tokens, style, language, depth, None, min_relevance_score),
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
        timeout_s = self._engine.settings.tools.recall_timeout_s
        if depth == "normal":
            limit = MAX_IN_TURN if limit is None else limit
            least = self._least_of(min_relevance_score)
            min_relevance_score = BEARING if least is None else least
        session_id = validation.optional_name("session_id", session_id)
        agent_id = validation.optional_name("agent_id", agent_id)
        group_id = validation.optional_name("group_id", group_id)
        request = RecallRequest(
            said=said,
            user_id=validation.name("user_id", user_id),
            filters={"agent_id": agent_id, "group_id": group_id} if private else {},
            in_turn=skip_session,
            skipped_session=session_id if skip_session else None,
            asked_in=(session_id, agent_id),
            explain=explain,
            reading_s=timeout_s * READING_SHARE,
            **self._options(max_tokens, style, language, depth, limit, min_relevance_score),
        )
        late = await self._turns.settle(user_id, min(MAX_WAIT_S, timeout_s / 2))
        return await _recall(self, request, await self._engine.fence(), ("the last turns are not stored yet",) * late)

    def _least_of(self, given: float | None) -> float | None:
        """Return the least score of a hit: the given one, or that of the settings."""
        if given is not None:
            return validation.share("min_relevance_score", given)
        return self._engine.settings.tools.proactive_search_threshold or None

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
        return {
            "max_tokens": validation.whole("max_tokens", max_tokens, highest=1_000_000),
            "style": style,
            "language": language,
            "depth": depth,
            "limit": validation.whole("limit", MAX_HITS[depth] if limit is None else limit),
            "min_relevance_score": self._least_of(min_relevance_score),
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
