"""Redis shares answers between processes. Whatever happens to it, searches stay right and do not fail."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import settings as hypothesis_settings

from jiyi import Memory, MissingExtra, SettingsError
from jiyi.cache import redis as redis_cache
from jiyi.settings import Settings, load_settings
from jiyi.testing import WordEmbedder
from redis_server import RedisServer
from support import contents
from test_cached import answered, same
from test_cached_agrees import WithAndWithout


def with_redis(url: str, **more: Any) -> Settings:
    """Nothing is kept in the process, so that everything goes through Redis."""
    return load_settings(cache={"max_searches": 0, "redis_url": url, "ttl_s": 3600, **more})


def opened(place: str | Path, url: str, **more: Any) -> Memory:
    return Memory.open(place, settings=with_redis(url, **more), embedder=WordEmbedder(512))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that failed is asked again at once, unless a test says otherwise; on a busy machine it may be slow."""
    monkeypatch.setattr(redis_cache, "PAUSE_S", 0.0)
    monkeypatch.setattr(redis_cache, "TIMEOUT_S", 5.0)


@pytest.fixture
async def pair(place: str | Path, redis_url: str) -> AsyncIterator[tuple[Memory, Memory]]:
    """Two processes, as far as a cache can tell."""
    async with AsyncExitStack() as stack:
        yield (
            await stack.enter_async_context(opened(place, redis_url)),
            await stack.enter_async_context(opened(place, redis_url)),
        )


def everything_in(url: str) -> bytes:
    """All names, fields and values of all users."""
    client = redis.Redis.from_url(url)
    names = list(client.scan_iter("*"))
    return b"\n".join([*names, *(part for name in names for pair in client.hgetall(name).items() for part in pair)])


async def test_what_one_asked_is_answered_to_the_other(pair: tuple[Memory, Memory]) -> None:
    one, other = pair
    await one.add(["likes green tea", "喜欢绿茶"], user_id="mei", tags=["drink"], metadata={"n": 1})
    for query in ("green tea", "绿茶", "xylophone"):
        first = await one.search(query, user_id="mei")
        same(await other.search(query, user_id="mei"), first)
    assert await answered(one) == (0, 3)
    assert await answered(other) == (3, 3)


async def test_every_write_is_seen_whoever_made_it(pair: tuple[Memory, Memory]) -> None:
    one, other = pair
    made = (await one.add("likes tea", user_id="mei")).memories[0]
    for memory in pair:
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
    await other.update(made.id, user_id="mei", content="hates tea")
    for memory in pair:
        assert contents(await memory.search("tea", user_id="mei")) == ["hates tea"]
    await one.synonyms.add([("tea", "茶")])
    for memory in pair:
        assert "茶" in (await memory.search("tea", user_id="mei")).expanded_keywords
    await one.delete(made.id, user_id="mei")
    for memory in pair:
        assert contents(await memory.search("tea", user_id="mei")) == []
    await other.add("tea again", user_id="mei")
    await one.delete_all("mei")
    for memory in pair:
        assert (await memory.search("tea", user_id="mei")).searched == 0


async def test_hot_memories_are_shared_and_never_out_of_date(pair: tuple[Memory, Memory], redis_url: str) -> None:
    """Which memories are used most is kept for all; what they say is read anew, and what is gone is gone for all."""
    one, other = pair
    receipt = await one.add(["likes jasmine tea", "喜欢喝咖啡", "plays the piano"], user_id="mei")
    tea, coffee, piano = (memory.id for memory in receipt.memories)
    assert await one.usage.most_used(user_id="mei") == []
    for query, times in (("jasmine", 3), ("咖啡", 2), ("piano", 1)):
        for _ in range(times):
            await one.search(query, user_id="mei", search_mode="keyword", limit=1)
    assert [memory.id for memory in await one.usage.most_used(user_id="mei")] == [tea, coffee, piano]
    assert [memory.id for memory in await one.usage.most_used(user_id="mei", limit=3)] == [tea, coffee, piano]
    assert [memory.id for memory in await one.usage.most_used(user_id="mei", limit=1)] == [tea]
    for _ in range(9):
        await other.search("piano", user_id="mei", search_mode="keyword", limit=1)
    assert [memory.id for memory in await other.usage.most_used(user_id="mei", limit=3)] == [tea, coffee, piano], (
        "for an hour"
    )
    assert [memory.id for memory in await other.usage.most_used(user_id="mei")] == [piano, tea, coffee], (
        "it is not full"
    )
    await one.update(tea, user_id="mei", content="likes green tea")
    assert [memory.id for memory in await other.usage.most_used(user_id="mei", limit=3)] == [piano, tea, coffee]
    assert [memory.content for memory in await other.usage.most_used(user_id="mei")][1] == "likes green tea"
    await one.delete(tea, user_id="mei")
    assert [memory.id for memory in await other.usage.most_used(user_id="mei")] == [piano, coffee]
    assert tea.encode() not in everything_in(redis_url)
    assert b"piano" not in everything_in(redis_url)
    assert await other.usage.most_used(user_id="bob") == []


