"""The documentation is true: its examples run and print what it says, its links lead somewhere, nothing is left out."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import itertools
import json
import os
import re
import runpy
import shlex
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

import mcp.client.stdio  # noqa: F401 - it takes the stderr of its first import, which must be a real one
import pytest
from pydantic import BaseModel

import jiyi
import jiyi.sync
import jiyi.testing
from jiyi.settings_files import SHARED_VARIABLES
from support import each_case, verbs

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").rglob("*.md"))]
PROSE = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
# `strands_store.py` tests the example of a package that cannot be installed beside our MCP server.
EXAMPLES = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "strands_store.py")
NOTEBOOK = ROOT / "examples" / "tour.ipynb"
NOT_RUN = "<!-- not run -->"
GENERATED = ("reference.md", "cli.md", "settings.md")


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


# -- running what the pages show ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Block:
    kind: str
    text: str
    line: int
    run: bool


def blocks(page: Path) -> list[Block]:
    whole = page.read_text(encoding="utf-8")
    fence = re.compile(rf"(?ms)^(?P<not_run>{NOT_RUN}\n+)?```(?P<kind>\w*)\n(?P<text>.*?)^```$")
    return [
        Block(
            kind=found["kind"],
            text=found["text"],
            line=whole.count("\n", 0, found.start("text")) + 1,
            run=not found["not_run"],
        )
        for found in fence.finditer(whole)
    ]


@pytest.fixture
def clean_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a home of its own, and none of the settings of whoever runs the tests."""
    for variable in tuple(os.environ):
        if variable.startswith("JIYI_") or variable in SHARED_VARIABLES:
            monkeypatch.delenv(variable)
    for variable in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("JIYI_SEARCH__READER", "true")  # as installed
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.usefixtures("clean_place")
def test_the_examples_of_a_page_run_and_print_what_it_says(page: Path) -> None:
    """Blocks of one page run in order and share their names, as a reader would type them."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    with asyncio.Runner() as loop, contextlib.ExitStack() as at_end:
        at_end.callback(close_all, names, loop)
        for block in blocks(page):
            where = f"{name_of(page)}:{block.line}"
            if block.kind == "python":
                printed = run_python(block, where, names, loop)
            elif block.kind == "text" and block.run and printed is not None:
                assert_printed(block.text, printed, where)
            elif block.kind in ("console", "shell") and block.run:
                run_transcript(block.text, where)
            if block.kind != "python":
                printed = None


# Blocks with the mark “not run”, by page: they need a server, a key, a model or a file that is not here, or never end.
# Python among them is compiled. The list may only shrink. Generated pages are left out: `test_cli_docs.py` looks at the
# commands in cli.md, and the blocks in reference.md are signatures.
BLOCKS_NOT_RUN = {
    "docs/README.md": 1,
    "docs/caching.md": 1,
    "docs/client.md": 1,
    "docs/deleting.md": 1,
    "docs/deploy.md": 3,
    "docs/import.md": 1,
    "docs/integrations/agent-framework.md": 1,
    "docs/integrations/agno.md": 1,
    "docs/integrations/google-adk.md": 1,
    "docs/integrations/langchain.md": 1,
    "docs/integrations/langgraph.md": 1,
    "docs/integrations/llama-index.md": 1,
    "docs/integrations/mcp.md": 3,
    "docs/integrations/mem0.md": 2,
    "docs/integrations/proxy.md": 2,
    "docs/integrations/pydantic-ai.md": 1,
    "docs/integrations/strands.md": 1,
    "docs/internals/evaluation.md": 1,
    "docs/internals/extraction.md": 1,
    "docs/internals/reliability.md": 1,
    "docs/llm.md": 1,
    "docs/postgres.md": 1,
    "docs/server.md": 2,
}


def test_the_blocks_that_are_not_run_are_listed() -> None:
    pages = [page for page in PAGES if page.name not in GENERATED]
    found = {name_of(page): sum(not block.run for block in blocks(page)) for page in pages}
    assert {name: number for name, number in found.items() if number} == BLOCKS_NOT_RUN


@each_case("page", PAGES)
def test_the_data_in_a_page_is_valid(page: Path) -> None:
    """JSON and TOML; a TOML block without `mcp_servers`, which is Codex's, is a jiyi.toml."""
    for block in blocks(page):
        if block.kind == "json":
            json.loads(block.text)
        elif block.kind == "toml":
            values = tomllib.loads(block.text)
            assert "mcp_servers" in values or jiyi.Settings(**values)


def close_all(names: dict[str, Any], loop: asyncio.Runner) -> None:
    """A page that fails half-way leaves its memory open; that would only hide what failed."""
    for value in names.values():
        if isinstance(value, jiyi.Memory):
            loop.run(value.close())


