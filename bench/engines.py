"""`python -m bench.engines`: external engines beside the embedded default.

agree FILE …   the ten best hits of both for the questions of benchmark files (docs/internals/evaluation.md)
everyday FILE  the scores of `bench.everyday` with both
speed          one user with --memories memories and --users users with 200 each: indexing, search times, RAM, lag

Without --milvus and --elasticsearch, the servers of the tests are started: milvus-lite and OpenSearch.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np

from jiyi import Memory
from jiyi.embed import BuiltinEmbedder
from jiyi.engines import Engines
from jiyi.engines.elasticsearch import Elasticsearch
from jiyi.engines.milvus import Milvus
from jiyi.settings import Settings, load_settings

from . import answers, everyday
from .datasets import load
from .fill import PerturbedEmbedder
from .texts import candidates, questions

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from engine_servers import start_milvus, start_opensearch

TOP = 10
EACH = 200
CHUNK = 1000
LOUD = 100  # searches that are timed


@contextmanager
def engine_settings(given: argparse.Namespace) -> Iterator[Settings]:
    """Yield settings that search in the engines, under a prefix of their own."""
    servers = []
    urls = {"milvus_url": given.milvus, "elasticsearch_url": given.elasticsearch}
    try:
        if given.milvus is None:
            servers.append(start_milvus())
            urls["milvus_url"] = servers[-1].url
        if given.elasticsearch is None:
            servers.append(start_opensearch())
            urls["elasticsearch_url"] = servers[-1].url
        prefix = f"bench_{uuid4().hex[:8]}"
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


def engines_of(memory: Memory) -> Engines:
    engines = memory._engine.engines
    assert engines is not None
    return engines


# -- agreement --------------------------------------------------------------------------------------------------------


async def agree(given: argparse.Namespace) -> None:
    sets, _ = load(given.files, limit_stores=given.limit_stores)
    with tempfile.TemporaryDirectory() as folder, engine_settings(given) as settings:
        path = Path(folder) / "memory.db"
        async with Memory.open(path, settings=without_recalls(load_settings())) as memory:
            for one in sets:
                await answers.fill(memory, one, lambda *_: None)
            embedded = [await _best(memory, one) for one in sets]
        async with Memory.open(path, settings=settings) as memory:
            await engines_of(memory).catch_up()
            engines = [await _best(memory, one) for one in sets]
        for one, ours, theirs in zip(sets, embedded, engines, strict=True):
            shared = [len(set(a) & set(b)) / len(a) for a, b in zip(ours, theirs, strict=True) if a]
            first = [a[0] == b[0] for a, b in zip(ours, theirs, strict=True) if a and b]
            print(
                f"{one.name}: {len(shared)} questions, overlap of the ten best {np.mean(shared):.3f},"
                f" the same first {np.mean(first):.3f}"
            )


async def _best(memory: Memory, one: Any) -> list[list[str]]:
    found = []
    for store in one.stores:
        for query in store.queries:
            result = await memory.search(
                query.text,
                user_id=answers.user_of(one, store),
                limit=TOP,
                asked_at=query.asked_at or store.last_at,
            )
            found.append([hit.id for hit in result.hits])
    return found


async def everyday_scores(given: argparse.Namespace) -> None:
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
        everyday.print_table(await everyday.measure(stories, show=False))


# -- speed ------------------------------------------------------------------------------------------------------------


async def speed(given: argparse.Namespace) -> None:
    real = BuiltinEmbedder()
    quick = await PerturbedEmbedder.make(real, 0)
    folder = Path(given.folder or tempfile.mkdtemp())
    path = folder / "engines.db"
    with engine_settings(given) as settings:
        async with Memory.open(path, embedder=quick, settings=without_recalls(load_settings())) as memory:
            await _add(memory, "large", given.memories)
            for at in range(given.users):
                await _add(memory, f"user-{at}", EACH)
        asked = list(questions("speed", LOUD))
        async with Memory.open(path, embedder=quick, settings=settings) as memory:
            for outbox in engines_of(memory).outboxes:
                began = perf_counter()
                await outbox.finish()
                took = perf_counter() - began
                number = given.memories + given.users * EACH
                print(f"{outbox.engine.name}: {number:,} memories in {took:,.0f} s, {number / took:,.0f} per second")
            before = _ram()
            await _floor(memory, real, asked)
            for user in ("large", "user-0") if given.users else ("large",):
                await _times(f"engines, {user}", memory, user, asked)
            print(f"RAM of this process: {before:,.0f} MB before, {_ram():,.0f} MB after the searches (peak)")
            began = perf_counter()
            added = await memory.add("A new note about the kettle", user_id="large")
            await engines_of(memory).catch_up()
            print(f"lag of one change: {(perf_counter() - began) * 1000:.0f} ms until both engines have it")
            await memory.delete(added.memories[0].id, user_id="large")
        if not given.without_default:
            async with Memory.open(path, embedder=quick, settings=without_recalls(load_settings())) as memory:
                began = perf_counter()
                await memory.search("warm", user_id="large")
                print(f"embedded default: first search {perf_counter() - began:.1f} s")
                await _times("embedded default, large", memory, "large", asked)
            print(f"RAM of this process with the embedded default: {_ram():,.0f} MB (peak)")


async def _add(memory: Memory, user: str, number: int) -> None:
    done = await memory.count(user_id=user)
    made = list(candidates(f"{user}:{done}", max(number - done, 0)))
    for start in range(0, len(made), CHUNK):
        await memory.add(made[start : start + CHUNK], user_id=user)


async def _floor(memory: Memory, embedder: BuiltinEmbedder, asked: Sequence[str]) -> None:
    """Time each engine's bare query: the ten nearest vectors, and the ten best by BM25."""
    from jiyi.languages.terms import tokens
    from jiyi.models import utc_now
    from jiyi.scope import Filter

    where = Filter(user_id="large", now=utc_now())
    vectors = [await embedder.embed_query(text) for text in asked]
    for outbox in engines_of(memory).outboxes:
        took = []
        for text, vector in zip(asked, vectors, strict=True):
            began = perf_counter()
            if isinstance(outbox.engine, Milvus):
                await outbox.engine.nearest(where, vector, TOP)
            elif isinstance(outbox.engine, Elasticsearch):
                await outbox.engine.bare("large", tokens(text), TOP)
            took.append(perf_counter() - began)
        _print(f"floor, {outbox.engine.name}", took)
    began = perf_counter()
    for text in asked:
        await embedder.embed_query(f"{text}.")
    print(f"embedding a query: {(perf_counter() - began) * 1000 / len(asked):.1f} ms")


