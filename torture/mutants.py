"""Mutation testing of the code that writes, reads, stores and authorises.

A mutant changes one place inside a function, in a fork of this process only. The tests that run the changed lines,
known from a first run without mutants, are run until one fails. A test that fails without the mutant too counts for
nothing. Survivors are reported: either a test is missing, or the change does not matter. `SPARED` lists those of the
latter kind with the reason. Row locks are left as they are: SQLite, on which the tests run, has none.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from .forks import in_process
from .spared import SPARED
from .trial import Trial

WHOLE = 240
ROOT = Path(__file__).parent.parent
LONGEST_S, SLOWER = 60, 15  # against deadlocks: seconds, and times the normal duration
LONGEST_CPU_S, SLOWER_CPU = 60, 3  # against endless loops
MOST_UNSTABLE = 0.01  # of the tests may fail without a mutant
FOLDERS = ("write", "read", "store")
# They run on PostgreSQL or with external engines only.
ELSEWHERE = {"store/postgres.py", "store/postgres_errors.py", "store/projected.py", "store/projections.py"}
OTHER_FILES = ("keys.py", "areas/keys.py", "server/auth.py")
NEITHER = "not postgres and not process"  # other processes would not contain the mutant
SERVERS = {"databases", "browser", "shared_redis", "own_redis", "engine_urls"}  # fixtures, for the same reason
UNRELATED = re.compile(
    r"test_(bench|canary|cli_demo|cli_docs|cli_process|console|deploy|docs|engines|files_watch|house|kill_worker|languages"
    r"|mcp_process|postgres|processes|redis|scaling|server_(attacks|process|schema)|torture|typescript|year)"
)
MOST_TESTS = 250  # of one mutant; more of them could only kill more
LANES = 2  # processes at once
OTHERS = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip


def files() -> list[str]:
    """List the files to change, relative to the package."""
    package = ROOT / "src/jiyi"
    found = [str(path.relative_to(package)) for folder in FOLDERS for path in sorted((package / folder).glob("*.py"))]
    return [file for file in (*found, *OTHER_FILES) if file not in ELSEWHERE]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one place in a file."""

    file: str
    line: int
    number: int  # index of the node in the tree
    way: int
    lines: tuple[int, int]  # that are executed with it, first and last
    was: str
    function: str  # that contains it
    first_line: int  # of the function

    def tree(self) -> ast.Module:
        tree = _parsed(self.file)
        _ways(_node(tree, self.number))[self.way]()
        return ast.fix_missing_locations(tree)

    def take_effect(self) -> None:
        """Replace the code of the function in this process."""
        path = str(ROOT / "src/jiyi" / self.file)
        whole = compile(self.tree(), path, "exec")
        code = next(each for each in _codes(whole) if _place(each) == self.place)
        changed = [each for each in gc.get_objects() if isinstance(each, FunctionType) and _is(each, self.place)]
        assert changed, self
        for function in changed:
            function.__code__ = code

    @property
    def place(self) -> str:
        return f"{ROOT / 'src/jiyi' / self.file}:{self.first_line}:{self.function}"

    @property
    def name(self) -> str:
        return f"{self.file}: {self.was} → {_short(ast.unparse(_node(self.tree(), self.number)))}"


def mutants_of(file: str) -> Iterator[Mutant]:
    """All mutants of a file inside functions: code that runs on import cannot be run again."""
    tree = _parsed(file)
    locks = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg == "with_for_update"}
    bodies = {id(node): (name, line) for name, line, body in _functions(tree) for node in body}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in bodies and id(node) not in locks:
            for way in range(len(_ways(node))):
                lines = _lines(node)
                yield Mutant(file, node.lineno, number, way, lines, _short(ast.unparse(node)), *bodies[id(node)])


