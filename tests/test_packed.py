"""The packed index of a large user: read instead of every memory, never out of date, and gone with a deletion."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from jiyi import Memory
from jiyi.index import packed, search_index
from jiyi.settings import load_settings
from jiyi.store.schema.tables import EmbeddingRow, PackedIndexRow
from jiyi.testing import WordEmbedder
from support import LONG, ask

SAID = [
    {"role": "user", "name": "Ann", "content": "I live in Rome and I am allergic to peanuts."},
    {"role": "assistant", "content": "Rome is lovely. What do you do there?"},
    {"role": "user", "name": "Ann", "content": "我在一家医院当护士，喜欢喝咖啡。"},
    {"role": "user", "name": "Ann", "content": "We moved to Lyon in May."},
]
ASKED = ["where does Ann live?", "peanuts", "咖啡", "what did the assistant say?", "nurse"]
RECALLS_OFF = {"recalls": {"enabled": False}}


@pytest.fixture(autouse=True)
def everybody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack the index of small users too."""
    monkeypatch.setattr(packed, "LEAST", 1)


def opened(place: str | Path) -> Memory:
    return Memory.open(place, settings=load_settings(**RECALLS_OFF), embedder=WordEmbedder(64))


async def answers(memory: Memory, **filters: Any) -> list[Any]:
    found = [await memory.search(query, user_id="mei", **filters) for query in ASKED]
    return [[(hit.id, round(hit.relevance_score, 4)) for hit in one.hits] for one in found]


def rows(place: str | Path) -> int:
    [(count,)] = ask(place, "SELECT count(*) FROM packed_indexes")
    return int(count)


async def unpack(memory: Memory) -> None:
    """Drop everything that is packed."""

    def work(session: Any) -> None:
        session.execute(delete(PackedIndexRow))

    await memory._engine.store.database.write(["mei"], work)


async def fill(memory: Memory) -> None:
    await memory.add(SAID, user_id="mei", session_id="s")
    await memory.add("likes green tea", user_id="mei", tags=["drinks"])


