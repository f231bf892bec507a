"""Mutation testing of the code that writes, reads, stores and authorises.

A mutant takes effect in a fork of this process only. The tests that run the changed lines, known from a first run
without mutants, are run until one fails. A test that fails without the mutant too counts for nothing. Survivors are
reported: either a test is missing, or the change does not matter. `SPARED` lists those of the latter kind with the
reason.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import resource
import select
import shutil
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from .forks import in_process
from .mutant import FOLDERS, ROOT, Mutant, files, mutants_of
from .reached import Reached, kept, record
from .spared import SPARED
from .trial import Trial

WHOLE = 240
LONGEST_S, SLOWER = 20, 15  # of one test, against deadlocks: seconds, and times the normal duration
LONGEST_CPU_S, SLOWER_CPU = 60, 3  # of all tests of a mutant
MOST_UNSTABLE = 0.01  # of the tests may fail without a mutant
NEITHER = "not postgres and not process"  # other processes would not contain the mutant
SERVERS = {"databases", "browser", "shared_redis", "own_redis", "engine_urls"}  # fixtures, for the same reason
UNRELATED = re.compile(
    r"test_(bench|canary|cli_demo|cli_docs|cli_process|console|deploy|engines|files_watch|house|kill_worker|mcp_process"
    r"|postgres|processes|redis|scaling|server_(attacks|process|schema)|torture|typescript|year)"
)
MOST_TESTS = 250  # of one mutant; more of them could only kill more
LANES = 2  # processes at once


class Loop:
    """Replaces pytest's loop: each mutant in a fork, with the tests that run its lines."""

    def __init__(self, trial: Trial, chosen: list[Mutant]) -> None:
        self.trial, self.chosen = trial, chosen

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if SERVERS.isdisjoint(getattr(item, "fixturenames", ()))]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # functions have to be found
        reached = self._reached(session)
        if reached is None:
            return True
        tests = Tests(session, {item.nodeid: item for item in session.items}, reached, self.trial.scratch)
        works = [lambda: [(at, tests.outcome(one)) for at, one in enumerate(self.chosen) if self._claims(at)]] * LANES
        for lane in self._in_lanes("mutants", works):
            for at, outcome in lane:
                self._told(self.chosen[at], outcome)
        return True

    def _reached(self, session: pytest.Session) -> Reached | None:
        """Return the lines that the tests run, recorded now where no record is kept; None if too many tests fail."""
        paths = list(dict.fromkeys(item.path for item in session.items))
        missing = [path for path in paths if kept(path) is None]
        lanes = [[item for item in session.items if item.path in missing[at::LANES]] for at in range(LANES)]
        self._in_lanes("tests", [lambda items=items: record(session, items) for items in lanes if items])
        reached = Reached()
        for path in paths:
            own = kept(path)
            if own is None:
                self.trial.breaks("other", f"the lines that {path.name} runs were not recorded")
                return None
            reached.join(own)
        self.trial.counts["tests"] = len(reached.took)
        self.trial.notes += [f"left out, because it fails without a mutant: {name}" for name in reached.failed]
        if len(reached.failed) > MOST_UNSTABLE * len(reached.took):
            self.trial.breaks("other", f"{len(reached.failed)} of {len(reached.took)} tests fail without a mutant")
            return None
        return reached

    def _claims(self, at: int) -> bool:
        """Take a mutant, unless another process has taken it."""
        try:
            (self.trial.scratch / f"mutant-{at}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def _in_lanes(self, what: str, works: list[Callable[[], Any]]) -> list[Any]:
        """Do each work in a fork, all at the same time; return what they return."""
        started = []
        for at, work in enumerate(works):
            told = self.trial.scratch / f"{what}-{at}.json"

            def write(work: Callable[[], Any] = work, told: Path = told) -> int:
                told.write_text(json.dumps(work()), "utf-8")
                return 0

            folder = Path(tempfile.mkdtemp(dir=self.trial.scratch)) if what == "tests" else None
            started.append((_start(write, quiet=what == "tests", folder=folder), told))
        ended = [(os.waitpid(child, 0)[1], told) for child, told in started]
        failed = [status for status, _ in ended if status != 0]
        if failed:
            self.trial.breaks("other", f"{what}: a process ended with {os.waitstatus_to_exitcode(failed[0])}")
        return [json.loads(told.read_text("utf-8")) for status, told in ended if status == 0]

    def _told(self, mutant: Mutant, became: str) -> None:
        package = mutant.file.partition("/")[0] if mutant.file.startswith(FOLDERS) else "keys"
        self.trial.counts["mutants"] += 1
        if became == "survived" and mutant.name in SPARED:
            became = "harmless"
            self.trial.notes.append(f"harmless: {mutant.name}: {SPARED[mutant.name]}")
        elif became == "survived":
            self.trial.notes.append(f"survived: line {mutant.line} of {mutant.name}")
        self.trial.counts[became] += 1
        self.trial.counts[f"{became} in {package}"] += 1


@dataclass(frozen=True, slots=True)
class Tests:
    """The tests, and which of them run which line."""

    session: pytest.Session
    items: dict[str, pytest.Item]
    reached: Reached
    scratch: Path

    def of(self, mutant: Mutant) -> list[str]:
        found = self.reached.tests(mutant.file, *mutant.lines)
        by_file: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(found, key=self.reached.took.__getitem__):
            by_file[name.partition("::")[0]].append(name)
        in_turn = zip_longest(*by_file.values())  # tests of one file resemble each other
        return [name for turn in in_turn for name in turn if name is not None][:MOST_TESTS]

    def outcome(self, mutant: Mutant) -> str:
        names = self.of(mutant)
        became = "survived"
        while names:
            became, at = self._tried(mutant, names)
            # Without the mutant it has to pass, or it says nothing about the mutant.
            if became == "survived" or self._tried(None, [names[at]])[0] == "survived":
                break
            became, names = "survived", names[at + 1 :]
        print(f"  {became}, {len(names)} tests: line {mutant.line} of {mutant.name}", flush=True)
        return became

    def _tried(self, mutant: Mutant | None, names: list[str]) -> tuple[str, int]:
        """Run tests with a mutant until one fails; return the outcome and the index of that test."""
        reader, writer = os.pipe()

        def tested() -> int:
            if mutant is not None:
                mutant.take_effect()
            return _run(self.session, [self.items[name] for name in names], lambda: os.write(writer, b"."))

        took = [self.reached.took[name] for name in names]
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        child = _start(tested, longest_cpu_s=int(LONGEST_CPU_S + SLOWER_CPU * sum(took)), folder=folder)
        os.close(writer)
        passed = 0
        while passed < len(names) and select.select([reader], [], [], LONGEST_S + SLOWER * took[passed])[0]:
            told = os.read(reader, len(names))
            if not told:  # it has ended
                break
            passed += len(told)
        else:
            if passed < len(names):
                os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(reader)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that a test left behind
        shutil.rmtree(folder, ignore_errors=True)
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            return "timed out", min(passed, len(names) - 1)
        return ("survived" if status == 0 else "killed"), min(passed, len(names) - 1)


def _start(work: Callable[[], int], *, longest_cpu_s: int = 0, quiet: bool = True, folder: Path | None = None) -> int:
    """Run in a fork, with temporary files in `folder`; return its process id."""
    child = os.fork()
    if child != 0:
        return child
    code = 1
    try:
        if longest_cpu_s:
            os.setpgid(0, 0)
            resource.setrlimit(resource.RLIMIT_CPU, (longest_cpu_s, longest_cpu_s))
        if folder is not None:  # such a process does not remove them itself
            os.environ["PYTEST_DEBUG_TEMPROOT"] = str(folder)
        if quiet:
            log = os.open(os.environ.get("TORTURE_MUTANTS_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
        code = work()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _run(session: pytest.Session, tests: list[pytest.Item], passed: Callable[[], object]) -> int:
    """Run tests until one fails; return 1 then."""
    for at, item in enumerate(tests):
        after = tests[at + 1] if at + 1 < len(tests) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return 1
        passed()
    return 0


def drive(trial: Trial, *, most: int) -> None:
    for file in files():
        importlib.import_module("jiyi." + file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    every = [mutant for file in files() for mutant in mutants_of(file)]
    trial.notes.append(f"{len(every):,} possible mutants of {len(files())} files; a sample was tried")
    chosen = trial.chances().sample(every, min(len(every), most))
    os.chdir(ROOT)
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "-k", NEITHER]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # they are imported earlier
    tests = [str(path) for path in sorted(Path("tests").glob("test_*.py")) if not UNRELATED.match(path.name)]
    pytest.main([*options, *tests], plugins=[Loop(trial, chosen)])


async def run(trial: Trial) -> None:
    await in_process(trial, "mutants.drive", most=trial.times(WHOLE))
