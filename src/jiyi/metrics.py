"""Counters and timings of a memory since it was opened. Counting costs less than a microsecond, so every call does it.
A meter belongs to one memory and is written to from the thread of its event loop only; other threads may read it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any, Protocol

from pydantic import Field

from .models import CacheUse, SearchResult, Value

# From 0.1 ms to more than a minute, in steps of √2: quantiles are accurate to about 10 %.
SECONDS = tuple(round(0.0001 * 2 ** (step / 2), 7) for step in range(40))
SHARES = tuple(step / 20 for step in range(1, 21))


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric: a counter, or with `bounds` a histogram."""

    help: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()


MEASURES: Mapping[str, Measure] = {
    "search_seconds": Measure("Duration of searches.", ("mode",), SECONDS),
    "cache_lookups_total": Measure("Search cache lookups by result.", ("result",)),
    "searches_total": Measure("Searches by outcome: found, nothing or degraded.", ("outcome",)),
    "search_relevance": Measure("Relevance of the best hit of each search.", (), SHARES),
    "add_seconds": Measure("Duration of adds, until they were durable.", (), SECONDS),
    "memories_made_total": Measure("New memories, from messages and derived from them."),
    "keyword_extraction_seconds": Measure("Duration of keyword extraction.", (), SECONDS),
    "llm_seconds": Measure("Duration of calls to a language model.", ("task",), SECONDS),
    "llm_tokens_total": Measure("Tokens sent to and received from a language model.", ("direction",)),
    "job_seconds": Measure("Duration of completed jobs.", (), SECONDS),
    "jobs_total": Measure("Attempts at jobs by outcome: done, put_off, failed or lost.", ("outcome",)),
    "searches_by_engine_total": Measure("Searches by the external engine that answered, or builtin.", ("engine",)),
    "engine_failures_total": Measure("Requests of searches that an external engine did not answer.", ("engine",)),
    "maintenance_memories_total": Measure(
        "Memories that maintenance expired, compressed, created and reindexed.", ("what",)
    ),
    "tool_calls_total": Measure(
        "Calls of agents' tools by outcome: ok, failed, limited or repeated.", ("tool", "outcome")
    ),
    "agent_turns_total": Measure("Turns of agents."),
    "agent_turns_with_calls_total": Measure("Turns in which an agent called a tool on its own."),
    "agent_recalled_total": Measure("Memories given to agents, requested or not.", ("asked",)),
    "agent_used_total": Measure("Recalled memories that an agent then fetched, changed or cited."),
    "failures_total": Measure("Calls that raised an error, by operation.", ("doing", "error")),
}


class Histogram:
    """Counts of values by bucket."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...], counts: list[int] | None = None, total: float = 0.0) -> None:
        self.bounds = bounds
        self.counts = counts or [0] * (len(bounds) + 1)
        self.total = total

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def add(self, other: Histogram) -> None:
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.total += other.total

    def quantile(self, share: float) -> float | None:
        """Return the value below which this share lies, interpolated between bounds; None without values."""
        rest = share * self.count
        if not self.count:
            return None
        low = 0.0
        for bound, number in zip((*self.bounds, inf), self.counts, strict=True):
            if number and rest <= number:
                return low if bound == inf else low + (bound - low) * rest / number
            rest -= number
            low = bound
        return self.bounds[-1]


Key = tuple[str, tuple[str, ...]]  # name and values of the labels
SpreadState = tuple[list[int], float]


class MeterState(Value):
    """Counts and timings of a meter, for another process."""

    counts: list[tuple[Key, int]]
    spreads: list[tuple[Key, SpreadState]]

    def meter(self) -> Meter:
        found = Meter()
        found._counts = dict(self.counts)
        found._spreads = {key: Histogram(MEASURES[key[0]].bounds, *state) for key, state in self.spreads}
        return found


class Meter:
    """Counts and times. `others` are meters of other processes, whose figures are added to its own when it is read."""

    def __init__(self) -> None:
        self._counts: dict[Key, int] = {}
        self._spreads: dict[Key, Histogram] = {}
        self.others: Sequence[Meter] = ()

    def count(self, name: str, *labels: str, by: int = 1) -> None:
        key = (name, labels)
        self._counts[key] = self._counts.get(key, 0) + by

    def observe(self, name: str, value: float, *labels: str) -> None:
        key = (name, labels)
        spread = self._spreads.get(key)
        if spread is None:
            spread = self._spreads[key] = Histogram(MEASURES[name].bounds)
        spread.observe(value)

    def count_search(self, found: SearchResult) -> SearchResult:
        """Count a search, and return what it found."""
        self.count("searches_total", "degraded" if found.degraded else "found" if found.hits else "nothing")
        if found.hits:
            self.observe("search_relevance", found.hits[0].relevance_score)
        return found

    @contextmanager
    def timing(self, doing: str, *labels: str) -> Iterator[None]:
        """Time the block. An error is counted but not timed, because failing fast would look like speed."""
        began = perf_counter()
        try:
            yield
        except Exception as error:
            self.count("failures_total", doing, type(error).__name__)
            raise
        self.observe(f"{doing}_seconds", perf_counter() - began, *labels)

    def counted(self, name: str, *labels: str) -> int:
        """Return the sum over all labels that begin with these."""
        return sum(
            number
            for meter in (self, *self.others)
            for (one, its), number in list(meter._counts.items())
            if one == name and its[: len(labels)] == labels
        )

    def spread(self, name: str) -> Histogram:
        """Return the histogram over all labels."""
        whole = Histogram(MEASURES[name].bounds)
        for meter in (self, *self.others):
            for (one, _), spread in list(meter._spreads.items()):
                if one == name:
                    whole.add(spread)
        return whole

    def samples(self) -> Iterator[Sample]:
        """Yield all samples in the order of `MEASURES`."""
        counts: Counter[Key] = Counter()
        spreads: dict[Key, Histogram] = {}
        for meter in (self, *self.others):
            counts.update(meter._counts)
            for key, spread in meter._spreads.items():
                spreads.setdefault(key, Histogram(spread.bounds)).add(spread)
        for name, measure in MEASURES.items():
            found = [(its, number) for (one, its), number in counts.items() if one == name]
            for its, number in sorted(found):
                yield Sample(name, measure.help, "counter", dict(zip(measure.labels, its, strict=True)), number)
            own = [(its, spread) for (one, its), spread in spreads.items() if one == name]
            for its, spread in sorted(own, key=lambda entry: entry[0]):
                yield Sample(name, measure.help, "histogram", dict(zip(measure.labels, its, strict=True)), spread)

    def state(self) -> MeterState:
        return MeterState(
            counts=list(self._counts.items()),
            spreads=[(key, (spread.counts, spread.total)) for key, spread in self._spreads.items()],
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """One exported line, or several for a histogram."""

    name: str
    help: str
    kind: str
    labels: Mapping[str, str]
    value: float | Histogram


def prometheus(samples: Sequence[Sample], prefix: str = "jiyi_") -> str:
    """Render Prometheus' text format, version 0.0.4. Samples of one name must be adjacent."""
    lines: list[str] = []
    last = ""
    for sample in samples:
        name = prefix + sample.name
        if name != last:
            lines += [f"# HELP {name} {sample.help}", f"# TYPE {name} {sample.kind}"]
            last = name
        if isinstance(sample.value, Histogram):
            lines += _buckets(name, sample.labels, sample.value)
        else:
            value = f"{sample.value:g}" if isinstance(sample.value, float) else str(sample.value)
            lines.append(f"{name}{_braces(sample.labels)} {value}")
    return "\n".join([*lines, ""])


