"""External engines that fail or are changed by somebody else: it is noticed, shown and repaired."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pymongo
import pytest
from pymilvus import MilvusClient

from engine_proxy import Proxy
from jiyi.settings import Settings
from support import contents
from test_engines import PATIENCE_S, engine_settings, engines_of, open_with, settled

TEXTS = ("Mei likes green tea", "我喜欢喝咖啡", "Mei plays the cello", "我住在柏林")


def indexes(settings: Settings) -> list[str]:
    """Return the names of this store's indexes in OpenSearch."""
    assert settings.engines.elasticsearch_url is not None
    url, prefix = settings.engines.elasticsearch_url.get_secret_value(), settings.engines.prefix
    return sorted(httpx.get(f"{url}/{prefix}-*").json())


def collections(settings: Settings) -> list[str]:
    """Return the names of this store's collections in Milvus."""
    assert settings.engines.milvus_url is not None
    client = MilvusClient(settings.engines.milvus_url.get_secret_value())
    names = [name for name in client.list_collections() if name.startswith(settings.engines.prefix)]
    client.close()
    return sorted(names)


def remove(settings: Settings, engine: str) -> None:
    """Remove what an engine holds, past Jiyi."""
    given = settings.engines
    if engine == "elasticsearch":
        for name in indexes(settings):
            httpx.delete(f"{given.elasticsearch_url.get_secret_value()}/{name}").raise_for_status()
    elif engine == "milvus":
        client = MilvusClient(given.milvus_url.get_secret_value())
        for name in collections(settings):
            client.drop_collection(name)
        client.close()
    else:
        with database(settings) as there:
            there.drop_collection("memunits")


def change(settings: Settings, engine: str) -> None:
    """Replace what an engine holds by an index of the same name that another program made."""
    given = settings.engines
    if engine == "elasticsearch":
        url = given.elasticsearch_url.get_secret_value()
        for name in indexes(settings):
            httpx.delete(f"{url}/{name}").raise_for_status()
            httpx.post(f"{url}/{name}/_doc?refresh=true", json={"user_key": "x", "event_id": 1}).raise_for_status()
    elif engine == "milvus":
        client = MilvusClient(given.milvus_url.get_secret_value())
        for name in collections(settings):
            client.drop_collection(name)
            client.create_collection(name, dimension=4)
        client.close()
    else:
        with database(settings) as there:
            there.drop_collection("memunits")
            there.memunits.insert_one({"note": "of another program"})


@contextmanager
def database(settings: Settings) -> Iterator[Any]:
    assert settings.engines.mongodb_url is not None
    with pymongo.MongoClient(settings.engines.mongodb_url.get_secret_value()) as client:
        yield client.get_default_database()


def wait_at_most(memory: Any, engine: str, seconds: float) -> None:
    """Limit the wait of searches for an engine: short while it hangs, long before and after, for a busy machine."""
    if breaker := engines_of(memory).search.breakers.get(engine):
        breaker._timeout_s = seconds


