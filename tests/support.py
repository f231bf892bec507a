"""Small things that several test files need."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jiyi import Memory, MemoryItem, SearchResult

NOW = datetime.now(UTC)
LONG_AGO = datetime(2021, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
DAY = timedelta(days=1)

# Names that look alike, and names that have broken other systems.
ODD_NAMES = (
    "mei",
    "Mei",
    "mei ",
    " mei",
    "me",
    "mei2",
    "m%",
    "m_i",
    "mei-2.3_x",
    "a/b/../c",
    "..",
    "梅",
    "caf\u00e9",
    "cafe\u0301",
    "🧠👩‍🔬",
    "Robert'); DROP TABLE memories;--",
    '"; --',
    "erased:mei",
    "a:b|c,d",
    "null",
    "0",
    "\u200b",
    "x" * 256,
    "记" * 256,
)


def contents(result: SearchResult) -> list[str]:
    """What was found, best first."""
    return [hit.content_preview for hit in result.hits]


async def stored(memory: Memory, user_id: str = "mei", **filters: Any) -> list[MemoryItem]:
    """Everything of a user, over all pages."""
    found: list[MemoryItem] = []
    cursor = None
    while True:
        page = await memory.list(user_id=user_id, limit=1000, cursor=cursor, **filters)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table in a store's file."""
    with closing(sqlite3.connect(path)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: sorted(connection.execute(f'SELECT * FROM "{table}"'), key=repr) for table in tables}


def rows_with(path: Path, *needles: str) -> dict[str, int]:
    """In how many rows of which tables one of the needles stands, in any column."""
    found = {}
    for table, rows in dump(path).items():
        count = sum(any(_holds(value, needle) for value in row for needle in needles) for row in rows)
        if count:
            found[table] = count
    return found


def _holds(value: Any, needle: str) -> bool:
    if isinstance(value, bytes):
        return needle.encode() in value
    escaped = needle.encode("ascii", "backslashreplace").decode()  # as JSON columns spell it
    return isinstance(value, str) and (needle in value or escaped in value)


def file_bytes(path: Path) -> bytes:
    """The store's file with all that lies beside it."""
    return b"".join(file.read_bytes() for file in sorted(path.parent.glob(path.name + "*")))
