"""Mutants: small mistakes put into the code that stores, does jobs, reconciles and authorises; the tests must notice.

Each mutant is one place of one file, changed in the syntax tree, and lives in a fork of this process only: nothing on
disk changes. Those that survive are told, to be looked at: either a test is missing, or the change does not matter.
`SPARED` holds those that were looked at, and why they do not matter.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .spared import SPARED
from .trial import Trial

WHOLE = 240
ROOT = Path(__file__).parent.parent
LONGEST_S, LONGEST_CPU_S = 1800, 90  # a machine may be busy; what runs for ever uses the processor
HEAVY = (
    "sqlalchemy.ext.asyncio",
    "aiosqlite",
    "alembic",
    "numpy",
    "pydantic",
    "pytest",
    "hypothesis",
    "pytest_asyncio",
)
TESTS: dict[str, tuple[str, ...]] = {
    "store/saves.py": ("test_add", "test_history", "test_reconcile"),
    "store/jobs.py": ("test_jobs",),
    "store/effects.py": ("test_reconcile", "test_delete"),
    "store/erasing.py": ("test_delete", "test_erase"),
    "store/filters.py": ("test_isolation", "test_filters_agree"),
    "store/keys.py": ("test_keys",),
    "store/reads.py": ("test_isolation", "test_history", "test_add"),
    "store/undo.py": ("test_undo",),
    "write/change.py": ("test_history",),
    "write/facts.py": ("test_reconcile",),
    "write/identify.py": ("test_identify", "test_add"),
    "write/reconcile.py": ("test_reconcile",),
    "write/settle.py": ("test_reconcile", "test_flow"),
    "write/timeline.py": ("test_reconcile",),
    "write/worker.py": ("test_jobs",),
    "keys.py": ("test_keys",),
    "memory/keys.py": ("test_keys",),
    "server/access.py": ("test_server_walls",),
    "server/callers.py": ("test_server_isolation",),
}
OTHERS = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutant:
    """One place of a file, and one thing that can be done to it."""

    file: str
    line: int
    number: int  # of the node in the tree
    way: int
    was: str

    def tree(self) -> ast.Module:
        tree = _parsed(self.file)
        _ways(_node(tree, self.number))[self.way]()
        return ast.fix_missing_locations(tree)

    @property
    def name(self) -> str:
        return f"{self.file}: {self.was} → {_short(ast.unparse(_node(self.tree(), self.number)))}"


def mutants_of(file: str) -> Iterator[Mutant]:
    """Every mutant of a file."""
    for number, node in enumerate(ast.walk(_parsed(file))):
        for way in range(len(_ways(node))):
            yield Mutant(file, node.lineno, number, way, _short(ast.unparse(node)))


def _parsed(file: str) -> ast.Module:
    return ast.parse((ROOT / "src/jiyi" / file).read_text("utf-8"))


def _node(tree: ast.Module, number: int) -> ast.AST:
    """A node by its number as it was before it was changed: what hangs on it may be another, it is not."""
    return next(each for at, each in enumerate(ast.walk(tree)) if at == number)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 160 else line[:160] + "…"


def _ways(node: ast.AST) -> list[Any]:
    """What can be done to a node, each as a function that does it."""
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
        # A condition is left out: what keeps users apart is one of them.
        found += [lambda at=at: node.args.pop(at) for at in range(len(node.args))]
    if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Await, ast.Call)):
        found.append(lambda: setattr(node, "value", ast.Constant(None)))
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        found.append(lambda: setattr(node, "value", not node.value))
    return found if hasattr(node, "lineno") else []


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives the mutant when its module is imported."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._path = ROOT / "src/jiyi" / mutant.file
        self._name = "jiyi." + mutant.file.removesuffix(".py").replace("/", ".")

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._path, loader=self)

    def exec_module(self, module: Any) -> None:
        exec(compile(self._mutant.tree(), str(self._path), "exec"), module.__dict__)


def outcome(mutant: Mutant | None, tests: tuple[str, ...]) -> tuple[str, float]:
    """killed, timed out or survived, and how long it took. Without a mutant: of the code as it is."""
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(_tested(mutant, tests))
    while time.monotonic() - began < LONGEST_S:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            ran_on = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
            return ("survived" if status == 0 else "timed out" if ran_on else "killed"), time.monotonic() - began
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "timed out", time.monotonic() - began


def _tested(mutant: Mutant | None, tests: tuple[str, ...]) -> int:
    """In the fork: run the tests, on SQLite only, up to the first that fails."""
    import pytest

    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_CPU, (LONGEST_CPU_S, LONGEST_CPU_S))
    log = os.open(os.environ.get("JIYI_MUTANTS_LOG", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for name in [name for name in sys.modules if name.partition(".")[0] == "jiyi"]:
        del sys.modules[name]
    if mutant is not None:
        sys.meta_path.insert(0, _Mutated(mutant))
    files = [str(ROOT / "tests" / f"{name}.py") for name in tests]
    os.chdir(ROOT)
    options = ["-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not postgres"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # they are imported, to be so in every fork
    return int(pytest.main([*options, *files]))


async def run(trial: Trial) -> None:
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    chances = trial.chances()
    every = [mutant for file in TESTS for mutant in mutants_of(file)]
    trial.notes.append(f"{len(every):,} mutants of {len(TESTS)} files can be made; a sample of them was tried")
    chosen = chances.sample(every, min(len(every), trial.times(WHOLE)))
    sound: dict[tuple[str, ...], bool] = {}
    for mutant in sorted(chosen, key=lambda one: one.file):
        tests = TESTS[mutant.file]
        if tests not in sound:
            sound[tests] = outcome(None, tests)[0] == "survived"
            if not sound[tests]:
                trial.notes.append(f"{', '.join(tests)} fail as they are, so they tell nothing of {mutant.file}")
        if not sound[tests]:
            continue
        became, took_s = outcome(mutant, tests)
        trial.counts["mutants"] += 1
        if became == "survived" and mutant.name in SPARED:
            became = "survived, and do no harm"
            trial.notes.append(f"harmless: {mutant.name}: {SPARED[mutant.name]}")
        elif became == "survived":
            trial.notes.append(f"survived: line {mutant.line} of {mutant.name}")
        trial.counts[became] += 1
        print(f"  {became} in {took_s:.0f} s: line {mutant.line} of {mutant.name}", flush=True)
