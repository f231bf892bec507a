"""`python -m bench.engines`: external engines beside the embedded default.

agree FILE …       the ten best hits of both for the questions of benchmark files (docs/internals/evaluation.md)
everyday FILE      the scores of `bench.everyday` with both
statistics FILE …  the ten best by BM25 with counts over the whole index and over one user
speed              one user with --memories memories and --users users with 200 each: indexing, times, RAM, lag

Without --milvus and --elasticsearch, the servers of the tests are started: milvus-lite and OpenSearch.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import resource
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from time import perf_counter, process_time
from typing import Any, TypeVar
from unittest.mock import patch
from uuid import uuid4

import numpy as np

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder, Embedder
from jiyi.engines import Engines
from jiyi.engines.elasticsearch import Elasticsearch
from jiyi.engines.milvus import Milvus
from jiyi.engines.outbox import Outbox
from jiyi.engines.reading import EngineSearch
from jiyi.errors import EngineError
from jiyi.index.query import Candidates
from jiyi.languages.terms import tokens
from jiyi.models import utc_now
from jiyi.scope import Filter
from jiyi.settings import EngineSettings, Settings, load_settings
from jiyi.testing import WordEmbedder

from . import engine_store
from .texts import questions

T = TypeVar("T")

TOP = 10
CHANGES = 20


@contextmanager
def engine_settings(given: argparse.Namespace) -> Iterator[Settings]:
    """Yield settings that search in the engines, under a prefix of their own."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    servers: list[Any] = []
    urls = {"milvus_url": given.milvus, "elasticsearch_url": given.elasticsearch}
    try:
        if given.milvus is None:
            from engine_servers import start_milvus

            servers.append(start_milvus())
            urls["milvus_url"] = servers[-1].url
        if given.elasticsearch is None:
            from engine_servers import start_opensearch

            servers.append(start_opensearch())
            urls["elasticsearch_url"] = servers[-1].url
        prefix = given.prefix or f"bench_{uuid4().hex[:8]}"
        legs = {"vectors": "milvus", "words": "elasticsearch", "prefix": prefix, "timeout_s": 20.0}
        yield without_recalls(load_settings(engines={**urls, **legs}, jobs={"in_process": False}))
    finally:
        for server in servers:
            server.stop()


def without_recalls(settings: Settings) -> Settings:
    """Recorded recalls would let one question change the answer to the next."""
    return settings.model_copy(
        update={
            "recalls": settings.recalls.model_copy(update={"enabled": False}),
            "cache": settings.cache.model_copy(update={"max_searches": 0}),
        }
    )


@contextmanager
def counted_searches() -> Iterator[Counter[bool]]:
    """Count the searches in engines and those that were made in RAM instead."""
    counts: Counter[bool] = Counter()
    gather = EngineSearch.gather

    async def counting(self: EngineSearch, query: Any) -> Any:
        found = await gather(self, query)
        counts[isinstance(found, Candidates)] += 1
        return found

    with patch.object(EngineSearch, "gather", counting):
        yield counts


def engines_of(memory: Memory) -> Engines:
    engines = memory._engine.engines
    assert engines is not None
    return engines


# -- agreement --------------------------------------------------------------------------------------------------------


async def agree(given: argparse.Namespace) -> None:
    from . import answers
    from .datasets import load

    sets, _ = load(given.files, limit_stores=given.limit_stores)
    with tempfile.TemporaryDirectory() as folder, engine_settings(given) as settings:
        path = Path(given.folder or folder) / "memory.db"
        async with (
            Memory.open(path, settings=without_recalls(load_settings())) as embedded,
            Memory.open(path, settings=settings) as engines,
        ):
            for one in sets:
                await answers.fill(embedded, one, lambda *_: None)
                await engines_of(engines).catch_up()
                alike: list[tuple[float, bool]] = []
                for store in one.stores:
                    alike += await _compare(embedded, engines, answers.user_of(one, store), store)
                    _print_agreement(f"{one.name}, up to {store.id}", alike)


async def _compare(embedded: Memory, engines: Memory, user: str, store: Any) -> list[tuple[float, bool]]:
    """Return for each question the overlap of the best hits, and whether the first is the same."""
    alike = []
    for query in store.queries:
        asked_at = query.asked_at or store.last_at
        ours, theirs = [
            [hit.id for hit in (await one.search(query.text, user_id=user, limit=TOP, asked_at=asked_at)).hits]
            for one in (embedded, engines)
        ]
        if ours:
            alike.append((len(set(ours) & set(theirs)) / len(ours), ours[:1] == theirs[:1]))
    return alike


def _print_agreement(name: str, alike: Sequence[tuple[float, bool]]) -> None:
    overlap, first = np.mean(alike, axis=0)
    print(
        f"{name}: {len(alike)} questions, overlap of the ten best {overlap:.3f}, the same first {first:.3f}", flush=True
    )