@pytest.mark.parametrize("damage", [remove, change])
@pytest.mark.parametrize("engine", ["milvus", "elasticsearch", "mongodb"])
async def test_what_was_removed_or_changed_is_made_anew(
    path: Path, engine_urls: dict[str, str], engine: str, damage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to restart anything: the process that feeds the engine notices, says so and loads everything."""
    monkeypatch.setattr("jiyi.engines.outbox.CHECK_S", 0.0)
    settings = engine_settings(engine_urls)
    async with open_with(path, settings) as memory:
        for text in TEXTS:
            await memory.add(text, user_id="mei")
        await settled(memory)
        await asyncio.to_thread(damage, settings, engine)
        await memory.add("one more", user_id="mei")
        for text in TEXTS:  # from RAM, as long as the engine has not all of them
            assert text in contents(await memory.search(text, user_id="mei"))
        await settled(memory)
        for text in TEXTS:
            found = await memory.search(text, user_id="mei")
            assert text in contents(found) and not found.degraded


@pytest.mark.parametrize("fault", ["hung", "dead", "slow"])
@pytest.mark.parametrize("engine", ["milvus", "elasticsearch"])
async def test_searches_do_without_an_engine_that_fails(
    path: Path, engine_urls: dict[str, str], engine: str, fault: str, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """The first search waits a moment for it; each names it, and so do the health check and the metrics. The others
    do not wait for it."""
    monkeypatch.setattr("jiyi.engines.breaker.FIRST_PAUSE_S", 600.0)
    async with Proxy(engine_urls[engine]) as proxy:
        settings = engine_settings(engine_urls | {engine: proxy.url}, timeout_s=4.0)
        async with open_with(path, settings) as memory:
            for text in TEXTS:
                await memory.add(text, user_id="mei")
            await settled(memory)
            found = await memory.search("green tea", user_id="mei")
            assert set(found.engines) == {"milvus", "elasticsearch"} and not found.degraded
            wait_at_most(memory, engine, 0.5)
            await proxy.set(fault)
            for text in TEXTS:
                found = await memory.search(text, user_id="mei")
                assert text in contents(found)
                assert found.engines == () and len(found.degraded) == 1 and engine in found.degraded[0]
            health = await memory.health()
            assert health.ready
            assert [check.name for check in health.checks if check.problem] == [engine]
            metrics = await memory.usage.prometheus()
            assert f'engine_failing{{engine="{engine}"}} 1' in metrics
            assert f'engine_failures_total{{engine="{engine}"}} 1' in metrics
            assert f'searches_by_engine_total{{engine="builtin"}} {len(TEXTS)}' in metrics
            assert len([one for one in caplog.messages if one.startswith(f"searches do without {engine}")]) == 1

            wait_at_most(memory, engine, PATIENCE_S)
            await proxy.set("open")
            search = engines_of(memory).search
            assert search is not None
            while not found.engines:
                for breaker in search.breakers.values():  # on a busy machine the other engine was too slow, too
                    breaker._next_at = 0.0  # the pause is over
                found = await memory.search("咖啡", user_id="mei")
            assert set(found.engines) == {"milvus", "elasticsearch"} and not found.degraded
            assert not [check.name for check in (await memory.health()).checks if check.problem]


async def test_an_engine_that_fails_is_logged_once(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr("jiyi.engines.outbox.POLL_S", 0.01)
    async with Proxy(engine_urls["elasticsearch"]) as proxy:
        await proxy.set("dead")
        settings = engine_settings({"elasticsearch": proxy.url}, search=False, in_process=True)
        async with open_with(path, settings) as memory:
            await memory.add("Mei likes tea", user_id="mei")
            while not any("is not fed" in one for one in caplog.messages):
                await asyncio.sleep(0.05)
            for number in range(5):
                await memory.add(f"one more {number}", user_id="mei")
                await asyncio.sleep(0.1)
            await proxy.set("open")
            while "elasticsearch is fed again" not in caplog.messages:
                await asyncio.sleep(0.05)
            assert len([one for one in caplog.messages if "is not fed" in one]) == 1
            await settled(memory)


async def test_an_unexpected_error_is_shown_and_does_not_end_the_feeding(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    monkeypatch.setattr("jiyi.engines.outbox.POLL_S", 0.01)
    settings = engine_settings({"mongodb": engine_urls["mongodb"]}, search=False, in_process=True)
    async with asyncio.timeout(60), open_with(path, settings) as memory:
        target = engines_of(memory).outbox("mongodb").engine

        async def problem() -> str | None:
            return next(check.problem for check in (await memory.health()).checks if check.name == "mongodb")

        async def fail(memories: Any) -> None:
            raise ZeroDivisionError("by nothing")

        with monkeypatch.context() as patch:
            patch.setattr(target, "load", fail)
            await memory.add("Mei likes tea", user_id="mei")
            while not await problem():
                await asyncio.sleep(0.05)
            assert "unexpected ZeroDivisionError: by nothing" in (await problem() or "")
        while await problem():
            await asyncio.sleep(0.05)
        await settled(memory)
    (logged,) = [one for one in caplog.records if "is not fed" in one.message]
    assert logged.exc_info


async def test_a_driver_that_loses_a_cancellation_does_not_keep_a_memory_open(
    path: Path, engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.engines.CANCEL_S", 0.1)
    settings = engine_settings({"mongodb": engine_urls["mongodb"]}, search=False, in_process=True)
    begun = asyncio.Event()

    async def lose(*_: Any) -> None:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(600)

    async with asyncio.timeout(60), open_with(path, settings) as memory:
        monkeypatch.setattr(engines_of(memory).outbox("mongodb"), "step", lose)
        await memory.add("Mei likes tea", user_id="mei")
        await begun.wait()
    assert "jiyi-mongodb" not in {task.get_name() for task in asyncio.all_tasks()}