async def _times(name: str, memory: Memory, user: str, asked: Sequence[str]) -> None:
    took = []
    for text in asked:
        began = perf_counter()
        await memory.search(text, user_id=user, limit=TOP)
        took.append(perf_counter() - began)
    _print(name, took)


def _print(name: str, took: Sequence[float]) -> None:
    cuts = quantiles(took, n=20)
    print(f"{name}: p50 {cuts[9] * 1000:.1f} ms, p95 {cuts[18] * 1000:.1f} ms")


def _ram() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.engines", description=__doc__)
    add = parser.add_argument
    add("what", choices=("agree", "everyday", "speed"))
    add("files", nargs="*", type=Path, metavar="FILE", help="benchmark files")
    add("--milvus", metavar="URL")
    add("--elasticsearch", metavar="URL")
    add("--memories", type=int, default=1_000_000, metavar="N", help="of one user (default %(default)s)")
    add("--users", type=int, default=10_000, metavar="N", help="with 200 memories each (default %(default)s)")
    add("--limit-stores", type=int, metavar="N", help="only the first N stores of each file")
    add("--stories", type=int, default=12, metavar="N", help="only the first N stories (default %(default)s)")
    add("--folder", metavar="DIR", help="keep the store here")
    add("--without-default", action="store_true", help="do not measure the embedded default")
    given = parser.parse_args(arguments)
    asyncio.run({"agree": agree, "everyday": everyday_scores, "speed": speed}[given.what](given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
