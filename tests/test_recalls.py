"""What was asked and what came back is kept, cheaply, and leaves with what it names."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import InvalidInput, Memory, MemoryItem, Recall, StoreError
from jiyi.agents.recall import Conversation
from jiyi.agents.tools import MemoryTools
from jiyi.areas.recalls import MAX_HITS
from jiyi.errors import StoreUnavailable
from jiyi.read import accesses
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import LONG_AGO, dump, file_bytes, rows_with, stored


async def two(memory: Memory, user_id: str = "mei") -> tuple[MemoryItem, ...]:
    return (await memory.add(["likes green tea", "喜欢绿茶和咖啡"], user_id=user_id)).memories


async def test_a_search_is_recorded_with_what_it_found_and_when(memory: Memory) -> None:
    await two(memory)
    found = await memory.search("green tea", user_id="mei")
    again = await memory.search("绿茶", user_id="mei")
    newest, oldest = await memory.usage.recalls(user_id="mei")
    assert (oldest.query, oldest.memory_ids) == ("green tea", tuple(hit.id for hit in found.hits))
    assert (newest.query, newest.memory_ids) == ("绿茶", tuple(hit.id for hit in again.hits))
    assert oldest.user_id == "mei"
    assert oldest.recalled_at < newest.recalled_at


async def test_a_recall_names_the_session_and_the_agent_that_it_is_for(memory: Memory) -> None:
    await two(memory)
    conversation = Conversation(memory=memory, user_id="mei", session_id="s1", agent_id="cook")
    await conversation.recall("green tea")
    await MemoryTools(memory, user_id="mei", session_id="s2", agent_id="maid").call("search_memories", {"query": "tea"})
    await memory.search("绿茶", user_id="mei")
    plain, of_tool, of_agent = await memory.usage.recalls(user_id="mei")
    assert (of_agent.session_id, of_agent.agent_id) == ("s1", "cook")
    assert (of_tool.session_id, of_tool.agent_id) == ("s2", "maid")
    assert (plain.session_id, plain.agent_id) == (None, None)


async def test_recalls_are_read_newest_first_from_a_moment_on_up_to_a_limit(memory: Memory) -> None:
    await two(memory)
    for number in range(4):
        await memory.search(f"tea {number}", user_id="mei")
    everything = await memory.usage.recalls(user_id="mei")
    assert [recall.query for recall in everything] == ["tea 3", "tea 2", "tea 1", "tea 0"]
    assert await memory.usage.recalls(user_id="mei", limit=2) == everything[:2]
    assert await memory.usage.recalls(user_id="mei", since=everything[1].recalled_at) == everything[:2]
    later = everything[0].recalled_at + timedelta(seconds=1)
    assert await memory.usage.recalls(user_id="mei", since=later) == []


async def test_recalls_check_what_they_are_given(memory: Memory) -> None:
    for wrong in ({"user_id": ""}, {"user_id": "mei", "limit": 0}, {"user_id": "mei", "since": 5}):
        with pytest.raises(InvalidInput):
            await memory.usage.recalls(**wrong)


async def test_one_user_does_not_see_what_another_asked(memory: Memory) -> None:
    await two(memory)
    await two(memory, "bo")
    await memory.search("green tea", user_id="bo")
    assert await memory.usage.recalls(user_id="mei") == []
    assert len(await memory.usage.recalls(user_id="bo")) == 1
    assert {kept.access_count for kept in await stored(memory)} == {0}


async def test_a_search_that_found_nothing_is_no_recall(memory: Memory) -> None:
    await two(memory)
    await memory.search("xylophone", user_id="mei", search_mode="keyword")
    await memory.search("anything", user_id="nobody")
    assert await memory.usage.recalls(user_id="mei") == await memory.usage.recalls(user_id="nobody") == []


async def test_a_search_names_its_best_memories_only(memory: Memory) -> None:
    await memory.add([f"tea number {number}" for number in range(40)], user_id="mei")
    found = await memory.search("tea", user_id="mei", limit=30)
    [recall] = await memory.usage.recalls(user_id="mei")
    assert len(found.hits) == 30
    assert len(recall.memory_ids) == accesses.MOST_NOTED == 20
    assert recall.memory_ids == tuple(hit.id for hit in found.hits[:20])


async def test_a_context_is_a_recall_of_what_it_may_show(memory: Memory) -> None:
    await memory.add([f"tea number {number}" for number in range(40)], user_id="mei")
    await memory.context("tea", user_id="mei")
    [recall] = await memory.usage.recalls(user_id="mei")
    assert len(recall.memory_ids) == MAX_HITS["normal"] == 6


async def test_accesses_are_counted_without_a_trace_in_history_or_feed(memory: Memory, path: Path) -> None:
    made = (await memory.add("likes green tea", user_id="mei")).memories[0]
    before = dump(path)
    for _ in range(3):
        await memory.search("tea", user_id="mei")
    last = (await memory.usage.recalls(user_id="mei"))[0]
    after = await memory.get(made.id, user_id="mei")
    assert (after.access_count, after.last_accessed_at) == (3, last.recalled_at)
    assert after.model_copy(update={"access_count": 0, "last_accessed_at": None}) == made
    changed = {table for table, rows in dump(path).items() if rows != before[table]}
    assert changed == {"memories", "recalls"}


async def test_an_earlier_access_noted_late_does_not_turn_the_clock_back(memory: Memory, path: Path) -> None:
    made = (await memory.add("likes green tea", user_id="mei")).memories[0]
    async with Memory.open(path, embedder=WordEmbedder(512)) as other:
        await memory.search("tea", user_id="mei")
        await other.search("tea", user_id="mei")
        newest = (await other.usage.recalls(user_id="mei"))[0]
        await memory.usage.recalls(user_id="mei")
        kept = await memory.get(made.id, user_id="mei")
        assert (kept.access_count, kept.last_accessed_at) == (2, newest.recalled_at)


async def test_recalls_are_written_in_the_background(
    memory: Memory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accesses, "PAUSE_S", 0.01)
    await two(memory)
    await memory.search("green tea", user_id="mei")
    until = time.monotonic() + 60
    while not dump(path)["recalls"]:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


async def test_closing_writes_what_is_pending(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await two(memory)
        for number in range(accesses.BATCH + 5):
            await memory.search(f"tea {number % 3}", user_id="mei")
    assert len(dump(path)["recalls"]) == accesses.BATCH + 5


async def test_recording_can_be_switched_off(path: Path) -> None:
    settings = load_settings(recalls={"enabled": False})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        await two(memory)
        await memory.search("green tea", user_id="mei")
        assert await memory.usage.recalls(user_id="mei") == []
        assert {kept.access_count for kept in await stored(memory)} == {0}


async def test_only_the_newest_recalls_of_each_user_are_kept(path: Path) -> None:
    async with Memory.open(
        path, settings=load_settings(recalls={"max_per_user": 3}), embedder=WordEmbedder()
    ) as memory:
        for user_id in ("mei", "bo"):
            await two(memory, user_id)
        await memory.search("tea", user_id="bo")
        for number in range(8):
            await memory.search(f"tea {number}", user_id="mei")
            if number % 3 == 0:
                await memory.usage.recalls(user_id="mei")
        assert [recall.query for recall in await memory.usage.recalls(user_id="mei")] == ["tea 7", "tea 6", "tea 5"]
        assert len(await memory.usage.recalls(user_id="bo")) == 1


async def test_what_cannot_be_written_now_is_written_later(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A search does not fail because its access cannot be noted."""
    settings = load_settings(busy_timeout_s=0.5)
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        await two(memory)
        rival = sqlite3.connect(path, isolation_level=None)
        rival.execute("BEGIN IMMEDIATE")
        assert (await memory.search("green tea", user_id="mei")).hits
        await memory._engine.accesses._try_to_flush()
        assert "1 recalls wait to be written" in caplog.text
        rival.execute("ROLLBACK")
        rival.close()
        assert [recall.query for recall in await memory.usage.recalls(user_id="mei")] == ["green tea"]


