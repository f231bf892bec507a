"""The house as it shall be: arrows between its parts, sizes of folders, names of files, words outside `languages/`.

Each rule has a list of today's exceptions. A list may only shrink: a test fails for a new exception, and for a listed
one that is gone, so that nobody can bring it back.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.house import SqliteStatements

from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from test_house import ROOT, imports, trees

# A part may import those to its right.
ORDER = (
    *("cli", "server", "agents", "compat", "sync", "testing", "memory", "local_backend", "client", "areas", "runtime"),
    *("keep", "files", "transfer", "write", "read", "engines", "index", "store", "reader", "embed", "llm"),
    *("requests", "area_requests", "scope", "models", "settings", "memory_types", "languages", "core", "errors"),
)
RANK = {part: rank for rank, part in enumerate(ORDER)}
# Files that will move, and the part they will be in.
WILL_BE_IN = {
    "core": ("durable", "forks", "http_client", "ids", "metrics", "rate_limit", "text_cache", "threads"),
    "languages": ("text",),
    "settings": ("settings_files", "folder_trust"),
    "models": ("keys", "synonyms"),
    "scope": ("roles",),
    "requests": ("validation",),
    "read": ("cache",),
    "runtime": ("engine", "warm"),
    "areas": ("health", "keywords"),
    "server": ("http_server", "http_protocol"),
}
PART = {module: part for part, modules in WILL_BE_IN.items() for module in modules}
MOST_FILES = 14  # in a folder
HAN = re.compile(r"[\u3400-\u9fff]")
LISTED_WORDS = re.compile(r"(?:[A-Za-z' ?]{2,}\|){5,}[A-Za-z' ]{2,}")  # six or more in a regular expression


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def part_of(module: str) -> str:
    return PART.get(module, module)


# -- arrows ------------------------------------------------------------------------------------------------------------

WRONG_ARROWS: set[tuple[str, str]] = {
    ("agents/mcp/serve.py", "server"),
    ("client/__init__.py", "memory"),
    ("client/connection.py", "server"),
    ("keys.py", "requests"),
    ("keywords.py", "memory"),
    ("metrics.py", "models"),
    ("scope.py", "requests"),
    ("synonyms.py", "requests"),
    ("transfer/imports.py", "keep"),
}


def wrong_arrows() -> Iterator[tuple[str, str]]:
    for path in trees():
        own = part_of(path.relative_to(ROOT).parts[0].removesuffix(".py"))
        for module, _ in imports(path):
            other = part_of(module.split(".")[1]) if module.startswith("jiyi.") else own
            if not own.startswith("__") and not other.startswith("__") and RANK[other] < RANK[own]:
                yield relative(path), other


def test_every_module_has_a_place_in_the_house() -> None:
    modules = {path.relative_to(ROOT).parts[0].removesuffix(".py") for path in trees()} - {"__init__", "__main__"}
    assert {part_of(module) for module in modules} - set(ORDER) == set()
    assert set(PART) - modules == set(), "these have moved: take them from WILL_BE_IN"


def test_imports_go_to_the_right() -> None:
    assert set(wrong_arrows()) == WRONG_ARROWS


def test_no_file_works_around_sqlalchemy() -> None:
    """Statements are SQLAlchemy's, without its private names and without text made of what it compiles."""
    found = []
    for path in trees():
        text = path.read_text(encoding="utf-8")
        private = [module for module, _ in imports(path) if module.startswith("sqlalchemy.") and "._" in module]
        found += [f"{relative(path)}: {word}" for word in ("POSTCOMPILE", "send(None)") if word in text]
        found += [f"{relative(path)}: {module}" for module in private]
    assert found == []


# -- folders and names -------------------------------------------------------------------------------------------------

FULL_FOLDERS: dict[str, int] = {
    ".": 28,
    "agents": 19,
    "cli": 21,
    "server": 19,
    "write": 26,
}
SHARED_NAMES: dict[str, int] = {
    "agents.py": 2,
    "app.py": 2,
    "base.py": 2,
    "context.py": 2,
    "dates.py": 3,
    "errors.py": 3,
    "jobs.py": 3,
    "keys.py": 2,
    "keywords.py": 2,
    "maintenance.py": 2,
    "mem0.py": 2,
    "memories.py": 2,
    "memory.py": 3,
    "messages.py": 2,
    "metrics.py": 2,
    "mongodb.py": 2,
    "openai.py": 3,
    "overview.py": 3,
    "query.py": 2,
    "relative_dates.py": 2,
    "search.py": 2,
    "serve.py": 2,
    "server.py": 2,
    "spool.py": 2,
    "sync.py": 2,
    "synonyms.py": 3,
    "transfer.py": 3,
    "usage.py": 2,
    "verify.py": 2,
    "words.py": 4,
    "workspace.py": 3,
}


