"""Standing wishes and limits: a running process sees every one that is committed, whoever commits it and however."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from conftest import verbatim
from jiyi import CandidateMemory, Memory
from jiyi.agents import recall
from jiyi.agents.recall import Conversation
from jiyi.areas.standing import MAX_RETURNED
from jiyi.models import utc_now
from jiyi.testing import WordEmbedder
from rest import running

LIMIT = "Mei is allergic to peanuts"
WAYS = ("import", "update", "restore", "older id")
LONG_AGO_NS = 1_500_000_000 * 10**9


@contextmanager
def clock_behind() -> Iterator[None]:
    """Let new ids be older than all others, as those of a machine whose clock is behind."""
    with patch("jiyi.ids._last", 0), patch("jiyi.ids.time", SimpleNamespace(time_ns=lambda: LONG_AGO_NS)):
        yield


@pytest.fixture
async def other(place: str | Path) -> AsyncIterator[Memory]:
    """Another memory of the same store, as another process has it."""
    async with Memory.open(place, settings=verbatim(), embedder=WordEmbedder(512)) as other:
        yield other


async def standing(memory: Memory, user_id: str = "mei") -> list[str]:
    found = [one.content for one in await Conversation(memory=memory, user_id=user_id).standing()]
    block = (await recall(memory, "xyzzy", user_id=user_id)).block
    assert all(content in block for content in found)
    return found


async def old_memory(memory: Memory, way: str, folder: Path) -> str:
    """Create what will be changed, and something newer."""
    text = LIMIT if way == "restore" else "Mei bought peanuts"
    with clock_behind():
        [old] = (await memory.add(text, user_id="mei", memory_type="fact")).memories
    if way == "restore":
        await memory.update(old.id, user_id="mei", status="archived")
    if way == "import":
        with clock_behind():
            async with Memory.open(folder / "elsewhere.db", settings=verbatim(), embedder=WordEmbedder()) as elsewhere:
                await elsewhere.add(LIMIT, user_id="mei", memory_type="fact")
                await elsewhere.transfer.export(folder / "export.jsonl", user_id="mei")
    await memory.add("likes green tea", user_id="mei", memory_type="preference")
    return old.id


async def commit(memory: Memory, way: str, old: str, folder: Path) -> None:
    match way:
        case "import":
            await memory.transfer.import_memories(folder / "export.jsonl")
        case "update":
            await memory.update(old, user_id="mei", content=LIMIT)
        case "restore":
            await memory.restore(old, user_id="mei")
        case _:
            with clock_behind():
                await memory.add(LIMIT, user_id="mei", memory_type="fact")


@pytest.mark.parametrize("process", ["same", "other"])
@pytest.mark.parametrize("way", WAYS)
async def test_a_limit_is_seen_however_it_is_committed(
    memory: Memory, other: Memory, way: str, process: str, tmp_path: Path
) -> None:
    old = await old_memory(memory, way, tmp_path)
    assert await standing(memory) == []
    await commit(memory if process == "same" else other, way, old, tmp_path)
    assert await standing(memory) == [LIMIT]


@pytest.mark.parametrize("way", WAYS)
def test_a_client_sees_it_too(way: str, tmp_path: Path) -> None:
    async def look(url: str, place: Path) -> None:
        async with Memory.open(place, settings=verbatim(), embedder=WordEmbedder(512)) as other:
            old = await old_memory(other, way, tmp_path)
            async with Memory.open(url) as client:
                assert await standing(client) == []
                await commit(other, way, old, tmp_path)
                assert await standing(client) == [LIMIT]

    with running(tmp_path / "memory.db") as server:
        asyncio.run(look(server.url, tmp_path / "memory.db"))


async def test_a_limit_inside_a_large_import_is_seen(memory: Memory, tmp_path: Path) -> None:
    await memory.add("likes green tea", user_id="mei", memory_type="preference")
    assert await standing(memory) == []
    with clock_behind():
        async with Memory.open(tmp_path / "elsewhere.db", settings=verbatim(), embedder=WordEmbedder()) as elsewhere:
            await elsewhere.add(LIMIT, user_id="mei", memory_type="fact")
            for start in (0, 600):
                facts = [
                    CandidateMemory(content=f"Door {at} has a lock", memory_type="fact")
                    for at in range(start, start + 600)
                ]
                await elsewhere.add(facts, user_id="mei")
            await elsewhere.transfer.export(tmp_path / "export.jsonl", user_id="mei")
    await memory.transfer.import_memories(tmp_path / "export.jsonl")
    assert await standing(memory) == [LIMIT]


async def test_it_is_gone_with_its_user_and_comes_back_with_new_words(memory: Memory, other: Memory) -> None:
    await memory.add(LIMIT, user_id="mei", memory_type="fact")
    assert await standing(memory) == [LIMIT]
    await other.delete_all("mei")
    assert await standing(memory) == []
    await other.add("Mei is allergic to shellfish", user_id="mei", memory_type="fact")
    assert await standing(memory) == ["Mei is allergic to shellfish"]


async def test_a_private_conversation_has_its_own_only(memory: Memory, other: Memory) -> None:
    talk = {agent: Conversation(memory=memory, user_id="mei", agent_id=agent, private=True) for agent in ("hr", "it")}
    assert [await one.standing() for one in talk.values()] == [[], []]
    await other.add(LIMIT, user_id="mei", memory_type="fact", agent_id="hr")
    assert [len(await one.standing()) for one in talk.values()] == [1, 0]


async def test_older_ones_take_the_place_of_ended_ones(memory: Memory) -> None:
    for at in range(MAX_RETURNED + 5):
        await memory.add(f"Mei is allergic to thing{at}", user_id="mei", memory_type="fact")
    conversation = Conversation(memory=memory, user_id="mei")
    newest = await conversation.standing()
    assert len(newest) == MAX_RETURNED
    for one in newest[:10]:
        await memory.update(one.id, user_id="mei", valid_to=utc_now())
    assert len(await conversation.standing()) == MAX_RETURNED - 5
