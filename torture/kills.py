"""`kill -9` at random times, 10,000 times: acknowledged writes exist once; others exist completely or not at all.

A process opens the store and writes for several users until it is killed. The next one checks what it left, resumes its
jobs, repeats operations with an unknown outcome, and is killed in turn.
"""

from __future__ import annotations

import asyncio
import os
import random
import select
import shutil
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from sqlite3 import connect
from typing import Any

from jiyi import Draft, Evidence, Memory, NotFound, Unit
from jiyi.settings import Settings, load_settings
from jiyi.store.repositories.job_queue import GONE
from jiyi.testing import WordEmbedder

from .forks import fork, in_process, kill, wait
from .ledger import Ledger, Log, compared, rows
from .trial import Trial
from .warm import warm

PROTECTIONS = {"the commit": "the log says that it is acknowledged before it was committed"}
KILLS = 10_000
A_STORE = 250  # kills per store
LOOK_EVERY = 50  # kills
USERS = ("mei", "林梅", "a-b.c")
PROSE = "These lines are a person's own, 不要动。\n"
SHARES = {"say": 40, "talk": 20, "change": 16, "drop": 12, "synonym": 3, "compress": 3, "forget": 1}
SETTINGS: dict[str, dict[str, Any]] = {
    "jobs": {"lease_s": 0.5, "retry_delay_s": 0.05, "max_attempts": 10_000},
    "maintenance": {"compress_after_days": 0},
}


class Likes:
    """Extracts `SLOT likes THING` from messages, in a job."""

    id = "likes"

    async def __call__(self, unit: Unit, /) -> Sequence[Draft]:
        await asyncio.sleep(0.002)
        return [
            Draft(
                memory_type="preference",
                content=f"{slot} prefers {thing}",
                evidence=(Evidence(message_id=message.id, start=0, end=len(message.text)),),
                occurred_at=message.sent_at,
                subject=slot,
                attribute="likes",
                value=thing,
            )
            for message in unit.messages
            for slot, likes, thing in [message.text.partition(" likes ")]
            if likes
        ]


@cache
def settings(works: bool) -> Settings:
    return load_settings(**{**SETTINGS, "jobs": {**SETTINGS["jobs"], "in_process": works}})


def opened(folder: Path, files: bool, *, works: bool = True) -> Memory:
    return Memory.open(
        folder / "memory.db",
        settings=settings(works),
        embedder=WordEmbedder(16),
        extractor=Likes(),
        workspace=folder / "files" if files else None,
    )


@dataclass
class Writer:
    """One user's operations, one after the other; requests and acknowledgements go into the log."""

    memory: Memory
    user: str
    log: Log
    ledger: Ledger
    rng: random.Random
    name: str  # unique per process
    signs: int  # pipe that signals progress
    too_early: bool

    async def write(self) -> None:
        unknown = self.ledger.unknown.get(self.user)
        if unknown is not None and self.rng.random() < 0.7:
            with suppress(NotFound):  # it had been done
                await self._do({name: value for name, value in unknown.items() if name != "done"})
        own = self.ledger.of_user(self.user)[-30:]
        for turn in count():
            verb = self.rng.choices(list(SHARES), list(SHARES.values()))[0]
            slot = f"{self.name}t{turn}"
            asked: dict[str, Any] = {"verb": verb, "user": self.user, "slot": slot}
            if verb == "say":
                asked["texts"] = [f"{slot} was said by {self.user}"]
            elif verb == "talk":
                asked["texts"] = [f"{slot} likes tea from {self.user}", f"{slot} is noted, {self.user} 喝茶"]
            elif verb in ("change", "drop"):
                if not own:
                    continue
                asked["id"] = own.pop(self.rng.randrange(len(own)))
                asked["text"] = f"{slot} was changed by {self.user}"
            elif verb == "forget":
                own.clear()
            own += await self._do(asked)
            os.write(self.signs, b".")

    async def _do(self, asked: dict[str, Any]) -> Sequence[str]:
        """Perform an operation; return the ids of new memories."""
        self.log.note(done=False, **asked)
        os.write(self.signs, b".")
        verb, memory, user = asked["verb"], self.memory, self.user
        if self.too_early:
            self.log.note(done=True, **asked)
        if verb in ("say", "talk"):
            roles = ("user", "assistant")
            talk = [{"role": role, "content": text} for role, text in zip(roles, asked["texts"], strict=False)]
            what: Any = asked["texts"][0] if verb == "say" else talk
            receipt = await memory.add(what, user_id=user, idempotency_key=asked["slot"], wait=False)
            made = [one.id for one in receipt.memories if one.content in asked["texts"]]
            if self.too_early:
                return ()
            self.log.note(done=True, ids=made, **asked)
            return made
        if verb == "change":
            await memory.update(asked["id"], user_id=user, content=asked["text"])
        elif verb == "drop":
            await memory.delete(asked["id"], user_id=user)
        elif verb == "synonym":
            await memory.synonyms.add([(asked["slot"], "tea")], user_id=user)
        elif verb == "compress":
            await memory.maintenance.compress(user_id=user)
        elif verb == "forget":
            await memory.delete_all(user)
        if not self.too_early:
            self.log.note(done=True, **asked)
        return ()


