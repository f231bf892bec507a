"""Searching, with a cache of recent results that is never out of date.

A cached result is stored under a hash of everything it depends on:

- the query: text, mode, filter, keywords, limit, and what its relative dates ("yesterday") mean today;
- the engine: version, weights, embedder, reader;
- the user's memories and synonyms: the newest entry of the change feed for the user, read from the database before
  each search. It covers everything committed until then, by any process;
- the time: results live until the end of a short period, and not beyond the moment at which a memory of the user
  expires or ends.

A shared cache holds only ids and scores, and texts are read from the database. The newest results are kept whole in
this process, under the same keys; a change or a deletion makes new keys.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from .. import __version__, threads
from ..cache import Cache, LocalCache
from ..embed import Embedder, Vectors, embed_query, least_cosine
from ..errors import EmbeddingError, EmbeddingModelChanged
from ..index.query import Candidates, IndexQuery
from ..index.search_index import SearchIndex
from ..languages.dates import dates
from ..metrics import Meter
from ..models import CacheUse, Hit, MemoryItem, SearchResult, utc_now
from ..reader import Reader
from ..roles import is_person
from ..scope import Filter
from ..store.store import Store
from ..store.write_set import FeedPosition, SearchSnapshot
from .accesses import Accesses, Period
from .fitting import fitting_first
from .hits import KeptResult, as_they_were, hit, matched_terms
from .judging import is_readable, judged, looked_at, needed, statements
from .presets import Ranking
from .query import (
    LEGS,
    Query,
    build_index_query,
    expanded_keywords,
    query_texts,
    synonyms_of,
    time_asked_about,
)
from .rank import RankedHit, rank

logger = logging.getLogger(__name__)
T = TypeVar("T")

MOST_USED_S = 3600  # for which the most used memories are cached
KEPT = 200  # results in this process
TOLD_THEN = 1.5  # logit of what was said at the time that a question asks about


class CachedResult(BaseModel):
    """A search result as a cache holds it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    key: str  # a reply to another query would be noticed
    until: AwareDatetime
    hits: tuple[tuple[str, Annotated[float, Field(ge=0, le=1)]], ...]
    outdated: frozenset[str] = frozenset()  # ids of hits
    total_found: Annotated[int, Field(ge=0)]
    searched: Annotated[int, Field(ge=0)]
    expanded: bool  # synonyms were searched for; they are looked up again


@dataclass(frozen=True, slots=True)
class Found:
    """Hits for one text, best first, with the memories that were read."""

    index_query: IndexQuery
    hits: list[RankedHit]
    memories: dict[str, MemoryItem]
    total: int
    searched: int
    degraded: list[str]
    engines: tuple[str, ...]


