"""Every kind of drift that somebody can plant is found, and repaired; a sound store is called sound."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import asyncpg
import numpy as np
import pytest

from jiyi import Memory
from jiyi.testing import FailingEmbedder, WordEmbedder
from support import NOW, Place, contents, dump

CHAT = [
    {"role": "user", "content": "I live in Berlin and I like tea", "name": "Mei"},
    {"role": "user", "content": "我对花生过敏，下周三去上海出差"},
    {"role": "user", "content": "I moved to Rome"},
]


@pytest.fixture
async def learning(place: Place) -> AsyncIterator[Memory]:
    async with Memory.open(place, embedder=WordEmbedder(64)) as memory:
        await memory.add(CHAT, user_id="mei", session_id="s", user_names=["Mei"])
        await memory.add(["likes chess", "plays go"], user_id="mei", tags=["游戏"])
        await memory.add({"content": "a key", "memory_key": "k", "valid_to": NOW}, user_id="bo")
        made = (await memory.add("likes jazz", user_id="bo")).memories[0]
        await memory.update(made.id, user_id="bo", content="likes blues", memory_type="preference")
        await memory.update(made.id, user_id="bo", status="archived")
        yield memory


def plant(place: Place, statement: str, *values: Any) -> None:
    """Write past Jiyi, and past the database's own checks."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as connection, connection:
            connection.execute(statement, values)
        return
    with ThreadPoolExecutor(1) as thread:  # there is a loop in this one
        thread.submit(asyncio.run, _plant(place, statement)).result()