def _buckets(name: str, labels: Mapping[str, str], spread: Histogram) -> Iterator[str]:
    so_far = 0
    for bound, number in zip((*spread.bounds, inf), spread.counts, strict=True):
        so_far += number
        edge = "+Inf" if bound == inf else f"{bound:g}"
        yield f"{name}_bucket{_braces({**labels, 'le': edge})} {so_far}"
    yield f"{name}_sum{_braces(labels)} {spread.total:.9g}"
    yield f"{name}_count{_braces(labels)} {so_far}"


def _braces(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class Timing(Value):
    """Durations in seconds; None while there are none."""

    count: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None

    @classmethod
    def of(cls, spread: Histogram) -> Timing:
        mean = spread.total / spread.count if spread.count else None
        return cls(
            count=spread.count,
            mean=mean,
            p50=spread.quantile(0.50),
            p95=spread.quantile(0.95),
            p99=spread.quantile(0.99),
        )


class Metrics(Value):
    """Contents of a store, for one user or all, and activity of this memory since it was opened, for all users. A rate
    is None while there is nothing to divide by."""

    memories: int
    by_type: dict[str, int]
    by_importance: tuple[int, ...] = Field(description="number of memories in each tenth of importance, from 0 to 1")
    average_importance: float | None
    archived: int
    added_by_day: dict[str, int] = Field(description="memories added in the last 30 days, by date (UTC)")
    index_coverage: float | None = Field(description="share of memories with keywords")
    vector_coverage: float | None = Field(description="share of memories with a vector of the current embedder")
    search: Timing
    best_relevance: tuple[int, ...] = Field(description="searches by the relevance of their best hit, in steps of 0.05")
    add: Timing
    keyword_extraction: Timing
    llm: Timing
    jobs: dict[str, int] = Field(description="attempts at jobs by outcome")
    cache: CacheUse
    cache_hit_rate: float | None
    tool_calls: int
    tool_use_rate: float | None = Field(description="share of turns in which agents called a tool on their own")
    usefulness: float | None = Field(description="share of recalled memories that an agent fetched, changed or cited")
    relevance: float | None = Field(description="average relevance of the best hit")
    failures: dict[str, int] = Field(description="calls that raised an error, by operation")


class Usage(Protocol):
    async def metrics(self, user_id: str | None = None) -> Metrics: ...


class Measured(Protocol):
    """A memory."""

    @property
    def usage(self) -> Usage: ...


class MemoryMetrics:
    """The metrics as a dictionary of plain numbers for dashboards; times are in milliseconds."""

    def __init__(self, memory: Measured) -> None:
        self._memory = memory

    async def collect(self, user_id: str | None = None) -> dict[str, Any]:
        found = await self._memory.usage.metrics(user_id)
        return {
            "total_memories": found.memories,
            "by_type": found.by_type,
            "avg_importance": found.average_importance,
            "retrieval_latency_p50": _ms(found.search.p50),
            "retrieval_latency_p95": _ms(found.search.p95),
            "retrieval_latency_p99": _ms(found.search.p99),
            "keyword_extraction_latency_p95": _ms(found.keyword_extraction.p95),
            "cache_hit_rate": found.cache_hit_rate,
            "index_coverage": found.index_coverage,
            "tool_use_rate": found.tool_use_rate,
        }


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
