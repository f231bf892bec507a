"""Engines are compared with the store: everything that is stored, and what differs is repaired."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pymilvus import MilvusClient

from jiyi.settings import Settings
from support import contents
from test_engine_faults import TEXTS, collections, database, indexes
from test_engines import engine_settings, engines_of, open_with, settled


def tamper(settings: Settings, engine: str, memory_id: str) -> None:
    """Change what an engine holds of a memory, but not the digest."""
    given = settings.engines
    if engine == "elasticsearch":
        (name,) = indexes(settings)
        wanted = {"query": {"term": {"event_id": memory_id}}}
        url = f"{given.elasticsearch_url.get_secret_value()}/{name}"
        (hit,) = httpx.post(f"{url}/_search", json=wanted).json()["hits"]["hits"]
        document = hit["_source"] | {"content": "another text"}
        place = f"{url}/_doc/{hit['_id']}?routing={hit['_routing']}&refresh=true"
        httpx.put(place, json=document).raise_for_status()
    elif engine == "milvus":
        client = MilvusClient(given.milvus_url.get_secret_value())
        (name,) = collections(settings)
        rows = client.query(name, filter=f'memory_id == "{memory_id}"', output_fields=["*"])
        client.upsert(name, [{**row, "vector": [1.0, *[0.0] * 63]} for row in rows])
        client.close()
    else:
        with database(settings) as there:
            for name in there.list_collection_names():
                there[name].update_one({"event_id": memory_id}, {"$set": {"narrative": "another text"}})


@pytest.mark.parametrize("engine", ["milvus", "elasticsearch", "mongodb"])
async def test_changed_contents_are_found_and_only_they_are_repaired(
    path: Path, engine_urls: dict[str, str], engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = engine_settings(engine_urls)
    async with open_with(path, settings) as memory:
        ids = [(await memory.add(text, user_id="mei")).memories[0].id for text in TEXTS]
        await settled(memory)
        await asyncio.to_thread(tamper, settings, engine, ids[1])
        target = engines_of(memory).outbox(engine).engine
        written: list[str] = []
        write = target.write

        async def noted(user_id: str, memories: Any, deleted: Any) -> None:
            written.extend(one.id for one in memories)
            await write(user_id, memories, deleted)

        monkeypatch.setattr(target, "write", noted)
        for options in ({}, {"full": True}, {"repair": True}):
            reports = {one.engine: one for one in await memory.maintenance.verify_engines(**options)}
            assert (reports[engine].different, reports[engine].missing, reports[engine].extra) == (1, 0, 0)
            assert reports[engine].sound == (options == {"repair": True})
            assert all(report.sound for name, report in reports.items() if name != engine)
        assert written == [ids[1]]
        await settled(memory)


async def test_documents_of_other_programs_are_counted_and_stay(path: Path, engine_urls: dict[str, str]) -> None:
    settings = engine_settings(engine_urls)
    async with open_with(path, settings) as memory:
        for text in TEXTS:
            await memory.add(text, user_id="mei")
        await settled(memory)
        (index,) = indexes(settings)
        url = settings.engines.elasticsearch_url.get_secret_value()
        foreign = {"content": "of another program"}
        httpx.post(f"{url}/{index}/_doc?routing=x&refresh=true", json=foreign).raise_for_status()
        with database(settings) as there:
            there.memunits.insert_one(dict(foreign))
        found = {one.engine: one for one in await memory.maintenance.verify_engines(repair=True, full=True)}
        assert all(report.sound and not report.repaired for report in found.values())
        assert (found["elasticsearch"].foreign, found["mongodb"].foreign) == (1, 1)
        assert contents(await memory.search("咖啡", user_id="mei"))[0] == "我喜欢喝咖啡"


async def test_a_user_without_a_memory_in_the_store_is_removed(path: Path, engine_urls: dict[str, str]) -> None:
    async with open_with(path, engine_settings(engine_urls)) as memory:
        await memory.add(TEXTS[0], user_id="mei")
        await settled(memory)
        (own,) = await memory._engine.store.projected.page("mei", "", memory._engine.embedder.id)
        for outbox in engines_of(memory).outboxes:
            await outbox.engine.write("stranger", [replace(own, user_id="stranger")], [])
        for report in await memory.maintenance.verify_engines(repair=True):
            assert (report.extra, report.repaired, report.sound) == (1, 1, True)
        await settled(memory)


async def test_changes_that_wait_for_an_engine_are_no_differences(path: Path, engine_urls: dict[str, str]) -> None:
    async with open_with(path, engine_settings(engine_urls)) as memory:
        added = await memory.add(TEXTS[0], user_id="mei")
        await settled(memory)
        await memory.add(TEXTS[1], user_id="mei")
        await memory.update(added.memories[0].id, user_id="mei", content="Mei likes black tea")
        await memory.add(TEXTS[1], user_id="bo")
        for report in await memory.maintenance.verify_engines():
            assert (report.missing, report.different, report.extra, report.behind) == (0, 0, 0, 2)


async def test_a_running_process_compares_a_sample_by_itself(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr("jiyi.engines.FIRST_SAMPLE_S", 0.1)
    monkeypatch.setattr("jiyi.engines.SAMPLE_EVERY_S", 0.1)
    settings = engine_settings({"mongodb": engine_urls["mongodb"]}, search=False, in_process=True)
    async with open_with(path, settings) as memory:
        added = await memory.add(TEXTS[0], user_id="mei")
        while await engines_of(memory).confirm("mei"):
            pass

        async def problem() -> str | None:
            return next(check.problem for check in (await memory.health()).checks if check.name == "mongodb")

        async with asyncio.timeout(60):
            while not await problem():  # a document that is fed once more is whole again
                await asyncio.to_thread(tamper, settings, "mongodb", added.memories[0].id)
                await asyncio.sleep(0.05)
            assert "1 different of 1 documents" in (await problem() or "")
            assert 'engine_failing{engine="mongodb"} 1' in await memory.usage.prometheus()
            await memory.maintenance.verify_engines(repair=True)
            while await problem():
                await asyncio.sleep(0.05)