async def test_hot_memories_without_redis(place: str | Path, own_redis: RedisServer) -> None:
    async with opened(place, own_redis.url) as memory:
        receipt = await memory.add("likes tea", user_id="mei")
        await memory.search("tea", user_id="mei")
        own_redis.end(signal.SIGKILL)
        assert [one.id for one in await memory.usage.most_used(user_id="mei")] == [one.id for one in receipt.memories]


async def test_two_stores_on_one_redis_do_not_mix(path: Path, tmp_path: Path, redis_url: str) -> None:
    """Not even a store and its copy, which have come equally far in ways of their own."""
    async with opened(path, redis_url) as memory:
        await memory.add("likes tea", user_id="mei")
        await memory.search("tea", user_id="mei")
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())
    async with opened(path, redis_url) as one, opened(copy, redis_url) as other:
        await one.add("green tea", user_id="mei")
        await other.add("black tea", user_id="mei")
        for memory, added in ((one, "green tea"), (other, "black tea")):
            assert sorted(contents(await memory.search("tea", user_id="mei"))) == [added, "likes tea"]


async def test_redis_holds_no_text_and_no_name(pair: tuple[Memory, Memory], redis_url: str) -> None:
    one, _ = pair
    await one.add("the zanzibarquartz is red", user_id="zanzibar-mei", tags=["zanzibartag"])
    await one.synonyms.add([("zanzibarquartz", "zanzibarstone")], user_id="zanzibar-mei")
    found = await one.search("where is the zanzibarquartz?", user_id="zanzibar-mei")
    assert "zanzibarstone" in found.expanded_keywords
    held = everything_in(redis_url)
    assert found.hits[0].id.encode() in held
    assert b"zanzibar" not in held


async def test_delete_drops_what_is_kept_of_that_user(pair: tuple[Memory, Memory], redis_url: str) -> None:
    one, other = pair
    made = {user: (await one.add("likes tea", user_id=user)).memories[0] for user in ("mei", "bo", "li")}
    for user in made:
        await one.search("tea", user_id=user)
    assert all(memory.id.encode() in everything_in(redis_url) for memory in made.values())
    await other.delete(made["mei"].id, user_id="mei")
    await other.delete_all("bo")
    held = everything_in(redis_url)
    assert [user for user, memory in made.items() if memory.id.encode() in held] == ["li"]


async def test_what_is_kept_ends_by_itself_and_is_bounded(
    pair: tuple[Memory, Memory],
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis_cache, "MOST", 3)
    one, _ = pair
    await one.add("likes tea", user_id="mei")
    client = redis.Redis.from_url(redis_url)
    sizes = []
    for number in range(6):
        await one.search(f"tea {number}", user_id="mei")
        sizes += [client.hlen(name) for name in client.scan_iter("*")]
        assert all(0 < client.ttl(name) <= 3600 for name in client.scan_iter("*"))
    assert sizes == [1, 2, 3, 1, 2]


# -- Redis fails ----------------------------------------------------------------------------------------------------


async def test_garbage_in_redis_is_no_answer(pair: tuple[Memory, Memory], redis_url: str) -> None:
    one, other = pair
    await one.add("likes tea", user_id="mei")
    first = await one.search("tea", user_id="mei")
    client = redis.Redis.from_url(redis_url)
    [name] = client.scan_iter("*")
    [field] = client.hkeys(name)
    another = b'{"key": "' + b"0" * 64 + client.hget(name, field)[73:]
    for garbage in (another, b"", b"\xff\xfe", b"{}", b"[1]", b'{"until": "tomorrow"}', b"x" * 100_000):
        client.hset(name, field, garbage)
        same(await other.search("tea", user_id="mei"), first)
    assert (await answered(other))[0] == 0
    client.delete(name)
    client.set(name, "a text where a hash should be")
    same(await other.search("tea", user_id="mei"), first)
    use = (await other.stats()).cache
    assert use and "WRONGTYPE" in use.problems[0]