class Searcher:
    """Searches the index, or answers from the caches."""

    def __init__(
        self,
        store: Store,
        index: SearchIndex,
        embedder: Embedder,
        ranking: Ranking,
        accesses: Accesses,
        caches: Sequence[Cache],
        period: Period,
        meter: Meter,
        *,
        kept: int = KEPT,
        reader: Reader | None = None,
        reading_tokens: int = 1000,
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._ranking = ranking
        self._accesses = accesses
        self._caches = caches
        self._kept: LocalCache[tuple[datetime, KeptResult]] = LocalCache(kept)
        self._period = period
        self._engine = repr((__version__, ranking, embedder.id))  # part of every cache key
        self.reader = reader if ranking.preset == "measured" else None
        self._reading_tokens = reading_tokens
        self._meter = meter

    async def search(self, query: Query, *, asked_at: datetime | None = None, cacheable: bool = True) -> SearchResult:
        """Search, and record the hits as accessed. `asked_at` is the time that the caller gave as now, if any."""
        now = utc_now() if asked_at else query.filter.now
        self._accesses.settle(self._period.number(now))
        found = await self._cached_or_fresh(query, now, asked_at, cacheable)
        self._accesses.note(query.filter, query.asked, [hit.id for hit in found.hits])
        return found

    async def _cached_or_fresh(
        self, query: Query, now: datetime, asked_at: datetime | None, cacheable: bool
    ) -> SearchResult:
        user_id = query.filter.user_id
        snapshot = await self._index.search_snapshot(user_id, query.expandable)
        # Explanations contain words of memories, which no cache may hold.
        if snapshot.position is None or not self._caches or not cacheable or query.explain:
            return await self._fresh(query, snapshot)
        key = await threads.run(
            len(query.text), self._key, query, snapshot.position, self._period.number(now), asked_at
        )
        kept = await self._kept.get(user_id, key)
        if kept is not None and kept[0] > now:
            self._meter.count("cache_lookups_total", "hit")
            return kept[1].restored()
        result = await self._lookup(user_id, key, now, partial(self._restored, query, snapshot))
        if result is not None:
            self._meter.count("cache_lookups_total", "hit")
            return result
        self._meter.count("cache_lookups_total", "miss")
        found = await self._fresh(query, snapshot)
        if not found.degraded:  # a later search may be complete again
            next_end = self._index.next_end(user_id, now, query.filter.lifetimes)
            stored = CachedResult(
                key=key,
                until=_earlier(now, self._period.left(now), next_end),
                hits=tuple((hit.id, hit.relevance_score) for hit in found.hits),
                outdated=frozenset(hit.id for hit in found.hits if hit.outdated),
                total_found=found.total_found,
                searched=found.searched,
                expanded=found.expanded_keywords != expanded_keywords(query, {}),
            )
            await _write(self._caches, user_id, stored, now)
            await self._kept.put(
                user_id, key, (stored.until, KeptResult.of(found)), (stored.until - now).total_seconds()
            )
        return found

    async def _lookup(
        self, user_id: str, key: str, now: datetime, restore: Callable[[CachedResult], Awaitable[T | None]]
    ) -> T | None:
        """Return a cached result that can be restored, and copy it into nearer caches."""
        for level, cache in enumerate(self._caches):
            stored = _read(await cache.get(user_id, key), key, now)
            if stored is not None and (result := await restore(stored)) is not None:
                await _write(self._caches[:level], user_id, stored, now)
                return result
        return None

    async def _fresh(self, query: Query, snapshot: SearchSnapshot) -> SearchResult:
        found = await self._found(query, snapshot)
        size = looked_at(found.memories.values()) if query.explain else 0
        best = [*found.hits[: query.limit], *(one for one in found.hits[query.limit :] if one.named)]
        return SearchResult(
            query=query.asked,
            hits=await threads.run(size, _hits, query, best, found),
            total_found=found.total,
            searched=found.searched,
            search_strategy_used=query.mode,
            expanded_keywords=expanded_keywords(query, found.index_query.synonyms),
            degraded=tuple(dict.fromkeys(found.degraded)),
            engines=found.engines,
        )

    async def _found(self, query: Query, snapshot: SearchSnapshot) -> Found:
        """Search for one text."""
        store, embedder = self._store, self._embedder
        degraded: list[str] = []
        told = await threads.run(len(query.text), _told_then, query, self._ranking)
        if told is not None:
            query = told
        people = await self._index.people(query.filter.user_id, embedder.id)
        size = len(query.text)
        texts = await threads.run(size, query_texts, query, people)
        vectors = await _vectors(texts, query, embedder, degraded)
        index_query = await threads.run(
            size, build_index_query, query, people, texts, vectors, snapshot, embedder.id, self._ranking
        )
        candidates = await self._index.gather(index_query)
        degraded.extend(candidates.missing)
        for engine in candidates.engines or ("builtin",):
            self._meter.count("searches_by_engine_total", engine)
        await _report_unembedded(query, candidates, store, embedder, degraded)
        if self._ranking.preset == "measured":
            return await self._judged(query, index_query, candidates, degraded, is_told=told is not None)
        asked = query if query.radius is None else replace(query, radius=least_cosine(embedder, query.radius))
        ranked = await threads.run(size, rank, candidates, asked, index_query, self._ranking)
        memories = await store.memories.get(query.filter.user_id, [one.id for one in ranked.hits])
        found = {memory.id: memory for memory in as_they_were(memories, query.filter.as_of)}
        return Found(index_query, list(ranked.hits), found, ranked.total, len(candidates), degraded, candidates.engines)

    async def _judged(
        self, query: Query, index_query: IndexQuery, candidates: Candidates, degraded: list[str], *, is_told: bool
    ) -> Found:
        """Score the best candidates by evidence, and let the reader read them. `is_told`: whatever was said at the time
        of the query answers it."""
        size, user_id = len(query.text), query.filter.user_id
        if query.radius is not None:
            query = replace(query, radius=least_cosine(self._embedder, query.radius))
        listed = await threads.run(size, statements, candidates, query, index_query, self._ranking)
        memories = await self._store.memories.get(user_id, needed(listed.statements))
        found = {memory.id: memory for memory in as_they_were(memories, query.filter.as_of)}
        reader = self.reader if is_readable(query) and not is_told else None
        size = max(looked_at(found.values()), 0 if reader is None else threads.READING)
        hits, problem = await threads.run(size, judged, reader, query, listed.statements, found, self._reading_tokens)
        if problem is not None:
            degraded.append(problem)
        if is_told:
            hits = [one.rescored("at that time", 1.0, TOLD_THEN) for one in hits if _by_a_person(found.get(one.id))]
        hits = sorted(hits, key=lambda one: (-one.score, -one.logit))
        if reader is not None and problem is None:
            chosen = partial(fitting_first, is_current=index_query.current)
            try:
                hits = await threads.run(threads.READING, chosen, reader, hits, found, user_id)
            except Exception as error:  # of a caller's own class
                logger.warning("the reader failed", exc_info=error)
                degraded.append(f"hits may be out of date: the reader failed ({type(error).__name__})")
        hits = [one for one in hits if one.score >= query.min_score]
        total = len(hits) if query.min_score else len(hits) + listed.others
        return Found(index_query, hits, found, total, len(candidates), degraded, candidates.engines)

    async def most_used(self, where: Filter, limit: int) -> list[MemoryItem]:
        """Return the most used memories. Recalls are not in the change feed, so the order may be an hour old; contents
        are current, and memories that were deleted, archived or superseded are left out."""
        user_id, now = where.user_id, where.now
        snapshot = await self._index.search_snapshot(user_id, ())
        key = _hash("hot", limit, snapshot.position)

        async def restore(stored: CachedResult) -> list[MemoryItem] | None:
            found = await self._store.memories.get(user_id, [one for one, _ in stored.hits])
            return found if len(found) == len(stored.hits) else None

        if cached := await self._lookup(user_id, key, now, restore):
            return cached
        ids = await self._store.memories.most_used(where, limit)
        if len(ids) == limit:  # a shorter list changes with the next recall, and is cheap to make
            stored = CachedResult(
                key=key,
                until=_earlier(now, MOST_USED_S, self._index.next_end(user_id, now)),
                hits=tuple((one, 0.0) for one in ids),
                total_found=limit,
                searched=limit,
                expanded=False,
            )
            await _write(self._caches, user_id, stored, now)
        return await self._store.memories.get(user_id, ids)

    def _key(self, query: Query, position: FeedPosition, period: int, asked_at: datetime | None) -> str:
        spans = [(span.start, span.end) for span in dates(query.text, query.filter.now) if span.relative]
        return _hash(query, spans, self._engine, self.reader_id, position, period, asked_at)

    async def _restored(self, query: Query, snapshot: SearchSnapshot, stored: CachedResult) -> SearchResult | None:
        """Return a cached result with the memories as they are now, or None if one of them is gone."""
        found = await self._store.memories.get(query.filter.user_id, [one for one, _ in stored.hits])
        memories = {memory.id: memory for memory in as_they_were(found, query.filter.as_of)}
        if any(one not in memories for one, _ in stored.hits):
            return None
        synonyms = synonyms_of(query, snapshot) if stored.expanded else {}
        return SearchResult(
            query=query.asked,
            hits=tuple(
                hit(memories[one], query.text, score, outdated=one in stored.outdated) for one, score in stored.hits
            ),
            total_found=stored.total_found,
            searched=stored.searched,
            search_strategy_used=query.mode,
            expanded_keywords=expanded_keywords(query, synonyms),
        )

    @property
    def reader_id(self) -> str | None:
        return None if self.reader is None else self.reader.id

    def cache_use(self) -> CacheUse:
        problems = [f"{cache.name}: {cache.problem}" for cache in self._caches if cache.problem]
        return CacheUse(
            caches=tuple(cache.name for cache in self._caches),
            asked=self._meter.counted("cache_lookups_total"),
            answered=self._meter.counted("cache_lookups_total", "hit"),
            problems=tuple(problems),
        )

    async def forget(self, user_id: str) -> int:
        """Remove the cached results of a user and return their number."""
        await self._kept.forget(user_id)
        return sum([await cache.forget(user_id) for cache in self._caches])

    async def close(self) -> None:
        await self._kept.close()
        for cache in self._caches:
            await cache.close()


def _told_then(query: Query, ranking: Ranking) -> Query | None:
    """Return the query with the time as its filter if it asks for nothing but what was said or happened then."""
    where = query.filter
    if ranking.preset != "measured" or query.turns or where.occurred_from or where.occurred_to:
        return None
    span = time_asked_about(query.text, where.now)
    if span is None:
        return None
    return replace(query, filter=replace(where, occurred_from=span.start, occurred_to=span.end))


def _by_a_person(memory: MemoryItem | None) -> bool:
    return memory is not None and is_person(memory.data.get("role") or "user")


def _hits(query: Query, best: Sequence[RankedHit], found: Found) -> tuple[Hit, ...]:
    """Return the hits with their memories. One may have been deleted, or is a profile without content at that time."""
    hits = []
    for one in best:
        if (memory := found.memories.get(one.id)) is not None:
            terms = matched_terms(memory, found.index_query.terms) if query.explain else ()
            explanation = one.explanation(terms) if query.explain else None
            hits.append(hit(memory, query.text, one.score, explanation, outdated=one.outdated))
    return tuple(hits)


async def _vectors(texts: list[str], query: Query, embedder: Embedder, degraded: list[str]) -> list[Vectors]:
    """Embed the query. If that fails, a hybrid search continues by words and a semantic one raises."""
    if "semantic" not in LEGS[query.mode]:
        return []
    try:
        return [await embed_query(embedder, text) for text in texts]
    except EmbeddingError as error:
        if query.mode == "semantic":
            raise
        degraded.append(f"searched by words only: {error}")
        return []


async def _report_unembedded(
    query: Query, candidates: Candidates, store: Store, embedder: Embedder, degraded: list[str]
) -> None:
    """Report memories without a vector of the embedder; raise if a semantic search could find none at all."""
    if not candidates.unembedded or "semantic" not in LEGS[query.mode]:
        return
    coverage = await store.entries.coverage(embedder.id, query.filter.user_id)
    others = sorted(model for model in coverage.models if model != embedder.id)
    instead = f" but of {', '.join(others)}" if others else ""
    problem = (
        f"{candidates.unembedded} of {len(candidates)} memories have no vector of {embedder.id}{instead}:"
        " run `jiyi reindex --embeddings`"
    )
    if query.mode == "semantic" and candidates.unembedded == len(candidates):
        raise EmbeddingModelChanged(problem)
    degraded.append(f"these are found by words only: {problem}")


def _earlier(now: datetime, seconds: float, next_end: datetime | None) -> datetime:
    until = now + timedelta(seconds=seconds)
    return until if next_end is None else min(until, next_end)


def _hash(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()


def _read(value: bytes | None, key: str, now: datetime) -> CachedResult | None:
    """Parse a cache's reply, which is foreign input: return None for anything but a valid result under this key."""
    if value is None:
        return None
    try:
        stored = CachedResult.model_validate_json(value, strict=True)
    except ValidationError:
        return None
    return stored if stored.key == key and now < stored.until else None


async def _write(caches: Sequence[Cache], user_id: str, stored: CachedResult, now: datetime) -> None:
    if not caches:
        return
    seconds = (stored.until - now).total_seconds()
    value = stored.model_dump_json().encode()
    for cache in caches:
        await cache.put(user_id, stored.key, value, seconds)
