"""One process grows from an empty store to 20,000 messages: no search has to wait for what was added since the last.

Chats are added with a search after every message, every 500 and every 5,000, on both databases; once with varied texts
and once with near repeats. SQLite works in this process, so its searches are timed by the processor's clock, which does
not depend on what else the machine does.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time

from bench.simulated_users import CHINESE, ENGLISH
from bench.texts import statements

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import load_settings

from .soak import rss_mb
from .stores import stores
from .trial import Trial

PROTECTIONS = {"keeping up": "an `add` leaves it all to the next search to read what was added"}
MESSAGES = 20_000
GAPS = (1, 500, 5000)  # messages between searches
WINDOWS, WINDOW = 10, 0.02  # of the messages, where a search follows each of them: number, and share of the whole
LONGEST_S = 0.5
RSS_GROWTH = 1.5  # per message, in the second half against the second quarter
RSS_SLACK_MB = 40.0
REPEATED = 0.7  # share of near repeats
ENDINGS = ("", ".", "!", "…", " :)", " today", " again", "，真的", "，今天也是")
USER = "mei"


@dataclass(slots=True)
class Growth:
    """One store that grows, and how long its searches took."""

    trial: Trial
    name: str
    memory: Memory
    in_process: bool
    searches: list[tuple[float, int]] = field(default_factory=list)  # seconds, and messages at that time
    rss: dict[int, float] = field(default_factory=dict)  # by number of messages
    size: int = 0

    async def add(self, messages: list[dict[str, str]], session_id: str) -> None:
        await self.memory.add(messages, user_id=USER, session_id=session_id)
        self.size += len(messages)
        self.trial.counts["messages"] += len(messages)

    async def search(self, expected: str) -> None:
        """Ask for what was said last."""
        clock = process_time if self.in_process else perf_counter
        began = clock()
        found = await self.memory.search(expected, user_id=USER)
        took = clock() - began
        self.searches.append((took, self.size))
        self.trial.counts["searches"] += 1
        if took > LONGEST_S:
            self.trial.breaks("other", f"{self.name}: a search at {self.size} messages took {took:.2f} s")
        if expected not in [hit.content for hit in found.hits]:
            self.trial.breaks("lost", f"{self.name}: a search at {self.size} messages does not find the last one")

    def tell(self) -> None:
        slowest, size = max(self.searches)
        memory = ", ".join(f"{value:.0f} MB at {number:,}" for number, value in self.rss.items())
        self.trial.notes.append(
            f"{self.name}: the longest of {len(self.searches)} searches took {slowest:.2f} s, at {size:,} messages;"
            f" RSS {memory}"
        )
        quarter, half, whole = list(self.rss.values())
        if whole - half > 2 * (half - quarter) * RSS_GROWTH + RSS_SLACK_MB:
            self.trial.breaks("other", f"{self.name}: memory grows faster than what is stored: {memory}")


async def run(trial: Trial) -> None:
    embedder = BuiltinEmbedder()
    for gap in GAPS:
        for repeats in (False, True):
            async for kind, where in stores(trial):
                texts = "near repeats" if repeats else "varied texts"
                await _grow(trial, f"{kind}, {texts}, gap {gap:,}", where, embedder, gap, repeats=repeats)


async def _grow(
    trial: Trial, name: str, where: str | Path, embedder: BuiltinEmbedder, gap: int, *, repeats: bool
) -> None:
    total, pause = trial.times(MESSAGES, 100), trial.times(gap, gap // 200)
    rng = trial.chances(name)
    # A reader takes the same time whatever the size.
    settings = load_settings(search={"reader": False})
    async with Memory.open(where, settings=settings, embedder=embedder) as memory:
        if trial.without == "keeping up":
            memory._engine.index.keep_up = _nothing  # type: ignore[method-assign]
        growth = Growth(trial, name, memory, isinstance(where, Path))
        await memory.search("hello", user_id=USER)  # loads what every process loads once
        last = 0
        marks = [total // 4, total // 2, total]
        for session_id, chat in _chats(rng, f"{trial.seed}:{name}", repeats=repeats):
            in_window = gap == 1 and growth.size * WINDOWS / total % 1 < WINDOW
            for some in [[one] for one in chat] if in_window else [chat]:
                await growth.add(some, session_id)
                if in_window or growth.size >= total or (gap > 1 and growth.size - last >= pause):
                    told = f"The code of locker {growth.size} is {rng.choice('ABCDEF')}-{rng.randrange(10**6)}"
                    await growth.add([_said(told, datetime.now(UTC))], session_id)
                    await growth.search(told)
                    last = growth.size
            if growth.size >= marks[0]:
                growth.rss[growth.size] = rss_mb()
                marks.pop(0)
            if not marks:
                break
        growth.tell()


async def _nothing(*_: object) -> None:
    await asyncio.sleep(0)


def _chats(rng: random.Random, seed: str, *, repeats: bool) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yield sessions in the order of their time, in English and Chinese by turns."""
    varied = statements(seed, 10**9)
    at = datetime(2025, 1, 1, tzinfo=UTC)
    number = 0
    while True:
        words = (ENGLISH, CHINESE)[number % 2]
        chat = []
        for _ in range(rng.randint(3, 10)):
            if repeats and rng.random() < REPEATED:
                name = rng.choice(list(words.values))
                pattern = rng.choice((*words.small_talk, words.tell[name], words.change[name]))
                said = pattern.format(value=rng.choice(words.values[name])).rstrip(".。!！") + rng.choice(ENDINGS)
            else:
                said = rng.choice((next(varied), next(varied), rng.choice(words.questions)))
            at += timedelta(seconds=40)
            chat += [_said(said, at), _said(rng.choice(words.replies), at, "assistant")]
        yield f"session {number}", chat
        number += 1
        at += timedelta(hours=rng.uniform(1, 8))


def _said(text: str, at: datetime, role: str = "user") -> dict[str, str]:
    return {"role": role, "content": text, "sent_at": at.isoformat()}