async def test_it_answers_like_the_memories_themselves(place: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(place) as memory:
        await fill(memory)
        expected = await answers(memory), await answers(memory, tags=["drinks"])
    monkeypatch.setattr(search_index, "_load", None)  # reading every memory would raise
    async with opened(place) as memory:
        assert rows(place)
        assert (await answers(memory), await answers(memory, tags=["drinks"])) == expected


async def test_what_changed_since_is_found(place: str | Path) -> None:
    async with opened(place) as memory:
        await fill(memory)
        await answers(memory)
    async with opened(place) as memory:  # no search: what is packed stays as it is
        [hit] = (await memory.list(user_id="mei", tags=["drinks"])).items
        await memory.update(hit.id, user_id="mei", content="likes black coffee beans")
        await memory.add("the spare key is under the flower pot", user_id="mei")
    async with opened(place) as memory:
        assert (await memory.search("coffee beans", user_id="mei")).hits[0].content == "likes black coffee beans"
        assert "flower pot" in (await memory.search("where is the spare key?", user_id="mei")).hits[0].content


async def test_vectors_are_read_in_parts_and_may_be_missing(place: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jiyi.store.repositories.index_rows.VECTORS_AT_ONCE", 2)
    async with opened(place) as memory:
        await fill(memory)
        await answers(memory)
        lost = (await memory.search("peanuts", user_id="mei")).hits[0].id

        def work(session: Any) -> None:
            session.execute(delete(EmbeddingRow).where(EmbeddingRow.memory_id == lost))

        await memory._engine.store.database.write(["mei"], work)
    loaded = []
    for packing in (True, False):
        async with opened(place) as memory:
            if not packing:
                await unpack(memory)
            loaded.append([dict(one) for one in await answers(memory)])
    assert loaded[0] == loaded[1]


async def test_recalls_since_then_count(place: str | Path) -> None:
    settings = load_settings()
    async with Memory.open(place, settings=settings, embedder=WordEmbedder(64)) as memory:
        await fill(memory)
        await answers(memory)
    async with Memory.open(place, settings=settings, embedder=WordEmbedder(64)) as memory:
        await answers(memory)
        index = memory._engine.index._users["mei"]
        recalled = index._columns["access_count"][: len(index)]
        assert recalled.any()


async def test_a_deletion_drops_it(place: str | Path) -> None:
    async with opened(place) as memory:
        await fill(memory)
        await answers(memory)
    async with opened(place) as memory:
        assert rows(place)
        [hit] = (await memory.list(user_id="mei", tags=["drinks"])).items
        await memory.delete(hit.id, user_id="mei")
        assert rows(place) == 0
        assert all(hit.id not in dict(some) for some in await answers(memory))


async def test_an_index_from_before_a_deletion_is_not_saved(place: str | Path) -> None:
    async with opened(place) as memory:
        await fill(memory)
        await answers(memory)
        engine = memory._engine
        index = engine.index._users["mei"]
        seen, parts = index.seen, packed.pack(index)
        [hit] = (await memory.list(user_id="mei", tags=["drinks"])).items
        await memory.delete(hit.id, user_id="mei")
        await packed.save(engine.store, "mei", seen, parts)
        assert rows(place) == 0
        await memory.delete_all("mei")
        await packed.save(engine.store, "mei", seen, parts)
        assert rows(place) == 0


async def test_one_connection_is_enough(database: str) -> None:
    settings = load_settings(**RECALLS_OFF, postgres={"pool_size": 1, "pool_timeout_s": 2})
    for _ in range(2):
        async with Memory.open(database, settings=settings, embedder=WordEmbedder(64)) as memory:
            await fill(memory)
            assert await answers(memory)


async def test_another_version_is_not_read(place: str | Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(place) as memory:
        await fill(memory)
        expected = await answers(memory)
    monkeypatch.setattr(packed, "FORMAT", "another")
    async with opened(place) as memory:
        assert await answers(memory) == expected


@pytest.mark.parametrize("damage", ["data = substr(data, 1, 3)", "name = 'other'"])
async def test_a_damaged_one_is_made_anew(
    path: Path, damage: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path) as memory:
        await fill(memory)
        expected = await answers(memory)
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE packed_indexes SET {damage} WHERE name = 'created_at'")
    async with opened(path) as memory:
        assert await answers(memory) == expected
    assert "is damaged" in caplog.text
    monkeypatch.setattr(search_index, "_load", None)
    async with opened(path) as memory:
        assert await answers(memory) == expected


steps = st.lists(
    st.tuples(st.just("add"), st.sampled_from(SAID))
    | st.tuples(st.just("tell"), st.sampled_from(["likes tea", "住在罗马", "I work in Oslo", "I left my job in Oslo"]))
    | st.tuples(st.sampled_from(["update", "delete", "archive"]), st.integers(0, 5))
    | st.tuples(st.just("restart"), st.none()),
    max_size=12,
)


@settings(max_examples=300 if LONG else 12)
@given(steps=steps)
async def test_after_any_changes_both_ways_of_loading_agree(steps: Sequence[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "memory.db"
        memory = opened(place)
        await memory.__aenter__()
        for number, (step, what) in enumerate(steps):
            there = (await memory.list(user_id="mei", memory_types=["message", "fact", "preference"])).items
            if step == "restart":
                await memory.close()
                memory = opened(place)
                await memory.__aenter__()
                await answers(memory)
            elif step == "add":
                await memory.add({**what, "content": f"{what['content']} {number}"}, user_id="mei", session_id="s")
            elif step == "tell":
                await memory.add(what, user_id="mei")
            elif there:
                one = there[what % len(there)].id
                if step == "delete":
                    await memory.delete(one, user_id="mei")
                else:
                    change = {"status": "archived"} if step == "archive" else {"content": f"changed {number}"}
                    await memory.update(one, user_id="mei", **change)
        await memory.close()
        async with opened(place) as memory:
            from_packed = await answers(memory)
        async with opened(place) as memory:
            await unpack(memory)
            assert from_packed == await answers(memory)


async def test_one_that_is_far_behind_is_packed_anew(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or every process that starts would apply the same changes."""
    monkeypatch.setattr(search_index, "A_FEW_CHANGES", 5)
    seen = "SELECT max(seen) FROM packed_indexes"
    async with opened(path) as memory:
        await fill(memory)
        await answers(memory)
    [(before,)] = ask(path, seen)
    async with opened(path) as memory:
        await memory.add("likes black tea", user_id="mei")
    async with opened(path) as memory:
        await answers(memory)
    assert ask(path, seen) == [(before,)], "a few changes are applied by each process"
    async with opened(path) as memory:
        await memory.add([f"owns book number {number}" for number in range(9)], user_id="mei")
    async with opened(path) as memory:
        found = await answers(memory)
    assert ask(path, seen)[0][0] > before
    async with opened(path) as memory:
        assert await answers(memory) == found