def run_python(block: Block, where: str, names: dict[str, Any], loop: asyncio.Runner) -> str | None:
    """Run a block, `await` at its top level included, and return what it printed."""
    code: CodeType = compile("\n" * (block.line - 1) + block.text, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if not block.run:
        return None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = eval(code, names)
        if inspect.iscoroutine(result):
            loop.run(result)
    return printed.getvalue()


def run_transcript(text: str, where: str) -> None:
    """Run the `$ jiyi …` lines and look for what the page shows below them. Other programs are not run."""
    command, expected = "", ""
    for line in [*text.splitlines(), "$ "]:
        if line.startswith("$ "):
            if command:
                printed, code = run_command(command)
                assert code == 0 or "error" in expected, f"{where}: {command} ends with {code}: {printed}"
                assert_printed(expected, printed, f"{where}: {command}")
            command, expected = runnable(line.removeprefix("$ ")), ""
        elif command.endswith("\\"):
            command = command.removesuffix("\\") + line.strip()
        else:
            expected += line + "\n"


def runnable(command: str) -> str:
    words = [word for word in command.split() if "=" not in word]
    return command if words[:1] == ["jiyi"] and "|" not in words and ">" not in words else ""


def run_command(command: str) -> tuple[str, int]:
    """What the command prints, on stdout and stderr, and its exit code."""
    from jiyi.cli import main

    words = shlex.split(command, comments=True)
    first = words.index("jiyi")
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        for setting in words[:first]:
            patch.setenv(*setting.split("=", 1))
        patch.setattr(sys, "argv", words[first:])
        patch.setattr(sys, "stdin", io.StringIO())
        code = 0
        try:
            with contextlib.redirect_stderr(printed):
                main()
        except SystemExit as end:
            code = int(end.code or 0)
    return printed.buffer.getvalue().decode(), code


# -- comparing ----------------------------------------------------------------------------------------------------

ID = re.compile(r"[0-9a-hjkmnp-tv-z]{26}")
TIME = re.compile(r"\d{4}-\d\d-\d\d(T?\d\d:\d\d\S*)?|\d\d:\d\d(:\d\d)?")
NUMBER = re.compile(r"\d+\.\d+")
DRAWN = re.compile("[─-▟]")  # lines, boxes, bars


MARK = re.compile(r"(?<=jiyi-memory)-[a-z]{8}(?=>)")  # of a fence: each store has its own


def assert_printed(expected: str, printed: str, where: str) -> None:
    """Every line of a page is there, in its order. `…` alone stands for any lines."""
    rest = iter(MARK.sub("-…", printed).splitlines())
    for line in MARK.sub("-…", expected).splitlines():
        words = split(line)
        if words and words != ["…"]:
            assert any(holds(split(actual), words) for actual in rest), f"{where}: {line!r} is not in:\n{printed}"


def split(line: str) -> list[str]:
    return DRAWN.sub(" ", line).split()


def holds(actual: list[str], expected: list[str]) -> bool:
    """Whether a line has these words, in this order."""
    rest = iter(actual)
    return all(any(alike(word, wanted) for word in rest) for wanted in expected if wanted != "…")


def alike(actual: str, expected: str) -> bool:
    """Ids and times differ from run to run, scores a little."""
    if NUMBER.fullmatch(actual) and NUMBER.fullmatch(expected):
        return abs(float(actual) - float(expected)) <= 0.1
    return actual == expected or any(kind.fullmatch(actual) and kind.fullmatch(expected) for kind in (ID, TIME))


def test_comparing_forgives_what_differs_from_run_to_run_and_nothing_else() -> None:
    assert_printed("│ 0.75  猫叫豆豆 │\n…\nlast", "0.74 猫叫豆豆\nmiddle\nlast line\n", "here")
    for wrong in ("0.60  猫叫豆豆", "last\n0.75", "豆豆"):
        with pytest.raises(AssertionError):
            assert_printed(wrong, "0.74 猫叫豆豆\nlast\n", "here")


@each_case("page", PAGES)
def test_a_memory_has_the_same_id_wherever_a_transcript_shows_it(page: Path) -> None:
    for block in blocks(page):
        lines = block.text.splitlines() if block.kind == "console" else []
        shown = {
            (re.split(r"\s{2,}", above.strip())[-1], found.group())
            for above, line in itertools.pairwise(lines)
            if (found := ID.match(line.strip()))
        }
        assert len({text for text, _ in shown}) == len({key for _, key in shown}) == len(shown), (
            f"{name_of(page)}: {shown}"
        )


# -- the examples ---------------------------------------------------------------------------------------------------


def gallery() -> dict[str, str]:
    """What docs/examples.md shows of each program."""
    shown: dict[str, str] = {}
    for block in blocks(ROOT / "docs" / "examples.md"):
        for part in re.split(r"(?m)^\$ .*(?=examples/)", block.text)[1:]:
            name, _, output = part.partition("\n")
            shown[name] = output
    return shown


def test_the_gallery_shows_every_example() -> None:
    # `strands_store.py` is run by `tests/strands_store.py`, in an environment of its own.
    assert gallery().keys() == {name_of(path) for path in [*EXAMPLES, NOTEBOOK]}
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert all(f"(../{name_of(path)})" in page for path in (ROOT / "examples").iterdir() if path.is_file())


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
@pytest.mark.usefixtures("clean_place")
def test_an_example_runs_and_prints_what_the_gallery_shows(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(example), str(tmp_path / "example.db")])
    monkeypatch.setenv("JIYI_TOOLS__RECALL_TIMEOUT_S", "60")  # on a busy machine too
    runpy.run_path(str(example), run_name="__main__")
    printed = capfd.readouterr().out
    assert len(printed.splitlines()) >= 3
    assert_printed(gallery()[name_of(example)], printed, name_of(example))
    assert (tmp_path / "example.db").is_file()