def _lines(node: Any) -> tuple[int, int]:
    """First and last line of an expression, or of the condition of a statement."""
    part = node.test if isinstance(node, (ast.If, ast.While)) else node
    return part.lineno, part.end_lineno


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, int, list[ast.AST]]]:
    """Top-level functions and methods: name, first line, and all nodes of the body."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            yield f"{prefix}{node.name}", first, [inner for part in node.body for inner in ast.walk(part)]


def _parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / "src/jiyi" / file).read_text("utf-8"))


def _node(tree: ast.Module, number: int) -> ast.AST:
    """Find a node by its number before the change."""
    return next(each for at, each in enumerate(ast.walk(tree)) if at == number)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:160] + "…"


def _ways(node: ast.AST) -> list[Any]:
    """Possible changes of a node, each as a function that applies it."""
    found: list[Any] = []
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OTHERS:
        found.append(lambda: node.ops.__setitem__(0, OTHERS[type(node.ops[0])]()))
    if isinstance(node, ast.BoolOp):
        found.append(lambda: setattr(node, "op", OTHERS[type(node.op)]()))
    if isinstance(node, ast.BinOp) and type(node.op) in (ast.Add, ast.Sub):
        found.append(lambda: setattr(node, "op", OTHERS[type(node.op)]()))
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        found.append(lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), node.test)))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("where", "and_"):
        # Drop a condition; user isolation depends on some.
        found += [lambda at=at: node.args.pop(at) for at in range(len(node.args))]
    if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Await, ast.Call)):
        found.append(lambda: setattr(node, "value", ast.Constant(None)))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        found.append(lambda: setattr(node, "value", not node.value))
    return found if hasattr(node, "lineno") else []


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _place(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}"


def _is(function: FunctionType, place: str) -> bool:
    return _place(function.__code__) == place


class Loop:
    """Replaces pytest's loop: each mutant in a fork, with the tests that run its lines."""

    def __init__(self, trial: Trial, chosen: list[Mutant]) -> None:
        self.trial, self.chosen = trial, chosen

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if SERVERS.isdisjoint(getattr(item, "fixturenames", ()))]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # functions have to be found
        modules = sorted({item.path for item in session.items})
        lanes = [[item for item in session.items if modules.index(item.path) % LANES == at] for at in range(LANES)]
        recorded = self._in_lanes("tests", [lambda items=items: _recorded(session, items) for items in lanes])
        if len(recorded) < LANES:
            return True
        callers: dict[str, list[str]] = {}
        took: dict[str, float] = {}
        unstable: list[str] = []
        for lane in recorded:
            for place, names in lane["callers"].items():  # tests by number
                callers.setdefault(place, []).extend(lane["names"][at] for at in names)
            took |= lane["took"]
            unstable += lane["failed"]
        self.trial.counts["tests"] = len(took)
        self.trial.notes += [f"left out, because it fails without a mutant: {name}" for name in unstable]
        if len(unstable) > MOST_UNSTABLE * len(took):
            self.trial.breaks("other", f"{len(unstable)} of {len(took)} tests fail without a mutant")
            return True
        tests = Tests(session, {item.nodeid: item for item in session.items}, callers, took, self.trial.scratch)
        outcomes = self._in_lanes(
            "mutants", [lambda part=part: [tests.outcome(one) for one in part] for part in self._parts()]
        )
        for part, became in zip(self._parts(), outcomes, strict=False):
            for mutant, outcome in zip(part, became, strict=True):
                self._told(mutant, outcome)
        return True

    def _parts(self) -> list[list[Mutant]]:
        return [self.chosen[at::LANES] for at in range(LANES)]

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
    callers: dict[str, list[str]]  # by file and line
    took: dict[str, float]
    scratch: Path

    def of(self, mutant: Mutant) -> list[str]:
        first, last = mutant.lines
        path = ROOT / "src/jiyi" / mutant.file
        found = {name for line in range(first, last + 1) for name in self.callers.get(f"{path}:{line}", ())}
        by_file: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(found, key=self.took.__getitem__):
            by_file[name.partition("::")[0]].append(name)
        in_turn = zip_longest(*by_file.values())  # tests of one file resemble each other
        return [name for turn in in_turn for name in turn if name is not None][:MOST_TESTS]

    def outcome(self, mutant: Mutant) -> str:
        names = self.of(mutant)
        became = "survived"
        while names:
            became, failed = self._tried(mutant, names)
            # Without the mutant it has to pass, or it says nothing about the mutant.
            if became != "killed" or self._tried(None, [failed])[0] == "survived":
                break
            became, names = "survived", names[names.index(failed) + 1 :]
        print(f"  {became}, {len(names)} tests: line {mutant.line} of {mutant.name}", flush=True)
        return became

    def _tried(self, mutant: Mutant | None, names: list[str]) -> tuple[str, str]:
        """Run tests with a mutant until one fails; return the outcome and that test."""
        reader, writer = os.pipe()

        def tested() -> int:
            if mutant is not None:
                mutant.take_effect()
            failed = _first_failure(self.session, [self.items[name] for name in names])
            os.write(writer, (failed or "").encode())
            return int(failed is not None)

        usual = sum(self.took[name] for name in names)
        folder = Path(tempfile.mkdtemp(dir=self.scratch))
        child = _start(tested, longest_cpu_s=int(LONGEST_CPU_S + SLOWER_CPU * usual), folder=folder)
        status = _ended(child, LONGEST_S + SLOWER * usual)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as told:
            failed = told.read()
        if status in (-signal.SIGXCPU, -signal.SIGKILL):
            return "timed out", ""
        return ("survived" if status == 0 else "killed"), failed or names[0]


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


def _ended(child: int, longest_s: float) -> int:
    """Wait for a fork; return the exit code, or minus the signal that ended it."""
    began = time.monotonic()
    while time.monotonic() - began < longest_s:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # processes that a test left behind
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _first_failure(session: pytest.Session, tests: list[pytest.Item]) -> str | None:
    """Run tests until one fails, and return its name."""
    for at, item in enumerate(tests):
        after = tests[at + 1] if at + 1 < len(tests) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return item.nodeid
    return None


def _recorded(session: pytest.Session, items: list[pytest.Item]) -> dict[str, Any]:
    """Run tests unchanged, and record which run which lines, how long they take, and which fail."""
    ours = frozenset(str(ROOT / "src/jiyi" / file) for file in files())
    callers: dict[str, list[int]] = {}
    seen: set[tuple[str, int]] = set()

    def line(frame: Any, _event: str, _: Any) -> Any:
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def call(frame: Any, _event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename in ours else None

    threading.settrace(call)
    took: dict[str, float] = {}
    failed = []
    for at, item in enumerate(items):
        seen.clear()
        began, before = time.process_time(), session.testsfailed
        sys.settrace(call)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=items[at + 1] if at + 1 < len(items) else None)
        sys.settrace(None)
        took[item.nodeid] = time.process_time() - began
        if session.testsfailed > before:
            failed.append(item.nodeid)
            continue
        for path, number in seen:
            callers.setdefault(f"{path}:{number}", []).append(at)
    return {"names": [item.nodeid for item in items], "callers": callers, "took": took, "failed": failed}


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
