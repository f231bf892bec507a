"""`python -m bench.capacity`: searches a second of a server on one core, the cost of REST, and the latency under load.

Users have 1,000 memories. CPU times of the server's process are compared with those of the engine under the same
searches, so that other programs and the client disturb them little. The latency is measured by the clock, at 70 % of
what the server answers when 16 clients never pause.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, process_time

from rich.console import Console
from rich.table import Table

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.settings import Settings, load_settings

from .fill import PerturbedEmbedder, Plan, fill
from .server import Load, copies, cpu_of, percentile, serving
from .texts import questions

USERS, EACH = 10, 1_000
CLIENTS = 16
SHARE = 0.7  # of the capacity
LEAST_PER_SECOND = 150.0  # bounds
MOST_BEYOND_MS = 6.0
MOST_OVERHEAD_MS = 1.0
MOST_TAIL = 3.0


@dataclass(frozen=True, slots=True)
class Capacity:
    embedding_ms: float  # CPU of embedding a question in process, one after the other
    engine_ms: float  # CPU of a search, the same way
    server_ms: float  # CPU of the server for the same
    loaded_ms: float  # CPU of the server with all clients
    per_second: float  # answers with all clients, by the clock
    p50_ms: float  # at SHARE of that
    p99_ms: float

    @property
    def figures(self) -> list[tuple[str, float, str, bool]]:
        """Return name, value, bound and whether it is met."""
        overhead, tail = self.server_ms - self.engine_ms, self.p99_ms / self.p50_ms
        one, many = 1000 / self.server_ms, 1000 / self.loaded_ms
        beyond = self.server_ms - self.embedding_ms
        return [
            ("CPU of a search beyond embedding, ms", beyond, f"≤ {MOST_BEYOND_MS:g}", beyond <= MOST_BEYOND_MS),
            ("searches per second of CPU, one client", one, f"≥ {LEAST_PER_SECOND:g}", one >= LEAST_PER_SECOND),
            (f"the same, {CLIENTS} clients", many, f"≥ {LEAST_PER_SECOND:g}", many >= LEAST_PER_SECOND),
            ("CPU of REST, ms", overhead, f"≤ {MOST_OVERHEAD_MS:g}", overhead <= MOST_OVERHEAD_MS),
            (f"p99 compared with p50 at {SHARE:.0%}", tail, f"≤ {MOST_TAIL:g}", tail <= MOST_TAIL),
        ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.capacity", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement (default 20)")
    parser.add_argument("--rounds", type=int, default=3, help="of one client, least CPU time counts (default 3)")
    parser.add_argument("--workers", type=int, default=1, help="processes of the server (default 1)")
    parser.add_argument("--read", action="store_true", help="with the reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return parser.parse_args()


async def answers(memory: Memory, asked: Iterator[tuple[str, str]], clients: int, seconds: float) -> Load:
    """Let clients search without a pause; each question occurs once, so that no cache answers."""
    load = Load()
    began = perf_counter()

    async def client() -> None:
        while perf_counter() - began < seconds:
            user_id, question = next(asked)
            at = perf_counter()
            await memory.search(question, user_id=user_id)
            load.searches.append(perf_counter() - at)

    await asyncio.gather(*(client() for _ in range(clients)))
    load.seconds = perf_counter() - began
    return load


async def at_rate(memory: Memory, asked: Iterator[tuple[str, str]], rate: float, seconds: float) -> Load:
    """Search at fixed times, whether earlier searches were answered or not."""
    load = Load()
    began = perf_counter()

    async def one(at: float) -> None:
        await asyncio.sleep(max(0.0, at - perf_counter()))
        user_id, question = next(asked)
        await memory.search(question, user_id=user_id)
        load.searches.append(perf_counter() - at)

    await asyncio.gather(*(one(began + number / rate) for number in range(int(rate * seconds))))
    return load


async def cpu_of_one(memory: Memory, asked: Iterator[tuple[str, str]], pid: int, seconds: float) -> float:
    """Return the milliseconds of CPU of a search, one after the other."""
    before = cpu_of(pid)
    load = await answers(memory, asked, 1, seconds)
    return 1000 * (cpu_of(pid) - before) / len(load.searches)


async def cpu_of_embedding(
    memory: Memory, embedder: BuiltinEmbedder, asked: Iterator[tuple[str, str]], seconds: float
) -> float:
    """Return the milliseconds of CPU of embedding a question between searches, which empty the processor's caches."""
    began, spent, number = perf_counter(), 0.0, 0
    while perf_counter() - began < seconds:
        before = process_time()
        await embedder.embed_query(next(asked)[1])
        spent, number = spent + process_time() - before, number + 1
        user_id, question = next(asked)
        await memory.search(question, user_id=user_id)
    return 1000 * spent / number