@pytest.mark.usefixtures("clean_place")
def test_the_notebook_runs_and_prints_what_it_holds() -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    shown = ""
    with asyncio.Runner() as loop, contextlib.ExitStack() as at_end:
        at_end.callback(close_all, names, loop)
        for number, cell in enumerate(json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]):
            if cell["cell_type"] == "code":
                where = f"{name_of(NOTEBOOK)}, cell {number}"
                printed = run_python(Block("python", "".join(cell["source"]), 1, run=True), where, names, loop)
                held = "".join(line for output in cell["outputs"] for line in output["text"])
                assert_printed(held, printed or "", where)
                shown += held
    assert_printed(gallery()[name_of(NOTEBOOK)], shown, name_of(NOTEBOOK))


PROGRAMS = {
    "chat_loop": ("allergic to peanuts", "去上海", "stored: 8 messages"),
    "fastapi_app": ("{'created': 1}", "['I am allergic to peanuts']"),
    "csv_import": ("['created', 'created']", "['unchanged', 'updated', 'created']", "The canteen opens at 12:00"),
    "agent_with_tools": ("save_memory(", "(0.99, fact, 2", "list_memories(", "I do not know."),
    "scheduled_maintenance": ("jobs done: 0", "of 1 memories", "backups kept: 1"),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("clean_place")
def test_a_program_of_production_does_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path / "example.db")])
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    printed = capfd.readouterr().out
    for expected in PROGRAMS[name]:
        assert expected in printed


@pytest.mark.usefixtures("clean_place")
def test_the_chat_example_answers_sensibly(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["chat_with_memory.py", "chat.db"])
    runpy.run_path(str(ROOT / "examples" / "chat_with_memory.py"), run_name="__main__")
    said = re.findall(r"(?m)^mei: (.*)\nbot: (.*)$", capsys.readouterr().out)
    answers = dict(said)
    assert answers["我下周三去上海出差"] == "Noted."
    assert "peanuts" in answers["Can I have the peanut soup?"]
    assert "上海" in answers["我什么时候去上海？"] and "豆豆" in answers["What is the name of my cat?"]


@each_case("page", PAGES)
def test_await_at_the_top_level_is_explained(page: Path) -> None:
    """A reader who pastes such a block into a file gets a syntax error."""
    for block in blocks(page):
        if block.kind == "python":
            try:
                compile(block.text, str(page), "exec")
            except SyntaxError:
                assert "python -m asyncio" in page.read_text(encoding="utf-8"), f"{name_of(page)}:{block.line}"


def test_commands_of_the_pages_exist_in_a_clone() -> None:
    """Modules, make targets and programs that pages tell the reader to run."""
    targets = set(re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    for page in PROSE:
        text = page.read_text(encoding="utf-8")
        for module in re.findall(r"python -m ((?:bench|torture)(?:\.\w+)*)", text):
            path = ROOT.joinpath(*module.split("."))
            assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), f"{name_of(page)}: {module}"
        for target in re.findall(r"(?m)^\$ make ([\w-]+)|`make ([\w-]+)", text):
            assert "".join(target) in targets, f"{name_of(page)}: make {target}"
        for program in re.findall(r"\b(?:examples|docs)/\w+\.py\b", text):
            assert (ROOT / program).exists(), f"{name_of(page)}: {program}"


