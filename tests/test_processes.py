"""Several processes on one file: no error, nothing lost, nothing doubled, all is seen, even when some are killed."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import workers
from jiyi import Memory
from jiyi.testing import WordEmbedder
from support import LONG, Place, ask, contents, dump, stored
from workers import crew, processes


async def live_together(place: Place, seconds: float) -> None:
    told = crew([(workers.live, (place, number, seconds)) for number in range(8)], timeout=seconds + 120)
    assert [problem for problem in told if isinstance(problem, str)] == []
    acknowledged = {memory_id for ids in told for memory_id in ids}
    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        there = await stored(memory)
        assert {kept.id for kept in there} == acknowledged
        assert len({kept.content for kept in there}) == len(there)  # no duplicate
        assert (await memory.search("common", user_id="mei")).total_found == len(there)
    assert_whole(place)


def assert_whole(place: Place) -> None:
    """Every memory has its terms, vector, first revision; nothing belongs to no memory."""
    if isinstance(place, Path):
        assert ask(place, "PRAGMA integrity_check") == [("ok",)]
        assert ask(place, "PRAGMA foreign_key_check") == []
    memories = set(ask(place, "SELECT user_id, id FROM memories"))
    for table in ("terms", "embeddings"):
        assert set(ask(place, f"SELECT user_id, memory_id FROM {table}")) == memories
    assert set(ask(place, "SELECT user_id, memory_id FROM revisions WHERE version = 1")) == memories
    versions = "SELECT user_id, memory_id, max(version), count(*) FROM revisions GROUP BY user_id, memory_id"
    now = ask(place, "SELECT user_id, id, version FROM memories")
    assert {(*memory, newest, newest) for *memory, newest in now} == set(ask(place, versions))


async def test_eight_processes_add_and_search(place: Place) -> None:
    await live_together(place, 5)


@pytest.mark.slow
@pytest.mark.skipif(not LONG, reason="a whole minute; set JIYI_TEST_LONG=1")
async def test_eight_processes_add_and_search_for_a_minute(place: Place) -> None:
    await live_together(place, 60)


def test_the_same_statements_from_all_make_one_memory_each(place: Place) -> None:
    texts = [f"fact {number}" for number in range(12)]
    told = crew([(workers.same_statements, (place, texts)) for _ in range(6)])
    assert sum(told) == 12
    assert len(dump(place)["memories"]) == 12


def test_every_process_sees_the_others_writes_in_its_next_search(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "done"
    folder.mkdir()
    assert crew([(workers.see_each_other, (place, number, folder, 4)) for number in range(4)]) == [None] * 4


async def test_counters_of_several_processes_lose_nothing(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        made = (await memory.add("a counter", user_id="mei", metadata={"n": 0})).memories[0]
        assert crew([(workers.count_up, (place, made.id, 8)) for _ in range(4)]) == [None] * 4
        after = await memory.get(made.id, user_id="mei")
        assert (after.metadata["n"], after.version) == (32, 33)


async def test_what_was_acknowledged_survives_kill_9(place: Place, tmp_path: Path) -> None:
    chance = random.Random(4)
    for turn in range(3):
        writers = [
            processes.Process(
                target=workers.write_until_killed, args=(place, tmp_path / f"log{turn}{number}", turn * 2 + number)
            )
            for number in range(2)
        ]
        for writer in writers:
            writer.start()
        logs = [tmp_path / f"log{turn}{number}" for number in range(2)]
        until = time.monotonic() + 120
        while time.monotonic() < until and not all(log.exists() and log.stat().st_size > 200 for log in logs):
            time.sleep(0.01)
        for writer in writers:
            time.sleep(chance.uniform(0.2, 0.6))
            writer.kill()
        for writer in writers:
            writer.join()
            writer.close()
    lines = [line for log in tmp_path.glob("log*") for line in log.read_text().splitlines(keepends=True)]
    noted = {mark: {line[1:].strip() for line in lines if line[0] == mark and line[-1] == "\n"} for mark in "+?-"}
    assert len(noted["+"]) > 20
    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        there = {kept.id for kept in await stored(memory)}
        assert noted["+"] - noted["?"] <= there
        assert not noted["-"] & there
        assert (await memory.search("process", user_id="mei", search_mode="keyword")).searched == len(there)
        await memory.add("life goes on", user_id="mei")
        assert contents(await memory.search("life goes", user_id="mei", limit=1)) == ["life goes on"]
    assert_whole(place)
