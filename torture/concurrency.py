"""Sixteen processes on one store: adds, updates, deletes, searches, compression and files, on both databases.

Each logs what was acknowledged; afterwards all logs are compared with the store. Additions with the same key or the
same text exist once. Operations with an unknown outcome are repeated.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from jiyi import ConnectionLost, JiyiError, Memory, NotFound, StoreUnavailable, VersionConflict
from jiyi.models import Status
from jiyi.settings import load_settings
from jiyi.store import sqlite
from jiyi.testing import WordEmbedder

from .forks import ROOT, fork, in_process, wait
from .ledger import Ledger, Log, Row, compared
from .trial import Trial

PROTECTIONS = {"transactions": "each statement is committed by itself, and no index forbids a second memory or key"}
PROCESSES = 16
OPERATIONS = 100_000
ON_SQLITE = 0.6  # share of the operations
USERS = ("mei", "林梅", "a-b.c", "%_")
SHARES = {"say": 26, "same": 10, "change": 18, "drop": 12, "search": 26, "list": 5, "compress": 1, "sync": 2}
WHO = {"compress": (2,), "sync": (0, 1)}  # processes that do it; all do the rest
TRIES = 30


def opened(where: str, number: int, files: Path) -> Memory:
    return Memory.open(
        where,
        settings=load_settings(
            maintenance={"compress_after_days": 0}, extraction={"enabled": False}, postgres={"pool_size": 3}
        ),
        embedder=WordEmbedder(16),
        workspace=files if number in WHO["sync"] else None,
    )


class Member:
    """One process's operations, one after the other."""

    def __init__(self, memory: Memory, number: int, log: Log, rng: random.Random) -> None:
        self.memory, self.number, self.log, self.rng = memory, number, log, rng
        self.own: list[tuple[str, str]] = []  # user and id

    async def work(self, operations: int) -> None:
        verbs = {verb: share for verb, share in SHARES.items() if self.number in WHO.get(verb, range(PROCESSES))}
        for turn in range(operations):
            verb = self.rng.choices(list(verbs), list(verbs.values()))[0]
            if verb in ("change", "drop") and not self.own:
                verb = "say"
            asked: dict[str, Any] = {"verb": verb, "user": self.rng.choice(USERS), "slot": f"p{self.number}t{turn}"}
            if verb == "say":
                asked["texts"] = [f"{asked['slot']} was said by {asked['user']}"]
            elif verb == "same":
                asked |= {"slot": f"shared{turn}", "verb": "same"}
            elif verb in ("change", "drop"):
                asked["user"], asked["id"] = self.own[self.rng.randrange(len(self.own))]
                asked["text"] = f"{asked['slot']} is changed"
                if verb == "drop":
                    self.own.remove((asked["user"], asked["id"]))
            self.log.note(done=False, **asked)
            found = await self._until_known(asked)
            self.log.note(done=True, **asked, **found)

    async def _until_known(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Retry while the store is busy, since the outcome is then unknown."""
        for attempt in range(TRIES):
            try:
                return await self._do(asked)
            except (StoreUnavailable, ConnectionLost, VersionConflict):
                if attempt + 1 == TRIES:
                    raise
                await asyncio.sleep(self.rng.uniform(0, 0.2))
            except NotFound:
                if attempt == 0 or asked["verb"] != "drop":
                    raise
                return {}
        return {}

    async def _do(self, asked: dict[str, Any]) -> dict[str, Any]:
        memory, user, slot = self.memory, asked["user"], asked["slot"]
        match asked["verb"]:
            case "say":
                made = (await memory.add(asked["texts"][0], user_id=user, idempotency_key=slot)).memories
                self.own.append((user, made[0].id))
                return {"ids": [made[0].id]}
            case "same":
                keyed = await memory.add(f"{slot} with a key", user_id=USERS[0], idempotency_key=slot)
                plain = await memory.add(f"{slot} in the same words", user_id=USERS[0])
                return {"same": [keyed.memories[0].id, plain.memories[0].id]}
            case "change":
                await memory.update(asked["id"], user_id=user, content=asked["text"])
            case "drop":
                await memory.delete(asked["id"], user_id=user)
            case "search":
                found = await memory.search(f"said by {user}", user_id=user, limit=5)
                if any(hit.content_preview.endswith(f"by {other}") for hit in found.hits for other in _others(user)):
                    raise AssertionError(f"a memory of somebody else was shown to {user}")
            case "list":
                await memory.list(user_id=user, limit=20)
            case "compress":
                await memory.maintenance.compress(user_id=user)
            case "sync":
                await memory.workspace.sync(user_id=user)
        return {}


def _others(user: str) -> list[str]:
    return [other for other in USERS if other != user]


async def take_part(where: str, number: int, operations: int, folder: Path, seed: str, without: str | None) -> None:
    if without is not None:
        sqlite.BEGIN_TO_WRITE = "SELECT 1"
    log = Log(folder / f"log{number}")
    async with opened(where, number, folder / "files") as memory:
        await Member(memory, number, log, random.Random(f"{seed}{number}")).work(operations)


def drive(trial: Trial, *, where: str, operations: int) -> None:
    folder = trial.scratch / ("postgres" if "://" in where else "sqlite")
    folder.mkdir()
    place = where if "://" in where else str(folder / "memory.db")
    assert wait(fork(lambda: _begin(place, folder, trial.without))) == 0
    each = max(operations // PROCESSES, 1)
    seed = f"{trial.seed}{folder.name}"
    crew = [
        fork(lambda number=number: take_part(place, number, each, folder, seed, trial.without))  # type: ignore[misc]
        for number in range(PROCESSES)
    ]
    for number, process in enumerate(crew):
        code = wait(process)
        if code != 0:
            trial.breaks("other", f"process {number} of {PROCESSES} on {folder.name} ended with {code}")
    lines = [line for number in range(PROCESSES) for line in Log(folder / f"log{number}").read()]
    trial.counts[f"operations on {folder.name}"] += sum(not line["done"] for line in lines)
    trial.counts["acknowledged"] += sum(line["done"] for line in lines)
    told = folder / "told"
    if wait(fork(lambda: look(place, folder, lines, told))) != 0:
        trial.breaks("other", f"{folder.name} cannot be checked")
    else:
        trial.broken += [f"{line} (--seed {trial.seed})" for line in told.read_text("utf-8").splitlines()]
    trial.counts["processes"] += PROCESSES


async def _begin(place: str, folder: Path, without: str | None) -> None:
    async with opened(place, 0, folder / "files"):
        pass
    if without is not None:
        with closing(sqlite3.connect(place)) as database:
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'uq_%'").fetchall():
                database.execute(f"DROP INDEX {name}")


async def look(place: str, folder: Path, lines: list[dict[str, Any]], told: Path) -> None:
    broken: list[str] = []
    async with opened(place, 0, folder / "files") as memory:
        there = [row for user in USERS for row in await _rows(memory, user)]
        broken += [": ".join(each) for each in compared(Ledger.of(lines), there)]
        broken += _twice(lines, there)
        await memory.workspace.sync()
        broken += [f"other: files: {drift}" for drift in (await memory.workspace.verify())[:5]]
        drift = (await memory.maintenance.verify()).drift
        broken += [f"other: verify: {drift}"] if drift else []
    told.write_text("\n".join(broken), "utf-8")  # noqa: ASYNC240


async def _rows(memory: Memory, user: str) -> list[Row]:
    found: list[Row] = []
    for status in get_args(Status):
        cursor = None
        while True:
            page = await memory.list(user_id=user, status=status, limit=1000, cursor=cursor)
            found += [(user, item.id, item.content, status) for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
    return found


def _twice(lines: list[dict[str, Any]], there: list[Row]) -> Iterator[str]:
    """Yield duplicates: additions with one key are one memory always, those with the same text until it is compressed
    and added again."""
    archived = {memory_id for _, memory_id, _, status in there if status == "archived"}
    keyed: dict[str, set[str]] = {}
    plain: dict[str, set[str]] = {}
    for line in lines:
        if "same" in line:
            keyed.setdefault(line["slot"], set()).add(line["same"][0])
            plain.setdefault(line["slot"], set()).add(line["same"][1])
    for slot, found in keyed.items():
        for ids in (found, plain[slot] - archived):
            if len(ids) > 1:
                yield f"twice: {slot} became {len(ids)} memories"


async def run(trial: Trial) -> None:
    operations = trial.times(OPERATIONS, 640)
    await in_process(trial, "concurrency.drive", where="a file", operations=round(operations * ON_SQLITE))
    if trial.without is None:
        await _on_postgres(trial, round(operations * (1 - ON_SQLITE)))


async def _on_postgres(trial: Trial, operations: int) -> None:
    sys.path.append(str(ROOT / "tests"))
    from postgres_server import QUICK, Databases, Server, Unavailable

    try:
        server = await asyncio.to_thread(Server, *QUICK)
    except (Unavailable, ImportError, OSError) as error:
        trial.notes.append(f"NOT RUN on PostgreSQL: {error}")
        if os.environ.get("CI") == "true":
            trial.breaks("other", f"not run on PostgreSQL: {error}")
        return
    try:
        databases = Databases(server.url())
        await databases.prepare()
        await in_process(trial, "concurrency.drive", where=databases.url(await databases.new()), operations=operations)
    except JiyiError as error:
        trial.breaks("other", f"PostgreSQL: {error}")
    finally:
        await asyncio.to_thread(server.stop)
