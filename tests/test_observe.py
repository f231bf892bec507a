"""`observe`: a turn is stored when it returns, also in a program that ends without `close`; what is lost is said."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from typer.testing import CliRunner

from jiyi import Memory, ReceiptState
from jiyi.agents.tools import MemoryTools
from jiyi.areas import sessions
from jiyi.areas.sessions import MAX_WAIT_S
from jiyi.cli.app import app
from jiyi.embed import Vectors
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from rest import running
from support import Place, contents, file_bytes, rows_with
from test_cli_process import HEEDS
from test_server_process import served

PATIENCE_S = 60
BY_HAND = load_settings(jobs={"in_process": False})
SESSION: Any = {"user_id": "mei", "session_id": "s"}

CARELESS = """
import asyncio, sys
import jiyi.areas.sessions
from jiyi import Memory
from jiyi.testing import WordEmbedder

jiyi.areas.sessions.MAX_WAIT_S = 50  # the machine may be busy

async def chat():
    memory = await Memory.open(sys.argv[1], embedder=WordEmbedder())
    for at in range(3):
        await memory.observe(f"My favourite number is {at}", "Noted.", user_id="mei", session_id="s")

asyncio.run(chat())
"""
CARELESS_SYNC = """
import os, sys
import jiyi.areas.sessions
from jiyi.sync import Memory
from jiyi.testing import WordEmbedder

jiyi.areas.sessions.MAX_WAIT_S = 50
memory = Memory.open(sys.argv[1], embedder=WordEmbedder())
for at in range(3):
    memory.observe(f"My favourite number is {at}", "Noted.", user_id="mei", session_id="s")
os._exit(0)
"""
HANGING = """
import asyncio, sys
from jiyi import Memory
from jiyi.areas import background, sessions
from jiyi.testing import WordEmbedder

class Hanging(WordEmbedder):
    async def embed_documents(self, texts):
        print("embedding", flush=True)
        await asyncio.sleep(3600)

sessions.KEEPING_S, sessions.MAX_WAIT_S, background.TURN_LEASE_S = 60, float(sys.argv[3]), 3

async def chat():
    memory = await Memory.open(sys.argv[1], embedder=Hanging())
    for at in range(3):
        await memory.observe(f"My favourite number is {at}", "Noted.", user_id="mei", session_id=f"s{at}")
    print("observed", flush=True)
    await asyncio.sleep(float(sys.argv[2]))

asyncio.run(chat())
"""
HANGING_SYNC = (
    HANGING.split("async def chat", maxsplit=1)[0].replace("from jiyi import", "from jiyi.sync import")
    + """
import time
memory = Memory.open(sys.argv[1], embedder=Hanging())
for at in range(3):
    memory.observe(f"My favourite number is {at}", "Noted.", user_id="mei", session_id=f"s{at}")