async def statistics(given: argparse.Namespace) -> None:
    """Compare the ten best of one index for all users with those of an index for each user."""
    from . import answers
    from .datasets import load

    sets, _ = load(given.files, limit_stores=given.limit_stores)
    plain = without_recalls(load_settings(extraction={"enabled": False}))
    with tempfile.TemporaryDirectory() as folder, engine_settings(given) as settings:
        url, prefix = settings.engines.elasticsearch_url, settings.engines.prefix
        async with Memory.open(Path(folder) / "memory.db", settings=plain, embedder=WordEmbedder(16)) as memory:
            for one in sets:
                await answers.fill(memory, one, lambda *_: None)
            users = {answers.user_of(one, store): store for one in sets for store in one.stores}
            names = ("all", *(f"u{at}" for at in range(len(users))))
            together, *apart = [
                Elasticsearch(EngineSettings(elasticsearch_url=url, prefix=f"{prefix}_{name}", timeout_s=20.0))
                for name in names
            ]
            for user, own in zip(users, apart, strict=True):
                page = await memory._engine.store.projected.page(user, "", memory._engine.embedder.id)
                while page:
                    for index in (together, own):
                        await index.write(user, page, ())
                    page = await memory._engine.store.projected.page(user, page[-1].id, memory._engine.embedder.id)
                await own.refresh()
            await together.refresh()
            alike: list[tuple[float, bool]] = []
            for (user, store), own in zip(users.items(), apart, strict=True):
                for query in store.queries:
                    ours, theirs = [await index.bare(user, tokens(query.text), TOP) for index in (own, together)]
                    if ours:
                        alike.append((len(set(ours) & set(theirs)) / len(ours), ours[:1] == theirs[:1]))
            _print_agreement("counts over one user and over the index", alike)
            for index in (together, *apart):
                await index.close()


async def everyday_scores(given: argparse.Namespace) -> None:
    from . import everyday

    stories = everyday.load(given.files[0])[: given.stories]
    fill = everyday.fill

    async def fill_engines(memory: Memory, story: Any) -> Any:
        done = await fill(memory, story)
        await engines_of(memory).catch_up()
        return done

    print("embedded")
    everyday.print_table(await everyday.measure(stories, show=False))
    with engine_settings(given) as settings:
        for name in ("milvus_url", "elasticsearch_url"):
            os.environ[f"JIYI_ENGINES__{name.upper()}"] = getattr(settings.engines, name).get_secret_value()
        os.environ |= {"JIYI_ENGINES__VECTORS": "milvus", "JIYI_ENGINES__WORDS": "elasticsearch"}
        os.environ |= {"JIYI_ENGINES__PREFIX": settings.engines.prefix, "JIYI_JOBS__IN_PROCESS": "false"}
        everyday.fill = fill_engines
        print("engines")
        with counted_searches() as counts:
            everyday.print_table(await everyday.measure(stories, show=False))
        print(f"{counts[True]:,} searches in engines, {counts[False]:,} in RAM")


# Benchmark modules are imported where they are used: the RAM of the parts of `speed` is measured.

# -- speed ------------------------------------------------------------------------------------------------------------


async def speed(given: argparse.Namespace) -> None:
    """Run each part in a process of its own, so that the RAM of one does not count for another."""
    os.environ["JIYI_SEARCH__READER"] = "false"  # as in `make bench`
    with contextlib.ExitStack() as stack:
        folder = given.folder or stack.enter_context(tempfile.TemporaryDirectory())
        engines = stack.enter_context(engine_settings(given)).engines
        urls = [engines.milvus_url.get_secret_value(), engines.elasticsearch_url.get_secret_value()]
        shared = ["--memories", given.memories, "--users", given.users, "--folder", folder]
        shared += ["--searches", given.searches, "--milvus", urls[0], "--elasticsearch", urls[1]]
        for part in PARTS:
            if part == "embedded" and given.without_default:
                continue
            command = [sys.executable, "-m", "bench.engines", part, *map(str, shared)]
            await (await asyncio.create_subprocess_exec(*command)).wait()


def opened(given: argparse.Namespace, settings: Settings, embedder: Embedder | None = None) -> Memory:
    return Memory.open(Path(given.folder) / "engines.db", embedder=embedder, settings=settings)


async def fill(given: argparse.Namespace) -> None:
    from .fill import PerturbedEmbedder

    began = perf_counter()
    quick = await PerturbedEmbedder.make(BuiltinEmbedder(), 0)
    async with opened(given, without_recalls(load_settings()), quick) as memory:
        await engine_store.fill(memory, Path(given.folder) / "engines.db", given.memories, given.users)
    print(f"filled in {perf_counter() - began:,.0f} s", flush=True)


async def with_engines(given: argparse.Namespace) -> None:
    asked = list(questions("speed", given.searches))
    number = given.memories + given.users * engine_store.EACH
    with engine_settings(given) as settings:
        async with opened(given, settings) as memory:
            await memory.search("warm", user_id="nobody")
            engines = engines_of(memory)
            print(f"RAM of Jiyi: {_ram():,.0f} MB before indexing")
            await asyncio.gather(*(_index(outbox, number) for outbox in engines.outboxes))
            print(f"RAM of Jiyi: {_ram():,.0f} MB after indexing", flush=True)
            for user in _searched(given):
                await _times(memory, user, asked)
            print(f"RAM of Jiyi: {_ram():,.0f} MB after the searches", flush=True)
            engines.start()
            await _lag(memory, _searched(given)[0], asked)
            print(f"RAM of Jiyi: {_ram():,.0f} MB after changes under load", flush=True)