def test_folders_have_few_files() -> None:
    files = Counter(relative(path.parent) for path in trees())
    assert {folder: number for folder, number in files.items() if number > MOST_FILES} == FULL_FOLDERS


def test_file_names_are_unique() -> None:
    names = Counter(path.name for path in trees() if path.name not in ("__init__.py", "__main__.py"))
    assert {name: number for name, number in names.items() if number > 1} == SHARED_NAMES


# -- words outside `languages/` ----------------------------------------------------------------------------------------

HAN_LITERALS: dict[str, int] = {
    "agents/agent.py": 2,
    "agents/autogen/context.py": 4,
    "agents/autogen/memory.py": 1,
    "agents/mcp/resources.py": 6,
    "agents/mcp/server.py": 1,
    "agents/mcp/tools.py": 2,
    "agents/recall_agent.py": 6,
    "agents/tools/definitions.py": 7,
    "agents/tools/inputs.py": 8,
    "cli/demo.py": 5,
    "cli/doctor.py": 5,
    "cli/edit.py": 1,
    "cli/maintenance.py": 1,
    "files/apply.py": 3,
    "files/format.py": 22,
    "keep/condense.py": 10,
    "read/context.py": 7,
    "read/profile.py": 1,
    "read/query.py": 1,
    "roles.py": 3,
    "server/app.py": 1,
    "server/requests.py": 8,
    "synonyms.py": 1,
    "text/budget.py": 3,
    "text/fence.py": 2,
    "transfer/records.py": 3,
    "warm.py": 1,
    "write/classify.py": 8,
    "write/derive.py": 1,
    "write/extract.py": 8,
    "write/facts.py": 1,
    "write/llm/judge.py": 2,
    "write/llm/schema.py": 1,
    "write/llm/transcript.py": 11,
    "write/own_words.py": 3,
    "write/repeats.py": 1,
    "write/slots.py": 42,
    "write/values.py": 9,
}
WORD_LISTS: dict[str, int] = {
    "agents/recall_agent.py": 1,
    "files/workspace.py": 1,
    "write/classify.py": 6,
    "write/extract.py": 4,
    "write/facts.py": 1,
    "write/own_words.py": 2,
    "write/slots.py": 9,
    "write/values.py": 11,
}


def literals(path: Path) -> Iterator[str]:
    """Yield the strings of a file, but not its docstrings, where the examples are."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(trees()[path])
        if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(trees()[path]):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def literals_with(pattern: re.Pattern[str]) -> dict[str, int]:
    """Count the strings with a pattern in each file outside `languages/`."""
    outside = [path for path in trees() if path.relative_to(ROOT).parts[0] != "languages"]
    counted = {relative(path): sum(bool(pattern.search(text)) for text in literals(path)) for path in outside}
    return {name: number for name, number in counted.items() if number}


def test_chinese_is_in_languages() -> None:
    assert literals_with(HAN) == HAN_LITERALS


def test_word_lists_are_in_languages() -> None:
    assert literals_with(LISTED_WORDS) == WORD_LISTS


# -- statements --------------------------------------------------------------------------------------------------------

STATEMENTS = {
    "add": 20,
    "search after a write": 12,
    "search": 3,
    "repeated search": 0,
    "list": 4,
    "update": 19,
    "delete": 36,
}


async def test_verbs_send_few_statements(path: Path) -> None:
    """Counted by SQLite itself, in a store that was used before."""
    counted: dict[str, int] = {}
    statements: list[str] = []

    def note(verb: str) -> None:
        counted[verb] = len(statements)
        statements.clear()

    with SqliteStatements(statements):
        async with Memory.open(
            path, embedder=WordEmbedder(), settings=load_settings(recalls={"enabled": False})
        ) as memory:
            for text in ("I moved to Berlin in March.", "I drink oolong tea.", "Anna is a nurse."):
                await memory.add([{"role": "user", "content": text}], user_id="u")
                await memory.search(text, user_id="u")
            made = (await memory.add("Rex is a dog.", user_id="u")).memories[0]
            statements.clear()
            await memory.add([{"role": "user", "content": "My dog is three years old."}], user_id="u")
            note("add")
            await memory.search("how old is the dog?", user_id="u")
            note("search after a write")
            await memory.search("who is Anna?", user_id="u")
            note("search")
            await memory.search("who is Anna?", user_id="u")
            note("repeated search")
            await memory.list(user_id="u")
            note("list")
            await memory.update(made.id, user_id="u", content="Rex is a black dog.")
            note("update")
            await memory.delete(made.id, user_id="u")
            note("delete")
    assert counted == STATEMENTS
