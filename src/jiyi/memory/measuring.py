"""The verbs that tell how a memory is doing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from time import monotonic

from .. import validation
from ..metrics import Metrics, Sample, Timing, prometheus, share
from ..models import CacheUse, Stats, utc_now
from .looking import Looking

SHOWN_DAYS = 30
COUNTED_EVERY_S = 60.0  # counting reads every row; those who look more often see the same count


class Measuring(Looking):
    _counted: tuple[float, Stats] | None = None

    async def metrics(self, user_id: str | None = None) -> Metrics:
        """What the store holds, of one user or of all, and how this memory has done since it was opened.

        now = await memory.metrics()
        print(now.search.p95, now.cache_hit_rate)
        """
        whose = validation.optional_name("user_id", user_id)
        held = await self._store.stats(self._embedder.id, whose)
        today = utc_now().replace(hour=0, minute=0, second=0, microsecond=0)
        tally = await self._store.tally(whose, today - timedelta(days=SHOWN_DAYS - 1))
        meter, cache = self.meter, self._answers.use()
        relevance = meter.spread("search_relevance")
        turns, recalled = meter.counted("agent_turns_total"), meter.counted("agent_recalled_total")
        failures = Counter[str]()
        for sample in meter.samples():
            if sample.name == "failures_total" and isinstance(sample.value, int):
                failures[sample.labels["doing"]] += sample.value
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
            add=Timing.of(meter.spread("add_seconds")),
            keyword_extraction=Timing.of(meter.spread("keyword_extraction_seconds")),
            llm=Timing.of(meter.spread("llm_seconds")),
            jobs={
                outcome: number
                for outcome in ("done", "put_off", "failed", "lost")
                if (number := meter.counted("jobs_total", outcome))
            },
            cache=cache,
            cache_hit_rate=share(cache.answered, cache.asked),
            tool_calls=meter.counted("tool_calls_total"),
            tool_use_rate=share(meter.counted("agent_turns_with_calls_total"), turns),
            usefulness=share(meter.counted("agent_used_total"), recalled),
            relevance=relevance.total / relevance.count if relevance.count else None,
            failures=dict(failures),
        )

    async def exposition(self) -> str:
        """Everything that is measured, in Prometheus' text format. What the store holds is counted once a minute."""
        if self._counted is None or monotonic() - self._counted[0] > COUNTED_EVERY_S:
            self._counted = monotonic(), await self._store.stats(self._embedder.id)
        samples = (*_gauges(self._counted[1]), *_lookups(self._answers.use()), *self.meter.samples())
        return prometheus(samples)


def _gauges(held: Stats) -> Iterator[Sample]:
    for memory_type, number in held.by_type.items():
        yield Sample("memories", "Active memories.", "gauge", {"type": memory_type}, number)
    for name, told, number in (
        ("users", "Users that have memories or messages.", held.users),
        ("memories_with_keywords", "Active memories that have keywords.", held.coverage.with_keywords),
        ("memories_with_vector", "Active memories that the present embedder can see.", held.coverage.embedded),
        ("store_bytes", "The size of the store.", held.size_bytes),
    ):
        yield Sample(name, told, "gauge", {}, number)


def _lookups(use: CacheUse) -> Iterator[Sample]:
    told = "Searches that looked for a kept answer, and whether there was one."
    yield Sample("cache_lookups_total", told, "counter", {"result": "hit"}, use.answered)
    yield Sample("cache_lookups_total", told, "counter", {"result": "miss"}, use.asked - use.answered)
