"""Times of hostile queries against plain ones of the same length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from statistics import median
from time import perf_counter

from jiyi import InvalidInput, Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import Settings

from .fill import user_of
from .texts import questions

FACTOR = 2.0  # bound: times the duration of a plain query
REPEATS = 9

HOSTILE: dict[str, str] = {
    "SQL": "'; DROP TABLE memories; -- ' OR '1'='1' UNION SELECT key_hash FROM api_keys",
    "FTS syntax": 'tea AND (NEAR("coffee" "milk", 5) OR NOT col:x*) ^ "unclosed',
    "wildcards": "%_%_%_% 100%% _user_ *.* ?? [a-z]* {1,2} \\% \\_",
    "regular expression": "(a+)+$ ((x*)*)* ^(([a-z])+.)+[A-Z]([a-z])+$ " + "a" * 40 + "!",
    "one word of 8,000": "a" * 8000,
    "8,000 digits": "1234567890" * 800,
    "quotation marks": '"' * 4000,
    "unclosed quotes": '“「《"' * 1000,
    "names and colons": "a: b\n" * 1500,
    "times": "last May 3pm yesterday 上周五 " * 250,
    "right to left": "\u202eابحث عن القهوة\u202c " * 20,
    "emoji": "🧠👩‍🔬🏳️‍🌈🇨🇳" * 60,
    "combining marks": ("z" + "\u0301" * 30) * 40,
    "zero width": "\u200b\u200d\ufeff" * 300 + "tea",
    "han of 8,000": "记忆检索" * 2000,
}
TOO_LONG = "tea " * 25_000  # 100 kB: refused with a clear error, and at once


@dataclass(frozen=True, slots=True)
class HostileTimes:
    """Medians in seconds."""

    hostile: dict[str, float]
    plain: dict[str, float]
    refused: float

    def ratio(self, name: str) -> float:
        return self.hostile[name] / self.plain[name]

    @property
    def passes(self) -> bool:
        return all(self.ratio(name) <= FACTOR for name in self.hostile)


async def measure_hostile(
    path: Path, size: int, embedder: BuiltinEmbedder, *, seed: int, advance: Callable[[int], None]
) -> HostileTimes:
    """Alternate hostile and plain queries of one user, without caches."""
    words = cycle(questions(f"{seed}:hostile", 200))
    settings = Settings(recalls={"enabled": False}, cache={"max_searches": 0, "max_query_vectors": 0})
    async with Memory.open(path, settings=settings, embedder=embedder) as memory:

        async def taken(query: str) -> float:
            start = perf_counter()
            await memory.search(query, user_id=user_of(size))
            return perf_counter() - start

        await taken("warm")
        hostile, plain = {}, {}
        for name, query in HOSTILE.items():
            rounds = [
                (await taken(query), await taken(" ".join(islice(words, 1 + len(query) // 20))[: len(query)]))
                for _ in range(REPEATS)
            ]
            hostile[name], plain[name] = (median(times) for times in zip(*rounds, strict=True))
            advance(1)
        start = perf_counter()
        try:
            await memory.search(TOO_LONG, user_id=user_of(size))
        except InvalidInput:
            refused = perf_counter() - start
        else:
            raise AssertionError("a query of 100 kB was taken")
    return HostileTimes(hostile, plain, refused)
