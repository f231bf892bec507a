"""Candidates of a search from Milvus and Elasticsearch. Changes that an engine does not have yet come from SQL, and so
does everything that is shown: a deleted memory or another user's cannot be returned, whatever an engine answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..errors import EngineError
from ..index.query import Candidates, IndexQuery
from ..store.store import Store
from ..store.upkeep.engine_rows import MOST_COUNTED, EngineUser
from .breaker import Breaker
from .candidates import BY_WORDS, NEAREST, Found, WordMatches, gather_candidates
from .elasticsearch import Elasticsearch
from .milvus import Milvus

MOST_RECENT = 2000  # changes that are added from SQL
FALLBACK = 100_000  # memories up to which a user is searched in RAM while an engine is down


@dataclass(frozen=True, slots=True)
class Searchable:
    """A user's states in both engines, if both have all of the user's memories."""

    applied: int  # the newest change that both have
    memories: int

    @property
    def fits_in_ram(self) -> bool:
        return self.memories <= min(FALLBACK, MOST_COUNTED - 1)


class EngineSearch:
    """Finds candidates in Milvus and Elasticsearch."""

    def __init__(
        self,
        store: Store,
        milvus: Milvus,
        words: Elasticsearch,
        *,
        model: str,
        above: int,
        breakers: Mapping[str, Breaker],
    ) -> None:
        self._store = store
        self._milvus = milvus
        self._words = words
        self._model = model
        self._above = above
        self.breakers = breakers
        self._generations: dict[str, int] = {}  # that were searched last

    async def close(self) -> None:
        for engine in (self._milvus, self._words):
            with contextlib.suppress(EngineError):
                await engine.close()

    async def _searchable(self, user_id: str) -> Searchable | tuple[str, ...]:
        """Return what both engines have of the user, or, if the user is searched in RAM because one was lost, why."""
        engines = await self._store.projections.searched(user_id)
        states: list[EngineUser] = []
        lost: list[str] = []
        for engine in (self._milvus, self._words):
            known = engines.get(engine.name)
            if known is None or known.user is None or not known.user.ready:
                lost += [f"{engine.name}: {known.problem}"] if known is not None and known.problem else []
            else:
                if self._generations.get(engine.name) != known.generation:
                    self._generations[engine.name] = known.generation
                    self.breakers[engine.name].try_again()
                engine.use(known.generation)
                states.append(known.user)
        if len(states) < len(self.breakers):
            return () if self._above else tuple(lost)  # a user who is not loaded may be too small for the engines
        memories = max(state.memories for state in states)
        return Searchable(min(state.applied or 0 for state in states), memories) if memories > self._above else ()

    async def people(self, user_id: str) -> frozenset[str] | None:
        found = await self._searchable(user_id)
        if not isinstance(found, Searchable):
            return None
        try:
            async with self.breakers[self._words.name].request():
                return await self._words.people(user_id)
        except EngineError:  # `gather` tells of it
            return None if found.fits_in_ram else frozenset()

    async def gather(self, query: IndexQuery) -> Candidates | tuple[str, ...]:
        user = await self._searchable(query.filter.user_id)
        if not isinstance(user, Searchable):
            return tuple(f"searched in RAM: {problem}" for problem in user)
        if query.model != self._model:
            return ()
        refused = [breaker.problem for breaker in self.breakers.values() if breaker.is_open]
        if refused and user.fits_in_ram:  # a request to the other one would be in vain
            return tuple(f"searched in RAM: {problem}" for problem in refused)
        return await self._gather(query, user)

    async def _gather(self, query: IndexQuery, user: Searchable) -> Candidates | tuple[str, ...]:
        near, words = await asyncio.gather(self._nearest(query), self._matches(query), return_exceptions=True)
        problems: dict[str, str] = {}
        missing: list[str] = []
        for name, leg, answer in ((self._milvus.name, "meaning", near), (self._words.name, "words", words)):
            if isinstance(answer, EngineError):
                problems[name] = str(answer)
                missing.append(f"not searched by {leg}: {answer}")
            elif isinstance(answer, BaseException):
                raise answer
        if problems and user.fits_in_ram:
            return tuple(f"searched in RAM: {problem}" for problem in problems.values())
        if query.ids is not None and len(query.ids) > FALLBACK:
            missing.append(f"{len(query.ids):,} memories have this metadata: only the newest {FALLBACK:,} are searched")
        recent = await self._recent(query.filter.user_id, user.applied, missing)
        by_vector = near if isinstance(near, list) else []
        by_words = words if isinstance(words, WordMatches) else None
        ids = _fused(by_words.ids if by_words else [], by_vector)
        found = Found(
            ids=list(dict.fromkeys((*ids, *recent))),
            statistics=None if by_words is None else by_words.statistics,
            missing=missing,
            engines=[name for name in self.breakers if name not in problems],
        )
        return await gather_candidates(self._store, query, found)

    async def _matches(self, query: IndexQuery) -> WordMatches:
        async with self.breakers[self._words.name].request():
            return await self._words.matches(query, BY_WORDS)

    async def _nearest(self, query: IndexQuery) -> list[str]:
        """Return the memories nearest to any vector of the query. One request for all vectors filters once. The engines
        hold no metadata: if SQL has selected by it, all of these are candidates."""
        if query.ids is not None:
            return list(query.ids[:FALLBACK])
        vectors = [vector for vector in (query.vector, *query.turns) if vector is not None]
        if not vectors:
            return []
        async with self.breakers[self._milvus.name].request():
            return list(dict.fromkeys(chain(*await self._milvus.nearest(query.filter, vectors, NEAREST))))

    async def _recent(self, user_id: str, applied: int, missing: list[str]) -> list[str]:
        """Return the memories that changed after what both engines have."""
        changes = await self._store.projections.changes(user_id, applied, MOST_RECENT + 1)
        if len(changes) > MOST_RECENT:
            missing.append(f"an engine is more than {MOST_RECENT:,} changes behind: the newest are not searched yet")
        return list(dict.fromkeys(memory_id for _, memory_id in changes[:MOST_RECENT] if memory_id))


def _fused(*rankings: Sequence[str]) -> list[str]:
    """Merge rankings by the sum of reciprocal ranks: what is near the top of several comes first."""
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for at, one in enumerate(ranking):
            scores[one] += 1 / (60 + at)
    return sorted(scores, key=lambda one: -scores[one])
