"""PostgreSQL under fire: many writers, connections that break at the worst moment, a server that is killed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import pytest

import workers
from jiyi import ConnectionLost, Memory, StoreError, StoreUnavailable
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from postgres_server import Databases, Server, Unavailable
from support import LONG, ask, contents, stored
from workers import crew

PROCESSES = 16 if LONG else 8
TRIALS = 500 if LONG else 8  # of each kind: a thousand, if there is time


def test_many_processes_make_one_row_for_each_key_and_each_statement(database: str) -> None:
    """They do the same at the same time, some for one user, some for several."""
    told = crew([(workers.repeat_the_same, (database, TRIALS)) for _ in range(PROCESSES)], timeout=1800)
    assert [problem for problem in told if isinstance(problem, str)] == []
    assert [receipts for receipts, _ in told] == [told[0][0]] * PROCESSES
    assert sum(first for _, first in told) == TRIALS, "each statement was new for exactly one process"
    keys = ask(database, "SELECT idempotency_key, count(*) FROM jobs WHERE idempotency_key IS NOT NULL GROUP BY 1")
    assert sorted(keys) == sorted((f"key {trial}", 1) for trial in range(TRIALS))
    texts = ask(database, "SELECT content, count(*) FROM memories GROUP BY 1")
    wanted = [(f"{kind} {workers.spelled(trial)}", 1) for kind in ("keyed", "plain") for trial in range(TRIALS)]
    assert sorted(texts) == sorted(wanted)
    feed = "SELECT count(*), count(DISTINCT memory_id) FROM changes"
    assert ask(database, feed) == [(2 * TRIALS, 2 * TRIALS)]


# -- connections that break -----------------------------------------------------------------------------------------


class Cutter:
    """Stands between Jiyi and the server. When armed it cuts a connection at its COMMIT: after the server has done it
    and before the answer is through, or before the server hears of it."""

    def __init__(self, host: str, port: int) -> None:
        self.server = (host, port)
        self.armed = 0
        self.heard = True
        self.cuts = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(*self.server)
        back = asyncio.ensure_future(self.pass_on(from_server, writer))
        try:
            while said := await reader.read(1 << 16):
                if self.armed and b"COMMIT;" in said:
                    self.armed -= 1
                    self.cuts += 1
                    back.cancel()
                    if self.heard:
                        to_server.write(said)
                        await from_server.read(1 << 16)  # it is committed now
                    break
                to_server.write(said)
        except ConnectionError:
            pass
        finally:
            back.cancel()
            for end in (to_server, writer):
                end.transport.abort()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while said := await reader.read(1 << 16):
            writer.write(said)
        writer.close()


@asynccontextmanager
async def through_cutter(url: str) -> AsyncIterator[tuple[Cutter, str]]:
    parts = urlsplit(url)
    cutter = Cutter(parts.hostname or "", parts.port or 5432)
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    netloc = f"{parts.username}:{parts.password}@127.0.0.1:{port}"
    try:
        yield cutter, urlunsplit(parts._replace(netloc=netloc))
    finally:
        server.close()


@pytest.mark.parametrize("heard", [True, False], ids=["after", "before"])
async def test_a_connection_cut_at_commit_makes_exactly_one_row(database: str, heard: bool) -> None:
    """Not even a message without id, time and key is doubled or lost, and the caller notices nothing."""
    async with through_cutter(database) as (cutter, url), Memory.open(url, embedder=WordEmbedder()) as memory:
        cutter.heard = heard
        for number in range(8):
            cutter.armed = 1
            said = {"role": "user", "content": f"message {workers.spelled(number)}"}
            receipt = await memory.add([said], user_id="mei")
            assert cutter.armed == 0
            assert [made.content for made in receipt.memories] == [said["content"]]
        assert cutter.cuts == 8
        assert (await memory.search("message", user_id="mei", limit=100)).total_found == 8
    for table in ("messages", "memories", "jobs"):
        assert ask(database, f"SELECT count(*) FROM {table}") == [(8,)]


async def test_cut_again_and_again_the_caller_is_told_and_repeats_it(database: str) -> None:
    async with through_cutter(database) as (cutter, url), Memory.open(url, embedder=WordEmbedder()) as memory:
        for number in range(4):
            cutter.armed = 2
            cutter.heard = number % 2 == 0
            text = f"fact {workers.spelled(number)}"
            with pytest.raises(ConnectionLost, match="may or may not be kept"):
                for _ in range(2):
                    await memory.add(text, user_id="mei", idempotency_key=text)
                    cutter.armed = 2
            cutter.armed = 0
            receipt = await memory.add(text, user_id="mei", idempotency_key=text)
            assert [made.content for made in receipt.memories] == [text]
    assert ask(database, "SELECT count(*), count(DISTINCT content) FROM memories") == [(4, 4)]
    assert ask(database, "SELECT count(*) FROM jobs") == [(4,)]


# -- a server that is killed ----------------------------------------------------------------------------------------


@pytest.fixture
def own_server(databases: Databases) -> Iterator[Server]:
    """A server with all of its safety on, which a test may kill."""
    try:
        server = Server()
    except Unavailable as error:
        pytest.skip(str(error))
    yield server
    server.stop()


async def test_what_was_acknowledged_survives_a_killed_server(own_server: Server) -> None:
    databases = Databases(own_server.url())
    await databases.prepare()
    url = databases.url(await databases.new())
    acknowledged: set[str] = set()
    errors: list[StoreError] = []
    over = asyncio.Event()

    async def write(memory: Memory, number: int) -> None:
        turn = 0
        while not over.is_set():
            turn += 1
            try:
                receipt = await memory.add(
                    f"writer {number} turn {workers.spelled(turn)}", user_id=f"user {number % 2}"
                )
                acknowledged.update(made.id for made in receipt.memories)
                await memory.search(f"turn {workers.spelled(turn)}", user_id=f"user {number % 2}")
            except (StoreUnavailable, ConnectionLost) as error:
                errors.append(error)
                await asyncio.sleep(0.05)

    settings = load_settings(postgres={"pool_timeout_s": 30}, recalls={"enabled": False})
    async with Memory.open(url, settings=settings, embedder=WordEmbedder()) as memory:
        writers = [asyncio.ensure_future(write(memory, number)) for number in range(4)]
        for kill in range(2):
            before = len(acknowledged)
            while len(acknowledged) < before + 10:
                await asyncio.sleep(0.02)
                assert not any(writer.done() for writer in writers)
            own_server.end(signal.SIGKILL)
            while len(errors) <= kill:
                await asyncio.sleep(0.02)
            await asyncio.to_thread(own_server.start)
        before = len(acknowledged)
        while len(acknowledged) < before + 10:  # it goes on by itself
            await asyncio.sleep(0.02)
            assert not any(writer.done() for writer in writers)
        over.set()
        await asyncio.gather(*writers)
        there = [kept.id for user in ("user 0", "user 1") for kept in await stored(memory, user)]
        assert acknowledged <= set(there)
        assert len(set(there)) == len(there)
        await memory.add("life goes on", user_id="mei")
        assert contents(await memory.search("life", user_id="mei", limit=1)) == ["life goes on"]
    assert errors, "the callers were told"
