"""Faults at every call by which a verb changes a file: the process is killed there, or the call fails.

Each verb runs once to count its calls and record the result, then once for each call on a copy of the same store.
Killed: the store contains the state before or after; after, if it was acknowledged. Failed: the caller gets a Jiyi
error, or it is done; and it can be repeated in the same process without the fault.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from jiyi import JiyiError, NotFound
from jiyi.files import safe
from jiyi.store import sqlite

from .forks import fork, in_process, wait
from .shim import Mode, Shim, environment
from .trial import Trial
from .verbs import VERBS, Verb, held, opened, prepare
from .warm import warm

PROTECTIONS = {
    "the journal": "SQLite writes into its file at once",
    "replacing files": "files are written where they are, piece by piece",
}
TRIED_WITHOUT = {"the journal": "update", "replacing files": "sync_workspace", "names of errors": "update"}
KILLED = -9


def weaken(without: str | None) -> None:
    """Switch one protection off."""
    if without == "the journal":
        sqlite.WRITE_AHEAD = "PRAGMA journal_mode = OFF"  # of one connection, and now of each
        sqlite.PRAGMAS = (*sqlite.PRAGMAS, sqlite.WRITE_AHEAD)
    elif without == "replacing files":
        safe.replace_file = _write_in_place
    elif without == "names of errors":
        sqlite.translated = lambda path: nullcontext()


def _write_in_place(path: Path, data: bytes, *, expected: str | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for at in range(0, len(data), 16):
        os.write(handle, data[at : at + 16])
    os.close(handle)


async def perform(place: Path, verb: Verb, mode: Mode, at: int, told: Path, without: str | None = None) -> None:
    """Open, run the verb, acknowledge and close, with a fault at one call."""
    weaken(without)
    shim = Shim()
    shim.arm(place, mode, at)
    memory = await opened(place, verb)
    await verb.do(memory, place)
    _note(told, "done")
    await memory.close()
    _note(told, f"{shim.seen} calls")


async def fail(
    place: Path, verb: Verb, mode: Mode, at: int, told: Path, after: Counter[str], without: str | None
) -> None:
    """Run with a failing call, then without a fault in the same process."""
    weaken(without)
    logging.disable(logging.CRITICAL)  # expected
    shim = Shim()
    shim.arm(place, mode, at)
    try:
        memory = await opened(place, verb)
        try:
            await verb.do(memory, place)
            _note(told, "done")
        except JiyiError as error:
            _note(told, f"named {type(error).__name__}")
            shim.disarm()
            if verb.repeats or not done(held(place), after):
                await _again(memory, verb, place)
        shim.disarm()
        await _settle(memory, verb)
        await memory.close()
    except JiyiError as error:  # opening or closing failed
        _note(told, f"named {type(error).__name__}")
        shim.disarm()
        await once_more(place, verb, after)
    except Exception as error:  # noqa: BLE001 - that is the finding
        _note(told, f"unnamed {error!r}")


async def rehearse(place: Path, verb: Verb) -> None:
    """Run without a fault."""
    async with opened(place, verb) as memory:
        await verb.do(memory, place)
    async with opened(place, verb) as memory:
        await _settle(memory, verb)
        await memory.maintenance.verify()


async def once_more(place: Path, verb: Verb, after: Counter[str]) -> None:
    """Open the store in a new process after a fault, verify it, and run the verb again."""
    async with opened(place, verb) as memory:
        await _settle(memory, verb)
        if verb.name not in ("verify and repair", "reindex"):
            drift = {
                kind: number
                for kind, number in (await memory.maintenance.verify()).drift.items()
                if "vector" not in kind
            }
            assert not drift, drift
        if verb.repeats or not done(held(place), after):
            await _again(memory, verb, place)
            await _settle(memory, verb)


def done(now: Counter[str], after: Counter[str]) -> bool:
    """Return True if the store, ignoring files, is in the state after the verb."""
    return _of_the_store(now) == _of_the_store(after)


def _of_the_store(state: Counter[str]) -> Counter[str]:
    return Counter({line: number for line, number in state.items() if line.startswith("(")})


async def _again(memory: object, verb: Verb, place: Path) -> None:
    try:
        await verb.do(memory, place)  # type: ignore[arg-type]
    except (NotFound, LookupError, ValueError):  # done already
        if verb.repeats:
            raise


async def _settle(memory: object, verb: Verb) -> None:
    """Finish jobs and synchronise files."""
    if verb.deferred:
        for _ in range(100):
            await memory.jobs.work()  # type: ignore[attr-defined]
            if not (await memory.jobs.counts()).by_state.get("accepted"):  # type: ignore[attr-defined]
                break
            await asyncio.sleep(0.05)
    if verb.files:
        await memory.workspace.sync(user_id="mei")  # type: ignore[attr-defined]


def _note(told: Path, what: str) -> None:
    handle = os.open(told, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{what}\n".encode())
    os.close(handle)


class Stage:
    """One verb, its template, and the state of the store before and after."""

    def __init__(self, trial: Trial, verb: Verb) -> None:
        self.trial, self.verb = trial, verb
        self.template = trial.scratch / f"template{'-files' * verb.files}{'-jobs' * verb.waiting}"
        self.place = trial.scratch / "here"
        if not self.template.exists():  # at the path of its copies: a workspace stores its path
            shutil.rmtree(self.place, ignore_errors=True)
            assert wait(fork(lambda: prepare(self.place, files=verb.files, waiting=verb.waiting))) == 0
            self.place.rename(self.template)
        self.told = trial.scratch / "told"
        self.known: set[str] = set()  # states that were checked already
        with self.copy() as (place, _):
            warm(lambda: rehearse(place, verb))
        with self.copy() as (place, told):
            assert wait(fork(lambda: perform(place, verb, Mode.COUNT, -1, told))) == 0, verb.name
            self.calls = int(told.read_text().split()[-2])
            self.after = _held_by_another(place, trial.scratch, verb)
        self.before = held(self.template)

    def copy(self) -> _Copy:
        return _Copy(self.template, self.place, self.told)

    def indexes(self, stride: int) -> Iterator[int]:
        return iter(range(self.trial.chances(self.verb.name).randrange(stride), self.calls, stride))

    def between(self, now: Counter[str]) -> bool:
        """Return True if a state is before or after or, for verbs of several steps, complete in between."""
        if now in (self.before, self.after):
            return True
        return self.verb.steps and (self.before & self.after) <= _without_counts(now) | (self.before & self.after)

    def breaks(self, what: str, at: int, detail: object) -> None:
        self.trial.breaks("torn", f"{self.verb.name}, {what} at call {at} of {self.calls}: {detail}")


class _Copy:
    def __init__(self, template: Path, place: Path, told: Path) -> None:
        self._template, self._place, self._told = template, place, told

    def __enter__(self) -> tuple[Path, Path]:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._template, self._place)
        self._told.unlink(missing_ok=True)
        return self._place, self._told

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._place, ignore_errors=True)


def _without_counts(held_now: Counter[str]) -> Counter[str]:
    return Counter({line: number for line, number in held_now.items() if not line.startswith("rows of")})


def _held_by_another(place: Path, scratch: Path, verb: Verb) -> Counter[str]:
    """Dump a store after another process has opened and settled it."""

    async def settle() -> None:
        async with opened(place, verb) as memory:
            await _settle(memory, verb)

    assert wait(fork(settle)) == 0
    return held(place)


def _chosen(trial: Trial, only: list[str] | None) -> Iterator[Verb]:
    wanted = [TRIED_WITHOUT[trial.without]] if trial.without else only
    return (verb for verb in VERBS if wanted is None or verb.name in wanted)


def killed_at_every_call(trial: Trial, *, stride: int, only: list[str] | None = None) -> None:
    for verb in _chosen(trial, only):
        stage = Stage(trial, verb)
        for at in stage.indexes(stride):
            _kill(stage, at)
        trial.counts["verbs"] += 1
        print(f"  {verb.name}: {stage.calls} calls, {len(trial.broken)} broken", flush=True)


def _kill(stage: Stage, at: int) -> None:
    trial, verb = stage.trial, stage.verb
    with stage.copy() as (place, told):
        code = wait(fork(lambda: perform(place, verb, Mode.KILL, at, told, trial.without)))
        if code != KILLED:  # this run needed fewer calls than the first
            trial.counts["calls not reached"] += code == 0
            if code != 0:
                stage.breaks("killed", at, f"ended with {code}")
            return
        trial.counts["kills at a call"] += 1
        acknowledged = told.exists() and "done" in told.read_text()
        now = held(place)
        state = repr(sorted(now.items()))
        if "DAMAGED" in state or "TORN" in state:
            stage.breaks("killed", at, state)
        elif acknowledged and not verb.steps and now != stage.after:
            stage.breaks("killed after it was acknowledged", at, _difference(now, stage.after))
        elif not stage.between(now):
            stage.breaks("killed", at, _difference(now, stage.after))
        if state in stage.known:
            return
        stage.known.add(state)
        trial.counts["states looked at"] += 1
        if wait(fork(lambda: once_more(place, verb, stage.after))) != 0:
            stage.breaks("killed", at, "it cannot be continued")
        elif (now := held(place)) != stage.after and not _close_enough(verb, now, stage.after):
            stage.breaks("killed, and done again", at, _difference(now, stage.after))


def failed_at_every_call(trial: Trial, *, stride: int, only: list[str] | None = None) -> None:
    for verb in _chosen(trial, only):
        stage = Stage(trial, verb)
        for mode in (Mode.EIO, Mode.FULL_DISK, Mode.HALF):
            for at in stage.indexes(stride):
                _fail(stage, mode, at)
        print(f"  {verb.name}: {stage.calls} calls, {len(trial.broken)} broken", flush=True)


def _fail(stage: Stage, mode: Mode, at: int) -> None:
    trial, verb = stage.trial, stage.verb
    with stage.copy() as (place, told):
        if wait(fork(lambda: fail(place, verb, mode, at, told, stage.after, trial.without))) != 0:
            stage.breaks(mode.name, at, "it cannot be continued")
            return
        trial.counts[f"{mode.name} at a call"] += 1
        lines = told.read_text().split("\n") if told.exists() else []
        for line in filter(None, lines):
            trial.counts[line if line.startswith("named") else line.split()[0]] += 1
            if line.startswith("unnamed"):
                stage.breaks(mode.name, at, line)
        now = held(place)
        if now != stage.after and not _close_enough(verb, now, stage.after):
            what = "it said that it was done" if "done" in lines else "it was done again"
            stage.breaks(f"{mode.name}, {what}", at, _difference(now, stage.after))


def _close_enough(verb: Verb, now: Counter[str], after: Counter[str]) -> bool:
    """Compare states; verbs that record their calls (keys, searches) may be recorded twice."""
    return verb.name in ("create_key", "revoke_key", "note_audit", "search, noted") and after <= now


def _difference(now: Counter[str], wanted: Counter[str]) -> str:
    return f"too much: {sorted((now - wanted).elements())[:4]}, missing: {sorted((wanted - now).elements())[:4]}"


async def under_the_shim(trial: Trial, part: str, **given: object) -> None:
    preload = environment(trial)
    if preload is not None:
        stride = 1 if trial.scale >= 1 else round(1 / max(trial.scale, 1e-3) ** 0.5)
        await in_process(trial, part, environment=preload, **{"stride": stride, **given})


async def run(trial: Trial) -> None:
    await under_the_shim(trial, "writes.killed_at_every_call")
