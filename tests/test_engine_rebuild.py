"""A rebuild loads everything into a new index beside the present one, which is searched until that is complete."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from jiyi import Memory
from jiyi.engines.elasticsearch import Elasticsearch
from jiyi.engines.milvus import Milvus
from jiyi.errors import EngineError
from support import contents
from test_engine_faults import collections, indexes
from test_engines import engine_settings, engines_of, open_with, settled

BOTH = {"milvus", "elasticsearch"}
NOTES = [f"note {number} 笔记" for number in range(35)]


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jiyi.store.upkeep.engine_memories.PAGE", 10)
    monkeypatch.setattr("jiyi.engines.CONFIRM_S", 0.5)  # a deletion waits for an engine that nobody feeds
    for module in ("jiyi.engines", "jiyi.engines.outbox"):
        monkeypatch.setattr(f"{module}.GRACE_S", 0.5)
    monkeypatch.setattr("jiyi.engines.outbox.RENEW_S", 0.2)


async def fill(memory: Memory) -> None:
    await memory.add(NOTES, user_id="mei")
    await memory.add("Bo likes tea", user_id="bo")


@pytest.mark.parametrize("engine", ["milvus", "elasticsearch"])
async def test_searches_and_writes_go_on_during_a_rebuild(path: Path, engine_urls: dict[str, str], engine: str) -> None:
    """Beside a process that feeds the engine, another one rebuilds it."""
    settings = engine_settings(engine_urls)
    running = settings.model_copy(update={"jobs": settings.jobs.model_copy(update={"in_process": True})})
    named = indexes if engine == "elasticsearch" else collections
    async with open_with(path, running) as memory:
        await fill(memory)
        for user in ("mei", "bo"):
            while await engines_of(memory).confirm(user):
                pass
        before = await asyncio.to_thread(named, settings)
        async with open_with(path, settings) as other:
            seen: list[str] = []
            rebuild = asyncio.create_task(
                other.maintenance.rebuild(engine, progress=lambda what, *_: seen.append(what))
            )
            number = 0
            while not rebuild.done():
                found = await memory.search("note 笔记", user_id="mei", limit=5)
                assert set(found.engines) == BOTH and not found.degraded and len(found.hits) == 5
                number += 1
                await memory.add(f"written meanwhile {number}", user_id="mei")
            report = await rebuild
            assert report.sound and report.engine == engine
            assert {f"loading {engine}", f"verifying {engine}"} <= set(seen)
        while await engines_of(memory).confirm("mei"):
            pass
        found = await memory.search(f"written meanwhile {number}", user_id="mei")
        assert f"written meanwhile {number}" in contents(found) and set(found.engines) == BOTH
        after = await asyncio.to_thread(named, settings)
        assert len(after) == 1 and after != before
    async with open_with(path, settings) as memory:
        await settled(memory)
    if engine == "elasticsearch":
        url = settings.engines.elasticsearch_url.get_secret_value()
        assert list(httpx.get(f"{url}/{settings.engines.prefix}-memories").json()) == after


@pytest.mark.parametrize("kind", [Milvus, Elasticsearch])
async def test_an_interrupted_rebuild_is_continued(
    path: Path, engine_urls: dict[str, str], kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = engine_settings(engine_urls)
    async with open_with(path, settings) as memory:
        await fill(memory)
        await settled(memory)
        loads: list[int] = []
        load = kind.load

        async def failing(self: Any, memories: Any) -> None:
            if len(loads) == 3:
                raise EngineError("refused")
            loads.append(len(memories))
            await load(self, memories)

        with monkeypatch.context() as patched, pytest.raises(EngineError, match="refused"):
            patched.setattr(kind, "load", failing)
            await memory.maintenance.rebuild(kind.name)
        found = await memory.search("note 笔记", user_id="mei")
        assert set(found.engines) == BOTH and not found.degraded
        await memory.delete_all(user_id="bo")

        async def counting(self: Any, memories: Any) -> None:
            loads.append(len(memories))
            await load(self, memories)

        monkeypatch.setattr(kind, "load", counting)
        assert (await memory.maintenance.rebuild(kind.name)).sound
        assert sum(loads) == len(NOTES) + 1
        await settled(memory)


async def test_a_process_that_feeds_continues_a_rebuild_whose_process_ended(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = engine_settings({"elasticsearch": engine_urls["elasticsearch"]}, search=False, in_process=True)
    monkeypatch.setattr("jiyi.engines.RESUME_S", 0.1)
    async with open_with(path, settings) as memory:
        await fill(memory)
        for user in ("mei", "bo"):
            while await engines_of(memory).confirm(user):
                pass
        before = await asyncio.to_thread(indexes, settings)
        await memory._engine.store.projections.begin_rebuild("elasticsearch")
        while (after := await asyncio.to_thread(indexes, settings)) == before or len(after) != 1:
            await asyncio.sleep(0.1)
    async with open_with(path, settings.model_copy(update={"jobs": settings.jobs})) as memory:
        assert all(report.sound for report in await memory.maintenance.verify_engines(full=True))


async def test_what_a_rebuild_has_lost_is_repaired_before_it_is_searched(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = engine_settings({"elasticsearch": engine_urls["elasticsearch"]}, search=False)
    async with open_with(path, settings) as memory:
        await fill(memory)
        await settled(memory)
        load = Elasticsearch.load

        async def losing(self: Elasticsearch, memories: Any) -> None:
            await load(self, memories[1:])

        with monkeypatch.context() as patched:
            patched.setattr(Elasticsearch, "load", losing)
            report = await memory.maintenance.rebuild("elasticsearch")
        assert report.missing == report.repaired > 0 and report.sound
        await settled(memory)