async def live(folder: Path, files: bool, name: str, seed: str, signs: int, too_early: bool) -> None:
    """Write until killed."""
    log = Log(folder / "log")
    ledger = Ledger.of(log.read())
    memory = await opened(folder, files)
    os.write(signs, b".")
    rng = random.Random(seed)
    writers = [
        Writer(memory, user, log, ledger, random.Random(f"{seed}{user}"), f"{name}u{at}", signs, too_early)
        for at, user in enumerate(rng.sample(USERS, rng.choice((1, 1, 1, 3))))
    ]
    await asyncio.gather(*(writer.write() for writer in writers))


async def look(folder: Path, files: bool, to_the_end: bool, told: Path) -> None:
    """Compare the log with the store, the index and the files; write broken promises to a file, one per line."""
    log = Log(folder / "log")
    broken = [": ".join(each) for each in compared(Ledger.of(log.read()), rows(folder / "memory.db"))]
    with closing(connect(folder / "memory.db")) as database:
        state = database.execute("PRAGMA integrity_check").fetchall()
        broken += [] if state == [("ok",)] else [f"torn: integrity_check: {state[:3]}"]
    async with opened(folder, files, works=False) as memory:  # nothing changes during the check
        if to_the_end:
            broken += await _jobs_done(memory, Ledger.of(log.read()), folder)
        if files:
            await memory.workspace.sync()
            broken += [f"other: files: {drift}" for drift in await memory.workspace.verify()]
            for user in USERS:
                text = next((folder / "files").glob(f"*{user}*/context/memory.md")).read_text("utf-8")
                broken += [] if PROSE in text else [f"lost: the person's own lines in the file of {user}"]
        drift = (await memory.maintenance.verify()).drift
        broken += [f"other: verify: {drift}"] if drift else []
    told.write_text("\n".join(broken), "utf-8")  # noqa: ASYNC240


async def _jobs_done(memory: Memory, ledger: Ledger, folder: Path) -> list[str]:
    """Check that every acknowledged conversation became exactly one preference."""
    until = time.monotonic() + 60
    while (await memory.jobs.counts()).by_state.get("accepted") and time.monotonic() < until:
        await memory.jobs.work()
        await asyncio.sleep(0.05)
    counts = (await memory.jobs.counts()).by_state
    broken = [f"other: {counts['accepted']} jobs are not done"] if counts.get("accepted") else []
    for user in USERS:  # jobs of deleted messages fail with a reason
        failed = await memory.jobs.list(user_id=user, state="failed", limit=1000)
        broken += [f"other: a job has failed: {job.problems}" for job in failed if job.problems != (GONE,)]
    made = [content for _, _, content, _ in rows(folder / "memory.db")]
    for slot, said in ledger.said.items():
        often = made.count(f"{slot} prefers tea from {said.user}")
        if often > 1:
            broken.append(f"twice: what was worked out of {slot} is there {often} times")
        elif not often and len(said.texts) > 1 and said.done and not said.may_be_gone and not _touched(ledger, said):
            broken.append(f"lost: nothing was worked out of {slot}")
    return broken


