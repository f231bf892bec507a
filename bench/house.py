"""`python -m bench.house`: measure how the code is built, compare it with its limits, exit with 1 if one is exceeded.

Files, functions and SQL statements are counted while one verb runs, with the built-in embedder, in a store that has
been used before. Statements are those that SQLite itself reports, whoever sent them. Everything else is read from the
source.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import importlib
import inspect
import json
import pkgutil
import re
import sqlite3
import statistics
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table
from sqlalchemy import event
from sqlalchemy.pool import Pool

import jiyi

ROOT = Path(jiyi.__file__).parent
QUESTION_WORD = re.compile(r"(What|Whether|Which|Who|Where|How)\b")
# Not counted: transactions, pragmas, and what SQLite does itself for a statement, such as cascades (a comment).
UNCOUNTED = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "--")

WARM_UP = [
    "I moved to Berlin in March.",
    "My sister Anna works as a nurse.",
    "我对花生过敏。",
    "I drink oolong tea every morning.",
    "My flight to Tokyo leaves on Friday.",
]
SUPERSEDING = "I moved to Munich last week."
MESSAGE = "My dog is called Rex and he is three years old."
QUERY = "what is my dog called?"


@dataclass(slots=True)
class Trace:
    """Code and statements seen while one verb ran."""

    files: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    statements: list[str] = field(default_factory=list)
    connections: int = 0


class SqliteStatements:
    """Appends the statements of every SQLite connection that is opened inside to a list, as SQLite reports them."""

    def __init__(self, statements: list[str]) -> None:
        self._statements = statements
        self._connect = sqlite3.connect

    def __enter__(self) -> None:
        sqlite3.connect = sqlite3.dbapi2.connect = self._traced  # SQLAlchemy uses the latter

    def __exit__(self, *_: object) -> None:
        sqlite3.connect = sqlite3.dbapi2.connect = self._connect

    def _traced(self, *args: Any, **options: Any) -> sqlite3.Connection:
        connection = self._connect(*args, **options)
        connection.set_trace_callback(self._note)
        return connection

    def _note(self, statement: str) -> None:
        """Take one statement with its values. Rows of one `executemany` are reported one by one, and counted once."""
        line = " ".join(statement.split())
        if line.upper().startswith(UNCOUNTED):
            return
        last = self._statements[-1] if self._statements else ""
        if not (line.startswith("INSERT") and _before_values(line) == _before_values(last)):
            self._statements.append(line)


def _before_values(statement: str) -> str:
    return statement.partition(" VALUES ")[0]


class Tracer:
    """Records calls into `src/jiyi`, and statements of every SQLite connection that is opened after it, while `record`
    is active."""

    def __init__(self) -> None:
        self._trace: Trace | None = None
        self._statements: list[str] = []
        self._sqlite = SqliteStatements(self._statements)
        self._sqlite.__enter__()
        # Threads inherit the profile function only if they start after this point.
        threading.setprofile(self._on_call)
        sys.setprofile(self._on_call)
        event.listen(Pool, "checkout", self._on_checkout)

    def close(self) -> None:
        sys.setprofile(None)
        threading.setprofile(None)
        self._sqlite.__exit__()
        event.remove(Pool, "checkout", self._on_checkout)

    @contextmanager
    def record(self) -> Iterator[Trace]:
        trace = Trace()
        self._statements.clear()
        self._trace = trace
        try:
            yield trace
        finally:
            self._trace = None
            trace.statements = list(self._statements)

    def _on_call(self, frame: FrameType, kind: str, _: object) -> None:
        trace = self._trace
        if trace is None or kind != "call":
            return
        code = frame.f_code
        if code.co_filename.startswith(str(ROOT)):
            name = str(Path(code.co_filename).relative_to(ROOT))
            trace.files[name] += 1
            trace.functions[f"{name}:{code.co_qualname}"] += 1

    def _on_checkout(self, *_: Any) -> None:
        if self._trace is not None:
            self._trace.connections += 1


async def trace_verbs(path: Path) -> dict[str, Trace]:
    """Trace each verb in a warm store, `search` also after a write and again."""
    from jiyi import Memory
    from jiyi.read.accesses import PAUSE_S

    traces: dict[str, Trace] = {}
    tracer = Tracer()
    try:
        async with Memory.open(path) as memory:
            for text in WARM_UP:
                await memory.add([{"role": "user", "content": text}], user_id="u")
                await memory.search(f"where does it say: {text}", user_id="u")
            await asyncio.sleep(PAUSE_S + 0.5)  # the records of earlier recalls are written
            with tracer.record() as traces["add"]:
                await memory.add([{"role": "user", "content": MESSAGE}], user_id="u")
            with tracer.record() as traces["superseding add"]:
                await memory.add([{"role": "user", "content": SUPERSEDING}], user_id="u")
            with tracer.record() as traces["search after a write"]:
                await memory.search("does Anna work?", user_id="u")
            await asyncio.sleep(PAUSE_S + 0.5)  # the records of earlier recalls are written
            with tracer.record() as traces["search"]:
                await memory.search(QUERY, user_id="u")
            with tracer.record() as traces["repeated search"]:
                await memory.search(QUERY, user_id="u")
            await asyncio.sleep(PAUSE_S + 0.5)
            with tracer.record() as traces["list"]:
                listed = await memory.list(user_id="u")
            with tracer.record() as traces["update"]:
                await memory.update(listed.items[0].id, user_id="u", content="My dog is called Max.")
            with tracer.record() as traces["delete"]:
                await memory.delete(listed.items[0].id, user_id="u")
    finally:
        tracer.close()
    return traces


def module_name(path: Path) -> str:
    parts = ["jiyi", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_level(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that run when the module is imported."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(node.test):
                yield from module_level(node.body)
            yield from module_level(node.orelse)
        elif isinstance(node, ast.Try):
            for part in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                yield from module_level(part)


def import_graph(trees: dict[Path, ast.Module]) -> dict[str, set[str]]:
    """Map each module to the modules of jiyi that it imports at module level."""
    names = {module_name(path) for path in trees}
    graph: dict[str, set[str]] = {}
    for path, tree in trees.items():
        own = module_name(path)
        package = own.split(".") if path.name == "__init__.py" else own.split(".")[:-1]
        targets: set[str] = set()
        for node in module_level(tree.body):
            if isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
                continue
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                targets.add(inner if inner in names else base)
        graph[own] = (targets & names) - {own}
    return graph


def import_cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components with more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in graph[name]:
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                cycles.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return cycles


def classes() -> Iterator[type]:
    """Yield every class that a module of jiyi defines; modules whose extra is not installed are left out."""
    for found in pkgutil.walk_packages(jiyi.__path__, "jiyi."):
        if "migrations" in found.name or found.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(found.name)
        except (ImportError, jiyi.MissingExtra):
            continue
        for value in vars(module).values():
            if inspect.isclass(value) and value.__module__ == found.name:
                yield value


def chain(cls: type) -> list[str]:
    """Return the class and those it inherits from, as far as jiyi defines them."""
    return [base.__qualname__ for base in cls.__mro__ if base.__module__.startswith("jiyi.")]


def docstrings(trees: dict[Path, ast.Module]) -> Iterator[tuple[str, str]]:
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, kinds) and (text := ast.get_docstring(node)):
                yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", text


def settings_leaves(model: type[BaseModel], prefix: str = "") -> list[str]:
    names: list[str] = []
    for name, info in model.model_fields.items():
        kind = info.annotation
        if inspect.isclass(kind) and issubclass(kind, BaseModel):
            names += settings_leaves(kind, f"{prefix}{name}.")
        else:
            names.append(prefix + name)
    return names


def public_names() -> list[str]:
    """Return the public names of an instance, so that attributes set in `__init__` count too."""
    from jiyi import Memory

    with tempfile.TemporaryDirectory() as folder:
        return [name for name in dir(Memory.open(Path(folder) / "memory.db")) if not name.startswith("_")]


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value and the limit it must not exceed; without a limit it is for information."""

    name: str
    value: float
    limit: float | None = None
    detail: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.limit is None or self.value <= self.limit


