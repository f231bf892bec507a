"""`observe`: a turn is stored when it returns, also in a program that ends without `close`; what is lost is said."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import pytest

from jiyi import Memory
from jiyi.agents.tools import MemoryTools
from jiyi.areas.sessions import MAX_WAIT_S
from jiyi.embed import Vectors
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from rest import running
from support import Place

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
from jiyi.testing import WordEmbedder

class Hanging(WordEmbedder):
    async def embed_documents(self, texts):
        await asyncio.sleep(3600)

async def chat():
    memory = await Memory.open(sys.argv[1], embedder=Hanging())
    for at in range(3):
        await memory.observe(f"My favourite number is {at}", user_id="mei")

asyncio.run(chat())
"""
HANGING_SYNC = (
    HANGING.split("async def chat", maxsplit=1)[0].replace("from jiyi import", "from jiyi.sync import")
    + """
memory = Memory.open(sys.argv[1], embedder=Hanging())
for at in range(3):
    memory.observe(f"My favourite number is {at}", user_id="mei")
"""
)


def run(program: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("program", [CARELESS, CARELESS_SYNC], ids=["asynchronous", "synchronous"])
async def test_a_program_that_ends_without_close_loses_no_turn(program: str, path: Path) -> None:
    done = await asyncio.to_thread(run, program, path)
    assert "lost" not in done.stderr
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        assert len((await memory.messages(user_id="mei")).items) == 6


@pytest.mark.parametrize("program", [HANGING, HANGING_SYNC], ids=["asynchronous", "synchronous"])
def test_turns_that_are_lost_are_counted_in_a_warning(program: str, path: Path) -> None:
    done = run(program, path)
    assert done.stderr.count("3 observed turns are lost") == 1 and "close" in done.stderr
    assert "mei" not in done.stderr and "number" not in done.stderr


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
        self.gate = asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        if any(self._word in text for text in texts):
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
