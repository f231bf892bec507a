"""A process forks while its threads add, search and embed: an inherited memory or file is an error at once, another
file works, and nothing that was acknowledged by any process is lost."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from unittest.mock import PropertyMock, patch

from jiyi import StoreError
from jiyi.embed import BuiltinEmbedder
from jiyi.forks import FORKED, Owner
from jiyi.sync import Memory

from .forks import in_process, wait
from .trial import Trial

PROTECTIONS = {
    "the owner": "a memory does not know which process has opened it",
    "the file": "a file that was open at the fork is opened again",
    "the locks": "a process may fork while one of its threads holds the embedder's lock",
}
FORKS = 1000
HANGS_S = 20  # on a slow machine
THREADS = 2


async def run(trial: Trial) -> None:
    await in_process(trial, "forked.fork_often", forks=trial.times(FORKS, 12))


def fork_often(trial: Trial, forks: int) -> None:
    with ExitStack() as off:
        if trial.without == "the owner":
            off.enter_context(patch.object(Owner, "is_forked", PropertyMock(return_value=False)))
        if trial.without == "the file":
            off.enter_context(patch("jiyi.store.sqlite.SqliteDatabase._note_open"))
        if trial.without == "the locks":
            off.enter_context(patch("jiyi.embed.builtin._lock", threading.Lock()))
        Forking(trial, forks).run()


class Forking:
    """A busy process and those that it forks."""

    def __init__(self, trial: Trial, forks: int) -> None:
        self._trial, self._forks = trial, forks
        self._path, self._other = trial.scratch / "forked.db", trial.scratch / "other.db"
        self._embedder = BuiltinEmbedder()
        self._stop = threading.Event()
        self._said: list[str] = []  # acknowledged, by this process

    def run(self) -> None:
        rng = self._trial.chances("moments")
        with Memory.open(self._path, embedder=self._embedder) as memory:
            memory.add("The first one", user_id="first")
            busy = [threading.Thread(target=self._work, args=(memory, at), daemon=True) for at in range(THREADS)]
            for thread in busy:
                thread.start()
            ways = (self._inherited, self._closed, self._opened_again, self._opened)
            told = []
            for at in range(self._forks):
                sleep(rng.random() * 0.05)
                told += self._fork(lambda at=at: ways[at % 4](memory, at), ways[at % 4].__name__[1:].replace("_", " "))
                if self._trial.without and self._trial.broken:
                    break
            self._stop.set()
            for thread in busy:
                thread.join(HANGS_S)
            self._check(memory, told)

    def _work(self, memory: Memory, number: int) -> None:
        at = 0
        while not self._stop.is_set():
            at += 1
            text = f"Locker {number}-{at} has the code {at * 7919 % 10007}"
            memory.add(text, user_id="busy")
            self._said.append(text)
            memory.search(f"the code of locker {at}", user_id="busy")

    def _inherited(self, memory: Memory, at: int) -> None:
        """Use the memory of the other process: only the error will do."""
        for verb in (lambda: memory.search("first", user_id="first"), lambda: memory.add("lost", user_id="first")):
            try:
                verb()
            except StoreError as error:
                if str(error) != FORKED:
                    raise
            else:
                raise AssertionError("it worked")

    def _closed(self, memory: Memory, at: int) -> None:
        memory.close()

    def _opened_again(self, memory: Memory, at: int) -> None:
        """Open the file that was open at the fork: only the error will do."""
        try:
            with Memory.open(self._path, embedder=self._embedder) as own:
                own.add("lost", user_id="first")
        except StoreError as error:
            if "was open when this process was forked" not in str(error):
                raise
        else:
            raise AssertionError("it worked")

    def _opened(self, memory: Memory, at: int) -> None:
        with Memory.open(self._other, embedder=self._embedder) as own:
            own.add(f"Process {at} was here", user_id="first")
            if not own.search("process", user_id="first").hits:
                raise AssertionError("a search found nothing")

    def _fork(self, work: Callable[[], None], name: str) -> list[str]:
        """Run something in a forked process; return what it has acknowledged."""
        began = monotonic()
        process = os.fork()
        if process == 0:
            hangs_s = HANGS_S if self._trial.without is None else 5
            signal.alarm(hangs_s)
            faulthandler.dump_traceback_later(hangs_s - 2)  # says where
            code = 1
            try:
                work()
                code = 0
            except BaseException as error:  # noqa: BLE001 - it is shown, and the process ends
                print(f"{name}: {type(error).__name__}: {error}", flush=True)
            os._exit(code)
        code = wait(process)
        self._trial.counts["forks"] += 1
        self._trial.counts[f"{name} in the new process"] += 1
        if code != 0:
            why = "hangs" if code == -signal.SIGALRM else f"ended with {code}"
            self._trial.breaks("other", f"{name}: the new process {why} after {monotonic() - began:.1f} s")
        return [f"Process {self._trial.counts['forks'] - 1} was here"] if name == "opened" and code == 0 else []

    def _check(self, memory: Memory, told: list[str]) -> None:
        for path, user, expected in ((self._path, "busy", self._said), (self._other, "first", told)):
            held = set(_contents(path, user))
            self._trial.counts["acknowledged"] += len(expected)
            for text in expected:
                if text not in held:
                    self._trial.breaks("lost", f"{text} of {user}")
        if drift := memory.maintenance.verify().drift:
            self._trial.breaks("torn", f"verify: {drift}")


def _contents(path: Path, user: str) -> list[str]:
    """Read all memories of a user, with a connection of its own."""
    from jiyi import Memory as Engine

    async def read() -> list[str]:
        found, cursor = [], None
        async with Engine.open(path, embedder=BuiltinEmbedder()) as memory:
            while True:
                page = await memory.list(user_id=user, limit=1000, cursor=cursor)
                found += [item.content for item in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    return found

    return asyncio.run(read())
