"""Small things that several test files need."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import math
import os
import random
import re
import socket
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any, NoReturn

import pytest

from jiyi import Explanation, Memory, MemoryItem, SearchResult
from jiyi.store.write_set import StoredMemory

LONG = os.environ.get("JIYI_TEST_LONG") == "1"  # what takes minutes runs too

Place = str | Path  # of a store: a file, or the URL of a database

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


MISSING: list[str] = []  # what was not there to be tested


def missing(name: str, problem: object) -> NoReturn:
    """Skip tests for want of a program, loudly; fail where CI=true."""
    told = f"NO {name}, so nothing is tested on it: {problem}"
    if os.environ.get("CI") == "true":
        pytest.fail(told)
    if told not in MISSING:
        MISSING.append(told)
    pytest.skip(told)


def unused_port() -> int:
    """A port for a server that starts later: not one of those that the system gives to outgoing connections."""
    for _ in range(100):
        port = random.SystemRandom().randrange(15_000, 30_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("there is no free port")


MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


async def said(memory: Memory, *texts: str) -> None:
    """Tell a memory one message a day, from Monday on, each in a session of its own."""
    for day, text in enumerate(texts):
        message = {"role": "user", "content": text, "sent_at": MONDAY + timedelta(days=day)}
        await memory.add([message], user_id="mei", session_id=f"s{day}")


Test = Callable[..., Any]


def each_case(names: str | tuple[str, ...], values: Iterable[Any]) -> Callable[[Test], Test]:
    """Run a test for every case inside one test and report all failures.

    Like `pytest.mark.parametrize`, for cases so quick that collecting each of them costs more than running it.
    """
    arguments = [names] if isinstance(names, str) else list(names)
    all_values = list(values)

    def cases() -> Iterator[tuple[str, dict[str, Any]]]:
        for value in all_values:
            case = getattr(value, "values", value) if hasattr(value, "marks") else value
            bound = {arguments[0]: case} if isinstance(names, str) else dict(zip(arguments, case, strict=True))
            yield getattr(value, "id", None) or repr(case)[:200], bound

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            failed = []
            for name, bound in cases():
                try:
                    test(**fixtures, **bound)
                except Exception as error:  # noqa: BLE001 - every case is to be tried
                    failed.append(f"{name}: {type(error).__name__} {error}")
            assert not failed, "\n\n".join(failed)

        @functools.wraps(test)
        async def run_async(**fixtures: Any) -> None:
            failed = []
            for name, bound in cases():
                try:
                    await test(**fixtures, **bound)
                except Exception as error:  # noqa: BLE001 - every case is to be tried
                    failed.append(f"{name}: {type(error).__name__} {error}")
            assert not failed, "\n\n".join(failed)

        rest = [one for name, one in signature.parameters.items() if name not in arguments]
        chosen: Test = run_async if inspect.iscoroutinefunction(test) else run
        chosen.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return chosen

    return decorate


def cpu_unit() -> float:
    """Return the CPU time of a fixed piece of work, about 0.03 s. Bounds of time are multiples of it, because machines
    differ and each of them is slower under load."""
    text = "I moved to 上海 in May 2023, and my sister Ana, 34, lives in Lyon. " * 1_000

    def work() -> float:
        began = process_time()
        for _ in range(4):
            counted = Counter(re.findall(r"[a-z]+|[一-鿿]|\d+", text.lower()))
            json.loads(json.dumps([{"word": word, "times": [times] * 500} for word, times in counted.items()]))
        return process_time() - began

    return min(work() for _ in range(3))


def contents(result: SearchResult) -> list[str]:
    """What was found, best first."""
    return [hit.content_preview for hit in result.hits]


async def stored(memory: Memory, user_id: str = "mei", **filters: Any) -> list[MemoryItem]:
    """Everything of a user, messages too, over all pages."""
    await memory.sessions.flush()
    if "memory_types" not in filters:
        own, said = [await stored(memory, user_id, memory_types=kinds, **filters) for kinds in (None, ["message"])]
        return sorted([*own, *said], key=lambda item: item.id, reverse=True)
    found: list[MemoryItem] = []
    cursor = None
    while True:
        page = await memory.list(user_id=user_id, limit=1000, cursor=cursor, **filters)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def ask(place: Place, statement: str) -> list[tuple[Any, ...]]:
    """The rows that a statement in SQL finds, past Jiyi."""
    if isinstance(place, Path):
        with closing(sqlite3.connect(place)) as connection:
            return connection.execute(statement).fetchall()
    with ThreadPoolExecutor(1) as thread:  # there may be a loop in this one
        return thread.submit(asyncio.run, _ask_postgres(place, statement)).result()


async def _ask_postgres(url: str, statement: str) -> list[tuple[Any, ...]]:
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET jiyi.everybody = 'on'")
        return [tuple(row) for row in await connection.fetch(statement)]
    finally:
        await connection.close()


def dump(place: Place) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of a store, but its secrets, which no other store has."""
    listing = (
        "SELECT name FROM sqlite_master WHERE type = 'table'"
        if isinstance(place, Path)
        else "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
    )
    tables = [table for (table,) in ask(place, listing) if table != "secrets"]
    return {table: sorted(ask(place, f'SELECT * FROM "{table}"'), key=repr) for table in tables}


