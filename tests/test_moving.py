"""Moving house: everything arrives, whatever stops the cart on its way."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import InvalidInput, Memory, StoreError, migrate_store
from jiyi.store.upkeep import row_copies as copying
from jiyi.testing import WordEmbedder
from support import LONG_AGO, NOW, ODD_NAMES, contents, dump
from test_cli import answer, jiyi
from workers import processes

FURNISHED = ("messages", "memories", "memory_sources", "embeddings", "terms", "keywords", "synonyms", "revisions")


@pytest.fixture(scope="module")
def furnished(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = Path(shutil.copy(empty_store, tmp_path_factory.mktemp("house")))
    asyncio.run(furnish(path))
    return path


@pytest.fixture
def house(furnished: Path, tmp_path: Path) -> Path:
    """A store in which every table that is in use has rows, some of users with odd names."""
    return Path(shutil.copy(furnished, tmp_path))


async def furnish(path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for number, user_id in enumerate(ODD_NAMES):
            said = [{"role": "user", "name": "Bo", "content": f"tea {number} 🍵 茶\u2028%_'\"\\", "id": f"m{number}"}]
            await memory.add(said, user_id=user_id, session_id="s", idempotency_key="k")
            made = (await memory.add(f"likes tea {number}", user_id=user_id, tags=["饮", "tea"])).memories[0]
            await memory.update(
                made.id, user_id=user_id, importance=number / 37, valid_to=NOW, metadata={"n": number / 3, "深": [None]}
            )
        await memory.add({"content": "gone soon", "expires_at": NOW + timedelta(days=1)}, user_id="mei")
        await memory.add("long ago", user_id="mei", occurred_at=LONG_AGO, agent_id="a", group_id="g")
        await memory.synonyms.add([("tea", "茶", 0.9)], user_id="mei")
        await memory.synonyms.add([("k8s", "kubernetes")])
        await memory.add("of nobody", user_id="erased")
        await memory.delete_all("erased")
        await memory.search("tea", user_id="mei")


def everything(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    return {table: rows for table, rows in dump(path).items() if table != "sqlite_sequence"}


async def test_a_copy_has_every_row_of_every_table(house: Path, tmp_path: Path) -> None:
    moved = await migrate_store(house, tmp_path / "new.db")
    copy = everything(tmp_path / "new.db")
    assert copy == everything(house)
    assert {table for table in FURNISHED if not copy[table]} == set()
    derived = ("alembic_version", "packed_indexes")
    assert moved.rows == {table: len(rows) for table, rows in copy.items() if table not in derived}
    assert moved.copied == sum(moved.rows.values())
    assert moved.checksums.keys() == moved.rows.keys()


async def test_there_and_back_again_is_the_same(house: Path, tmp_path: Path) -> None:
    there = await migrate_store(house, tmp_path / "there.db")
    back = await migrate_store(tmp_path / "there.db", f"sqlite:///{tmp_path / 'back.db'}")
    assert there == back
    assert everything(tmp_path / "back.db") == everything(house)


async def test_life_goes_on_in_the_copy(house: Path, tmp_path: Path) -> None:
    """Searches find what they found, deletes reach it, and the change feed is counted on."""
    await migrate_store(house, tmp_path / "new.db")
    async with (
        Memory.open(house, embedder=WordEmbedder()) as old,
        Memory.open(tmp_path / "new.db", embedder=WordEmbedder()) as new,
        Memory.open(tmp_path / "new.db", embedder=WordEmbedder()) as another,
    ):
        for query in ("tea", "茶", "what did Bo say?"):
            asked = {"user_id": "mei", "asked_at": NOW}
            assert await new.search(query, **asked) == await old.search(query, **asked)
        await another.search("coffee", user_id="mei")
        await new.add("drinks coffee", user_id="mei")
        assert contents(await another.search("coffee", user_id="mei"))[0] == "drinks coffee"
        assert (await new.delete_all("mei")).memories > 0
        assert (await another.search("tea", user_id="mei")).searched == 0


async def test_an_empty_store_can_be_moved(path: Path, tmp_path: Path) -> None:
    moved = await migrate_store(path, tmp_path / "new.db")
    assert sum(moved.rows.values()) == moved.copied == 0


async def test_file_to_postgres_and_back(house: Path, database: str, tmp_path: Path) -> None:
    """Every value arrives as it was, whatever the database calls its type; and the copy lives on."""
    there = await migrate_store(house, database)
    async with (
        Memory.open(house, embedder=WordEmbedder()) as old,
        Memory.open(database, embedder=WordEmbedder()) as new,
    ):
        for query in ("tea", "茶", "what did Bo say?"):
            asked = {"user_id": "mei", "asked_at": NOW}
            assert await new.search(query, **asked) == await old.search(query, **asked)
    back = await migrate_store(database, tmp_path / "back.db")
    assert there.checksums.keys() == back.checksums.keys()
    changed = {table for table in there.checksums if there.checksums[table] != back.checksums[table]}
    assert changed <= {"memories", "recalls"}  # the searches above were recorded


async def test_what_is_written_after_a_copy_is_numbered_after_what_was_copied(house: Path, database: str) -> None:
    await migrate_store(house, database)
    async with (
        Memory.open(database, embedder=WordEmbedder()) as one,
        Memory.open(database, embedder=WordEmbedder()) as two,
    ):
        await two.search("coffee", user_id="mei")
        await one.add("drinks coffee", user_id="mei")
        assert contents(await two.search("coffee", user_id="mei"))[0] == "drinks coffee"


async def test_a_copy_into_postgres_goes_on_where_it_was_stopped(
    house: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "AT_ONCE", 7)
    left = 0

    def stop(what: str, done: int, whole: int) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyError

    for left in (2, 9, 25):  # noqa: B007 - counted down above
        with pytest.raises(KeyError):
            await migrate_store(house, database, progress=stop)
    moved = await migrate_store(house, database)
    assert moved.copied < sum(moved.rows.values())
    await migrate_store(database, tmp_path / "back.db")
    assert everything(tmp_path / "back.db") == everything(house)


# -- stopped and started again --------------------------------------------------------------------------------------


def copy_until(source: Path, target: Path, deadly: int) -> None:
    """Copy with few rows at a time, and die without a word at the given step."""
    copying.AT_ONCE = 7
    steps = 0

    def progress(what: str, done: int, whole: int) -> None:
        nonlocal steps
        steps += 1
        if steps == deadly:
            os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(migrate_store(source, target, progress=progress))


async def test_killed_at_any_step_it_goes_on_and_arrives(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time it gets a little further; in the end nothing is missing and nothing is there twice."""
    target = tmp_path / "new.db"
    died = 0
    for deadly in (1, 3, 9, 14, 20, 26, 33, 40):
        process = processes.Process(target=copy_until, args=(house, target, deadly))
        process.start()
        process.join()
        died += process.exitcode == -signal.SIGKILL
    assert died > 4
    monkeypatch.setattr(copying, "AT_ONCE", 7)
    moved = await migrate_store(house, target)
    assert moved.copied < sum(moved.rows.values())
    assert everything(target) == everything(house)


