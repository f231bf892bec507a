"""Times of `add`: ten thousand statements at once, single statements, and conversations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder

from .probe import peak_rss_mb
from .texts import statements

SHARE = 0.8  # bound: bulk adding reaches this share of the embedder's throughput
FACTOR = 2.5  # bound: adding a conversation takes this many times its embedding
SLACK_S = 0.004  # bound: adding one statement takes this much longer than embedding it
SINGLES = 40
CONVERSATIONS, TURNS = 5, 30


@dataclass(frozen=True, slots=True)
class Span:
    wall: float
    cpu: float  # of all threads of the process


@dataclass(frozen=True, slots=True)
class AddTimes:
    """Times in seconds."""

    memories: int
    embed_halves: tuple[Span, Span]
    bulk: Span
    single: float
    single_embed: float
    conversation: float
    conversation_embed: float
    bytes_per_memory: float
    peak_rss_mb: float

    @property
    def share(self) -> float:
        return sum(half.wall for half in self.embed_halves) / self.bulk.wall

    @property
    def cpu_share(self) -> float:
        """Share by CPU time, which other programs hardly disturb."""
        return sum(half.cpu for half in self.embed_halves) / self.bulk.cpu

    @property
    def factor(self) -> float:
        return self.conversation / self.conversation_embed

    @property
    def passes(self) -> bool:
        bulk_and_talk = self.share >= SHARE and self.factor <= FACTOR
        return bulk_and_talk and self.single <= self.single_embed + SLACK_S


async def measure_adds(
    folder: Path, number: int, embedder: BuiltinEmbedder, *, seed: int, advance: Callable[[int], None]
) -> AddTimes:
    """Embed half of the texts before the bulk add and half after it, so that a change of the machine's speed favours
    neither."""
    texts = list(statements(f"{seed}:bulk", number))
    await embedder.embed_documents(texts[:64])  # loads the model
    async with Memory.open(folder / "single.db", embedder=embedder) as memory:
        single, single_embed = await _singles(memory, embedder, seed)
        talk, talk_embed = await _conversations(memory, embedder, seed)
    path = folder / "bulk.db"
    async with Memory.open(path, embedder=embedder) as memory:
        before = await _embed(embedder, texts[: number // 2], advance)
        bulk = await _span(memory.add(texts, user_id="bulk"))
        advance(number)
        rss = peak_rss_mb()
        after = await _embed(embedder, texts[number // 2 :], advance)
    size = path.stat().st_size
    return AddTimes(number, (before, after), bulk, single, single_embed, talk, talk_embed, size / number, rss)


async def _embed(embedder: BuiltinEmbedder, texts: list[str], advance: Callable[[int], None]) -> Span:
    span = await _span(embedder.embed_documents(texts))
    advance(len(texts))
    return span


async def _span(work: Awaitable[object]) -> Span:
    start, cpu = perf_counter(), process_time()
    await work
    return Span(perf_counter() - start, process_time() - cpu)


async def _singles(memory: Memory, embedder: BuiltinEmbedder, seed: int) -> tuple[float, float]:
    """Median times of adding and of embedding one statement."""
    adds, embeds = [], []
    for text in statements(f"{seed}:single", SINGLES):
        start = perf_counter()
        await embedder.embed_documents([text])
        embedded = perf_counter()
        await memory.add(text, user_id="single")
        adds.append(perf_counter() - embedded)
        embeds.append(embedded - start)
    return median(adds), median(embeds)


async def _conversations(memory: Memory, embedder: BuiltinEmbedder, seed: int) -> tuple[float, float]:
    adds, embeds = [], []
    for at in range(CONVERSATIONS):
        said = list(statements(f"{seed}:conversation-{at}", TURNS))
        messages = [{"role": ("user", "assistant")[turn % 2], "content": text} for turn, text in enumerate(said)]
        start = perf_counter()
        await embedder.embed_documents(said)
        embedded = perf_counter()
        await memory.add(messages, user_id="talker", session_id=f"talk-{at}")
        adds.append(perf_counter() - embedded)
        embeds.append(embedded - start)
    return median(adds), median(embeds)