USER_PAGES = [page for page in PAGES if page.parent.name != "internals" and page.name not in GENERATED]


def test_the_pages_stay_short() -> None:
    """All pages but `internals` and the generated ones, with their code. Two Chinese characters are a word."""
    words = {page: count_words(page.read_text(encoding="utf-8")) for page in USER_PAGES}
    assert words[ROOT / "README.md"] <= 650  # with a transcript and a comparison
    assert sum(words.values()) <= 25_000


def count_words(text: str) -> int:
    chinese = len(re.findall(r"[\u3400-\u9fff]", text))
    others = re.sub(r"[\u3400-\u9fff]+", " ", text).split()
    return sum(1 for word in others if re.search(r"\w", word)) + chinese // 2


# -- completeness ---------------------------------------------------------------------------------------------------


def sections(page: Path) -> dict[str, str]:
    """The text below each heading, by the names in backticks that the heading has."""
    found: dict[str, str] = {}
    for part in re.split(r"(?m)^#+ ", page.read_text(encoding="utf-8")):
        heading, _, text = part.partition("\n")
        for name in re.findall(r"`([\w.]+)`", heading):
            found[name] = found.get(name, "") + text
    return found


REFERENCE = ROOT / "docs" / "reference.md"
VERBS = [("open", jiyi.Memory.open), *verbs(jiyi.Memory).items()]


@each_case("name", [*jiyi.__all__, "jiyi.sync.Memory", "WordEmbedder", "FailingEmbedder"])
def test_the_reference_names_everything_public(name: str) -> None:
    described = sections(REFERENCE)
    assert name in described, f"docs/reference.md has no heading for {name}"
    value = getattr(jiyi, name, None)
    if isinstance(value, type) and issubclass(value, BaseModel) and value is not jiyi.Settings:
        missing = [field for field in value.model_fields if f"`{field}: " not in described[name]]
        assert not missing, f"docs/reference.md does not tell the fields {missing} of {name}"


@each_case(("name", "verb"), VERBS)
def test_the_reference_shows_every_verb_as_it_is(name: str, verb: Callable[..., Any]) -> None:
    described = sections(REFERENCE).get(f"Memory.{name}")
    assert described, f"docs/reference.md has no heading for Memory.{name}"
    [shown] = ast.parse(described.split("```python\n")[1].split("```")[0]).body
    assert isinstance(shown, ast.FunctionDef | ast.AsyncFunctionDef)
    assert isinstance(shown, ast.AsyncFunctionDef) == inspect.iscoroutinefunction(verb)
    assert shown.name == name.rpartition(".")[2]
    assert defaults_shown(shown.args) == {
        parameter.name: None if parameter.default is parameter.empty else repr(parameter.default)
        for parameter in inspect.signature(verb).parameters.values()
        if parameter.name != "self"
    }


def defaults_shown(arguments: ast.arguments) -> dict[str, str | None]:
    """The parameters of a signature on a page, each with its default as Python would print it."""
    plain = arguments.args
    defaults = [*[None] * (len(plain) - len(arguments.defaults)), *arguments.defaults, *arguments.kw_defaults]
    names = [argument.arg for argument in (*plain, *arguments.kwonlyargs)]
    shown = {name: ast.unparse(default) if default else None for name, default in zip(names, defaults, strict=True)}
    if arguments.kwarg is not None:
        shown[arguments.kwarg.arg] = None
    return {
        name: repr(jiyi.UNSET) if default == "UNSET" else default
        for name, default in shown.items()
        if name not in ("self", "cls")
    }


def test_the_testing_module_is_covered() -> None:
    public = {
        name
        for name, value in vars(jiyi.testing).items()
        if isinstance(value, type) and value.__module__ == "jiyi.testing"
    }
    assert public <= sections(REFERENCE).keys()


def test_generated_pages_are_current() -> None:
    """`make docs` writes them."""
    from docs.generate import generate

    for name, text in generate().items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text, f"docs/{name} is not current: run make docs"


# -- words and links --------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@each_case("page", PROSE)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            file, _, anchor = target.partition("#")
            there = page.parent / file if file else page
            assert there.exists(), f"{name_of(page)} links to {target}"
            assert not anchor or anchor in anchors(there), f"{name_of(page)} links to {target}"


FORBIDDEN = re.compile(r"/(?:home|root|tmp|work|Users)/\w|pypi\.|pythonhosted|npmjs|conda\.|index-url|\bTODO\b")


@each_case("page", [*PROSE, *EXAMPLES])
def test_no_page_names_a_machine_or_a_registry(page: Path) -> None:
    assert not FORBIDDEN.findall(page.read_text(encoding="utf-8"))