print("observed", flush=True)
time.sleep(float(sys.argv[2]))
"""
)
FACES = pytest.mark.parametrize("program", [HANGING, HANGING_SYNC], ids=["asynchronous", "synchronous"])
SAID = [text for at in range(3) for text in (f"My favourite number is {at}", "Noted.")]


def run(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, str(path), "0", "0.5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("program", [CARELESS, CARELESS_SYNC], ids=["asynchronous", "synchronous"])
async def test_a_program_that_ends_without_close_loses_no_turn(program: str, path: Path) -> None:
    done = await asyncio.to_thread(run, program, path)
    assert "lost" not in done.stderr
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        assert len((await memory.messages(user_id="mei")).items) == 6


def end(program: str, place: Place, how: signal.Signals, when: str) -> None:
    """Start a program, and end it when it has written a line."""
    command = [sys.executable, "-c", program, str(place), "3600", "0.5" if when == "observed" else "3600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            for line in process.stdout or ():
                if line.strip() == when:
                    break
            process.send_signal(how)
            _, told = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert process.returncode != 0 and "lost" not in told, told


async def texts(memory: Memory) -> list[str]:
    return [message.text for message in reversed((await memory.messages(user_id="mei")).items)]


async def assert_continued(place: Place, said: list[str]) -> None:
    """What was said is there, becomes memories in its order, and is there once."""
    async with Memory.open(place, embedder=WordEmbedder(), settings=BY_HAND) as memory:
        assert await texts(memory) == said
        before = [message.id for message in (await memory.messages(user_id="mei")).items]
        assert (await memory.jobs.counts()).by_state["accepted"] == len(await memory.jobs.list(user_id="mei"))
        async with Memory.open(place, embedder=WordEmbedder(), settings=BY_HAND) as other:
            await asyncio.gather(memory.jobs.work(), other.jobs.work())
        found = await memory.search("favourite number", user_id="mei", limit=10)
        assert {hit.content for hit in found.hits} >= {*said} - {"Noted."}
        rows = await memory.list(user_id="mei", memory_types=["message"])
        assert [row.content for row in reversed(rows.items)] == said
        assert [message.id for message in (await memory.messages(user_id="mei")).items] == before
        assert {job.state for job in await memory.jobs.list(user_id="mei")} == {ReceiptState.INDEXED}
        assert await memory.jobs.work() == 0


@FACES
async def test_turns_of_a_killed_program_are_continued(program: str, place: Place) -> None:
    await asyncio.to_thread(end, program, place, signal.SIGKILL, "observed")
    await assert_continued(place, SAID)


@FACES
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
async def test_a_program_may_be_ended_while_it_observes(program: str, how: signal.Signals, path: Path) -> None:
    await asyncio.to_thread(end, f"{HEEDS}\n{program}", path, how, "embedding")
    await assert_continued(path, SAID[:2])


@FACES
async def test_turns_of_a_program_that_ends_while_an_embedder_hangs_are_continued(program: str, path: Path) -> None:
    done = await asyncio.to_thread(run, program, path)
    assert "lost" not in done.stderr
    await assert_continued(path, SAID)


async def test_a_memory_with_an_embedder_that_hangs_can_be_closed(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sessions, "MAX_WAIT_S", 0.2)
    monkeypatch.setattr(sessions, "DERIVING_S", 0.2)
    async with Memory.open(place, embedder=SlowFor("number")) as memory:
        await memory.observe("My favourite number is 0", user_id="mei")
        assert (await memory.usage.observed()).waiting == 1
        began = monotonic()
        assert "number" not in await memory.context("What is my favourite number?", user_id="mei")
        assert monotonic() - began < 10, "a context does not wait for it for long"
    assert "lost" not in caplog.text
    await assert_continued(place, SAID[:1])


async def test_a_full_queue_holds_up_the_caller_for_seconds_only(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_WAITING", 2)
    monkeypatch.setattr(sessions, "MAX_WAIT_S", 0.2)
    monkeypatch.setattr(sessions, "DERIVING_S", 0.1)
    async with Memory.open(path, embedder=SlowFor("number")) as memory:
        for at in range(4):
            await asyncio.wait_for(memory.observe(f"My favourite number is {at}", user_id="mei"), PATIENCE_S)
        assert len(await texts(memory)) == 4, "all are stored"


async def test_a_stored_turn_is_deleted_with_its_user(place: Place) -> None:
    await asyncio.to_thread(end, HANGING, place, signal.SIGKILL, "observed")
    async with Memory.open(place, embedder=WordEmbedder(), settings=BY_HAND) as memory:
        assert rows_with(place, "favourite number")
        await memory.delete_all("mei")
        assert await memory.jobs.work() == 0
        assert await texts(memory) == [] and await memory.jobs.list(user_id="mei") == []
        assert rows_with(place, "favourite number") == {}
        assert "://" in str(place) or b"favourite number" not in file_bytes(Path(place)), (
            "while it is open, log and all"
        )


async def test_a_stored_turn_is_exported_and_shown(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.to_thread(end, HANGING, place, signal.SIGKILL, "observed")
    monkeypatch.setenv("JIYI_JOBS__IN_PROCESS", "false")
    words = ["search", "number", "--user", "mei", "--store", str(place)]
    searched = await asyncio.to_thread(CliRunner().invoke, app, words)
    assert "3 jobs of user 'mei' will make" in searched.output
    copy = tmp_path / "copy.db"
    async with Memory.open(place, embedder=WordEmbedder(), settings=BY_HAND) as memory:
        [newest, *_] = await memory.jobs.list(user_id="mei")
        assert (newest.kind, newest.state) == ("observe", ReceiptState.ACCEPTED)
        await memory.transfer.export(tmp_path / "export.jsonl")
    async with Memory.open(copy, embedder=WordEmbedder(), settings=BY_HAND) as memory:
        await memory.transfer.import_memories(tmp_path / "export.jsonl")
    await assert_continued(copy, SAID)


async def test_a_turn_that_a_server_took_survives_its_end(path: Path) -> None:
    with served(path) as (url, process):
        async with Memory.open(url) as memory:
            await memory.observe(*SAID[:2], user_id="mei")
            assert (await memory.sessions.flush()).accepted == 1
            process.kill()
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        assert await texts(memory) == SAID[:2]


async def test_no_memory_is_made_of_what_is_deleted_in_between(place: Place) -> None:
    """An assistant repeats a fact, which is deleted while the turn is read."""
    embedder = SlowFor("Zanzibarquartz.")
    async with Memory.open(place, embedder=WordEmbedder(64)) as other, Memory.open(place, embedder=embedder) as memory:
        told = await other.add([{"role": "user", "content": "I live in Zanzibarquartz"}], **SESSION)
        echo = {"role": "assistant", "content": "You live in Zanzibarquartz."}
        turn = [echo, {"role": "user", "content": "I like tea"}]
        observing = asyncio.create_task(memory.sessions.observe(turn, **SESSION))
        await embedder.reached.wait()
        [fact] = (one for one in told.memories if one.source != "message")
        await other.delete(fact.id, user_id="mei")
        embedder.gate.set()
        await observing
        assert (await memory.sessions.flush()).failed == 0
        assert await texts(memory) == ["I like tea"]
        assert contents(await memory.search("where do I like tea?", user_id="mei")) == ["I like tea"]
    assert rows_with(place, "Zanzibarquartz") == {}


async def test_the_next_context_sees_an_observed_turn(place: Place) -> None:
    async with (
        Memory.open(place, embedder=WordEmbedder()) as memory,
        Memory.open(place, embedder=WordEmbedder()) as other,
    ):
        for food in ("peanuts", "shellfish", "celery"):
            await memory.observe(f"I am allergic to {food}", "Noted.", user_id="mei", session_id=food)
            for one in (memory, other):
                assert food in await one.context(f"am I allergic to {food}?", user_id="mei")


class SlowFor(WordEmbedder):
    """Takes long for texts with a word."""

    def __init__(self, word: str) -> None:
        super().__init__(64)
        self._word = word
        self.gate, self.reached = asyncio.Event(), asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if any(self._word in text for text in texts):
            self.reached.set()
            await self.gate.wait()
        return await super().embed_documents(texts)


async def test_the_context_and_the_tools_of_a_client_wait_for_a_late_turn(path: Path) -> None:
    embedder = SlowFor("peanuts")
    with running(path, embedder=embedder) as server:
        async with Memory.open(server.url, settings=load_settings(tools={"recall_timeout_s": 60})) as memory:
            await memory.observe("I am allergic to peanuts", user_id="mei")
            assert (await memory.usage.observed()).waiting == 1
            asked = "what am I allergic to?"
            waiting = asyncio.create_task(memory.context(asked, user_id="mei"))
            search = MemoryTools(memory, user_id="mei").call("search_memories", {"query": asked})
            searching = asyncio.create_task(search)
            await asyncio.sleep(0.2)
            server._loop.call_soon_threadsafe(embedder.gate.set)
            assert "peanuts" in await waiting
            assert "peanuts" in (await searching).text


async def test_slow_turns_of_one_user_hold_up_neither_the_chat_nor_others(path: Path) -> None:
    embedder = SlowFor("slow")
    async with Memory.open(path, embedder=embedder) as memory:
        began = monotonic()
        for at in range(20):
            await memory.observe(f"slow turn {at}", user_id="mei", session_id="s")
        await memory.observe("I like tea", user_id="bo")
        assert monotonic() - began < 10 * MAX_WAIT_S, "only the first is waited for, and not for long"
        assert (await memory.usage.observed()).waiting == 20
        assert len((await memory.messages(user_id="bo")).items) == 1
        embedder.gate.set()
        assert (await memory.sessions.flush()).accepted == 21
        said = [message.text for message in (await memory.messages(user_id="mei")).items]
        assert said == [f"slow turn {at}" for at in reversed(range(20))], "in their order"