def questions_of(users: list[str], seed: str) -> Iterator[tuple[str, str]]:
    number = 0
    while True:
        for question in questions(f"{seed}:{number}", 5_000):
            yield users[number % len(users)], question
            number += 1


async def measure(given: argparse.Namespace, folder: Path, console: Console) -> Capacity:
    embedder = BuiltinEmbedder()
    with console.status("filling a store"):
        filler = await PerturbedEmbedder.make(embedder, given.seed)
        filled = await fill(folder / "filled", Plan(given.seed, (), USERS, EACH), filler, lambda _: None)
    stores, users = copies(filled, folder), [f"other-{number}" for number in range(USERS)]
    # For the server too, which would refuse what is more than its limits.
    os.environ["JIYI_SEARCH__READER"] = str(given.read).lower()
    os.environ["JIYI_SERVER__REQUESTS_PER_MINUTE"] = os.environ["JIYI_SERVER__BURST"] = "1000000"
    settings: Settings = load_settings(client={"retry_timeout_s": 0})
    asked = questions_of(users, str(given.seed))
    workers = ("--workers", str(given.workers))
    with serving(next(stores), *workers) as (url, pid), console.status(f"the server at {url}"):
        async with (
            Memory.open(next(stores), settings=settings, embedder=embedder) as engine,
            Memory.open(url, settings=settings) as server,
        ):
            for user_id in users:  # loads them before the measurement
                for memory in (engine, server):
                    await memory.search("tea", user_id=user_id)
            part = given.seconds / given.rounds
            embedding: list[float] = []
            alone: list[float] = []
            served: list[float] = []
            for _ in range(given.rounds):
                embedding.append(await cpu_of_embedding(engine, embedder, asked, part))
                alone.append(await cpu_of_one(engine, asked, os.getpid(), part))
                served.append(await cpu_of_one(server, asked, pid, part))
            before = cpu_of(pid)
            full = await answers(server, asked, CLIENTS, given.seconds)
            loaded = 1000 * (cpu_of(pid) - before) / len(full.searches)
            rate = len(full.searches) / full.seconds
            times = (await at_rate(server, asked, SHARE * rate, given.seconds)).searches
    p50, p99 = (1000 * percentile(times, share) for share in (50, 99))
    return Capacity(min(embedding), min(alone), min(served), loaded, rate, p50, p99)


def show(found: Capacity) -> bool:
    table = Table("", "measured", "bound", "")
    for name, value, bound, met in found.figures:
        table.add_row(name, f"{value:.2f}" if value < 20 else f"{value:.0f}", bound, "met" if met else "missed")
    Console().print(table)
    print(f"CPU of a search: {found.embedding_ms:.2f} ms for embedding, {found.engine_ms:.2f} ms in process, ", end="")
    print(f"{found.server_ms:.2f} ms over REST, ", end="")
    print(f"{found.loaded_ms:.2f} ms with {CLIENTS} clients")
    print(f"{CLIENTS} clients: {found.per_second:.0f} answers a second; ", end="")
    print(f"at {SHARE:.0%} of that p50 is {found.p50_ms:.1f} ms and p99 {found.p99_ms:.1f} ms")
    return all(met for *_, met in found.figures)


def main() -> int:
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        found = asyncio.run(measure(given, Path(folder), Console(stderr=True)))
    if given.json:
        given.json.write_text(json.dumps(asdict(found), indent=2))
    return 0 if show(found) else 1


if __name__ == "__main__":
    sys.exit(main())
