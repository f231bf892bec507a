"""What the database does for a write, and for a search after it, does not grow with what the user has."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from jiyi import Memory, StoreUnavailable
from jiyi.index.search_index import KEEP_UP, SearchIndex
from jiyi.models import utc_now
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from jiyi.write.extract import BuiltinExtractor

FEW, MANY = 300, 3000  # memories; a change is compared with the newest 200
TURN = [{"role": "user", "content": "I moved to Lyon."}, {"role": "assistant", "content": "How nice!"}]


def text(at: int) -> str:
    return f"thing{at} is on shelf{at}"


class Slowly(BuiltinExtractor):
    """The built-in extractor in place of a language model, so that conversations become jobs."""

    id = "slowly"


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
            things = [{"content": text(at), "memory_key": f"thing-{at}"} for at in range(number)]
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
            found = await memory._engine.store.index_rows.recalls(user)
            spent.append((len(found), steps()))
    assert spent[0] == spent[1] and spent[0][0] > 0


def chat(numbers: Iterable[int]) -> list[dict[str, str]]:
    """Messages from each of which a fact is derived."""
    return [{"role": "user", "content": f"My friend Anna{at} lives in Leeds."} for at in numbers]


async def test_the_first_search_of_a_user_reads_each_memory_once(path: Path, steps: Callable[[], int]) -> None:
    """Each source was compared with each memory of the user: a search after 6,000 messages took 45 seconds."""
    spent = []
    for user, number in (("few", 100), ("many", 800)):
        async with Memory.open(path, embedder=WordEmbedder()) as memory:
            for at in range(0, number, 50):
                await memory.add(chat(range(at, at + 50)), user_id=user, session_id=str(at))
        async with Memory.open(path, embedder=WordEmbedder()) as memory:
            steps()
            await memory.search("Where does Anna7 live?", user_id=user)
            spent.append(steps())
    assert spent[1] < 1.5 * 8 * spent[0]


async def test_a_search_after_a_long_import_reads_no_more_than_after_a_short_one(
    path: Path, steps: Callable[[], int]
) -> None:
    spent = []
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for user, number in (("short", 200), ("long", 3000)):
            await memory.search("Who is there?", user_id=user)
            for at in range(0, number, 100):
                await memory.add([text(at + each) for each in range(100)], user_id=user)
            steps()
            found = await memory.search(text(number - 1), user_id=user)
            spent.append(steps())
            assert text(number - 1) in [hit.content for hit in found.hits]
    assert spent[1] < 1.5 * KEEP_UP / 200 * spent[0]


async def test_a_failure_to_keep_up_is_no_failure_of_the_add(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.search("Who is there?", user_id="mei")

        async def locked(*_: object) -> bool:
            raise StoreUnavailable("another process kept it locked for too long")

        with monkeypatch.context() as patched:
            patched.setattr(SearchIndex, "_catch_up", locked)
            receipt = await memory.add([text(at) for at in range(KEEP_UP)], user_id="mei")
        assert receipt.created == KEEP_UP
        assert text(7) in [hit.content for hit in (await memory.search(text(7), user_id="mei")).hits]


async def test_near_repeats_cost_the_same_however_many_there_are(path: Path, steps: Callable[[], int]) -> None:
    """A new statement is compared with the newest that share its keywords; all of them were counted each time."""
    spent = []
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for at in range(0, 1000, 10):
            steps()
            runs = [{"role": "user", "content": f"I ran {at + each} km today."} for each in range(10)]
            await memory.add(runs, user_id="mei", session_id=str(at))
            spent.append(steps())
    assert median(spent[-10:]) < 1.2 * median(spent[55:65])  # the newest 500 with a keyword are looked at


CHECKS: dict[str, Callable[[Memory], Awaitable[object]]] = {
    "verify": lambda memory: memory.maintenance.verify(user_id="mei"),
    "reindex": lambda memory: memory.maintenance.reindex(),
}


@pytest.mark.parametrize("name", CHECKS)
async def test_checks_and_new_vectors_read_each_memory_once(
    name: str, tmp_path: Path, steps: Callable[[], int]
) -> None:
    """Pairs of user and id were looked for in the whole table, once for some hundred of them."""
    spent = []
    for number in (FEW, MANY):
        store = tmp_path / f"{number}.db"
        async with Memory.open(store, embedder=WordEmbedder(16)) as memory:
            await memory.add([text(at) for at in range(number)], user_id="mei")
        async with Memory.open(store, embedder=WordEmbedder(32)) as memory:
            steps()
            await CHECKS[name](memory)
            spent.append(steps())
    assert spent[1] < 1.5 * MANY / FEW * spent[0]


async def test_a_worker_looks_at_unfinished_jobs_only(path: Path, steps: Callable[[], int]) -> None:
    """It read all jobs of the user for each job that waits: with 5,000 done and 1,000 waiting that took three seconds,
    in a transaction that no other writer can pass."""
    idle = load_settings(jobs={"in_process": False})
    spent = []
    async with Memory.open(path, embedder=WordEmbedder(), settings=idle, extractor=Slowly()) as memory:
        jobs = memory._engine.store.jobs
        for at in range(200):
            await memory.add(chat([at]), user_id="mei", session_id="talk", wait=False)
            steps()
            lease = await jobs.claim("worker", utc_now(), utc_now() + timedelta(minutes=1))
            spent.append(steps())
            assert lease is not None
            await jobs.fail(lease, utc_now(), "not today")
    assert max(spent[-10:]) <= max(spent[:10]) + 2


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


async def test_an_add_to_a_new_postgres_database_does_not_compare_every_row_with_every_other(database: str) -> None:
    """The server expects one row of each user in tables that it has not counted, and joins them accordingly: a message
    of a chat took half a second after 1,000 others, until the server counted the rows by itself."""
    import asyncpg

    connection = await asyncpg.connect(database)
    of_indexes, of_tables = "sum(idx_tup_read) FROM pg_stat_user_indexes", "sum(seq_tup_read) FROM pg_stat_user_tables"
    read = f"SELECT (SELECT {of_indexes}) + (SELECT {of_tables})"
    try:
        async with Memory.open(database, embedder=WordEmbedder()) as memory:
            for at in range(0, 480, 20):
                await memory.add(chat(range(at, at + 20)), user_id="mei", session_id=str(at))
        await asyncio.sleep(1.1)  # the server publishes its counts once a second
        assert await connection.fetchval(read) < 1_000_000
    finally:
        await connection.close()


async def test_a_saved_add_succeeds_even_if_the_rows_cannot_be_counted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object) -> None:
        raise TimeoutError

    monkeypatch.setattr("jiyi.store.migrations.postgres.analyze", late)
    async with Memory.open(database, embedder=WordEmbedder()) as memory:
        receipt = await memory.add([text(at) for at in range(250)], user_id="mei")
    assert receipt.created == 250
