"""Searches that were answered a moment ago, answered again without searching, and never out of date.

An answer is kept under everything that it hangs on:

- the question: query, mode, filters, keywords, limit, and what its words for times ("yesterday") mean today;
- the engine: version, weights, embedder;
- the user's memories and synonyms: the newest entry of the change feed that concerns this user, read from the database
  before each search. It stands for all that was committed until then, by whichever process;
- the time: answers live until the end of a short period, and not beyond the moment at which a memory of the user
  expires or ends.

Kept are ids and scores, and no text. What is shown is read from the database, so nothing that was deleted can come out
of a cache, or stay in one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from .. import __version__
from ..cache import Cache
from ..embed import Embedder
from ..languages.dates import dates
from ..models import CacheUse, MemoryItem, SearchResult, utc_now
from ..scope import Filter
from ..store.contract import (
    Outset,
    Tip,
)
from .accesses import Accesses
from .assemble import hit
from .earlier import as_they_were
from .interpret import Inquiry
from .rank import Ranking
from .search import expandable, expanded_keywords, search, synonyms_of

if TYPE_CHECKING:
    from ..index.search_index import SearchIndex
    from ..store.store import Store

HOT_S = 3600  # for which it is kept which memories are used most
DRIFT = 1000  # an answer lives for less than this part of the half-life, in which no freshness moves by 0.1 %


class Kept(BaseModel):
    """An answer as a cache holds it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str  # a reply to another question would be noticed
    until: AwareDatetime
    hits: tuple[tuple[str, Annotated[float, Field(ge=0, le=1)]], ...]
    total_found: Annotated[int, Field(ge=0)]
    searched: Annotated[int, Field(ge=0)]
    expanded: bool  # whether there were synonyms; which ones is looked up


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Time in pieces of so many seconds. Accesses count in scores when a new one begins."""

    seconds: float

    @classmethod
    def of(cls, seconds: float, half_life_days: float) -> Period:
        return cls(seconds=max(min(seconds, half_life_days * 86_400 / DRIFT), 0.001))

    def number(self, at: datetime) -> int:
        return int(at.timestamp() // self.seconds)

    def left(self, at: datetime) -> float:
        return self.seconds - at.timestamp() % self.seconds


class Answers:
    def __init__(
        self,
        store: Store,
        index: SearchIndex,
        embedder: Embedder,
        ranking: Ranking,
        accesses: Accesses,
        caches: Sequence[Cache],
        period: Period,
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._ranking = ranking
        self._accesses = accesses
        self._caches = caches
        self._period = period
        self._asked = self._answered = 0

    async def search(self, inquiry: Inquiry, *, asked_at: datetime | None = None, lasting: bool = True) -> SearchResult:
        """The answer to a search. `asked_at`: the moment that the caller named as now, if any. Not `lasting`: the
        question itself changes from moment to moment, so that its answer need not be kept."""
        now = utc_now() if asked_at else inquiry.filter.now
        self._accesses.settle(self._period.number(now))
        found = await self._found(inquiry, now, asked_at, lasting)
        self._accesses.note(inquiry.filter.user_id, inquiry.query, [hit.id for hit in found.hits])
        return found

    async def _found(self, inquiry: Inquiry, now: datetime, asked_at: datetime | None, lasting: bool) -> SearchResult:
        user_id = inquiry.filter.user_id
        outset = await self._index.search_snapshot(user_id, expandable(inquiry))
        # Explanations speak in words, which no cache shall hold; they are for people, who have the time.
        if outset.tip is None or not self._caches or not lasting or inquiry.explain:
            return await search(inquiry, outset, self._store, self._index, self._embedder, self._ranking)
        self._asked += 1
        key = self._key(inquiry, outset.tip, self._period.number(now), asked_at)
        for place, cache in enumerate(self._caches):
            kept = _read(await cache.get(user_id, key), key, now)
            told = None if kept is None else await self._told(inquiry, outset, kept)
            if kept is not None and told is not None:
                self._answered += 1
                await _keep(self._caches[:place], user_id, kept, now)
                return told
        found = await search(inquiry, outset, self._store, self._index, self._embedder, self._ranking)
        if not found.degraded:  # it may be whole again at the next moment
            await _keep(self._caches, user_id, await self._kept(found, inquiry, key, now), now)
        return found

    async def hot(self, where: Filter, limit: int) -> list[MemoryItem]:
        """The memories that are used most. Recalls are no changes, so who leads may be an hour old; what it says is
        not, and what was deleted, archived or superseded is not among them."""
        user_id, now = where.user_id, where.now
        outset = await self._index.search_snapshot(user_id, ())
        parts = ("hot", limit, outset.tip)
        key = sha256(json.dumps(parts, default=str).encode()).hexdigest()
        for place, cache in enumerate(self._caches):
            kept = _read(await cache.get(user_id, key), key, now)
            found = [] if kept is None else await self._store.memories.get(user_id, [one for one, _ in kept.hits])
            if kept is not None and len(found) == len(kept.hits):
                await _keep(self._caches[:place], user_id, kept, now)
                return found
        ids = await self._store.memories.most_used(where, limit)
        if len(ids) == limit:  # a list that is not full may be another at the next recall, and is soon made
            next_end = await self._index.next_end(user_id, now)
            until = now + timedelta(seconds=HOT_S)
            kept = Kept(
                key=key,
                until=until if next_end is None else min(until, next_end),
                hits=tuple((one, 0.0) for one in ids),
                total_found=limit,
                searched=limit,
                expanded=False,
            )
            await _keep(self._caches, user_id, kept, now)
        return await self._store.memories.get(user_id, ids)

    def _key(self, inquiry: Inquiry, tip: Tip, period: int, asked_at: datetime | None) -> str:
        """Everything that an answer hangs on, hashed: nobody can read a query in a key."""
        question = asdict(inquiry)
        del question["filter"]["now"]
        spans = [(span.start, span.end) for span in dates(inquiry.query, inquiry.filter.now) if span.relative]
        engine = (__version__, asdict(self._ranking), self._embedder.id)
        parts = (question, spans, engine, tip, period, asked_at)
        return sha256(json.dumps(parts, default=str, sort_keys=True).encode()).hexdigest()

    async def _told(self, inquiry: Inquiry, outset: Outset, kept: Kept) -> SearchResult | None:
        """A kept answer with what the database says now; None if a memory has gone a moment ago."""
        user_id = inquiry.filter.user_id
        found = await self._store.memories.get(user_id, [one for one, _ in kept.hits])
        memories = {memory.id: memory for memory in as_they_were(found, inquiry.filter.as_of)}
        if any(one not in memories for one, _ in kept.hits):
            return None
        synonyms = synonyms_of(inquiry, outset) if kept.expanded else {}
        return SearchResult(
            query=inquiry.query,
            hits=tuple(hit(memories[one], inquiry.query, score, None) for one, score in kept.hits),
            total_found=kept.total_found,
            searched=kept.searched,
            search_strategy_used=inquiry.mode,
            expanded_keywords=expanded_keywords(inquiry, synonyms),
        )

    async def _kept(self, found: SearchResult, inquiry: Inquiry, key: str, now: datetime) -> Kept:
        """An answer lives until the period is over, or a memory expires or ends."""
        until = now + timedelta(seconds=self._period.left(now))
        next_end = await self._index.next_end(inquiry.filter.user_id, now, inquiry.filter.lifetimes)
        return Kept(
            key=key,
            until=until if next_end is None else min(until, next_end),
            hits=tuple((hit.id, hit.relevance_score) for hit in found.hits),
            total_found=found.total_found,
            searched=found.searched,
            expanded=found.expanded_keywords != expanded_keywords(inquiry, {}),
        )

    def use(self) -> CacheUse:
        problems = [f"{cache.name}: {cache.problem}" for cache in self._caches if cache.problem]
        return CacheUse(
            caches=tuple(cache.name for cache in self._caches),
            asked=self._asked,
            answered=self._answered,
            problems=tuple(problems),
        )

    async def forget(self, user_id: str) -> int:
        return sum([await cache.forget(user_id) for cache in self._caches])

    async def close(self) -> None:
        for cache in self._caches:
            await cache.close()


def _read(value: bytes | None, key: str, now: datetime) -> Kept | None:
    """What a cache answers is foreign input: anything but an answer of ours that still holds is none."""
    if value is None:
        return None
    try:
        kept = Kept.model_validate_json(value, strict=True)
    except ValidationError:
        return None
    return kept if kept.key == key and now < kept.until else None


async def _keep(caches: Sequence[Cache], user_id: str, kept: Kept, now: datetime) -> None:
    seconds = (kept.until - now).total_seconds()
    value = kept.model_dump_json().encode()
    for cache in caches:
        await cache.put(user_id, kept.key, value, seconds)
