"""Delete means gone: from every table, from every search, and from the bytes of the file."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from jiyi import Memory, NotFound
from jiyi.keep.erase import message_parts, rewriter
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import LONG_AGO, ODD_NAMES, Place, contents, dump, file_bytes, rows_with, stored

SECRET = "Zanzibarquartz 鑰匙藏在紅磚下"  # no other text holds any of this
WORDS = ("zanzibarquartz", "Zanzibarquartz", "鑰匙", "钥匙", "紅磚", "红砖")


async def test_a_deleted_memory_leaves_no_row_behind(memory: Memory, place: Place) -> None:
    made = (await memory.add(SECRET, user_id="mei", idempotency_key="k", tags=["紅磚"])).memories[0]
    await memory.update(made.id, user_id="mei", content=SECRET + " 吧", reason="zanzibarquartz")
    await memory.search("zanzibarquartz", user_id="mei")
    assert {"memories", "terms", "embeddings", "keywords", "revisions"} <= set(rows_with(place, made.id))
    deletion = await memory.delete(made.id, user_id="mei")
    assert (deletion.memories, deletion.messages) == (1, 0)
    assert set(rows_with(place, made.id)) <= {"changes"}  # the feed tells other processes by id
    assert rows_with(place, *WORDS) == {}


async def test_a_deleted_message_takes_its_verbatim_text_along(memory: Memory, place: Place) -> None:
    said = [
        {"role": "user", "name": "Zanzibarquartz", "content": SECRET, "id": "m1"},
        {"role": "user", "content": "hi"},
    ]
    made, kept = (await memory.add(said, user_id="mei", session_id="s")).memories
    deletion = await memory.delete(made.id, user_id="mei")
    assert (deletion.memories, deletion.messages) == (1, 1)
    assert rows_with(place, *WORDS) == {}
    assert [left.id for left in await stored(memory)] == [kept.id]
    assert (await memory.get(kept.id, user_id="mei")).source_ids


async def test_a_message_goes_with_its_memory_whatever_type_that_has_now(memory: Memory, place: Place) -> None:
    made = (await memory.add({"role": "user", "content": SECRET}, user_id="mei")).memories[0]
    await memory.update(made.id, user_id="mei", memory_type="fact")
    await memory.delete(made.id, user_id="mei")
    assert rows_with(place, *WORDS) == {}


async def test_a_deleted_memory_is_not_found_again(memory: Memory, place: Place) -> None:
    made = (await memory.add(SECRET, user_id="mei")).memories[0]
    async with Memory.open(place, embedder=WordEmbedder(512)) as other:
        for one in (memory, other):
            assert contents(await one.search("zanzibarquartz", user_id="mei")) == [SECRET]
        await memory.delete(made.id, user_id="mei")
        for one in (memory, other):
            for mode in ("hybrid", "keyword", "semantic"):
                found = await one.search("zanzibarquartz", user_id="mei", search_mode=mode)
                assert (found.searched, found.hits) == (0, ())
            with pytest.raises(NotFound):
                await one.get(made.id, user_id="mei")
            with pytest.raises(NotFound):
                await one.delete(made.id, user_id="mei")


async def test_a_deleted_statement_can_be_made_again(memory: Memory) -> None:
    first = (await memory.add(SECRET, user_id="mei")).memories[0]
    await memory.delete(first.id, user_id="mei")
    again = await memory.add(SECRET, user_id="mei")
    assert again.created == 1
    assert len(await memory.history(again.memories[0].id, user_id="mei")) == 1


async def test_a_deleted_memorys_key_is_free(memory: Memory) -> None:
    await memory.add({"content": SECRET, "memory_key": "k"}, user_id="mei")
    await memory.delete("k", user_id="mei")
    assert (await memory.add({"content": "other", "memory_key": "k"}, user_id="mei")).created == 1


# -- a whole user ---------------------------------------------------------------------------------------------------


async def test_delete_all_removes_exactly_that_user(memory: Memory, place: Place) -> None:
    """Not those whose names begin alike, differ in case or width, are patterns, or are composed otherwise."""
    for name in ODD_NAMES:
        await memory.add(f"the tea of {ODD_NAMES.index(name)}", user_id=name, idempotency_key="k")
        await memory.add({"role": "user", "content": "tea"}, user_id=name)
    for erased in ("mei", "m%", "m_i", "cafe\u0301", "x" * 256):
        before = dump(place)
        deletion = await memory.delete_all(erased)
        assert (deletion.memories, deletion.messages) == (2, 1)
        after = dump(place)
        for table in before:
            if table not in ("changes", "sqlite_sequence"):
                assert after[table] == [row for row in before[table] if row[0] != erased], (table, erased)
        assert (await memory.search("tea", user_id=erased)).searched == 0
        assert erased not in await memory.users()
    assert len(await memory.users()) == len(ODD_NAMES) - 5


async def test_delete_all_of_nobody_removes_nothing(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    deletion = await memory.delete_all("nobody")
    assert (deletion.memories, deletion.messages) == (0, 0)
    assert await memory.count(user_id="mei") == 1


async def test_an_erased_user_can_start_anew(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    await memory.search("tea", user_id="mei")
    await memory.delete_all("mei")
    await memory.add("plays chess", user_id="mei")
    assert contents(await memory.search("tea", user_id="mei")) == []
    assert contents(await memory.search("chess", user_id="mei")) == ["plays chess"]


async def test_another_process_forgets_an_erased_user_too(memory: Memory, place: Place) -> None:
    await memory.add(["likes tea", "plays chess"], user_id="mei")
    async with Memory.open(place, embedder=WordEmbedder(512)) as other:
        assert (await other.search("tea", user_id="mei")).searched == 2
        await memory.delete_all("mei")
        assert (await other.search("tea", user_id="mei")).searched == 0


# -- the bytes of the file ------------------------------------------------------------------------------------------


async def test_the_file_holds_neither_text_nor_user_after_an_erasure(path: Path) -> None:
    """Other users' rows lie between and around, so that pages are split, merged and reused."""
    chance = random.Random(7)
    user = "zanzibar-user-鑰匙"
    canaries: list[str] = []
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for turn in range(8):
            own = [f"canary{turn:02}x{number:03} " * chance.choice([1, 5, 60, 900]) for number in range(12)]
            canaries += [text.split()[0] for text in own]
            await memory.add([f"other {turn} {number} " * chance.choice([1, 40]) for number in range(12)], user_id="bo")
            made = (
                await memory.add(own, user_id=user, session_id=f"session-{user}", tags=[f"tag-{turn}-鑰匙"])
            ).memories
            await memory.add([{"role": "user", "content": own[0], "name": user}], user_id=user, occurred_at=LONG_AGO)
            await memory.update(made[0].id, user_id=user, content=f"canary changed {turn} " * 30)
            await memory.delete(made[1].id, user_id=user)
        await memory.delete_all(user)
        await memory.add("life goes on", user_id="bo")
    left = file_bytes(path)
    assert not [path.name + end for end in ("-wal", "-shm") if path.with_name(path.name + end).exists()]
    for needle in ("鑰匙", "zanzibar", "canary changed", *canaries):
        assert needle.encode() not in left, needle
        assert needle.encode("ascii", "backslashreplace") not in left, needle
    assert b"life goes on" in left


