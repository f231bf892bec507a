"""Search times for users of several sizes, against the floor."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median, quantiles
from time import perf_counter, process_time
from typing import Any

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder

from .fill import user_of
from .floor import Floor, FloorTimes
from .texts import questions, statements

FACTOR, SLACK_S = 1.5, 0.001  # the bound: p50 ≤ FACTOR × floor + SLACK
LOAD_S = 0.6  # bound of a first search that reads a packed index
AFTER_ADD = 1.25  # bound: a search after an add, compared with one of a store that does not change
ADD_GROWTH = 1.5  # bound: an add to a large user, compared with one to the smallest

VARIANTS: dict[str, dict[str, Any]] = {
    "keyword": {"search_mode": "keyword"},
    "semantic": {"search_mode": "semantic"},
    "session": {"session_id": "session-1"},
    "type": {"memory_types": ["preference"]},
    "tag": {"tags": ["家庭"]},
    "explain": {"explain": True},
}


@dataclass(slots=True)
class SearchTimes:
    """Times in seconds."""

    size: int
    floor: list[FloorTimes] = field(default_factory=list)
    engine: list[float] = field(default_factory=list)
    engine_cpu: list[float] = field(default_factory=list)
    variants: dict[str, float] = field(default_factory=dict)
    add: float = 0.0  # of a statement, in a chat: an add, a search, an add, …
    after_add: float = 0.0  # a search in that chat
    first_ever_s: float = 0.0  # first search of the user, which packs the index of a large one
    cold: dict[str, float] = field(default_factory=dict)  # first search of a later process
    hits: float = 0.0  # per search
    searched: int = 0

    @property
    def floor_p50(self) -> float:
        return median(times.total for times in self.floor)

    def floor_part(self, name: str) -> float:
        parts: list[float] = [getattr(times, name) for times in self.floor]
        return median(parts)

    @property
    def p50(self) -> float:
        return median(self.engine)

    @property
    def p95(self) -> float:
        return quantiles(self.engine, n=20)[-1]

    @property
    def without_embedding(self) -> float:
        """Ratio of the engine's and the floor's time without embedding the query."""
        embed = self.floor_part("embed")
        return (self.p50 - embed) / (self.floor_p50 - embed)

    @property
    def cpu_ratio(self) -> float:
        return median(self.engine_cpu) / self.floor_part("cpu")

    @property
    def bound(self) -> float:
        return FACTOR * self.floor_p50 + SLACK_S

    @property
    def passes(self) -> bool:
        return self.p50 <= self.bound and self.loads and self.after_add <= AFTER_ADD * self.p50

    @property
    def loads(self) -> bool:
        return self.cold["first_search_s"] <= LOAD_S


async def measure_searches(
    path: Path, size: int, embedder: BuiltinEmbedder, *, queries: int, seed: int, advance: Callable[[int], None]
) -> SearchTimes:
    times = SearchTimes(size)
    user_id = user_of(size)
    times.first_ever_s = (await _cold(path, user_id))["first_search_s"]
    times.cold = await _cold(path, user_id)
    floor = await asyncio.to_thread(Floor, path, user_id, embedder)
    some = max(queries // 4, 10)
    # Each question is asked once, so that no cache answers it.
    asked = iter(questions(f"{seed}:questions:{size}", queries + some * (len(VARIANTS) + 1) + 4))
    async with Memory.open(path, embedder=embedder) as memory:
        for _ in range(4):
            await memory.search(query := next(asked), user_id=user_id)
            await floor.search(query)
        hits = []
        for turn in range(queries):
            query = next(asked)
            if turn % 2:
                times.floor.append(await floor.search(query))
            start, cpu = perf_counter(), process_time()
            result = await memory.search(query, user_id=user_id)
            times.engine.append(perf_counter() - start)
            times.engine_cpu.append(process_time() - cpu)
            if not turn % 2:
                times.floor.append(await floor.search(query))
            hits.append(len(result.hits))
            times.searched = result.searched
            advance(1)
        times.hits = mean(hits)
        for name, options in VARIANTS.items():
            times.variants[name] = await _p50(memory, user_id, [next(asked) for _ in range(some)], options)
            advance(some)
        said = statements(f"{seed}:chat:{size}", some)
        times.add, times.after_add = await _chat(memory, user_id, zip(said, asked, strict=False))
        advance(some)
    return times


def searches_of(queries: int) -> int:
    """Number of searches that `measure_searches` reports to `advance`."""
    return queries + max(queries // 4, 10) * (len(VARIANTS) + 1)


async def _p50(memory: Memory, user_id: str, asked: list[str], options: dict[str, Any]) -> float:
    taken = []
    for query in asked:
        start = perf_counter()
        await memory.search(query, user_id=user_id, **options)
        taken.append(perf_counter() - start)
    return median(taken)


async def _chat(memory: Memory, user_id: str, turns: Iterable[tuple[str, str]]) -> tuple[float, float]:
    """Add a statement and ask a question in turn; return the medians of both."""
    adds, searches = [], []
    for said, asked in turns:
        start = perf_counter()
        await memory.add(said, user_id=user_id)
        added = perf_counter()
        await memory.search(asked, user_id=user_id)
        searches.append(perf_counter() - added)
        adds.append(added - start)
    return median(adds), median(searches)


async def _cold(path: Path, user_id: str) -> dict[str, float]:
    output, _ = await (await start_probe("cold", str(path), user_id)).communicate()
    figures: dict[str, float] = json.loads(output)
    return figures


async def start_probe(*arguments: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.probe", *arguments, stdin=PIPE, stdout=PIPE, cwd=Path(__file__).parent.parent
    )
