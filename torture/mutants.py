"""Mutation testing of the code that writes, reads, stores and authorises.

A mutant changes one place inside a function, in a fork of this process only. The tests that call the function, known
from a first run without mutants, are run fastest first until one fails. Survivors are reported: either a test is
missing, or the change does not matter. `SPARED` lists those of the latter kind with the reason.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from .forks import in_process
from .spared import SPARED
from .trial import Trial

WHOLE = 240
ROOT = Path(__file__).parent.parent
LONGEST_CPU_S = 60  # against endless loops
LONGEST_S, SLOWER = 60, 15  # against deadlocks: seconds, and times the normal duration
FOLDERS = ("write", "read", "store")
# They run on PostgreSQL or with external engines only.
ELSEWHERE = {"store/postgres.py", "store/postgres_errors.py", "store/projected.py", "store/projections.py"}
OTHER_FILES = ("keys.py", "areas/keys.py", "server/auth.py")
TESTS = (
    *("test_add", "test_history", "test_reconcile", "test_jobs", "test_delete", "test_isolation", "test_keys"),
    *("test_erase", "test_undo", "test_compress", "test_renew", "test_identify", "test_flow", "test_verify"),
    *("test_search", "test_score", "test_cached", "test_recalls", "test_context", "test_succession", "test_overview"),
    *("test_everyday_facts", "test_synonyms", "test_maintenance", "test_moving", "test_rerank", "test_llm_drafts"),
    *("test_llm_jobs", "test_files_sync", "test_files_verify", "test_people_and_times"),
    *("test_server_isolation", "test_server_walls"),
)
LEFT_OUT = "not postgres and not process"  # other processes would not contain the mutant
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
    bodies = {id(node): (name, line) for name, line, body in _functions(tree) for node in body}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in bodies:
            for way in range(len(_ways(node))):
                yield Mutant(file, node.lineno, number, way, _short(ast.unparse(node)), *bodies[id(node)])


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
    """Replaces pytest's loop: each mutant in a fork, with the tests that call its function."""

    def __init__(self, trial: Trial, chosen: list[Mutant]) -> None:
        self.trial, self.chosen = trial, chosen

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # functions have to be found
        told = self.trial.scratch / "callers.json"
        if _forked(lambda: _recorded(session, told), longest_cpu_s=20 * LONGEST_CPU_S, longest_s=3600) != 0:
            self.trial.breaks("other", "the tests fail without a mutant")
            return True
        callers, took = json.loads(told.read_text("utf-8"))
        items = {item.nodeid: item for item in session.items}
        for mutant in self.chosen:
            names = callers.get(mutant.place, ())
            tests, longest_s = [items[name] for name in names], LONGEST_S + SLOWER * sum(took[name] for name in names)
            self._told(mutant, len(tests), _outcome(mutant, session, tests, longest_s) if tests else "survived")
        return True

    def _told(self, mutant: Mutant, tests: int, became: str) -> None:
        self.trial.counts["mutants"] += 1
        if became == "survived" and mutant.name in SPARED:
            became = "survived, and do no harm"
            self.trial.notes.append(f"harmless: {mutant.name}: {SPARED[mutant.name]}")
        elif became == "survived":
            self.trial.notes.append(f"survived: line {mutant.line} of {mutant.name}")
        self.trial.counts[became] += 1
        print(f"  {became}, {tests} tests: line {mutant.line} of {mutant.name}", flush=True)


def _outcome(mutant: Mutant, session: pytest.Session, tests: list[pytest.Item], longest_s: float) -> str:
    def tested() -> int:
        mutant.take_effect()
        return _run(session, tests)

    status = _forked(tested, longest_cpu_s=LONGEST_CPU_S, longest_s=longest_s)
    return "survived" if status == 0 else "timed out" if status in (-signal.SIGXCPU, -signal.SIGKILL) else "killed"


def _forked(work: Callable[[], int], longest_cpu_s: int, longest_s: float) -> int:
    """Run in a fork; return the exit code, or minus the signal that ended it."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (longest_cpu_s, longest_cpu_s))
        log = os.open(os.environ.get("TORTURE_MUTANTS_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        code = 1
        try:
            code = work()
        finally:
            os._exit(code)
    while time.monotonic() - began < longest_s:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _run(session: pytest.Session, tests: list[pytest.Item]) -> int:
    """Run tests until one fails."""
    for at, item in enumerate(tests):
        after = tests[at + 1] if at + 1 < len(tests) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        if session.testsfailed:
            return 1
    return 0


def _recorded(session: pytest.Session, told: Path) -> int:
    """Run all tests unchanged, and record which call which functions, fastest first."""
    ours = tuple(str(ROOT / "src/jiyi" / file) for file in files())
    callers: dict[str, list[str]] = {}
    seen: set[CodeType] = set()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename in ours:
            seen.add(frame.f_code)

    threading.setprofile(profile)
    took: dict[str, float] = {}
    for at, item in enumerate(session.items):
        seen.clear()
        began = time.process_time()
        sys.setprofile(profile)
        after = session.items[at + 1] if at + 1 < len(session.items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        sys.setprofile(None)
        took[item.nodeid] = time.process_time() - began
        if session.testsfailed:
            return 1
        for code in seen:
            callers.setdefault(_place(code), []).append(item.nodeid)
    for names in callers.values():
        names.sort(key=took.__getitem__)
    told.write_text(json.dumps([callers, took]), "utf-8")
    return 0


def drive(trial: Trial, *, most: int) -> None:
    for file in files():
        importlib.import_module("jiyi." + file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    every = [mutant for file in files() for mutant in mutants_of(file)]
    trial.notes.append(f"{len(every):,} possible mutants of {len(files())} files; a sample was tried")
    chosen = trial.chances().sample(every, min(len(every), most))
    os.chdir(ROOT)
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly", "-k", LEFT_OUT]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # they are imported earlier
    pytest.main([*options, *(f"tests/{name}.py" for name in TESTS)], plugins=[Loop(trial, chosen)])


async def run(trial: Trial) -> None:
    await in_process(trial, "mutants.drive", most=trial.times(WHOLE))