async def test_a_recall_counts_once_if_the_connection_is_lost_after_the_commit(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await two(memory)
    recalls = memory._engine.store.recalls
    add, failures = recalls.add, [StoreUnavailable("the connection is lost")]

    async def committed_but_not_known(*args: Any) -> None:
        await add(*args)
        if failures:
            raise failures.pop()

    monkeypatch.setattr(recalls, "add", committed_but_not_known)
    assert (await memory.search("green tea", user_id="mei")).hits
    await memory._engine.accesses._try_to_flush()
    assert [recall.query for recall in await memory.usage.recalls(user_id="mei")] == ["green tea"]
    assert max(kept.access_count for kept in await stored(memory)) == 1


async def test_a_pile_that_cannot_be_written_is_bounded(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accesses, "MOST_PENDING", 3)
    await two(memory)
    for number in range(5):
        await memory.search(f"tea {number}", user_id="mei")
    assert [recall.query for recall in await memory.usage.recalls(user_id="mei")] == ["tea 4", "tea 3", "tea 2"]


# -- delete means gone ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [True, False])
async def test_a_deleted_memory_takes_along_the_recalls_that_name_it(memory: Memory, path: Path, written: bool) -> None:
    """The question may repeat the secret. Those that found other things stay."""
    secret, other = (await memory.add(["the zanzibarquartz is red", "likes green tea"], user_id="mei")).memories
    await memory.search("where is the zanzibarquartz", user_id="mei", search_mode="keyword")
    await memory.search("green tea", user_id="mei", search_mode="keyword")
    if written:
        assert len(await memory.usage.recalls(user_id="mei")) == 2
    await memory.delete(secret.id, user_id="mei")
    [left] = await memory.usage.recalls(user_id="mei")
    assert (left.query, left.memory_ids) == ("green tea", (other.id,))
    assert rows_with(path, "zanzibarquartz") == {}
    assert b"zanzibarquartz" not in file_bytes(path)


@pytest.mark.parametrize("written", [True, False])
async def test_an_erased_user_leaves_no_recall(memory: Memory, path: Path, written: bool) -> None:
    await two(memory, "zanzibar")
    await memory.search("quartzquestion tea", user_id="zanzibar")
    if written:
        assert len(await memory.usage.recalls(user_id="zanzibar")) == 1
    await memory.delete_all("zanzibar")
    assert await memory.usage.recalls(user_id="zanzibar") == []
    assert rows_with(path, "quartzquestion", "zanzibar") == {}
    assert b"quartzquestion" not in file_bytes(path)


async def test_another_process_does_not_write_a_recall_of_what_was_deleted_meanwhile(
    memory: Memory, path: Path
) -> None:
    [made, _] = await two(memory)
    async with Memory.open(path, embedder=WordEmbedder(512)) as other:
        await other.search("green tea zanzibarquartz", user_id="mei")
        await memory.delete(made.id, user_id="mei")
        assert await other.usage.recalls(user_id="mei") == []
    assert rows_with(path, "zanzibarquartz") == {}


# -- in scores ------------------------------------------------------------------------------------------------------


async def test_an_access_makes_an_old_memory_fresh_from_the_next_period_on(path: Path) -> None:
    """Within a period equal searches have equal answers, whether a cache is used or not."""
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.add("likes green tea", user_id="mei", occurred_at=LONG_AGO)

    async def freshness(seconds: float) -> list[float]:
        settings = load_settings(cache={"ttl_s": seconds, "max_searches": 0})
        async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
            found = [await memory.search("green tea", user_id="mei", explain=True) for _ in range(2)]
        whys = [one.hits[0].explanation for one in found]
        return [part.value for why in whys if why for part in why.parts if part.name == "recency"]

    assert await freshness(3600) == pytest.approx([0, 0], abs=1e-6)
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.delete_all("mei")
        await memory.add("likes green tea", user_id="mei", occurred_at=LONG_AGO)
    assert await freshness(0.000001) == pytest.approx([0, 1], abs=1e-3)


async def test_a_search_that_looks_back_does_not_know_of_later_accesses(memory: Memory) -> None:
    await memory.add("likes green tea", user_id="mei", occurred_at=LONG_AGO)
    asked = {"user_id": "mei", "asked_at": LONG_AGO + timedelta(days=60), "explain": True}
    first = await memory.search("green tea", **asked)
    await memory.usage.recalls(user_id="mei")
    await memory.update(first.hits[0].id, user_id="mei", metadata={"so it is": "loaded anew"})
    assert (await memory.search("green tea", **asked)).hits[0].explanation == first.hits[0].explanation


async def test_a_question_asked_just_before_a_deletion_is_not_written_after_it(memory: Memory, path: Path) -> None:
    secret = (await memory.add("the vault code is zebra", user_id="mei")).memories[0]
    await memory.add("zebra pictures are in the hall", user_id="mei")
    await memory.search("zebra hall pictures vault", user_id="mei")
    await memory.delete(secret.id, user_id="mei")
    await memory.usage.recalls(user_id="mei")
    assert [recall for recall in await memory.usage.recalls(user_id="mei") if secret.id in recall.memory_ids] == []


async def test_a_user_whose_recalls_cannot_be_written_does_not_stop_the_others(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for user in ("mei", "bo"):
        await memory.add("I like tea", user_id=user)
        await memory.search("tea", user_id=user)
    recalls = memory._engine.store.recalls
    write = recalls.add

    async def fails_for_bo(recalled: Sequence[Recall], keep: int) -> None:
        if any(one.user_id == "bo" for one in recalled):
            raise StoreError("integer out of range")
        await write(recalled, keep)

    monkeypatch.setattr(recalls, "add", fails_for_bo)
    assert len(await memory.usage.recalls(user_id="mei")) == 1
    assert await memory.usage.recalls(user_id="bo") == []
    assert "'bo'" in caplog.text
