"""Cache hits in repeated traffic, while another process writes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from statistics import median
from time import perf_counter

from jiyi import Memory, SearchResult
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import Settings

from .search import start_probe
from .texts import questions

SHARE = 0.7  # bound: share of searches answered from the cache
USERS = 10  # of those that fill the store, with 1,000 memories each
REPEATS = 15  # of a question, on average
WRITES = 0.01  # of all requests
LONGEST_S = 0.0005  # bound: p50 of an answer from the cache
DRIFT = 1e-4  # scores decay with time; more than they do while an answer is cached


@dataclass(slots=True)
class CacheTimes:
    """Times in seconds."""

    searches: int = 0
    answered: int = 0
    writes: int = 0
    wrong: int = 0  # answers that differ from those of a memory without a cache
    hits: list[float] = field(default_factory=list)
    misses: list[float] = field(default_factory=list)
    without: list[float] = field(default_factory=list)

    @property
    def share(self) -> float:
        return self.answered / self.searches

    @property
    def passes(self) -> bool:
        return self.share > SHARE and not self.wrong and self.p50("hits") <= LONGEST_S

    def p50(self, which: str) -> float:
        taken: list[float] = getattr(self, which)
        return median(taken)


async def measure_caching(
    path: Path, embedder: BuiltinEmbedder, *, requests: int, seed: int, advance: Callable[[int], None]
) -> CacheTimes:
    """Ask question number r in proportion to 1/r, and compare each answer with that of an uncached memory on the same
    file. Accesses are not recorded: they would change scores at different times."""
    chance = random.Random(seed)
    different = questions(f"{seed}:caching", max(requests // REPEATS, USERS))
    asked = [(f"other-{at % USERS}", text) for at, text in enumerate(different)]
    weights = list(accumulate(1 / rank for rank in range(1, len(asked) + 1)))
    record = {"enabled": False}
    times = CacheTimes()
    writer = await start_probe("write", str(path))
    assert writer.stdin and writer.stdout
    await writer.stdout.readline()
    async with (
        Memory.open(path, settings=Settings(recalls=record), embedder=embedder) as cached,
        Memory.open(
            path,
            settings=Settings(recalls=record, cache={"max_searches": 0, "max_query_vectors": 0}),
            embedder=embedder,
        ) as plain,
    ):
        for at in range(USERS):
            for memory in (cached, plain):
                await memory.search(f"warm {at}", user_id=f"other-{at}")
        for at in range(requests):
            [(user_id, query)] = chance.choices(asked, cum_weights=weights)
            if chance.random() < WRITES:
                writer.stdin.write(f"{user_id}\tanother process wrote {perf_counter()} as number {at}\n".encode())
                await writer.stdout.readline()
                times.writes += 1
            found = await _timed(cached, user_id, query, times)
            start = perf_counter()
            expected = await plain.search(query, user_id=user_id)
            times.without.append(perf_counter() - start)
            times.wrong += not _same(found, expected)
            advance(1)
    writer.stdin.close()
    await writer.wait()
    return times


async def _timed(memory: Memory, user_id: str, query: str, times: CacheTimes) -> SearchResult:
    before = memory._engine.searcher.cache_use().answered
    start = perf_counter()
    found = await memory.search(query, user_id=user_id)
    taken = perf_counter() - start
    answered = memory._engine.searcher.cache_use().answered - before
    times.searches += 1
    times.answered += answered
    (times.hits if answered else times.misses).append(taken)
    return found


def _same(one: SearchResult, other: SearchResult) -> bool:
    plain = [
        found.model_dump(exclude={"hits"})
        | {"hits": [hit.model_dump(exclude={"relevance_score"}) for hit in found.hits]}
        for found in (one, other)
    ]
    moved = [abs(a.relevance_score - b.relevance_score) for a, b in zip(one.hits, other.hits, strict=False)]
    return plain[0] == plain[1] and all(move < DRIFT for move in moved)