async def test_a_redis_that_is_full_is_named(place: str | Path, own_redis: RedisServer) -> None:
    client = redis.Redis.from_url(own_redis.url)
    client.config_set("maxmemory", 1)
    async with opened(place, own_redis.url) as memory:
        await memory.add("likes tea", user_id="mei")
        for _ in range(2):
            assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
        use = (await memory.stats()).cache
        assert use and use.answered == 0 and "maxmemory" in use.problems[0]
        client.config_set("maxmemory", 0)
        for _ in range(2):
            await memory.search("tea", user_id="mei")
        use = (await memory.stats()).cache
        assert use and use.answered == 1 and use.problems == ()


async def test_a_redis_that_dies_and_comes_back(place: str | Path, own_redis: RedisServer) -> None:
    async with opened(place, own_redis.url) as memory:
        await memory.add("likes tea", user_id="mei")
        for _ in range(2):
            await memory.search("tea", user_id="mei")
        own_redis.end(signal.SIGKILL)
        made = (await memory.add("drinks tea", user_id="mei")).memories[0]
        assert len((await memory.search("tea", user_id="mei")).hits) == 2
        await memory.delete(made.id, user_id="mei")
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
        use = (await memory.stats()).cache
        assert use and use.answered == 1 and use.problems[0].startswith("redis: Redis does not answer")
        own_redis.start()
        for _ in range(2):
            assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
        use = (await memory.stats()).cache
        assert use and use.answered == 2 and use.problems == ()


async def test_nobody_at_the_address(memory: Memory, place: str | Path) -> None:
    async with opened(place, "redis://127.0.0.1:1/0") as alone:
        await alone.add("likes tea", user_id="mei")
        same(await alone.search("tea", user_id="mei"), await memory.search("tea", user_id="mei"))
        await alone.delete_all("mei")


@asynccontextmanager
async def somebody_else(reply: bytes | None) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that takes connections and says nothing, or nonsense. → its URL, and how many came"""
    came: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(1)
        try:
            while await reader.read(1000):
                if reply is not None:
                    writer.write(reply)
                    await writer.drain()
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0", came
    finally:
        server.close()


@pytest.mark.parametrize(
    "reply",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x00\xff\xfe\r\n", b"$-5\r\n", b"*3\r\n+a\r\n", b":abc\r\n", b"+OK\r\n"],
)
async def test_a_server_that_talks_nonsense(path: Path, reply: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_cache, "TIMEOUT_S", 0.2)
    async with somebody_else(reply) as (url, _), opened(path, url) as memory:
        await memory.add("likes tea", user_id="mei")
        for _ in range(2):
            assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
        assert (await answered(memory))[0] == 0
        await memory.delete_all("mei")


async def test_a_server_that_does_not_answer_is_left_alone_for_a_while(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_cache, "TIMEOUT_S", 0.05)
    monkeypatch.setattr(redis_cache, "PAUSE_S", 3600.0)
    async with somebody_else(None) as (url, came), opened(path, url) as memory:
        await memory.add("likes tea", user_id="mei")
        for number in range(5):
            assert contents(await memory.search(f"tea {number}", user_id="mei")) == ["likes tea"]
        assert len(came) == 1
        use = (await memory.stats()).cache
        assert use and "does not answer" in use.problems[0]


# -- settings -------------------------------------------------------------------------------------------------------


async def test_a_password_is_not_shown(path: Path) -> None:
    settings = with_redis("redis://:s3cret@127.0.0.1:1/0")
    assert "s3cret" not in repr(settings)
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        await memory.add("tea", user_id="mei")
        await memory.search("tea", user_id="mei")
        assert "s3cret" not in repr(await memory.stats())


@pytest.mark.parametrize("url", ["localhost:6379", "http://localhost", "redis://localhost:port"])
def test_an_address_that_is_none_is_refused(path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match=r"cache\.redis_url"):
        opened(path, url)


def test_without_the_package_the_extra_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(MissingExtra, match=r"jiyi\[redis\]"):
        opened(path, "redis://localhost")


# -- with and without -----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("redis_url")
class TestThroughRedis:
    def test_the_answers_are_the_same(self, redis_url: str) -> None:
        """The state machine of `test_cached_agrees`, with all answers kept in Redis."""

        class ThroughRedis(WithAndWithout):
            cached = with_redis(redis_url)

        case = ThroughRedis.TestCase
        case.settings = hypothesis_settings(max_examples=6, stateful_step_count=15, deadline=None)
        case("runTest").runTest()
