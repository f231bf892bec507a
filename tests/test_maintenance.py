"""Maintenance: expired memories are archived, types have their own rules, and one process at a time does it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.areas.background import maintain as run_maintenance
from jiyi.areas.maintenance import maintainer_of
from jiyi.keep import maintain
from jiyi.settings import load_settings
from jiyi.store.write_set import LeaseLost
from jiyi.testing import Clock, WordEmbedder
from support import rows_with, stored

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def clock() -> Iterator[Clock]:
    with Clock(START) as clock:
        yield clock


def opened(place: str | Path, **keep: Any) -> AbstractAsyncContextManager[Memory]:
    settings = load_settings(extraction={"enabled": False}, maintenance=keep)
    return Memory.open(place, settings=settings, embedder=WordEmbedder(512))


def similar(number: int) -> list[str]:
    return [f"My trip number {at} to the old harbour town cost {at}00 euros" for at in range(number)]


async def test_what_has_run_out_is_archived_and_says_why(place: str | Path, clock: Clock) -> None:
    async with opened(place, types={"command_output": {"ttl_days": 7}}) as memory:
        short = (await memory.add("The code is 77", user_id="mei", expires_at=START + 2 * DAY)).memories[0]
        typed = (await memory.add("ls: 3 files", user_id="mei", memory_type="command_output")).memories[0]
        own = await memory.add("ls: 4 files", user_id="mei", memory_type="command_output", expires_at=START + 99 * DAY)
        await memory.add("Tea is good", user_id="mei")
        clock.now += 8 * DAY
        done = await memory.maintenance.run()
        assert (done.users, done.expired, done.problems) == (1, 2, ())
        why = [(await memory.history(one.id, user_id="mei"))[-1].reason for one in (short, typed)]
        assert why == ["it expired on 2026-01-07", "memories of type command_output last 7 days"]
        assert {item.content for item in await stored(memory)} == {"ls: 4 files", "Tea is good"}
        assert (await memory.get(own.memories[0].id, user_id="mei")).status == "active"
        assert {item.content for item in await stored(memory, status="archived")} == {"The code is 77", "ls: 3 files"}
        await memory.maintenance.undo(typed.id, user_id="mei")
        await memory.update(typed.id, user_id="mei", expires_at=clock.now + DAY)
        assert len(await stored(memory)) == 3, "it can be brought back, with an end of its own"
        await memory.maintenance.undo(short.id, user_id="mei")
        await memory.update(short.id, user_id="mei", expires_at=None)
        assert "The code is 77" in {item.content for item in await stored(memory)}, "or with none"


async def test_a_types_time_is_over_before_upkeep_comes(place: str | Path, clock: Clock) -> None:
    async with opened(place, types={"command_output": {"ttl_days": 7}}) as memory:
        await memory.add("ls: 3 files", user_id="mei", memory_type="command_output")
        await memory.add("ls: 4 files", user_id="mei", memory_type="command_output", expires_at=START + 99 * DAY)
        assert len(await stored(memory, memory_types=["command_output"])) == 2, "not yet"
        clock.now += 7 * DAY - timedelta(seconds=1)
        for _ in range(2):  # the second time from the cache
            assert len((await memory.search("ls", user_id="mei")).hits) == 2
        clock.now += timedelta(seconds=1)
        assert [hit.summary for hit in (await memory.search("ls", user_id="mei")).hits] == ["ls: 4 files"]
        assert [item.content for item in await stored(memory)] == ["ls: 4 files"]
        assert await memory.count(user_id="mei") == 1
        looked = await memory.maintenance.run(dry_run=True)
        assert (looked.users, looked.expired, looked.compressed) == (1, 1, 0)
        assert (await memory.maintenance.run()).expired == 1
        assert [item.content for item in await stored(memory, status="archived")] == ["ls: 3 files"]


async def test_a_dry_run_counts_what_is_then_done_and_changes_nothing(place: str | Path, clock: Clock) -> None:
    async with opened(place, types={"log": {"ttl_days": 7}}) as memory:
        for user_id in ("mei", "bo"):
            await memory.add(similar(6), user_id=user_id)
            await memory.add("started", user_id=user_id, memory_type="log")
        clock.now += 31 * DAY
        looked = await memory.maintenance.run(dry_run=True)
        assert (await memory.maintenance.run(user_id="mei", dry_run=True)).users == 1
        assert len(await stored(memory)) == 6 and await stored(memory, status="archived") == []
        assert looked == await memory.maintenance.run() and looked.compressed == 12 and looked.expired == 2


async def test_types_have_policies_of_their_own(place: str | Path, clock: Clock) -> None:
    types = {"note": {"never_compress": True}, "log": {"compress_after_days": 3}, "skill": {"never_compress": False}}
    async with opened(place, types=types) as memory:
        for memory_type in ("note", "log", "skill", "fact"):
            for text in similar(3):
                await memory.add(text, user_id="mei", memory_type=memory_type)
        clock.now += 5 * DAY
        assert (await memory.maintenance.run()).compressed == 3
        clock.now += 30 * DAY
        assert (await memory.maintenance.run()).compressed == 6
        left = [item.memory_type for item in await stored(memory)]
        assert sorted(left) == ["fact", "log", "note", "note", "note", "skill"]


async def test_decay_changes_ranking_and_nothing_else(path: Path, clock: Clock) -> None:
    """A type with a short half-life falls behind; nothing is changed or hidden."""
    search = {"preset": "words_and_time"}
    for days, first in ((1.0, "fact"), (300.0, "news")):
        settings = load_settings(search=search, maintenance={"types": {"news": {"half_life_days": days}}})
        async with Memory.open(path.with_name(f"{days}.db"), settings=settings, embedder=WordEmbedder()) as memory:
            await memory.add("The harbour is open", user_id="mei", memory_type="news")
            await memory.add("The harbour is open.", user_id="mei", memory_type="fact", occurred_at=START - 5 * DAY)
            clock.now = START + 20 * DAY
            found = await memory.search("harbour open", user_id="mei", explain=True)
            assert next(hit.memory_type for hit in found.hits) == first
            assert len(found.hits) == 2 and (await memory.maintenance.run()).expired == 0
            clock.now = START


async def test_every_user_gets_a_turn_and_the_round_is_one_processs(place: str | Path, clock: Clock) -> None:
    async with opened(place) as memory, opened(place) as other:
        for user in ("mei", "bob", "林梅", "eve"):
            for text in similar(3):
                await memory.add(text, user_id=user)
        clock.now += 40 * DAY
        both = await asyncio.gather(memory.maintenance.run(), other.maintenance.run())
        assert sorted(one.users for one in both) == [0, 4]
        assert "another process is at it" in str([one.problems for one in both])
        assert sum(one.made for one in both) == 4
        assert await memory.jobs.list() and all(job.user_id for job in await memory.jobs.list()), "it is no user's job"


async def test_a_round_goes_on_where_it_was_broken_off(place: str | Path, clock: Clock) -> None:
    async with opened(place) as memory:
        users = [f"user-{at}" for at in range(6)]
        for user in users:
            for text in similar(3):
                await memory.add(text, user_id=user)
        clock.now += 40 * DAY
        first = maintainer_of(memory._engine)
        turn, seen = first._turn, []

        async def dies_at_the_third(user_id: str, tally: Any) -> bool:
            seen.append(user_id)
            if len(seen) == 3:
                raise KeyboardInterrupt
            return await turn(user_id, tally)

        first._turn = dies_at_the_third  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            await first.run_all(forced=False)
        assert rows_with(place, *users)["jobs"] == 18 + 2, "where it has come to names nobody"
        second = maintainer_of(memory._engine)
        assert await second.run_all(forced=True) is None, "the lease holds"
        clock.now += timedelta(minutes=6)
        done = await second.run_all(forced=False)
        assert done is not None and (done.users, done.made) == (4, 4)
        with pytest.raises(LeaseLost):
            await first._save_position("x")
        assert await second.run_all(forced=False) is None, "not due before tomorrow"
        clock.now += DAY
        again = await second.run_all(forced=False)
        assert again is not None and (again.users, again.made) == (6, 0)


async def test_one_with_very_much_does_not_keep_others_waiting(
    place: str | Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.keep.maintain.MAX_BUNDLES", 1)
    async with opened(place) as memory:
        for user, number in (("mei", 18), ("bob", 3)):
            for text in similar(number):
                await memory.add(text, user_id=user)
        clock.now += 40 * DAY
        maintainer = maintainer_of(memory._engine)
        order: list[str] = []
        turn = maintainer._turn

        async def noted(user_id: str, tally: Any) -> bool:
            order.append(user_id)
            return await turn(user_id, tally)

        maintainer._turn = noted  # type: ignore[method-assign]
        done = await maintainer.run_all(forced=True)
        assert done is not None and done.compressed == 21
        assert set(order[:2]) == {"mei", "bob"} and order.count("mei") > 2


async def test_a_worker_looks_after_memories_by_itself(path: Path, clock: Clock) -> None:
    async with opened(path) as memory:
        for text in similar(3):
            await memory.add(text, user_id="mei")
        clock.now += 40 * DAY
        working = asyncio.create_task(memory.jobs.work(until_idle=False))
        while len(await stored(memory)) != 1:
            await asyncio.sleep(0.02)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    async with opened(path, interval_hours=None) as memory:
        await memory.maintenance.run(user_id="mei")
        await asyncio.wait_for(run_maintenance(memory._engine), 60)


async def test_who_stood_still_for_longer_than_the_lease_is_told_so(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    await memory.add("something", user_id="mei")
    monkeypatch.setattr(maintain, "LEASE", timedelta(0))
    done = await memory.maintenance.run()
    assert done.problems == ("another process is at it",)
