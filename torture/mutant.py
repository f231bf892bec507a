"""Mutants: one change of one place inside a function of the code under test.

Left out by rule, for any code: row locks, which SQLite, on which the tests run, does not have; `strict=` of `zip`,
which checks the program itself; and statements that only log.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDERS = ("write", "read", "store")
# They run on PostgreSQL or with external engines only.
ELSEWHERE = {"store/postgres/postgres_database.py", "store/postgres/postgres_errors.py", "store/upkeep/engine_rows.py"}
OTHER_FILES = ("keys.py", "areas/keys.py", "server/auth.py")
UNTOUCHED = {"with_for_update", "strict"}  # arguments
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
    spared = {id(inner) for node in ast.walk(tree) if _is_spared(node) for inner in ast.walk(node)}
    bodies = {id(node): (name, line) for name, line, body in _functions(tree) for node in body}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in bodies and id(node) not in spared:
            for way in range(len(_ways(node))):
                lines = _lines(node)
                yield Mutant(file, node.lineno, number, way, lines, _short(ast.unparse(node)), *bodies[id(node)])


def _is_spared(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg in UNTOUCHED
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("logger.")


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