async def test_what_is_in_ram_does_not_grow_with_the_store(
    house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "AT_ONCE", 5)
    sizes: list[int] = []
    insert = copying._insert

    def noting(session: Any, table: Any, rows: list[Any]) -> None:
        sizes.append(len(rows))
        insert(session, table, rows)

    monkeypatch.setattr(copying, "_insert", noting)
    await migrate_store(house, tmp_path / "new.db")
    assert max(sizes) == 5 and len(sizes) > 50


async def test_progress_tells_how_many_rows_are_done(house: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    moved = await migrate_store(house, tmp_path / "new.db", progress=lambda *what: told.append(what))
    copying = [done for what, done, _ in told if what.startswith("copying")]
    whole = sum(moved.rows.values())
    assert copying == sorted(copying) and copying[0] == 0 and copying[-1] == whole
    assert {of for _, _, of in told} == {whole}
    assert told[-1] == ("comparing", whole, whole)


# -- what is refused ------------------------------------------------------------------------------------------------


async def test_a_store_with_memories_is_not_overwritten(house: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    async with Memory.open(other, embedder=WordEmbedder()) as memory:
        await memory.add("precious", user_id="bo")
    before = dump(other)
    with pytest.raises(InvalidInput, match=r"target: is not empty, it has rows in "):
        await migrate_store(house, other)
    assert dump(other) == before


async def test_a_copy_is_not_made_twice_into_one_place(house: Path, tmp_path: Path) -> None:
    await migrate_store(house, tmp_path / "new.db")
    with pytest.raises(InvalidInput, match="target: is not empty"):
        await migrate_store(house, tmp_path / "new.db")


async def interrupted(source: Path, target: Path, stop: Callable[[str, int, int], None]) -> None:
    with pytest.raises(KeyError):
        await migrate_store(source, target, progress=stop)


def at_memories(what: str, done: int, whole: int) -> None:
    if what == "copying keywords":
        raise KeyError


async def test_an_unfinished_copy_belongs_to_its_source(house: Path, tmp_path: Path) -> None:
    """Nothing else is mixed into it, and it is not taken for a whole one."""
    target, other = tmp_path / "new.db", tmp_path / "other.db"
    await interrupted(house, target, at_memories)
    async with Memory.open(other, embedder=WordEmbedder()) as memory:
        await memory.add("tea", user_id="bo")
    with pytest.raises(InvalidInput, match="target: is the unfinished copy of another store"):
        await migrate_store(other, target)
    with pytest.raises(InvalidInput, match="source: is itself a copy that is not finished"):
        await migrate_store(target, tmp_path / "third.db")
    await migrate_store(house, target)
    assert everything(target) == everything(house)


@pytest.mark.parametrize("whose", ["source", "target"])
async def test_what_somebody_writes_meanwhile_is_named(house: Path, tmp_path: Path, whose: str) -> None:
    """The copy stays marked as unfinished."""
    target = tmp_path / "new.db"

    def meddle(what: str, done: int, whole: int) -> None:
        if what == "copying synonyms" and not meddled:
            meddled.append(what)
            with closing(sqlite3.connect(house if whose == "source" else target)) as connection, connection:
                connection.execute("UPDATE memories SET importance = 0.123 WHERE user_id = 'mei'")

    meddled: list[str] = []
    with pytest.raises(StoreError, match=r"differs from its source in memories \(\d+ rows there, \d+ in the copy\)"):
        await migrate_store(house, target, progress=meddle)
    with pytest.raises(InvalidInput, match="is itself a copy that is not finished"):
        await migrate_store(target, tmp_path / "third.db")


async def test_a_source_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"source: .*nothing\.db is not a file"):
        await migrate_store(tmp_path / "nothing.db", tmp_path / "new.db")
    assert not list(tmp_path.glob("*.db"))


async def test_a_store_is_not_copied_onto_itself(house: Path) -> None:
    before = dump(house)
    with pytest.raises(InvalidInput, match="target: is the source"):
        await migrate_store(house, f"sqlite:///{house}")
    assert dump(house) == before


# -- checksums ------------------------------------------------------------------------------------------------------


async def test_a_checksum_tells_any_value_of_any_row(house: Path, tmp_path: Path) -> None:
    """One value changed, in any column of any table, changes that table's checksum and no other."""
    from jiyi.settings import load_settings
    from jiyi.store import open_store

    async def digests(path: Path) -> dict[str, tuple[int, str]]:
        store = open_store(path, load_settings())
        await store.start()
        try:
            return {table.name: await copying.digest(store.database, table) for table in copying.TABLES}
        finally:
            await store.close()

    right = await digests(house)
    for table, column, value in (
        ("memories", "content", "x"),
        ("memories", "near_hash", 5),
        ("memories", "metadata", '{"a": 1}'),
        ("embeddings", "half_vector", b"\x00" * 128),
        ("changes", "action", "x"),
        ("revisions", "reason", "x"),
        ("keywords", "weight", 0.123456789012345),
        ("recalls", "recalled_at", 5),
    ):
        with closing(sqlite3.connect(house)) as connection, connection:
            key = [name for _, name, *_, pk in connection.execute(f"PRAGMA table_info({table})") if pk]
            first = connection.execute(f"SELECT {', '.join(key)}, {column} FROM {table} LIMIT 1").fetchone()
            where = " AND ".join(f"{name} = ?" for name in key)
            old = first[-1]
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *first[:-1]))
        wrong = await digests(house)
        assert [name for name in right if wrong[name] != right[name]] == [table]
        with closing(sqlite3.connect(house)) as connection, connection:
            connection.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (old, *first[:-1]))
    assert await digests(house) == right


def test_the_command_line_moves_a_house(house: Path, tmp_path: Path) -> None:
    shown = jiyi("migrate-store", house, tmp_path / "new.db")
    assert "tables are equal in both stores" in shown.stdout
    assert everything(tmp_path / "new.db") == everything(house)
    moved = answer("migrate-store", tmp_path / "new.db", tmp_path / "third.db")
    assert moved["copied"] == sum(moved["rows"].values())
    assert "TO: is not empty" in jiyi("migrate-store", house, tmp_path / "new.db", code=2).stderr
