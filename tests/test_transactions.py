"""Transactions of the store: plain functions over SQLAlchemy's session, on both databases."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio
from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from jiyi.errors import NotAStore, StoreError, StoreUnavailable
from jiyi.models import utc_now
from jiyi.settings import load_settings
from jiyi.store import open_store
from jiyi.store.database import Database
from jiyi.store.schema.tables import ChangeRow
from jiyi.store.sqlite_files import translated


@pytest_asyncio.fixture
async def database(place: str | Path) -> AsyncIterator[Database]:
    store = open_store(place, load_settings())
    await store.start()
    yield store.database
    await store.close()


def tell(session: Session) -> None:
    change = {"user_id": "mei", "memory_id": "M", "action": "add", "changed_at": utc_now()}
    session.execute(insert(ChangeRow), [change])


def count(session: Session) -> int:
    return session.scalar(select(func.count()).select_from(ChangeRow)) or 0


async def test_a_write_is_undone_if_it_raises(database: Database) -> None:
    def fails(session: Session) -> None:
        tell(session)
        raise ValueError("half of it is done")

    with pytest.raises(ValueError, match="half of it"):
        await database.write(["mei"], fails)
    assert await database.read("mei", count) == 0
    await database.write(["mei"], tell)
    assert await database.read("mei", count) == 1


async def test_a_write_whose_caller_is_cancelled_is_done_to_its_end(database: Database) -> None:
    writing = asyncio.ensure_future(database.write(["mei"], tell))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await database.write(["mei"], tell)  # the lock is free
    async with asyncio.timeout(30):  # on another connection, the first one may end after the second
        while await database.read("mei", count) < 2:
            await asyncio.sleep(0.01)


async def test_pages_are_of_one_snapshot(database: Database) -> None:
    def pages(session: Session) -> Iterator[int]:
        for _ in range(3):
            yield count(session)

    await database.write(["mei"], tell)
    seen = []
    async with aclosing(database.pages("mei", pages)) as found:
        async for number in found:
            seen.append(number)
            await database.write(["mei"], tell)
    assert seen == [1, 1, 1]
    assert await database.snapshot("mei", count) == await database.read("mei", count) == 4


async def test_a_reader_who_leaves_early_gives_the_connection_back(database: Database) -> None:
    def pages(session: Session) -> Iterator[int]:
        while True:
            yield count(session)

    for _ in range(20):  # more than there are connections
        async with aclosing(database.pages("mei", pages)) as found:
            assert await anext(found) == 0
    await database.write(["mei"], tell)


def failing(code: int) -> sqlite3.Error:
    error = sqlite3.OperationalError("a wording that may change")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("error", "expected", "problem"),
    [
        (failing(sqlite3.SQLITE_BUSY_SNAPSHOT), StoreUnavailable, "locked for too long"),
        (failing(sqlite3.SQLITE_FULL), StoreUnavailable, "disk is full"),
        (failing(sqlite3.SQLITE_IOERR_WRITE), StoreUnavailable, "disk answered"),
        (failing(sqlite3.SQLITE_READONLY_DBMOVED), StoreUnavailable, "read-only"),
        (failing(sqlite3.SQLITE_CANTOPEN), StoreUnavailable, "cannot be opened"),
        (failing(sqlite3.SQLITE_NOTADB), NotAStore, "damaged"),
        (failing(sqlite3.SQLITE_CORRUPT_INDEX), NotAStore, "damaged"),
        (failing(sqlite3.SQLITE_CONSTRAINT_UNIQUE), StoreError, "a wording"),
        (sqlite3.ProgrammingError("of Python's own"), StoreError, "Python's own"),
    ],
)
def test_sqlites_errors_are_told_by_their_codes(error: sqlite3.Error, expected: type[StoreError], problem: str) -> None:
    with pytest.raises(expected, match=problem) as raised, translated(Path("memory.db")):
        raise error
    assert type(raised.value) is expected
