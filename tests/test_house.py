"""Structure of the package: import layers, cycles, file sizes, vendors, SQL, public names, cost of importing.

`python -m bench.house` prints the figures behind some of these checks; `test_layout.py` has what is still to be done.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from bench.house import QUESTION_WORD, docstrings, import_cycles, import_graph

import jiyi

ROOT = Path(jiyi.__file__).parent
DOCS = ROOT.parent.parent / "docs"

# From the lowest layer to the highest: a module may import modules of its own package and of lower layers.
LAYERS: list[set[str]] = [
    {"memory_types", "errors"},
    {"forks"},
    {"models", "ids", "durable", "text_cache", "threads", "rate_limit"},
    {"languages", "settings_files"},
    {"roles", "text", "folder_trust"},
    {"validation", "settings", "metrics"},
    {"scope", "synonyms", "keys", "http_client", "http_server", "http_protocol"},
    {"embed", "llm", "cache"},
    {"reader"},
    {"store"},
    {"index"},
    {"engines"},
    {"write", "read", "testing"},
    {"keep", "transfer"},
    {"files"},
    {"engine", "health"},
    {"areas", "warm"},
    {"memory"},
    {"client"},
    {"sync", "keywords"},
    {"agents"},
    {"compat"},
    {"server"},
    {"cli"},
]
SAME_LAYER = [{"keep", "transfer"}, {"engine", "health"}]
UPWARD = {("memory", "client")}  # `Memory.open` returns a client for the address of a server
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

# Packages that only the files whose path contains one of these may import.
VENDORS = {
    "sqlalchemy": ("store/",),
    "alembic": ("store/",),
    "asyncpg": ("store/",),
    "sentence_transformers": ("embed/",),
    "onnxruntime": ("embed/",),
    "autogen_agentchat": ("agents/autogen",),
    "autogen_core": ("agents/autogen",),
    "langgraph": ("agents/",),
    "langchain_core": ("agents/",),
    "langchain": ("agents/langchain",),
    "agent_framework": ("agents/agent_framework.py",),
    "agno": ("agents/agno.py",),
    "strands": ("agents/strands.py",),
    "google": ("agents/google_adk.py",),
    "llama_index": ("agents/llama_index.py",),
    "pydantic_ai": ("agents/pydantic_ai.py",),
    "agents": ("agents/",),
    "openai": ("embed/openai.py", "llm/openai.py"),
    "mcp": ("agents/mcp",),
    "mcp_types": ("agents/mcp",),
    "starlette": ("agents/mcp", "server/"),
    "uvicorn": ("agents/mcp", "server/", "http_protocol.py"),
    "fastapi": ("server/",),
    "httpx": ("client/", "server/proxy.py"),
    "redis": ("redis.py",),
    "pymilvus": ("engines/milvus.py",),
    "opensearchpy": ("engines/elasticsearch.py",),
    "pymongo": ("engines/mongodb.py",),
    "typer": ("cli/",),
    "rich": ("cli/",),
    "click": ("cli/",),
}
LONGEST_FILE = 450
SQL = ("SELECT ", "INSERT ", "UPDATE ", "DELETE FROM", "CREATE TABLE", "CREATE INDEX", "DROP ", "ALTER ")


def part_of(path: Path) -> str:
    """Return the top-level module or package of a file: `store` for store/sqlite.py."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of every file."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(ROOT.rglob("*.py"))}


@cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Return every module that a file imports, wherever in it, with the line."""
    found: list[tuple[str, int]] = []
    package = ["jiyi", *path.relative_to(ROOT).parent.parts]
    for node in ast.walk(trees()[path]):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(filter(None, (above, node.module)))
            names = [f"jiyi.{alias.name}" for alias in node.names] if base == "jiyi" else [base]
            found += [(name, node.lineno) for name in names]
    return found


def is_allowed(own: str, other: str) -> bool:
    if own == other or other.startswith("__") or (own, other) in UPWARD:
        return True
    return RANK[other] < RANK[own] or any({own, other} <= peers for peers in SAME_LAYER)


def test_every_part_has_a_layer() -> None:
    assert {part_of(path) for path in trees()} - {"__init__", "__main__"} - set(RANK) == set()


def test_imports_go_down() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in trees()
        if part_of(path) not in ("__init__", "__main__")
        for module, line in imports(path)
        if module.startswith("jiyi.") and not is_allowed(part_of(path), module.split(".")[1])
    ]
    assert wrong == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    assert import_cycles(import_graph(trees())) == []


def test_files_are_small_enough_to_read() -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text(encoding="utf-8").splitlines()) for path in trees()}
    assert {path: length for path, length in lengths.items() if length > LONGEST_FILE} == {}


def test_the_repository_holds_no_large_files_but_the_weights() -> None:
    top = ROOT.parent.parent
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=top, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    weights = "src/jiyi/weights/"
    paths = [top / name for name in listed.stdout.split("\0") if name and not name.startswith(weights)]
    assert [path.name for path in paths if path.exists() and path.stat().st_size > 2_000_000] == []


def test_docstrings_do_not_begin_with_a_question_word() -> None:
    documented = list(docstrings(trees()))
    asking = [f"{place} {text.splitlines()[0]}" for place, text in documented if QUESTION_WORD.match(text)]
    assert len(asking) <= MOST_QUESTION_WORDS * len(documented), "\n".join(asking)


MOST_QUESTION_WORDS = 0.02


def test_vendors_are_imported_in_their_own_files_only() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {module}"
        for path in trees()
        for module, line in imports(path)
        if not any(allowed in path.relative_to(ROOT).as_posix() for allowed in VENDORS.get(module.split(".")[0], ("",)))
    ]
    assert wrong == []


def sql_strings(path: Path) -> Iterator[str]:
    tree = trees()[path]
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            is_switch = node.value.startswith(("PRAGMA ", "BEGIN")) and path.name != "sqlite.py"
            if node.value.lstrip().startswith(SQL) or is_switch:
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.value[:60]!r}"
        if isinstance(node, ast.Call) and part_of(path) == "store":
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in ("text", "literal_column") or (called == "exec_driver_sql" and path.name != "sqlite.py"):
                yield f"{path.relative_to(ROOT)}:{node.lineno} {called}(…)"


def test_there_is_no_sql_in_strings() -> None:
    """Migrations are left out. Pragmas and BEGIN have no expression; they are in one file of the store."""
    assert [found for path in trees() if "migrations" not in path.parts for found in sql_strings(path)] == []


def test_the_store_uses_only_what_sqlalchemy_documents() -> None:
    """No private names, nothing taken from compiled statements, and no coroutine driven by hand."""
    tricks = re.compile(r"POSTCOMPILE|\.send\(None\)|from sqlalchemy[\w.]* import [^\n]*\b_\w+|sqlalchemy\.\w*\._\w+")
    assert [str(path) for path in trees() if tricks.search(path.read_text(encoding="utf-8"))] == []


# -- public names ------------------------------------------------------------------------------------------------------


def test_every_public_name_exists_and_is_documented() -> None:
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert [name for name in jiyi.__all__ if getattr(jiyi, name) is None] == []
    assert dir(jiyi) == sorted(jiyi.__all__)
    stub = Path(jiyi.__file__).with_name("__init__.pyi").read_text("utf-8").splitlines()
    typed = {line.split()[-1]: line.split()[1] for line in stub if line.startswith("from ")}
    assert typed == jiyi._HOMES, "type checkers and programs find the same names"
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        jiyi.Nonsense  # noqa: B018
    forms = ("`{}`", "`{}(", "class {}")
    assert [name for name in jiyi.__all__ if not any(form.format(name) in reference for form in forms)] == []


def test_errors_have_one_root_and_are_public() -> None:
    from jiyi import errors

    raised = {name: value for name, value in vars(errors).items() if isinstance(value, type)}
    assert set(raised) <= set(jiyi.__all__)
    assert all(issubclass(error, jiyi.JiyiError) for error in raised.values())
    assert [name for name in raised if name not in (errors.__doc__ or "")] == []


def test_values_are_public() -> None:
    from jiyi import models

    values = {
        name for name, value in vars(models).items() if isinstance(value, type) and issubclass(value, models.Value)
    }
    assert values - {"Value", "Given"} <= set(jiyi.__all__)


def test_verbs_and_their_arguments_are_documented() -> None:
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    missing: list[str] = []
    for name in dir(jiyi.Memory):
        if name.startswith("_"):
            continue
        verb = getattr(jiyi.Memory, name)
        if not verb.__doc__ or not (f"`Memory.{name}`" in reference or f"`{name}`" in reference):
            missing.append(name)
        if callable(verb):
            arguments = set(inspect.signature(verb).parameters) - {"self"}
            missing += [f"{name}({argument})" for argument in sorted(arguments) if argument not in reference]
    assert missing == []


# -- importing ---------------------------------------------------------------------------------------------------------


def loaded(program: str) -> set[str]:
    """Return the top-level packages that a program has loaded when it ends."""
    listing = f"{program}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stdout.split())


def test_importing_loads_nothing_heavy() -> None:
    heavy = {
        "sqlalchemy",
        "numpy",
        "pydantic",
        "pydantic_settings",
        "alembic",
        "rjieba",
        "openai",
        "onnxruntime",
        "typer",
    }
    assert loaded("import jiyi") & (heavy | {"rich", "asyncio"}) == set()
    assert loaded("from jiyi import InvalidInput, Message, Hit") & {"sqlalchemy", "numpy", "onnxruntime"} == set()
    assert loaded("import jiyi.cli.app") & (heavy - {"typer"} | {"asyncio"}) == set()
    assert loaded("from jiyi import Memory") & {"onnxruntime", "alembic", "openai", "typer", "rich"} == set()


UNUSED = (
    *("jiyi.write", "jiyi.keep.c", "jiyi.transfer.e"),
    *("sqlalchemy.ext.asyncio", "sqlalchemy.dialects.postgresql", "greenlet"),
)


def test_a_search_loads_nothing_of_writing(tmp_path: Path) -> None:
    """Its stages take a tenth of the time of a start, and most commands and hooks only search."""
    program = (
        "import asyncio, sys, jiyi\nfrom jiyi.testing import WordEmbedder\n"
        "async def run():\n"
        f"    async with jiyi.Memory.open({str(tmp_path / 'memory.db')!r}, embedder=WordEmbedder()) as memory:\n"
        "        await memory.search('tea', user_id='mei')\n"
        "asyncio.run(run())\n"
        f"print(*(name for name in sys.modules if name.startswith({UNUSED})))\n"
        "sys.exit()"
    )
    assert loaded(program) == set()


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


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [("autogen", "autogen_agentchat", "autogen"), ("langchain", "langchain_core.tools", "langchain")],
)
def test_an_integration_without_its_package_names_the_extra(module: str, package: str, extra: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; import jiyi.agents.{module}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert f"pip install 'jiyi[{extra}]'" in done.stderr
