"""Addresses, keys and certificates of engines, and how their settings reach the servers."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from engine_proxy import Proxy
from jiyi import SettingsError
from jiyi.engines.addresses import several, token_and_address
from jiyi.engines.elasticsearch import Elasticsearch
from jiyi.errors import EngineError
from jiyi.settings import EngineSettings
from jiyi.testing import WordEmbedder
from test_engine_faults import indexes
from test_engines import engine_settings, engines_of, open_with, settled


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://abc123@in01.zillizcloud.com:19530", ("abc123", "https://in01.zillizcloud.com:19530")),
        ("https://:abc123@in01.zillizcloud.com", ("abc123", "https://in01.zillizcloud.com")),
        ("http://root:Mil%40vus@localhost:19530", ("root:Mil@vus", "http://localhost:19530")),
        ("http://localhost:19530", ("", "http://localhost:19530")),
        ("./milvus.db", ("", "./milvus.db")),
    ],
)
def test_tokens_of_milvus(url: str, expected: tuple[str, str]) -> None:
    assert token_and_address(url) == expected


def test_several_hosts_share_the_credentials_of_the_first() -> None:
    assert several("x", "https://u:p@a:9200, https://b:9200") == ["https://u:p@a:9200", "https://u:p@b:9200"]
    assert several("x", "a:9200") == ["http://a:9200"]
    for wrong in ("", "ftp://a"):
        with pytest.raises(SettingsError, match="x"):
            several("x", wrong)


@asynccontextmanager
async def recorded_headers() -> AsyncIterator[tuple[str, list[str]]]:
    """A server that refuses everything, and the Authorization headers that it was sent."""
    seen: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        seen.extend(line[15:] for line in head.splitlines() if line.lower().startswith("authorization:"))
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen


@pytest.mark.parametrize(
    ("login", "more", "expected"),
    [
        ("", {"elasticsearch_api_key": "a2V5"}, "ApiKey a2V5"),
        ("", {"elasticsearch_bearer": "token"}, "Bearer token"),
        ("mei:secret@", {}, "Basic bWVpOnNlY3JldA=="),
    ],
)
async def test_credentials_of_elasticsearch(login: str, more: dict[str, str], expected: str) -> None:
    async with recorded_headers() as (url, seen):
        given = EngineSettings.model_validate({"elasticsearch_url": url.replace("//", f"//{login}"), **more})
        engine = Elasticsearch(given)
        with pytest.raises(EngineError, match="elasticsearch"):
            await engine.open()
        await engine.close()
    assert seen == [expected]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate with its key, which signs itself and serves both sides."""
    file, key = (tmp_path_factory.mktemp("certificate") / name for name in ("own.pem", "key.pem"))
    names = ("-subj", "/CN=jiyi", "-addext", "subjectAltName=IP:127.0.0.1")
    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names)
    subprocess.run([*new, "-keyout", key, "-out", file], check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file


@pytest.mark.parametrize("both_sides", [True, False])
async def test_engines_are_reached_with_certificates(
    path: Path, engine_urls: dict[str, str], certificate: Path, both_sides: bool
) -> None:
    """All three check the server's certificate, and show their own to one that requires it."""
    asked = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificate)
    asked.load_cert_chain(certificate)
    asked.set_alpn_protocols(["h2", "http/1.1"])
    files = {"ca_file": certificate}
    if both_sides:
        asked.verify_mode = ssl.CERT_REQUIRED
        files |= {"cert_file": certificate, "key_file": certificate}
    async with AsyncExitStack() as stack:
        proxies = {name: await stack.enter_async_context(Proxy(url, asked)) for name, url in engine_urls.items()}
        settings = engine_settings({name: proxy.url for name, proxy in proxies.items()}, **files)
        mongodb = settings.engines.mongodb_url
        assert mongodb is not None
        encrypted = {"mongodb_url": SecretStr(f"{mongodb.get_secret_value()}?tls=true")}
        settings = settings.model_copy(update={"engines": settings.engines.model_copy(update=encrypted)})
        async with open_with(path, settings) as memory:
            await memory.add("我喜欢喝咖啡", user_id="mei")
            await settled(memory)
            assert set((await memory.search("咖啡", user_id="mei")).engines) == {"milvus", "elasticsearch"}


async def test_an_api_key_and_a_bearer_token_exclude_each_other() -> None:
    given = {"elasticsearch_url": "http://a", "elasticsearch_api_key": "x", "elasticsearch_bearer": "y"}
    with pytest.raises(SettingsError, match="exclude"):
        Elasticsearch(EngineSettings.model_validate(given))


async def test_another_host_answers_for_one_that_is_down(path: Path, engine_urls: dict[str, str]) -> None:
    urls = {"elasticsearch": f"http://127.0.0.1:1,{engine_urls['elasticsearch']}"}
    async with open_with(path, engine_settings(urls, search=False)) as memory:
        for number in range(4):
            await memory.add(f"note {number}", user_id="mei")
            await settled(memory)


async def test_other_programs_search_the_contents(path: Path, engine_urls: dict[str, str]) -> None:
    """In both languages, with shards and copies as the settings say."""
    more = {"shards": 2, "replicas": 1, "refresh_interval": "5s"}
    settings = engine_settings({"elasticsearch": engine_urls["elasticsearch"]}, search=False, **more)
    async with open_with(path, settings) as memory:
        await memory.add(["Mei likes green tea", "我喜欢喝咖啡"], user_id="mei")
        await settled(memory)
    (name,) = indexes(settings)
    url = f"{engine_urls['elasticsearch']}/{settings.engines.prefix}-memories"
    for words, expected in (("teas green", "Mei likes green tea"), ("咖啡", "我喜欢喝咖啡")):
        body: dict[str, Any] = {"query": {"match": {"content": words}}}
        found = httpx.post(f"{url}/_search", json=body).json()["hits"]["hits"]
        assert [hit["_source"]["content"] for hit in found] == [expected]
    index = httpx.get(f"{url}/_settings").json()[name]["settings"]["index"]
    assert (index["number_of_shards"], index["number_of_replicas"], index["refresh_interval"]) == ("2", "1", "5s")


async def test_vectors_of_another_dimension_are_an_error(path: Path, engine_urls: dict[str, str]) -> None:
    settings = engine_settings(engine_urls)
    async with open_with(path, settings) as memory:
        await memory.add("Mei likes green tea", user_id="mei")
        await settled(memory)
        milvus = engines_of(memory).outbox("milvus").engine
        (own,) = await memory._engine.store.projected.page("mei", "", memory._engine.embedder.id)

        wrong = replace(own, id="x", vectors=(await WordEmbedder(32).embed_query("tea"),))
        with pytest.raises(EngineError, match=r"64 dimensions.*have 32"):
            await milvus.load([wrong])