def traced(traces: dict[str, Trace]) -> Iterator[Figure]:
    limits: dict[str, tuple[float | None, float | None]] = {
        "add": (45, 20),
        "superseding add": (45, 20),
        "search": (30, 3),
        "search after a write": (None, 7),
    }
    for verb, trace in traces.items():
        files, statements = limits.get(verb, (None, None))
        yield Figure(f"{verb}: files", len(trace.files), files, sorted(trace.files))
        yield Figure(f"{verb}: functions", len(trace.functions), None, sorted(trace.functions))
        yield Figure(f"{verb}: statements", len(trace.statements), statements, trace.statements)
        yield Figure(f"{verb}: connections", trace.connections)


def from_source() -> Iterator[Figure]:
    from jiyi.settings import Settings

    paths = sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    trees = {path: ast.parse(text) for path, text in texts.items()}
    lengths = {path: len(text.splitlines()) for path, text in texts.items()}

    names = public_names()
    yield Figure("Memory: public names", len(names), 30, names)
    chains = sorted((chain(cls) for cls in set(classes())), key=len, reverse=True)
    too_long = [" > ".join(names) for names in chains if len(names) > 3]
    yield Figure("longest class chain", len(chains[0]), 3, too_long)
    cycles = import_cycles(import_graph(trees))
    yield Figure("import cycles", len(cycles), 0, [", ".join(cycle) for cycle in cycles])
    yield Figure("files", len(paths), 260)
    yield Figure("lines", sum(lengths.values()), 40_000)
    yield Figure("median file", statistics.median(lengths.values()), 150)
    largest = sorted(lengths, key=lambda path: lengths[path], reverse=True)
    too_large = [f"{path.relative_to(ROOT)} {lengths[path]}" for path in largest if lengths[path] > 450]
    yield Figure("largest file", lengths[largest[0]], 450, too_large)
    leaves = settings_leaves(Settings)
    yield Figure("settings", len(leaves), 90, leaves)
    documented = list(docstrings(trees))
    asking = [f"{place} {text.splitlines()[0]}" for place, text in documented if QUESTION_WORD.match(text)]
    yield Figure("docstrings with a question word, %", round(100 * len(asking) / len(documented), 2), 2, asking)
    chinese = [str(path.relative_to(ROOT)) for path in paths if re.search(r"""["']zh["']""", texts[path])]
    yield Figure('files that name "zh"', len(chinese), None, chinese)


def table(figures: list[Figure]) -> Table:
    shown = Table("figure", "value", "limit", "", title="House")
    for item in figures:
        limit = "" if item.limit is None else f"≤ {item.limit:g}"
        verdict = "" if item.limit is None else "[green]ok[/]" if item.ok else "[red]exceeded[/]"
        shown.add_row(item.name, f"{item.value:g}", limit, verdict)
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.house", description=__doc__)
    parser.add_argument("--show", metavar="TEXT", help="list the items behind the figures whose name contains TEXT")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = [*traced(asyncio.run(trace_verbs(Path(folder) / "memory.db"))), *from_source()]
    console = Console()
    console.print(table(figures))
    for item in figures:
        if given.show is not None and given.show in item.name:
            console.print(f"\n{item.name}:", markup=False)
            for line in item.detail:
                console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
    if given.json:
        given.json.write_text(json.dumps({item.name: item.value for item in figures}, indent=2), encoding="utf-8")
    return 0 if all(item.ok for item in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