async def _plant(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET jiyi.everybody = 'on'")
        await connection.execute(statement)
    finally:
        await connection.close()


async def test_a_store_that_jiyi_wrote_is_sound(learning: Memory) -> None:
    found = await learning.maintenance.verify(vectors=True)
    assert (found.drift, found.sound) == ({}, True)
    assert found.memories >= 10
    assert found.coverage.embedded == found.coverage.memories == found.coverage.with_keywords


ONE = "(SELECT min(memory_id) FROM terms WHERE user_id = 'mei')"
FACT = "(SELECT min(id) FROM memories WHERE user_id = 'mei' AND content = 'likes chess')"
EVERYWHERE = {
    "no terms": ("terms", f"DELETE FROM terms WHERE memory_id = {ONE}"),
    "other terms": ("terms", f"UPDATE terms SET length = length + 1 WHERE memory_id = {ONE}"),
    "other text": ("terms", f"UPDATE memories SET content = 'plays football' WHERE id = {FACT}"),
    "near hash": ("terms", f"UPDATE memories SET near_hash = 7 WHERE id = {FACT}"),
    "a keyword too few": ("keywords", f"DELETE FROM keywords WHERE memory_id = {FACT} AND keyword = 'chess'"),
    "another weight": ("keywords", f"UPDATE keywords SET weight = 0.123 WHERE memory_id = {FACT}"),
    "no vector": ("vectors", f"DELETE FROM embeddings WHERE memory_id = {ONE}"),
    "hash": ("hashes", f"UPDATE memories SET dedupe_hash = 'x' WHERE id = {FACT}"),
    "slot": ("slots", f"UPDATE memories SET slot = '{'0' * 32}' WHERE slot <> '' AND content = 'I moved to Rome'"),
    "history": ("history", f"DELETE FROM revisions WHERE memory_id = {FACT}"),
    "successor": ("successors", f"UPDATE memories SET superseded_by = 'nobody' WHERE id = {FACT}"),
}  # fmt: skip


@pytest.mark.parametrize("name", EVERYWHERE)
async def test_drift_is_found_and_repaired(path: Path, learning: Memory, name: str) -> None:
    kind, statement = EVERYWHERE[name]
    plant(path, statement)
    found = await learning.maintenance.verify()
    assert kind in found.drift, found
    assert not found.sound
    assert found.repaired == {}
    assert any(example.startswith(f"{kind}: ") for example in found.examples)
    mended = await learning.maintenance.verify(repair=True)
    assert mended.repaired == mended.drift == found.drift
    assert mended.sound
    again = await learning.maintenance.verify(vectors=name != "other text")
    assert again.drift == {}
    assert contents(await learning.search("go", user_id="mei"))


async def test_all_of_it_at_once_on_either_database(learning: Memory, place: Place) -> None:
    for name in sorted(EVERYWHERE, key=lambda name: name == "other text"):  # the others know the memory by its text
        plant(place, EVERYWHERE[name][1])
    found = await learning.maintenance.verify()
    assert found.drift.keys() == {kind for kind, _ in EVERYWHERE.values()}
    mended = await learning.maintenance.verify(repair=True)
    assert mended.repaired == mended.drift == found.drift
    assert (await learning.maintenance.verify()).drift == {}
    assert contents(await learning.search("football", user_id="mei"))[0] == "plays football"


ARRAYS = "'', 1, hashes, counts, keyword_hashes, keyword_weights"
ON_A_FILE = {
    "terms of nothing": ("orphans", f"INSERT INTO terms SELECT 'mei', 'gone', 1, 0, {ARRAYS}, 1 FROM terms LIMIT 1"),
    "keyword of nothing": ("orphans", "INSERT INTO keywords VALUES ('mei', 'gone', 'tea', 1.0, 'rule')"),
    "relation to nothing": ("orphans", f"INSERT INTO relations SELECT 'mei', {FACT}, 'gone', 'supports', 1.0, 0"),
    "source of nothing": ("orphans", f"INSERT INTO memory_sources VALUES ('mei', {FACT}, 'gone', NULL, NULL)"),
    "keywords that searches look at": ("keywords", f"UPDATE terms SET keyword_hashes = x'' WHERE memory_id = {FACT}"),
}  # fmt: skip


@pytest.mark.parametrize("name", ON_A_FILE)
async def test_rows_past_the_databases_own_checks(path: Path, learning: Memory, name: str) -> None:
    """PostgreSQL does not let even its owner write these."""
    kind, statement = ON_A_FILE[name]
    plant(path, statement)
    assert kind in (await learning.maintenance.verify()).drift
    assert (await learning.maintenance.verify(repair=True)).sound
    assert (await learning.maintenance.verify()).drift == {}


async def test_a_broken_vector(path: Path, learning: Memory) -> None:
    bad = np.full(64, np.nan, np.float16).tobytes()
    plant(path, f"UPDATE embeddings SET half_vector = ? WHERE memory_id = {FACT}", bad)
    assert (await learning.maintenance.verify()).drift == {"vectors": 1}
    assert (await learning.maintenance.verify(repair=True)).sound
    found = await learning.search("chess", user_id="mei", search_mode="semantic", limit=1)
    assert contents(found) == ["likes chess"]


async def test_a_vector_of_another_text_is_found_if_asked(path: Path, learning: Memory) -> None:
    other = np.zeros(64, np.float16)
    other[3] = 1
    plant(path, f"UPDATE embeddings SET half_vector = ? WHERE memory_id = {FACT}", other.tobytes())
    assert (await learning.maintenance.verify()).drift == {}
    assert (await learning.maintenance.verify(vectors=True)).drift == {"vectors": 1}
    assert (await learning.maintenance.verify(vectors=True, repair=True)).sound
    assert (await learning.maintenance.verify(vectors=True)).drift == {}


async def test_a_repair_makes_the_same_answer_as_before(path: Path, learning: Memory) -> None:
    before = dump(path)
    for statement in ("DELETE FROM terms", "DELETE FROM keywords", "DELETE FROM embeddings"):
        plant(path, statement)
    mended = await learning.maintenance.verify(repair=True)
    assert mended.sound
    assert mended.coverage.embedded == mended.coverage.memories
    after = dump(path)
    for table in ("terms", "keywords"):
        assert after[table] == before[table]


async def test_another_process_sees_the_repair(learning: Memory, place: Place) -> None:
    plant(place, f"DELETE FROM terms WHERE memory_id = {FACT}")
    async with Memory.open(place, embedder=WordEmbedder(64)) as other:
        assert "likes chess" not in contents(await other.search("chess", user_id="mei", search_mode="keyword"))
        await learning.maintenance.verify(repair=True)
        assert "likes chess" in contents(await other.search("chess", user_id="mei", search_mode="keyword"))


async def test_a_repair_leaves_successors_that_exist(path: Path, learning: Memory) -> None:
    kept = "SELECT id, superseded_by FROM memories WHERE superseded_by IS NOT NULL"
    with closing(sqlite3.connect(path)) as connection:
        before = connection.execute(kept).fetchall()
    assert before
    plant(path, "UPDATE memories SET superseded_by = ? WHERE content = 'likes chess'", "0" * 26)
    await learning.maintenance.verify(repair=True)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(kept).fetchall() == before


async def test_one_user_at_a_time(learning: Memory, place: Place) -> None:
    plant(place, "UPDATE terms SET length = 0")
    mine = await learning.maintenance.verify(user_id="bo", repair=True)
    assert mine.drift == {"terms": 2}
    left = await learning.maintenance.verify()
    assert all("'bo'" not in example for example in left.examples)
    assert left.drift["terms"] > 2


async def test_a_hash_that_another_memory_has_is_not_taken(path: Path, learning: Memory) -> None:
    plant(path, f"UPDATE memories SET dedupe_hash = 'x', content = 'plays go', summary = 'plays go' WHERE id = {FACT}")
    found = await learning.maintenance.verify(repair=True)
    assert found.drift["hashes"] == 1
    assert not found.sound


async def test_coverage_is_shown_where_the_embedder_failed(path: Path) -> None:
    async with Memory.open(path, embedder=FailingEmbedder()) as memory:
        await memory.add("likes tea", user_id="mei")
        found = await memory.maintenance.verify()
        assert (found.coverage.memories, found.coverage.embedded) == (1, 0)
        assert found.drift == {"vectors": 1}
