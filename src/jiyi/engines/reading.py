"""Candidates of a search from Milvus and Elasticsearch. Changes that an engine does not have yet come from SQL, and so
does everything that is shown: a deleted memory or another user's cannot be returned, whatever an engine answers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

from ..errors import EngineError
from ..index.query import Candidates, IndexQuery
from ..metrics import Meter
from ..store.store import Store
from ..store.upkeep.engine_rows import MOST_COUNTED, EngineUser
from .candidates import BY_WORDS, NEAREST, Found, WordMatches, gather_candidates
from .elasticsearch import Elasticsearch
from .milvus import Milvus

MOST_RECENT = 2000  # changes that are added from SQL
FALLBACK = 100_000  # memories up to which a user is searched in RAM while an engine is down

logger = logging.getLogger(__name__)


class EngineSearch:
    """Finds candidates in Milvus and Elasticsearch."""

    def __init__(
        self, store: Store, milvus: Milvus, words: Elasticsearch, model: str, above: int, meter: Meter
    ) -> None:
        self._store = store
        self._milvus = milvus
        self._words = words
        self._model = model
        self._above = above
        self._meter = meter

    async def close(self) -> None:
        for engine in (self._milvus, self._words):
            with contextlib.suppress(EngineError):
                await engine.close()

    async def _states(self, user_id: str) -> tuple[EngineUser, EngineUser] | None:
        """Return the user's states if both engines can be searched."""
        engines = await self._store.projections.searched(user_id)
        near, by_words = engines.get(self._milvus.name), engines.get(self._words.name)
        if near is None or by_words is None:
            return None
        vectors, words = near.user, by_words.user
        if vectors is None or words is None or not (vectors.ready and words.ready):
            return None
        self._milvus.use(near.generation)
        self._words.use(by_words.generation)
        return (vectors, words) if max(vectors.memories, words.memories) > self._above else None

    async def people(self, user_id: str) -> frozenset[str] | None:
        if await self._states(user_id) is None:
            return None
        try:
            return await self._words.people(user_id)
        except EngineError as error:
            logger.warning("speakers are unknown to this search: %s", error)
            return frozenset()

    async def gather(self, query: IndexQuery) -> Candidates | None:
        found = await self._find(query)
        return None if found is None else await gather_candidates(self._store, query, found)

    async def _find(self, query: IndexQuery) -> Found | None:
        user_id = query.filter.user_id
        states = await self._states(user_id)
        if states is None or query.model != self._model:
            return None
        near, words = await asyncio.gather(
            self._nearest(query), self._words.matches(query, BY_WORDS), return_exceptions=True
        )
        missing: list[str] = []
        for leg, answer in (("meaning", near), ("words", words)):
            if isinstance(answer, EngineError):
                self._meter.count("engine_failures_total", leg)
                missing.append(f"not searched by {leg}: {answer}")
            elif isinstance(answer, BaseException):
                raise answer
        if missing and max(state.memories for state in states) <= min(FALLBACK, MOST_COUNTED - 1):
            logger.warning("searched in RAM: %s", "; ".join(missing))
            return None
        if query.ids is not None and len(query.ids) > FALLBACK:
            missing.append(f"{len(query.ids):,} memories have this metadata: only the newest {FALLBACK:,} are searched")
        recent = await self._recent(user_id, states, missing)
        by_vector = near if isinstance(near, list) else []
        by_words = words if isinstance(words, WordMatches) else None
        ids = _fused(by_words.ids if by_words else [], by_vector)
        return Found(
            ids=list(dict.fromkeys((*ids, *recent))),
            statistics=None if by_words is None else by_words.statistics,
            missing=missing,
        )

    async def _nearest(self, query: IndexQuery) -> list[str]:
        """Return the memories nearest to any vector of the query. One request for all vectors filters once. The engines
        hold no metadata: if SQL has selected by it, all of these are candidates."""
        if query.ids is not None:
            return list(query.ids[:FALLBACK])
        vectors = [vector for vector in (query.vector, *query.turns) if vector is not None]
        return (
            list(dict.fromkeys(chain(*await self._milvus.nearest(query.filter, vectors, NEAREST)))) if vectors else []
        )

    async def _recent(self, user_id: str, states: Sequence[EngineUser], missing: list[str]) -> list[str]:
        """Return the memories that changed after what both engines have."""
        applied = min(state.applied or 0 for state in states)
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
