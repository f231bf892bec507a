"""The verbs that find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import get_args

from .. import validation
from ..errors import LlmError
from ..languages.script import language as language_of
from ..models import Layer, MemoryItem, SearchMode, SearchResult
from ..read.context import ContextLanguage, Style, log_degraded, render_context
from ..read.earlier import as_they_were
from ..read.interpret import Inquiry, TimeRange, interpret, scope
from ..read.pointing import to_the_point
from ..read.short import in_short, tokens_of
from ..store.contract import Filter
from .looking import Looking


class Finding(Looking):
    async def search(
        self,
        query: str,
        *,
        user_id: str,
        search_mode: SearchMode | None = None,
        keywords: Sequence[str] | None = None,
        memory_types: Sequence[str] | None = None,
        layers: Sequence[Layer] | None = None,
        tags: Sequence[str] | None = None,
        time_range: TimeRange | None = None,
        time_range_days: int | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        min_relevance_score: float = 0.0,
        min_trust: float | None = None,
        limit: int = 5,
        as_of: datetime | None = None,
        asked_at: datetime | None = None,
        explain: bool = False,
    ) -> SearchResult:
        """Find memories: `hybrid` (the default), `keyword` (by words) or `semantic` (by meaning).

        All filters hold in every mode and before the limit. `tags` and `memory_types` mean any of those named,
        `time_range` is about when things happened, `as_of` asks what was valid then, `asked_at` is the moment from
        which "now" is counted, `min_trust` leaves out what is trusted less (by default as `search.min_trust` says).

            found = await memory.search("咖啡", user_id="mei", limit=3, explain=True)
        """
        where = scope(
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            memory_types=memory_types,
            layers=layers,
            tags=tags,
            time_range=time_range,
            time_range_days=time_range_days,
            as_of=as_of,
            asked_at=asked_at,
            min_trust=self.settings.search.min_trust if min_trust is None else min_trust,
            lifetimes=self._lifetimes,
        )
        inquiry = interpret(
            query,
            where,
            mode=self.settings.search.default_mode if search_mode is None else search_mode,
            keywords=keywords,
            at_least=min_relevance_score,
            limit=limit,
            explain=explain,
            with_synonyms=self.settings.extraction.enable_synonym_expansion,
        )
        unread = await self._fresh(where.user_id)
        lasting = time_range_days is None or asked_at is not None  # otherwise the last days are others at each moment
        with self.meter.timing("search", inquiry.mode):
            inquiry, missing = await self._with_other_words(inquiry)
            found = await self._answers.search(inquiry, asked_at=asked_at, lasting=lasting)
        notes = tuple(note for note in (missing, unread) if note)
        if notes:
            found = found.model_copy(update={"degraded": (*found.degraded, *notes)})
        self._count(found)
        return found

    def _count(self, found: SearchResult) -> None:
        outcome = "degraded" if found.degraded else "found" if found.hits else "nothing"
        self.meter.count("searches_total", outcome)
        if found.hits:
            self.meter.observe("search_relevance", found.hits[0].relevance_score)

    async def _with_other_words(self, inquiry: Inquiry) -> tuple[Inquiry, str | None]:
        """What a language model would also search for, if one is asked. Searching needs none: its failure is told."""
        if self._expander is None or not inquiry.with_synonyms:
            return inquiry, None
        try:
            found = await self._expander.expand(inquiry.query, user_id=inquiry.filter.user_id)
        except LlmError as error:
            return inquiry, f"searched without the language model's synonyms: {error}"
        return replace(inquiry, other_words=tuple(found.synonyms.items())), None

    async def context(
        self,
        query: str,
        *,
        user_id: str,
        max_tokens: int = 1500,
        style: Style = "sections",
        language: ContextLanguage | None = None,
        memory_types: Sequence[str] | None = None,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        as_of: datetime | None = None,
        asked_at: datetime | None = None,
        min_relevance_score: float = 0.0,
        min_trust: float | None = None,
    ) -> str:
        """What a prompt should know for this query: the best memories as one block, fenced as data, never over budget.

        Its language is that of the query unless one is named. Nothing found, or no room: the empty string.

            prompt = await memory.context("晚饭吃什么？", user_id="mei", max_tokens=400)
        """
        validation.whole("max_tokens", max_tokens, highest=1_000_000)
        validation.choice("style", style, get_args(Style))
        if language is not None:
            validation.choice("language", language, get_args(ContextLanguage))
        found = await self.search(
            query,
            user_id=user_id,
            memory_types=memory_types,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            as_of=as_of,
            asked_at=asked_at,
            min_relevance_score=min_relevance_score,
            min_trust=min_trust,
            limit=min(max(max_tokens // 10, 10), validation.MAX_LIMIT),
        )
        log_degraded(found.degraded)
        memories = await self.get_many([hit.id for hit in found.hits], user_id=user_id)
        spoken: ContextLanguage = language or ("zh" if language_of(query) == "zh" else "en")
        memories = [to_the_point(memory, query) for memory in as_they_were(memories, as_of or asked_at)]
        if memory_types is None and tokens_of(memories) > max_tokens:
            where = scope(
                user_id=user_id,
                agent_id=agent_id,
                group_id=group_id,
                as_of=as_of,
                asked_at=asked_at,
                min_trust=self.settings.search.min_trust if min_trust is None else min_trust,
                lifetimes=self._lifetimes,
            )
            memories = await self._in_short(memories, where)
        return render_context(memories, max_tokens=max_tokens, style=style, language=spoken, as_of=as_of or asked_at)

    async def _in_short(self, memories: Sequence[MemoryItem], where: Filter) -> Sequence[MemoryItem]:
        """The best as they are, other messages as what was worked out of them and would be found itself."""
        said = [memory.id for memory in memories if memory.memory_type == "message"]
        return list(in_short(memories, await self._store.gists(where, said)))