async def test_the_file_does_not_hold_the_text_of_a_deleted_memory(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        filler = [f"filler {number} " * (number % 50 + 1) for number in range(200)]
        await memory.add(filler[:100], user_id="mei")
        secrets = [f"canary{number:03} " * (number % 300 + 1) for number in range(60)]
        made = (await memory.add(secrets, user_id="mei")).memories
        await memory.add(filler[100:], user_id="mei")
        for one in made:
            await memory.delete(one.id, user_id="mei")
    left = file_bytes(path)
    assert [text.split()[0] for text in secrets if text.split()[0].encode() in left] == []
    assert b"filler 199" in left


@pytest.mark.parametrize("seed", [0, 2])
async def test_no_scrap_of_deleted_memories_stays_in_the_corners_of_pages(path: Path, seed: int) -> None:
    """When SQLite moves rows between pages, copies can stay in the unused part of a page; no delete overwrites them."""
    chance = random.Random(seed)
    alive: list[tuple[str, str]] = []
    gone: list[str] = []
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for turn in range(25):
            texts = [
                f"canary{turn:02}x{number:03} " * chance.choice([1, 3, 20, 300])
                for number in range(chance.randint(1, 30))
            ]
            made = (await memory.add(texts, user_id="mei", tags=[f"turn{turn}"])).memories
            alive += [(one.id, one.content.split()[0]) for one in made]
            chance.shuffle(alive)
            some = chance.randint(0, len(alive) // 2)
            going = [memory_id for memory_id, _ in alive[:some]]
            await memory._engine.store.deletions.delete(
                "mei",
                going,
                with_sources=False,
                rewrite=rewriter(memory._engine.rules),
                parts=message_parts(memory._engine.rules),
            )
            await memory._engine.store.database.scrub(everything=False)
            gone += [word for _, word in alive[:some]]
            alive = alive[some:]
    left = file_bytes(path)
    assert [word for word in gone if word.encode() in left] == []
    assert all(word.encode() in left for _, word in alive)


async def test_a_deletion_reaches_the_file_while_the_memory_stays_open(memory: Memory, path: Path) -> None:
    """A server never closes its store. What it deletes must not stay in the write-ahead log for weeks."""
    made = (await memory.add("canary-in-the-log " * 20, user_id="mei")).memories[0]
    await memory.search("canary", user_id="mei")
    await memory.delete(made.id, user_id="mei")
    assert b"canary-in-the-log" not in file_bytes(path)


async def test_a_reader_that_keeps_the_log_busy_is_named_and_the_deletion_stands(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Memory.open(path, embedder=WordEmbedder(), settings=load_settings(busy_timeout_s=0.2)) as memory:
        made = (await memory.add("likes tea", user_id="mei")).memories[0]
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        assert (await memory.delete(made.id, user_id="mei")).memories == 1
        reader.close()
        assert "while somebody reads" in caplog.text
        assert (await memory.search("tea", user_id="mei")).searched == 0


async def test_a_unit_forgets_what_was_deleted_from_it(memory: Memory, path: Path) -> None:
    messages = [{"role": "user", "content": text} for text in (SECRET, "and tea, please")]
    made = (await memory.add(messages, user_id="mei", session_id="s")).memories
    for one in made:
        if SECRET in one.content or any(word in one.content for word in WORDS):
            await memory.delete(one.id, user_id="mei")
    assert rows_with(path, *WORDS) == {}
    assert rows_with(path, "and tea") != {}
