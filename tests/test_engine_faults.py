"""External engines that fail or are changed by somebody else: it is noticed, shown and repaired."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pymongo
import pytest
from pymilvus import MilvusClient

from jiyi.settings import Settings
from support import contents
from test_engines import engine_settings, open_with, settled

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
