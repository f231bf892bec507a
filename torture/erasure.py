"""Users are deleted at random moments of imports, uploads, adds, jobs and syncs, in one and in two other processes.

Each process logs when a piece of work began and how it ended. What began before a deletion must be nowhere afterwards:
not in the tables, not in the bytes of the file, not in the spool. What began after the last one and was acknowledged
must be there.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import re
import select
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import Session

from jiyi import JiyiError, Memory, StoreUnavailable, UserErased
from jiyi.settings import Settings, load_settings
from jiyi.store.repositories import deletions
from jiyi.store.schema.columns import METADATA
from jiyi.store.schema.tables import MemoryRow, MessageRow
from jiyi.testing import WordEmbedder
from jiyi.transfer import imports

from .forks import ROOT, fork, in_process, wait
from .kills import Likes
from .ledger import Log
from .trial import Trial
from .uploading import play_uploads

PROTECTIONS = {"the epoch": "a deletion does not change the epoch of its user"}
ROUNDS = 1_200
ON_SQLITE = 0.65  # share of the rounds
A_STORE = 20  # rounds
TURNS = 2  # pieces of work of a process in a round
MESSAGES = 160  # of an import
BATCH = 40  # of them in one transaction
NOBODY_RETURNS = 0.3  # share of rounds in which nothing begins after the deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One user, the work that goes on for them, and the processes that do it."""

    place: str
    folder: Path
    name: str  # begins every text
    kind: str
    processes: int
    returns: bool  # something is added after the deletion
    seed: str
    without: str | None

    @property
    def user(self) -> str:
        return f"{self.name}user"

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    def texts(self, number: int, *part: object) -> list[str]:
        slot = "".join(f"{name}{value}" for name, value in zip("pt", part, strict=False))
        return [f"{self.name}{slot}n{at}z" for at in range(number)]

    def settings(self) -> Settings:
        jobs = {"in_process": self.kind == "job", "retry_delay_s": 0.05}
        learns, spool = {"enabled": self.kind == "job"}, {"upload_dir": self.spool}
        return load_settings(jobs=jobs, extraction=learns, server=spool, postgres={"pool_size": 3})

    def open(self, *, files: bool = False) -> Memory:
        imports.BATCH = BATCH
        if self.without is not None:
            deletions.new_id = str  # type: ignore[attr-defined,assignment]
        return Memory.open(
            self.place,
            settings=self.settings(),
            embedder=WordEmbedder(16),
            extractor=Likes() if self.kind == "job" else None,
            workspace=self.folder / "files" if files else None,
        )


class Worker:
    """The work of one process for a user, one piece after the other."""

    def __init__(self, given: Round, process: int, memory: Memory, signs: int) -> None:
        self.given, self.process, self.memory, self.signs = given, process, memory, signs
        self.log = Log(given.log)
        self.rng = random.Random(f"{given.seed}{process}")

    async def noted(self, texts: Sequence[str], work: Callable[[], Awaitable[Any]]) -> bool:
        """Do some work and log when it began and how it ended; return False if its user was deleted."""
        begun = time.monotonic()
        self.log.note(begun=begun, texts=texts)
        os.write(self.signs, b".")
        try:
            await work()
            outcome = "saved"
        except UserErased:
            outcome = "erased"
        except StoreUnavailable:  # busy; what of an import was saved is not known
            outcome = "unknown"
        self.log.note(begun=begun, outcome=outcome, ended=time.monotonic())
        return outcome != "erased"

    async def work(self) -> None:
        verb = getattr(self, self.given.kind)
        for turn in range(TURNS if self.given.returns else 1):
            await verb(turn)

    def _file(self, turn: int, lines: Sequence[Any], *, whole: bool = False) -> Path:
        path = self.given.folder / f"{self.given.name}-{self.process}-{turn}.{'json' if whole else 'jsonl'}"
        text = json.dumps(lines) if whole else "".join(json.dumps(line) + "\n" for line in lines)
        path.write_text(text, "utf-8")
        return path

    def _step(self, *_: object) -> None:
        os.write(self.signs, b".")

    async def chats(self, turn: int) -> None:
        texts = self.given.texts(MESSAGES, self.process, turn)
        said = [{"role": "user", "content": text, "timestamp": 1_700_000_000 + at} for at, text in enumerate(texts)]
        file, user = self._file(turn, said), self.given.user
        take_in = self.memory.transfer.import_chats
        await self.noted(texts, lambda: take_in(file, user_id=user, progress=self._step))

    async def memories(self, turn: int) -> None:
        texts = self.given.texts(MESSAGES, self.process, turn)
        user = self.given.user
        file = self._file(turn, [{"id": text, "memory": text, "user_id": user} for text in texts], whole=True)
        whose = self.rng.choice((None, user))
        take_in = self.memory.transfer.import_memories
        await self.noted(texts, lambda: take_in(file, user_id=whose, progress=self._step))

    async def restored(self, turn: int) -> None:
        texts, user = self.given.texts(MESSAGES, self.process, turn), self.given.user
        where = self.given.folder / f"{self.given.name}-{self.process}-{turn}"
        async with Memory.open(f"{where}.db", settings=self.given.settings(), embedder=WordEmbedder(16)) as scratch:
            await scratch.add([{"content": text} for text in texts], user_id=user)
            await scratch.transfer.export(f"{where}.jsonl")
        take_in = self.memory.transfer.import_memories
        await self.noted(texts, lambda: take_in(f"{where}.jsonl", progress=self._step))

    async def add(self, turn: int) -> None:
        for at in range(6):
            texts = self.given.texts(3, self.process, f"{turn}a{at}")
            talk = [{"role": "user", "content": text} for text in texts]
            session = f"s{self.process}{turn}{at}"
            await self.noted(texts, lambda: self.memory.add(talk, user_id=self.given.user, session_id=session))  # noqa: B023

    async def observe(self, turn: int) -> None:
        for at in range(10):
            [text] = texts = self.given.texts(1, self.process, f"{turn}a{at}")
            begun = time.monotonic()
            await self.memory.observe(text, user_id=self.given.user, session_id=f"s{self.process}")
            self.log.note(begun=begun, texts=texts)
            os.write(self.signs, b".")
        await self.memory.sessions.flush()

    async def job(self, turn: int) -> None:
        for at in range(5):
            said = self.given.texts(2, self.process, f"{turn}a{at}")
            talk = [{"role": "user", "content": f"{text} likes tea"} for text in said]
            session = f"s{self.process}{turn}{at}"
            await self.noted(said, lambda: self.memory.add(talk, user_id=self.given.user, session_id=session))  # noqa: B023

    async def sync(self, turn: int) -> None:
        """A person writes lines, which the next sync reads; those of a refused one are taken away again."""
        user = self.given.user
        file = self.given.folder / "files" / user / "context/memory.md"
        for at in range(5):
            texts = self.given.texts(20, self.process, f"{turn}a{at}")

            async def written(texts: Sequence[str] = texts) -> None:
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("a", encoding="utf-8") as lines:
                    lines.write("\n## Facts\n" + "".join(f"- {text}\n" for text in texts))
                await self.memory.workspace.sync(user_id=user)

            if not await self.noted(texts, written):
                lines = file.read_text("utf-8").splitlines(keepends=True)
                file.write_text("".join(line for line in lines if line[:2] != "- " or "<!--" in line), "utf-8")


