"""Reranking: a second model reads the best candidates together with the query.

The relevance model compares vectors and words; a reranker reads both texts. It comes with the package `jiyi-rerank`, or
is passed to `Memory.open(reranker=…)`. The final logit is a weighted sum of both models' logits, fitted by
`bench/reranker/fusion.py` on stories that neither model was trained on.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from importlib.util import find_spec
from typing import Protocol, runtime_checkable

from ..languages.words import width
from ..models import RELEVANT, MemoryItem
from ..settings import Settings
from .query import Query
from .rank import OTHER_LANGUAGE, RankedHit
from .relevance import ENDED

PACKAGE = "jiyi_rerank"
NOT_INSTALLED = "not installed: hits are ranked without reading them (run pip install jiyi-rerank)"
MOST_READ = 25  # candidates of a search
NEAR = 6.0  # distance to the best logit up to which a candidate is read: no reading makes up for more
BASE, READ, SHIFT = 0.65, 0.44, 0.5  # weights of the relevance model's and the reranker's logit
WORDED_SHIFT = 0.4  # of statements that a language model worded: they stand alone and score higher
WEAK = math.log(RELEVANT / (1 - RELEVANT)) - 0.01  # highest logit of hits below the line
SIMILAR, TYPICAL = 7.0, 0.2  # weight of the similarity there, and the similarity that changes nothing
UNREAD = -4.0  # logit of candidates that were not read: those that were read and do not answer have less
REPLACED = -1.2  # logit above which a newer hit replaces an older one
MOST_COMPARED = 6  # hits that are compared with each other
NEWER, OLDER = 0.25, 0.55  # least scores
APART = 2.0  # distance of logits up to which the newer one can replace the older one: it must nearly answer by itself
BEHIND = 0.3  # distance at which the newer one follows the older one's former logit
LOWERED = 0.5  # subtracted from the older one's logit
LONGEST_QUERY = 150  # characters; longer ones are no questions
# Widths of memories (a Chinese character counts as three): up to the first one rerankers know their like and are
# trusted fully, then less and less; above the second one they don't read them.
USUAL, LONGEST = 120, 400
LONGEST_COMPARED = 160  # what replaces what was learned from short messages


# Extraction adds these. Messages have none, and a reranker that was trained on messages takes "(2026-09)" for something
# else.
_ADDED_DATE = re.compile(r" ?[(（]\d{4}-\d\d(?:-\d\d(?: \d\d:\d\d| to \d{4}-\d\d-\d\d)?)?[)）]")


@dataclass(frozen=True, slots=True)
class RerankCandidate:
    """A memory as a reranker reads it."""

    speaker: str
    text: str
    age_days: float | None = None


@runtime_checkable
class Reranker(Protocol):
    @property
    def id(self) -> str: ...

    def logits(self, question: str, candidates: Sequence[RerankCandidate]) -> Sequence[float]:
        """Return for each candidate the logit that it answers, or bears on, the question. Runs in a thread."""
        ...

    def replaced(self, newer: RerankCandidate, older: Sequence[RerankCandidate]) -> Sequence[float]:
        """Return for each older memory the logit that it is no longer so because of the newer one."""
        ...

    def clear(self) -> None:
        """Forget texts and everything computed from them, because some were deleted."""
        ...


def resolve(settings: Settings, given: Reranker | None) -> Reranker | None:
    """Return the reranker to use: the given one, else the installed one unless the settings turn it off."""
    if settings.search.preset != "measured":
        return None
    if given is not None or not settings.search.rerank or find_spec(PACKAGE) is None:
        return given
    from jiyi_rerank import LocalReranker

    return LocalReranker()


def problem(settings: Settings, reranker: Reranker | None) -> str | None:
    """Return the reason why hits are not reranked, if there is one."""
    if reranker is not None:
        return None
    if not settings.search.rerank:
        return "turned off by search.rerank"
    if settings.search.preset != "measured":
        return f"not used by the preset {settings.search.preset}"
    return NOT_INSTALLED


def is_question(query: Query) -> bool:
    """Return True for the queries that rerankers are made for: not dialogues, long texts or searches by words only."""
    return not query.turns and query.mode != "keyword" and len(query.text) <= LONGEST_QUERY


async def reranked(
    reranker: Reranker, query: Query, hits: Sequence[RankedHit], found: Mapping[str, MemoryItem], *, current: bool
) -> list[RankedHit]:
    """Return the hits with scores by both models, best first. `current`: the query is about the present."""
    present = [one for one in hits if one.id in found]
    least = max((one.logit for one in present), default=0.0) - NEAR
    read = [
        (one, memory, text)
        for one in present[:MOST_READ]
        if one.logit >= least
        for memory, text in _wordings(one, found)
        if _width(text) <= LONGEST
    ]
    texts = [candidate(text, query.filter.now) for _, _, text in read]
    logits = await asyncio.to_thread(reranker.logits, query.text, texts) if texts else ()
    best: dict[str, tuple[float, MemoryItem]] = {}  # of each statement, the wording that answers best
    for (one, memory, _), logit in zip(read, logits, strict=True):
        if one.id not in best or logit > best[one.id][0]:
            best[one.id] = (logit, memory)
    fused = [
        _fused(one, *best.get(one.id, (None, found[one.id])), by_model=bool(worded(one, found))) for one in present
    ]
    fused = [one if worded(one, found) else _by_similarity(one) for one in fused]
    ranked = sorted(fused, key=lambda one: -one.score)
    return await asyncio.to_thread(_newest_first, reranker, ranked, found, query.filter.now) if current else ranked


def _newest_first(
    reranker: Reranker, hits: Sequence[RankedHit], found: Mapping[str, MemoryItem], now: datetime
) -> list[RankedHit]:
    """Raise hits that replace an older one to about its score, and lower the older one."""
    best = [
        one
        for one in hits[:MOST_COMPARED]
        if one.score >= NEWER
        and _width(found[one.id]) <= LONGEST_COMPARED
        and found[one.id].data.get("role") != "assistant"
    ]
    best.sort(key=lambda one: found[one.id].valid_from)
    texts = {one.id: candidate(found[one.id], now) for one in best}
    replaced: dict[str, tuple[float, RankedHit, RankedHit]] = {}  # by older hit, the likeliest replacement
    for at, newer in enumerate(best):
        older = [one for one in best[:at] if one.score >= OLDER and one.logit - newer.logit <= APART]
        logits = reranker.replaced(texts[newer.id], [texts[one.id] for one in older]) if older else ()
        for one, logit in zip(older, logits, strict=True):
            if logit > replaced.get(one.id, (REPLACED,))[0]:
                replaced[one.id] = (logit, one, newer)
    changed: dict[str, RankedHit] = {}
    for logit, old, new in replaced.values():
        changed[new.id] = changed.get(new.id, new).rescored("replaces", logit, max(new.logit, old.logit - BEHIND))
        changed[old.id] = changed.get(old.id, old).rescored("replaced", logit, old.logit - LOWERED)
    return sorted((changed.get(one.id, one) for one in hits), key=lambda one: -one.score)


def _width(memory: MemoryItem) -> int:
    """Return the width of a memory; that of a long one is only known to be above the limits."""
    return width(memory.content[: LONGEST + 1])


def _wordings(one: RankedHit, found: Mapping[str, MemoryItem]) -> list[tuple[MemoryItem, MemoryItem]]:
    """Return what can be shown of a statement, each with a text to read: itself or, where a model worded facts so that
    they stand alone, these and their message, unless something in the message has ended. What it replaces is read too:
    我搬到成都了 answers 我住在哪里 because 我住在上海 does."""
    shown = worded(one, found)
    if not shown:
        shown = [found[one.id]]
    elif not one.partly_over:
        members = [found[member] for member in one.members if member in found]
        shown += [memory for memory in members if memory.memory_type == "message"]
    replaced = [(shown[0], found[old]) for old in one.succeeds if old in found]
    return [*((memory, memory) for memory in shown), *replaced]


def worded(one: RankedHit, found: Mapping[str, MemoryItem]) -> list[MemoryItem]:
    """Return the facts of a statement that a language model worded."""
    members = [found[member] for member in one.members if member in found]
    return [memory for memory in members if memory.data.get("extractor") == "llm" and memory.memory_type != "episode"]


def _fused(one: RankedHit, logit: float | None, shown: MemoryItem, *, by_model: bool) -> RankedHit:
    size = _width(shown)
    if size > LONGEST:
        return one
    name, value = ("not read", UNREAD) if logit is None else ("reranker", logit)
    trust = min(1.0, USUAL / max(size, 1)) ** 3
    both = BASE * one.logit + READ * value + (WORDED_SHIFT if by_model else SHIFT)
    if one.outdated:  # a reranker knows only the texts, not that what one of them says has ended
        both = min(both, ENDED)
    return replace(one.rescored(name, value, trust * both + (1 - trust) * one.logit, READ * trust), id=shown.id)


def _by_similarity(one: RankedHit) -> RankedHit:
    """Let the similarity of the vectors, which knows no languages, decide too among hits below the line. Neither model
    knows requests: what matters for "Book a table for us" answers nothing."""
    if one.logit > WEAK:
        return one
    most = ENDED if one.outdated else WEAK
    logit = one.logit - (BASE * OTHER_LANGUAGE if one.other_language else 0.0)
    return one.rescored("similarity", one.similarity, min(most, logit + SIMILAR * (one.similarity - TYPICAL)), SIMILAR)


def candidate(memory: MemoryItem, now: datetime) -> RerankCandidate:
    data = memory.data
    extractor = data.get("extractor")
    speaker = "" if extractor == "llm" else data.get("speaker") or data.get("role")
    age = (now - memory.valid_from).total_seconds() / 86_400
    text = memory.content if extractor in (None, "llm") else _ADDED_DATE.sub("", memory.content)
    return RerankCandidate(speaker if isinstance(speaker, str) else "", text, age)
