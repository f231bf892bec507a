"""What the database does for a write, and for a search after it, does not grow with what the user has."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.index import packed
from jiyi.testing import WordEmbedder

FEW, MANY = 300, 3000  # memories; a change is compared with the newest 200
TURN = [{"role": "user", "content": "I moved to Lyon."}, {"role": "assistant", "content": "How nice!"}]


def text(at: int) -> str:
    return f"thing{at} is on shelf{at}"


Work = Callable[[Memory, str], Awaitable[object]]
WRITES: dict[str, Work] = {
    "statement": lambda memory, user: memory.add("My sister plays the cello", user_id=user),
    "repeated": lambda memory, user: memory.add(text(7), user_id=user),
    "turn": lambda memory, user: memory.add(TURN, user_id=user, session_id="talk"),
    "change": lambda memory, user: memory.add(f"{text(9)} no longer", user_id=user),
    "update": lambda memory, user: memory.update("thing-5", content="It is lost", user_id=user),
}


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Count the steps of SQLite's virtual machine, in hundreds, since the last call."""
    done = [0]

    class Counted(sqlite3.Connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.set_progress_handler(self._count, 100)

        def _count(self) -> int:
            done[0] += 1
            return 0

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        return Counted(*args, **kwargs)

    def count() -> int:
        found, done[0] = done[0], 0
        return found

    monkeypatch.setattr(sqlite3, "connect", connect)
    monkeypatch.setattr(sqlite3.dbapi2, "connect", connect)
    return count


async def test_a_write_and_the_search_after_it_cost_the_same_for_a_large_user(
    path: Path, steps: Callable[[], int]
) -> None:
    spent: dict[str, dict[str, tuple[int, int]]] = {}
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for user, number in (("few", FEW), ("many", MANY)):
            things = [{"text": text(at), "memory_key": f"thing-{at}"} for at in range(number)]
            await memory.add(things, user_id=user)
            await memory.search("Where is it?", user_id=user)
            for name, write in WRITES.items():
                await memory.usage.recalls(user_id=user)  # writes what the search before has left to write
                steps()
                await write(memory, user)
                written = steps()
                await memory.search(f"Where is thing{len(name)}?", user_id=user)
                spent.setdefault(name, {})[user] = (written, steps())
    grown = {name: by for name, by in spent.items() for few, many in zip(*by.values(), strict=True) if many > few + 10}
    assert grown == {}


async def test_recalled_memories_are_found_without_reading_the_others(path: Path, steps: Callable[[], int]) -> None:
    """The first search of a large user takes them from the memories, all else from its packed index."""
    spent = []
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for user, number in (("few", FEW), ("many", MANY)):
            await memory.add([text(at) for at in range(number)], user_id=user)
            await memory.search("Where is thing3?", user_id=user)
            await memory.usage.recalls(user_id=user)
            steps()
            [found] = await memory._engine.store.database.select(user, (packed._RECALLED, {"user_id": user}))
            spent.append((len(found), steps()))
    assert spent[0] == spent[1] and spent[0][0] > 0


async def test_checks_of_a_new_postgres_database_do_not_read_all_of_a_user(database: str) -> None:
    """The server plans checks of foreign keys once for a connection, and while a table is empty every index is as good
    as another: an add of 1,000 memories to a user of 7,000 took ten seconds."""
    import asyncpg

    connection = await asyncpg.connect(database)
    read = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'memories'"
    found = []
    try:
        async with Memory.open(database, embedder=WordEmbedder()) as memory:
            for part in range(4):
                await memory.add([text(1000 * part + at) for at in range(400)], user_id="mei")
                await asyncio.sleep(1.1)  # the server publishes its counts once a second
                found.append(int(await connection.fetchval(read)))
    finally:
        await connection.close()
    assert found[-1] - found[-2] < 400 * 100


async def test_a_saved_add_succeeds_even_if_the_rows_cannot_be_counted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("jiyi.store.migrations.postgres.analyze", late)
    async with Memory.open(database, embedder=WordEmbedder()) as memory:
        receipt = await memory.add([text(at) for at in range(250)], user_id="mei")
    assert receipt.created == 250
