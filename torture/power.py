"""Power cuts: all writes of a session are recorded, then replayed up to each point with unflushed data lost, torn or
reordered. Acknowledged writes exist, the store is sound, and files of a person are complete.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi.files import safe
from jiyi.settings import load_settings
from jiyi.store import sqlite
from jiyi.testing import WordEmbedder

from .disk import Disk
from .forks import fork, in_process, wait
from .ledger import Ledger, Log, compared, rows
from .shim import Kind, Mode, Shim, environment, recorded
from .trial import Trial

PROTECTIONS = {
    "flushing the store": "SQLite does not wait for the disk",
    "flushing files": "files are written without waiting for the disk",
}
SESSIONS = 12
SHARES = (0.0, 0.5, 0.9, 1.0)  # of the unflushed sectors that were written
PROSE = "这是我自己写的。These lines are mine.\n"
USER = "mei"


def opened(place: Path) -> Memory:
    """Open in new folders, too."""
    return Memory.open(
        place / "data/deep/memory.db",
        settings=load_settings(maintenance={"compress_after_days": 0}),
        embedder=WordEmbedder(16),
        workspace=place / "data/files",
        workspace_user=USER,
    )


async def session(place: Path, log: Log, record: int, seed: str) -> None:
    """Open, write and close several times; each acknowledgement is a mark in the record."""
    shim, rng = Shim(), random.Random(seed)
    shim.arm(place, Mode.RECORD, record=record)
    marks = 0

    async def noted(work: Any, **line: Any) -> Any:
        nonlocal marks
        log.note(done=False, user=USER, mark=marks, **line)
        answer = await work
        marks += 1
        ids = {"ids": [made.id for made in answer.memories]} if line["verb"] == "say" else {}
        log.note(done=True, user=USER, mark=marks, **line, **ids)
        shim.mark(marks)
        return answer

    own: list[str] = []
    for part in range(2):
        async with opened(place) as memory:
            for turn in range(rng.randint(4, 7)):
                slot = f"p{part}t{turn}"
                said = await noted(
                    memory.add(f"{slot} is a fact, 事实", user_id=USER, memory_type="fact"),
                    verb="say",
                    slot=slot,
                    texts=[f"{slot} is a fact, 事实"],
                )
                own.append(said.memories[0].id)
                chance = rng.random()
                if chance < 0.3:
                    text = f"{slot} is changed"
                    changing = memory.update(own[-1], user_id=USER, content=text)
                    await noted(changing, verb="change", id=own[-1], text=text)
                elif chance < 0.5:
                    gone = own.pop(rng.randrange(len(own)))
                    await noted(memory.delete(gone, user_id=USER), verb="drop", id=gone)
                elif chance < 0.6:
                    await noted(memory.workspace.sync(), verb="sync")
            await memory.workspace.sync()


def _record(trial: Trial, number: int) -> tuple[Path, Path, Path]:
    place = trial.scratch / f"session{number}"
    place.mkdir()
    log, calls = trial.scratch / f"log{number}", trial.scratch / f"calls{number}"

    async def work() -> None:
        if trial.without == "flushing the store":
            sqlite.PRAGMAS = tuple(pragma.replace("= FULL", "= OFF") for pragma in sqlite.PRAGMAS)
        if trial.without == "flushing files":
            safe._write = lambda path, data: path.write_bytes(data)
        file = os.open(calls, os.O_WRONLY | os.O_CREAT, 0o600)
        await session(place, Log(log), file, f"{trial.seed}:{number}")

    if wait(fork(work)) != 0:
        trial.breaks("other", f"session {number} did not finish")
    return place, log, calls


def drive(trial: Trial, *, sessions: int, stride: int, shares: Sequence[float] = SHARES) -> None:
    for number in range(sessions):
        place, log, calls = _record(trial, number)
        lines = Log(log).read()
        disk, marks, known, versions = Disk(place), 0, set[str](), {b""}
        rng = trial.chances(number)
        for at, call in enumerate(recorded(calls)):
            if trial.without and trial.broken:  # noticed
                break
            disk.play(call)
            marks = call.at if call.kind is Kind.MARK else marks
            trial.counts["calls recorded"] += 1
            if call.kind in (Kind.LINK, Kind.EXCHANGE, Kind.RENAME):  # the file is replaced as a whole
                versions |= {_as_seen(disk, path) for path in disk.names if path.endswith(".md")}
            if rng.random() < 1 / stride or call.kind is Kind.MARK:
                for share in shares:
                    where = f"session {number}, call {at}, {share} of the rest"
                    _cut(trial, disk, lines, marks, known, versions, rng, share, where)
        shutil.rmtree(place)
        print(f"  session {number}: {trial.counts['power cuts']:,} power cuts, {len(trial.broken)} broken", flush=True)


def _as_seen(disk: Disk, path: str) -> bytes:
    inode: Any = disk.names[path]
    content = bytearray(inode.safe)
    whole = type(inode)(content, list(inode.since))
    whole.flush()
    return bytes(whole.safe)


def _cut(
    trial: Trial,
    disk: Disk,
    lines: list[dict[str, Any]],
    marks: int,
    known: set[str],
    versions: set[bytes],
    rng: random.Random,
    share: float,
    where: str,
) -> None:
    trial.counts["power cuts"] += 1
    here = trial.scratch / "after"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir()
    disk.lose_power(here, rng, share)
    ledger = Ledger.of(line for line in lines if line["mark"] <= marks)
    state, broken = _look(here, ledger, versions)
    for promise, what in broken:
        trial.breaks(promise, f"{what}; {where}")
    if state in known or broken:
        return
    known.add(state)
    trial.counts["states opened"] += 1
    if wait(fork(partial(go_on, here))) != 0:
        trial.breaks("other", f"it cannot be continued; {where}")


def _look(here: Path, ledger: Ledger, versions: set[bytes]) -> tuple[str, list[Any]]:
    """Read the store's file and the files of a person without Jiyi; return differences from the log."""
    path = here / "data/deep/memory.db"
    broken: list[Any] = []
    there: list[Any] = []
    try:
        if path.exists():
            with closing(sqlite3.connect(path)) as database:
                found = database.execute("PRAGMA integrity_check").fetchall()
                broken += [] if found == [("ok",)] else [("torn", f"integrity_check: {found[:2]}")]
                made = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'memories'").fetchall()
            there = rows(path) if made else []
    except sqlite3.Error as error:
        broken.append(("torn", f"the store cannot be read: {error}"))
    else:
        broken += compared(ledger, there)
    files = [file for file in sorted(here.rglob("*.md")) if not file.name.startswith(".")]
    broken += [("torn", f"{file.name} is torn") for file in files if file.read_bytes() not in versions]
    return repr((sorted(there), [file.read_bytes() for file in files])), broken


async def go_on(here: Path) -> None:
    """Open the remains with Jiyi, verify them, and continue."""
    async with opened(here) as memory:
        await memory.workspace.sync(restore=True)
        assert await memory.workspace.verify() == []
        found = await memory.maintenance.verify()
        assert not found.drift, found.drift
        await memory.add("life goes on", user_id=USER, memory_type="fact")
        [hit, *_] = (await memory.search("life goes on", user_id=USER)).hits
        assert hit.content_preview == "life goes on"
    await asyncio.sleep(0)


async def run(trial: Trial) -> None:
    preload = environment(trial)
    if preload is not None:
        stride = 2 if trial.scale >= 1 else max(4, round(1 / max(trial.scale, 1e-3)))
        await in_process(trial, "power.drive", environment=preload, sessions=trial.times(SESSIONS), stride=stride)
