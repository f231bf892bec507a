"""Usage: recalls, most used memories, metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from time import monotonic

from .. import validation
from ..engine import Engine
from ..metrics import SHARES, Metrics, Sample, Timing, prometheus, share
from ..models import MemoryItem, Observed, Recall, Stats, utc_now
from ..scope import Filter
from ..store.upkeep.engine_rows import EngineState
from .overview import Overview
from .sessions import TurnQueue

SHOWN_DAYS = 30
COUNT_EVERY_S = 60.0  # counting reads every row, so the gauges are cached


class Usage(Overview):
    def __init__(self, engine: Engine, turns: TurnQueue) -> None:
        super().__init__(engine)
        self._turns = turns
        self._counted: tuple[float, Stats] | None = None

    async def recalls(self, *, user_id: str, since: datetime | None = None, limit: int = 100) -> Sequence[Recall]:
        """List recent searches and the memories they returned, newest first."""
        user_id = validation.name("user_id", user_id)
        await self._engine.accesses.flush()
        since = validation.optional_time("since", since)
        return await self._engine.store.recalls.list(user_id, since=since, limit=validation.whole("limit", limit))

    async def most_used(self, *, user_id: str, limit: int = 20) -> Sequence[MemoryItem]:
        """List the memories that were recalled most often, most used first."""
        where = Filter.parse(user_id=user_id)
        limit = validation.whole("limit", limit)
        await self._engine.sync_files(where.user_id)
        await self._engine.accesses.flush()
        return await self._engine.searcher.most_used(where, limit)

    async def groups(self, *, user_id: str, memory_types: Sequence[str] | None = None) -> dict[str, int]:
        """Count a user's memories by group."""
        where = Filter.parse(user_id=user_id, memory_types=memory_types, lifetimes=self._engine.lifetimes)
        return await self._engine.store.memories.count_by_group(where)

    async def observed(self) -> Observed:
        """Count the observed turns that were stored, failed, or are still queued."""
        return self._turns.counts()

    async def metrics(self, user_id: str | None = None) -> Metrics:
        """Return figures on the store, of one user or of all, and on this process since it was opened.

        now = await memory.usage.metrics()
        print(now.search.p95, now.cache_hit_rate)
        """
        user_id = validation.optional_name("user_id", user_id)
        store, meter, cache = self._engine.store, self._engine.meter, self._engine.searcher.cache_use()
        held = await store.statistics.stats(self._engine.embedder.id, user_id)
        today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
        tally = await store.statistics.tally(user_id, today - timedelta(days=SHOWN_DAYS - 1))
        relevance = meter.spread("search_relevance")
        turns, recalled = meter.counted("agent_turns_total"), meter.counted("agent_recalled_total")
        failures = Counter[str]()
        for sample in meter.samples():
            if sample.name == "failures_total" and isinstance(sample.value, int):
                failures[sample.labels["doing"]] += sample.value
        outcomes = {outcome: meter.counted("jobs_total", outcome) for outcome in ("done", "put_off", "failed", "lost")}
        return Metrics(
            memories=held.memories,
            by_type=held.by_type,
            by_importance=tally.by_importance,
            average_importance=tally.average_importance,
            archived=tally.archived,
            added_by_day=tally.added_by_day,
            index_coverage=share(held.coverage.with_keywords, held.coverage.memories),
            vector_coverage=share(held.coverage.embedded, held.coverage.memories),
            search=Timing.of(meter.spread("search_seconds")),
            best_relevance=tuple(relevance.counts[: len(SHARES)]),
            add=Timing.of(meter.spread("add_seconds")),
            keyword_extraction=Timing.of(meter.spread("keyword_extraction_seconds")),
            llm=Timing.of(meter.spread("llm_seconds")),
            jobs={outcome: count for outcome, count in outcomes.items() if count},
            cache=cache,
            cache_hit_rate=share(cache.answered, cache.asked),
            tool_calls=meter.counted("tool_calls_total"),
            tool_use_rate=share(meter.counted("agent_turns_with_calls_total"), turns),
            usefulness=share(meter.counted("agent_used_total"), recalled),
            relevance=relevance.total / relevance.count if relevance.count else None,
            failures=dict(failures),
        )

    async def prometheus(self) -> str:
        """Return all metrics in Prometheus' text format. The store is counted once a minute."""
        if self._counted is None or monotonic() - self._counted[0] > COUNT_EVERY_S:
            self._counted = monotonic(), await self._engine.store.statistics.stats(self._engine.embedder.id)
        held = self._counted[1]
        engines = () if self._engine.engines is None else await self._engine.engines.states()
        jobs = (await self._engine.store.jobs.counts(utc_now())).by_state
        own = (*_gauges(held), *_lags(engines), *_job_gauges(jobs))
        return prometheus((*own, *self._engine.meter.samples()))


def _gauges(held: Stats) -> Iterator[Sample]:
    for memory_type, number in held.by_type.items():
        yield Sample("memories", "Active memories.", "gauge", {"type": memory_type}, number)
    for name, description, number in (
        ("users", "Users that have memories or messages.", held.users),
        ("memories_with_keywords", "Active memories that have keywords.", held.coverage.with_keywords),
        ("memories_with_vector", "Active memories with a vector of the current embedder.", held.coverage.embedded),
        ("store_bytes", "The size of the store.", held.size_bytes),
    ):
        yield Sample(name, description, "gauge", {}, number)


def _job_gauges(by_state: Mapping[str, int]) -> Iterator[Sample]:
    for state, number in sorted(by_state.items()):
        yield Sample("jobs", "Jobs by state.", "gauge", {"state": state}, number)


def _lags(engines: Sequence[EngineState]) -> Iterator[Sample]:
    for name, description, values in (
        ("engine_lag", "Changes that an external engine may not have yet.", [one.lag for one in engines]),
        ("engine_erasures", "Users that an external engine has yet to erase.", [one.erasing for one in engines]),
        (
            "engine_failing",
            "1 if its last write or search failed.",
            [int(one.problem is not None) for one in engines],
        ),
    ):
        for engine, value in zip(engines, values, strict=True):
            yield Sample(name, description, "gauge", {"engine": engine.name}, value)