def rows_with(place: Place, *needles: str) -> dict[str, int]:
    """In how many rows of which tables one of the needles stands, in any column."""
    found = {}
    for table, rows in dump(place).items():
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


def recomputed(explanation: Explanation) -> float:
    """The score of a plain formula from its parts and factors alone."""
    total = math.fsum(part.weight * part.value for part in explanation.parts)
    for factor in explanation.factors:
        total *= 1 - factor.weight + factor.weight * factor.value
    return total


AREAS = ("jobs", "keys", "synonyms", "workspace", "maintenance", "transfer", "sessions", "usage")


def verbs(memory: type) -> dict[str, Callable[..., Any]]:
    """The verbs of a memory and, as `area.verb`, those of its areas."""
    found = {name: verb for name, verb in inspect.getmembers(memory, inspect.iscoroutinefunction) if name[0] != "_"}
    for area in AREAS:
        kind = getattr(import_module(f"jiyi.areas.{area}"), area.title())
        members = inspect.getmembers(kind, inspect.iscoroutinefunction)
        found |= {f"{area}.{name}": verb for name, verb in members if name[0] != "_"}
    return found


QUOTED = re.compile(r'"(?:[^"\\<]|\\.)*"')
BLOCK = re.compile(r"<jiyi-memory-([a-z]{8})>\n(?P<inside>.*?)\n</jiyi-memory-\1>", re.DOTALL)


def blocks_in(text: str) -> list[str]:
    """Return the inside of each block of recalled memories; there is no other mark, and no tag inside."""
    found = [block["inside"] for block in BLOCK.finditer(text)]
    assert text.count("<jiyi-memory") == text.count("</jiyi-memory") == len(found), text
    assert not any("<" in inside for inside in found), text
    return found


def unquoted(text: str) -> str:
    """Return the text with the content of its JSON strings instead of them."""
    return QUOTED.sub(lambda found: str(json.loads(found[0])), text)


def skeleton(text: str) -> str:
    """Return the text with empty JSON strings: what is left is ours."""
    return QUOTED.sub('""', text)


def stored_memory(kind: type[Any], **fields: Any) -> Any:
    """Return the row of a memory, or one of the values that are made of it."""
    columns = dict.fromkeys(StoredMemory.__dataclass_fields__)
    times = dict.fromkeys(("occurred_at", "valid_from", "created_at", "updated_at"), NOW)
    plain = {
        "user_id": "mei",
        "memory_type": "fact",
        "layer": "semantic",
        "status": "active",
        "summary": "",
        "tags": (),
    }
    shares = {"version": 1, "near_hash": 0, "access_count": 0, "importance": 0.5, "confidence": 1.0, "trust": 1.0}
    return kind(**{**columns, **times, **plain, **shares, "tags": (), "data": {}, "metadata": {}, **fields})
