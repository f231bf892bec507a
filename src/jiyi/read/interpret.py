"""The first stage of `search`: a query and its filters, checked, in the form that the legs need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from .. import validation
from ..languages.keywords import query_keywords
from ..languages.normalise import normalise
from ..models import Layer, SearchMode, Status, utc_now
from ..store.contract import Filter, Lifetimes
from .score import LEGS
from .turns import quoted, turns

TimeRange = tuple[datetime | None, datetime | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    query: str
    mode: SearchMode
    filter: Filter
    turns: tuple[str, ...]  # of a dialogue
    phrases: tuple[str, ...]
    keywords: tuple[str, ...]
    extra_keywords: tuple[str, ...]  # those given beside the query
    at_least: float
    limit: int
    explain: bool
    with_synonyms: bool
    other_words: tuple[tuple[str, tuple[str, ...]], ...] = ()  # that a language model named, by keyword


def interpret(
    query: str,
    where: Filter,
    *,
    mode: SearchMode,
    keywords: Sequence[str] | None,
    at_least: float,
    limit: int,
    explain: bool,
    with_synonyms: bool,
) -> Inquiry:
    validation.text("query", query, longest=validation.MAX_QUERY)
    validation.choice("search_mode", mode, tuple(LEGS))
    given = () if keywords is None else tuple(normalise(word) for word in validation.names("keywords", keywords))
    return Inquiry(
        query=query,
        mode=mode,
        filter=where,
        turns=tuple(turns(query)),
        phrases=tuple(quoted(query)),
        keywords=given or tuple(query_keywords(query)),
        extra_keywords=given,
        at_least=validation.share("min_relevance_score", at_least),
        limit=validation.whole("limit", limit),
        explain=explain,
        with_synonyms=with_synonyms,
    )


def scope(
    *,
    user_id: str,
    session_id: str | None = None,
    agent_id: str | None = None,
    group_id: str | None = None,
    memory_types: Sequence[str] | None = None,
    layers: Sequence[Layer] | None = None,
    tags: Sequence[str] | None = None,
    time_range: TimeRange | None = None,
    time_range_days: int | None = None,
    as_of: datetime | None = None,
    asked_at: datetime | None = None,
    status: Status = "active",
    min_trust: float | None = None,
    lifetimes: Lifetimes = (),
) -> Filter:
    """The filters that `search`, `list` and `count` share. An empty list of types, layers or tags matches nothing."""
    now = utc_now() if asked_at is None else validation.time("asked_at", asked_at)
    start, end = validation.time_span(time_range, time_range_days, now)
    return Filter(
        user_id=validation.name("user_id", user_id),
        session_id=validation.optional_name("session_id", session_id),
        agent_id=validation.optional_name("agent_id", agent_id),
        group_id=validation.optional_name("group_id", group_id),
        memory_types=None if memory_types is None else validation.names("memory_types", memory_types),
        layers=None if layers is None else validation.layers("layers", layers),
        tags=None if tags is None else tuple(normalise(tag) for tag in validation.tags("tags", tags)),
        occurred_from=start,
        occurred_to=end,
        as_of=validation.optional_time("as_of", as_of),
        now=now,
        status=validation.status("status", status),
        min_trust=0.0 if min_trust is None else validation.share("min_trust", min_trust),
        lifetimes=lifetimes,
    )