# Kinds of work, and how many processes can do it for a user: two would edit one file.
KINDS = {"chats": 2, "memories": 2, "restored": 2, "add": 2, "observe": 2, "job": 2, "sync": 1, "upload": 2}


async def take_part(given: Round, process: int, signs: int) -> None:
    async with given.open(files=given.kind == "sync") as memory:
        await Worker(given, process, memory, signs).work()


async def erase(given: Round) -> None:
    async with given.open() as memory:
        begun = time.monotonic()
        done = await memory.delete_all(given.user)
        Log(given.log).note(erased=[begun, time.monotonic()], notes=done.notes)


async def come_back(given: Round) -> None:
    """Add something after the last deletion."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    async with given.open() as memory:
        worker = Worker(given, 9, memory, nowhere)
        for [text] in ([text] for text in given.texts(3, 9)):
            await worker.noted([text], lambda: memory.add(text, user_id=given.user))  # noqa: B023


def _held(session: Session, given: Round) -> tuple[set[str], dict[str, int | None]]:
    """Return the marks in texts of all users, and the number of rows of the deleted user by table."""
    held: set[str] = set()
    for column in (MemoryRow.content, MessageRow.text):
        found = session.scalars(sa.select(column).where(column.contains(given.name)))
        held.update(mark for text in found for mark in re.findall(f"{given.name}[a-z0-9]*z", text))
    tables = [table for table in METADATA.sorted_tables if "user_id" in table.columns]
    return held, {
        table.name: session.scalar(
            sa.select(sa.func.count()).select_from(table).where(table.columns["user_id"] == given.user)
        )
        for table in tables
    }


async def look(given: Round, told: Path) -> None:
    """Compare the log with the store, the file and the spool; write broken promises to a file, one per line."""
    lines = Log(given.log).read()
    erased = [line["erased"] for line in lines if "erased" in line]
    gone, kept, broken = _expected(lines, erased)
    async with given.open() as memory:
        held, rows = await memory._engine.store.database.read(None, lambda session: _held(session, given))
        if any(rows.values()) and gone.issuperset(text for line in lines for text in line.get("texts", ())):
            left = {name: number for name, number in rows.items() if number}
            broken.append(f"leak: rows of a deleted user are in {left} during {given.kind}")
    broken += [f"leak: {len(held & gone)} of {len(gone)} came back by {given.kind}"] if held & gone else []
    broken += [f"lost: {len(kept - held)} of {len(kept)} added after it, {given.kind}"] if kept - held else []
    data = b"".join(file.read_bytes() for file in given.spool.rglob("*") if file.is_file())
    if "://" not in given.place and not any(line.get("notes") for line in lines):
        data += b"".join(file.read_bytes() for file in Path(given.place).parent.glob("memory.db*"))
    scraps = {mark.decode() for mark in re.findall(f"{given.name}[a-z0-9]*z".encode(), data)} & gone
    broken += [f"leak: {len(scraps)} texts are on disk after {given.kind}"] if scraps else []
    counts = {"deletions": len(erased), "texts that began before": len(gone), "texts that began after": len(kept)}
    told.write_text(json.dumps({"broken": broken, "counts": counts}), "utf-8")  # noqa: ASYNC240


def _expected(lines: Sequence[dict[str, Any]], erased: Sequence[list[float]]) -> tuple[set[str], set[str], list[str]]:
    """Return the texts that must be gone, those that must be there, and work that was refused for no deletion."""
    texts = {line["begun"]: line["texts"] for line in lines if "texts" in line}
    ends = {line["begun"]: line for line in lines if "outcome" in line}
    gone: set[str] = set()
    kept: set[str] = set()
    broken: list[str] = []
    for begun, of_it in texts.items():
        end = ends.get(begun, {"outcome": "unknown"})
        if any(begun < start for start, _ in erased):
            gone.update(of_it)
        elif end["outcome"] == "saved" and all(begun > last for _, last in erased):
            kept.update(of_it)
        if end["outcome"] not in ("saved", "erased", "unknown"):
            broken.append(f"other: work ended with {end['outcome']}")
        if end["outcome"] == "erased" and not any(begun < last and end["ended"] > start for start, last in erased):
            broken.append("other: work was refused although nobody deleted its user meanwhile")
    return gone, kept, broken


def _play_processes(given: Round, rng: random.Random) -> list[int]:
    """Let processes work for a user who is deleted meanwhile; return the exit codes of those that failed."""
    theirs, ours = os.pipe()
    crew = [fork(lambda at=at: take_part(given, at, ours)) for at in range(given.processes)]  # type: ignore[misc]
    os.close(ours)
    codes = []
    for _ in range(rng.choice((1, 1, 2, 3, 5, 8))):
        if not select.select([theirs], [], [], 30)[0] or not os.read(theirs, 1):
            break
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        time.sleep(rng.uniform(0, 0.05))
        erasing = fork(lambda: erase(given))
        if rng.random() < 0.5:
            codes.append(wait(erasing))
        else:
            crew.append(erasing)
    while select.select([theirs], [], [], 60)[0] and os.read(theirs, 4096):
        pass  # until all have ended, lest the pipe fill up
    os.close(theirs)
    return [code for code in (*codes, *map(wait, crew)) if code]


def _play(trial: Trial, given: Round) -> None:
    rng = random.Random(given.seed)
    if given.kind == "upload":
        failed = play_uploads(given, rng, lambda: fork(lambda: erase(given)))
    else:
        failed = _play_processes(given, rng)
    if given.returns:
        failed += filter(None, [wait(fork(lambda: come_back(given)))])
    if failed:
        trial.breaks("other", f"processes of {given.name} ({given.kind}) ended with {failed}")
    told = given.folder / "told"
    if wait(fork(lambda: look(given, told))) != 0:
        trial.breaks("other", f"{given.name} ({given.kind}) cannot be checked")
        return
    found = json.loads(told.read_text("utf-8"))
    trial.counts.update(found["counts"])
    trial.counts[f"rounds of {given.kind}"] += 1
    trial.broken += [f"{line}, {given.name} (--seed {trial.seed})" for line in found["broken"]]


def drive(trial: Trial, *, where: str, rounds: int) -> None:
    logging.disable(logging.WARNING)  # refused work is logged
    chances = trial.chances(where)
    kinds = list(KINDS)[:: -1 if "://" in where else 1]  # a short run has others on each database
    for number in range(rounds):
        folder = trial.scratch / ("postgres" if "://" in where else f"sqlite{number // A_STORE}")
        folder.mkdir(exist_ok=True)
        kind = kinds[number % len(kinds)]
        given = Round(
            place=where if "://" in where else str(folder / "memory.db"),
            folder=folder,
            name=f"zq{number}y",
            kind=kind,
            processes=1 + number // len(kinds) % KINDS[kind],
            returns=chances.random() >= NOBODY_RETURNS,
            seed=f"{trial.seed}{where.partition(':')[0]}{number}",
            without=trial.without,
        )
        _play(trial, given)
        if number % 10 == 9:
            print(f"  {number + 1:,} of {rounds:,} rounds, {len(trial.broken)} broken", flush=True)


async def run(trial: Trial) -> None:
    rounds = trial.times(ROUNDS, 12)
    await in_process(trial, "erasure.drive", where="a file", rounds=round(rounds * ON_SQLITE))
    if trial.without is None:
        await _on_postgres(trial, round(rounds * (1 - ON_SQLITE)))


async def _on_postgres(trial: Trial, rounds: int) -> None:
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
        await in_process(trial, "erasure.drive", where=databases.url(await databases.new()), rounds=rounds)
    except JiyiError as error:
        trial.breaks("other", f"PostgreSQL: {error}")
    finally:
        await asyncio.to_thread(server.stop)