def _searched(given: argparse.Namespace) -> list[str]:
    """Return the users whose searches are timed."""
    return [engine_store.LARGE] * bool(given.memories) + [engine_store.user_of(0)] * bool(given.users)


async def _index(outbox: Outbox, number: int) -> None:
    began, failures = perf_counter(), 0
    while True:
        try:
            await outbox.finish()
            break
        except EngineError:  # milvus-lite refuses writes while it merges its files
            failures += 1
    took = perf_counter() - began
    rate = f"{number / took:,.0f} per second, {failures} requests repeated"
    print(f"{outbox.engine.name}: {number:,} memories in {took:,.0f} s, {rate}", flush=True)


async def _lag(memory: Memory, user: str, asked: Sequence[str]) -> None:
    """Time changes until both engines have them, while two tasks search without a pause."""
    took = []

    async def search() -> None:
        while True:
            for text in asked:
                await memory.search(text, user_id=user, limit=TOP)

    searching = [asyncio.create_task(search()) for _ in range(2)]
    for at in range(CHANGES):
        await memory.add(f"A new note about kettle {at}", user_id=user)
        began = perf_counter()
        while await engines_of(memory).confirm(user):
            pass
        took.append(perf_counter() - began)
    for task in searching:
        task.cancel()
    await asyncio.gather(*searching, return_exceptions=True)
    _print("lag of a change under load", took)


async def embedded(given: argparse.Namespace) -> None:
    asked = list(questions("speed", given.searches))
    async with opened(given, without_recalls(load_settings())) as memory:
        began = perf_counter()
        await memory.search("warm", user_id=_searched(given)[0])
        print(f"embedded default: first search {perf_counter() - began:.1f} s")
        for user in _searched(given):
            await _times(memory, user, asked)
        print(f"RAM of Jiyi: {_ram():,.0f} MB with the embedded default", flush=True)


async def _times(memory: Memory, user: str, asked: Sequence[str]) -> None:
    """Time searches, and in turn with them each engine's bare query for ten and the embedding: other programs on the
    machine slow all of them alike."""
    took: defaultdict[str, list[float]] = defaultdict(list)
    where = Filter(user_id=user, now=utc_now())
    embed = memory._engine.embedder.embed_query
    engines = memory._engine.engines

    async def time(name: str, work: Awaitable[T]) -> T:
        began, cpu = perf_counter(), process_time()
        done = await work
        took[f"{user}: {name}"].append(perf_counter() - began)
        took[f"{user}: {name}, CPU of Jiyi"].append(process_time() - cpu)
        return done

    for text in asked:
        vector = await time("embedding", embed(f"{text}."))
        for outbox in engines.outboxes if engines else ():
            if isinstance(outbox.engine, Milvus):
                await time("bare query of milvus", outbox.engine.nearest(where, [vector], TOP))
            elif isinstance(outbox.engine, Elasticsearch):
                await time("bare query of elasticsearch", outbox.engine.bare(user, tokens(text), TOP))
        await time("search", memory.search(text, user_id=user, limit=TOP))
    for name, times in took.items():
        _print(name, times)


def _print(name: str, took: Sequence[float]) -> None:
    cuts = quantiles(took, n=20)
    print(f"{name}: p50 {cuts[9] * 1000:.1f} ms, p95 {cuts[18] * 1000:.1f} ms", flush=True)


def _ram() -> float:
    """Return the present RAM of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


PARTS = {"fill": fill, "engines": with_engines, "embedded": embedded}  # of `speed`


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__)
    add = parser.add_argument
    commands = {"agree": agree, "statistics": statistics, "everyday": everyday_scores, "speed": speed, **PARTS}
    add("what", choices=commands, metavar="agree|statistics|everyday|speed")
    add("files", nargs="*", type=Path, metavar="FILE", help="benchmark files")
    add("--milvus", metavar="URL")
    add("--elasticsearch", metavar="URL")
    add("--memories", type=int, default=1_000_000, metavar="N", help="of one user (default %(default)s)")
    add("--users", type=int, default=10_000, metavar="N", help="with 200 memories each (default %(default)s)")
    add("--searches", type=int, default=100, metavar="N", help="that are timed for each user (default %(default)s)")
    add("--limit-stores", type=int, metavar="N", help="only the first N stores of each file")
    add("--stories", type=int, default=12, metavar="N", help="only the first N stories (default %(default)s)")
    add("--folder", metavar="DIR", help="keep the store here")
    add("--prefix", metavar="NAME", help="of collections and indexes, to search again in what an earlier run filled")
    add("--without-default", action="store_true", help="do not measure the embedded default")
    given = parser.parse_args(arguments)
    asyncio.run(commands[given.what](given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