def _touched(ledger: Ledger, said: Any) -> bool:
    """Return True if one of its messages was changed or deleted."""
    own = [one for one in ledger.kept.values() if not one.texts.isdisjoint(said.texts)]
    return len(own) < len(said.texts) or any(one.may_be_gone or len(one.texts) > 1 for one in own)


async def rehearse(folder: Path) -> None:
    """Run a process for a moment without killing it, and check it."""
    _prepare(folder, files=True)
    theirs, signs = os.pipe()
    with suppress(TimeoutError):
        await asyncio.wait_for(live(folder, True, "r", "rehearsal", signs, too_early=False), 3)
    await look(folder, True, to_the_end=True, told=folder / "told")
    os.close(theirs)
    os.close(signs)


def drive(trial: Trial, *, kills: int) -> None:
    warm(lambda: rehearse(trial.scratch / "rehearsal"))
    done = 0
    too_early = trial.without is not None
    while done < kills:
        number = trial.counts["stores"]
        files = number % 4 == 1
        folder = trial.scratch / f"store{number}"
        _prepare(folder, files)
        this_time = min(A_STORE, kills - done)
        for at in range(this_time):
            _kill_one(trial, folder, files, f"s{number}k{at}", too_early)
            last = at + 1 == this_time
            if last or at % LOOK_EVERY == LOOK_EVERY - 1:
                _look(trial, folder, files, last)
        done += this_time
        trial.counts["stores"] += 1
        trial.counts["acknowledged"] += Ledger.of(Log(folder / "log").read()).acknowledged
        shutil.rmtree(folder)
        print(f"  {done:,} of {kills:,} kills, {len(trial.broken)} broken", flush=True)


def _prepare(folder: Path, files: bool) -> None:
    """Create an empty store, and files written by a person."""
    folder.mkdir()
    for user in USERS if files else ():
        note = folder / "files" / user / "context/memory.md"
        note.parent.mkdir(parents=True)
        note.write_text(f"# Mine\n\n{PROSE}", "utf-8")


def _kill_one(trial: Trial, folder: Path, files: bool, name: str, too_early: bool) -> None:
    rng = trial.chances(name)
    theirs, ours = os.pipe()
    process = fork(lambda: live(folder, files, name, f"{trial.seed}{name}", ours, too_early))
    os.close(ours)
    for _ in range(rng.choice((0, 1, 2, 3, 3, 4, 5, 5, 6, 7))):  # 0: perhaps while it opens the store
        if not select.select([theirs], [], [], 30)[0] or not os.read(theirs, 1):
            break
    time.sleep(rng.uniform(0, 0.02))
    if kill(process):
        trial.counts["kills"] += 1
    else:
        trial.breaks("other", f"{name} ended by itself")
    os.close(theirs)


def _look(trial: Trial, folder: Path, files: bool, last: bool) -> None:
    told = folder / "told"
    if wait(fork(lambda: look(folder, files, last, told))) != 0:
        trial.breaks("other", f"{folder.name} could not be checked after {trial.counts['kills']} kills")
    elif told.read_text("utf-8"):
        found = [f"{line} (--seed {trial.seed})" for line in told.read_text("utf-8").splitlines()]
        trial.broken += found
        print(f"  after {trial.counts['kills']} kills: {found}", flush=True)
    trial.counts["comparisons"] += 1


async def run(trial: Trial) -> None:
    await in_process(trial, "kills.drive", kills=trial.times(KILLS, 8))
