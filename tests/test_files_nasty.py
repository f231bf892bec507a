"""Fifty nasty files: their bytes stay, their memories are found, and what is left alone is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import verbatim
from jiyi import Memory, SyncReport
from jiyi.testing import WordEmbedder
from support import stored

A, B, C = (f"01k9zq4f3rw5m8v2c7t6n1d0a{last}" for last in "abc")
MARK = f"<!-- jiyi:{A} -->"
FACT = "## Facts\n\n- has a cat\n"
BOM = "\ufeff"

# name: (content, the memories that must come of it; None: the file is left alone)
NASTY: dict[str, tuple[str | bytes, set[str] | None]] = {
    "empty": ("", set()),
    "only white space": (" \n\t\n\r\n", set()),
    "only a byte order mark": (BOM, set()),
    "byte order mark": (BOM + FACT, {"has a cat"}),
    "byte order mark before a bullet": (BOM + "- not ours\n" + FACT, {"has a cat"}),
    "CR LF": (FACT.replace("\n", "\r\n"), {"has a cat"}),
    "CR": (FACT.replace("\n", "\r"), {"has a cat"}),
    "mixed line ends": ("## Facts\r\n\n- has a cat\r- has a dog\r\n", {"has a cat", "has a dog"}),
    "no final newline": (FACT.rstrip("\n"), {"has a cat"}),
    "no newline at all": ("- has a cat", set()),
    "one endless line": ("## Facts\n- " + "cat " * 20_000 + "\n", {("cat " * 20_000).strip()}),
    "a line too long for a memory": ("## Facts\n- " + "x" * 200_001 + "\n- short\n", {"short"}),
    "NUL bytes": (b"## Facts\n- a\x00b\n", None),
    "binary": (bytes(range(256)) * 40, None),
    "UTF-16": (FACT.encode("utf-16"), None),
    "Latin-1": ("## Facts\n- café\n".encode("latin-1"), None),
    "GBK": ("## 事实\n- 喝茶\n".encode("gbk"), None),
    "overlong UTF-8": (b"## Facts\n- \xc0\xaf\n", None),
    "a surrogate": (b"## Facts\n- \xed\xa0\x80\n", None),
    "merge conflict": ("## Facts\n<<<<<<< HEAD\n- a cat\n=======\n- a dog\n>>>>>>> theirs\n", None),
    "merge conflict with three sides": ("## Facts\n<<<<<<< a\n- a\n||||||| base\n- b\n=======\n- c\n>>>>>>> d\n", None),
    "one mark of a merge left": ("## Facts\n- a cat\n>>>>>>> theirs\n", None),
    "front matter": (f"---\ntitle: x\ntags: [a]\n---\n{FACT}", {"has a cat"}),
    "front matter with bullets": (f"---\ntags:\n- one\n- two\n---\n{FACT}", {"has a cat"}),
    "front matter twice": (f"---\na: 1\n---\n---\nb: 2\n---\n{FACT}", {"has a cat"}),
    "front matter without an end": (f"---\ntitle: x\n{FACT}", None),
    "front matter ended by dots": (f"---\ntitle: x\n...\n{FACT}", {"has a cat"}),
    "a rule on top": (f"---\n\n{FACT}", {"has a cat"}),
    "code without an end": (f"{FACT}\n```\n- not ours\n", None),
    "code with bullets": (f"{FACT}\n```md\n## Skills\n- not ours {MARK}\n```\n", {"has a cat"}),
    "code in tildes with backticks": (f"{FACT}\n~~~\n```\n- not ours\n~~~\n", {"has a cat"}),
    "comment without an end": (f"{FACT}\n<!-- begin\n- not ours\n", None),
    "comment over lines": (f"<!--\n- not ours\n-->\n{FACT}", {"has a cat"}),
    "raw HTML": (f"<pre>\n- not ours\n</pre>\n{FACT}", {"has a cat"}),
    "a table": (f"{FACT}\n| - a | - b |\n|---|---|\n| - c | - d |\n", {"has a cat"}),
    "a numbered list": (f"{FACT}\n1. one\n2. two\n", {"has a cat"}),
    "quotes": (f"{FACT}\n> - quoted\n> > - twice\n", {"has a cat"}),
    "deep nesting": (
        "## Facts\n" + "".join("  " * at + f"- level {at}\n" for at in range(60)),
        {"level 0\n" + "\n".join("  " * at + f"- level {at + 1}" for at in range(59))},
    ),
    "thousands of levels": ("## Facts\n- top\n" + "> " * 5000 + "x\n", {"top"}),
    "two headings of one name": (f"{FACT}\n## Facts\n\n- has a dog\n", {"has a cat", "has a dog"}),
    "headings in both languages": (f"{FACT}\n## 事实\n\n- 有只狗\n", {"has a cat", "有只狗"}),
    "duplicate ids, same text": (f"## Facts\n- a cat {MARK}\n- a cat {MARK}\n", {"a cat"}),
    "duplicate ids, other text": (f"## Facts\n- a cat {MARK}\n- a dog {MARK}\n", {"a cat", "a dog"}),
    "an id that is none": ("## Facts\n- a cat <!-- jiyi:zzzzzzzzzzzzzzzzzzzzzzzzzz -->\n", {"a cat"}),
    "a broken mark": ("## Facts\n- a cat <!-- jiyi:01k9 -->\n", {"a cat <!-- jiyi:01k9 -->"}),
    "a mark in prose": (f"{FACT}\nSee {MARK} above.\n", {"has a cat"}),
    "right to left": ("## Facts\n- \u202eאני אוהב תה\u202c\n- شاي\n", {"\u202eאני אוהב תה\u202c", "شاي"}),
    "emoji": ("## 🍵 Facts 🍵\n- 👩‍🔬 likes 🍵\n- 🏳️‍🌈\n", {"👩‍🔬 likes 🍵", "🏳️‍🌈"}),
    "odd separators": ("## Facts\n- a\x0bb\x0cc\x85d\u2028e\u2029f\n", {"a\x0bb\x0cc\x85d\u2028e\u2029f"}),
    "zero-width and combining": ("## Facts\n- te\u200ba\n- cafe\u0301\n", {"te\u200ba", "cafe\u0301"}),
    "ten megabytes": (
        "## Facts\n\n- has a cat\n\n" + ("prose that is not ours, on and on, " * 30 + "\n") * 10_000,
        {"has a cat"},
    ),
    "bullets without text": ("## Facts\n-\n- \n-  \n* \u3000\n- has a cat\n", {"has a cat"}),
    "script in a bullet": ("## Facts\n- <script>alert(1)</script>\n", {"<script>alert(1)</script>"}),
    "tabs": ("## Facts\n-\ttabbed\n\tmore\n", {"tabbed\nmore"}),
}


def note(folder: Path) -> Path:
    return folder / "context/memory.md"


async def sync(memory: Memory) -> SyncReport:
    [report] = await memory.workspace.sync()
    return report


def test_there_are_fifty() -> None:
    assert len(NASTY) >= 50


@pytest.mark.parametrize("name", NASTY)
async def test_its_bytes_stay_and_its_memories_are_found(name: str, path: Path, tmp_path: Path) -> None:
    content, expected = NASTY[name]
    data = content if isinstance(content, bytes) else content.encode()
    folder = tmp_path / "notes"
    async with Memory.open(
        path, settings=verbatim(), embedder=WordEmbedder(16), workspace=folder, workspace_user="mei"
    ) as memory:
        memory._engine.store.database.after_write = lambda users: None
        await memory.add("from the engine", user_id="mei")
        note(folder).parent.mkdir()
        note(folder).write_bytes(data)
        report = await sync(memory)
        found = {item.content for item in await stored(memory)} - {"from the engine"}
        after = note(folder).read_bytes()
        if expected is None:
            assert after == data and found == set()
            assert ": skipped: " in report.problems[0] and "context/memory.md" in report.problems[0]
            return
        assert found == expected
        assert without_ours(after.decode()) == without_ours(data.decode())
        assert (await sync(memory)).steps == ()
        assert note(folder).read_bytes() == after


def without_ours(text: str) -> list[str]:
    """All that is not ours: without marks, lines and headings that Jiyi wrote, and empty lines."""
    import re

    text = re.sub(r"[ \t]*<!-- jiyi:\w{26}[^>]*-->", "", text)
    lines = [line.rstrip(" \t") for line in re.split(r"\r\n|\r|\n", text)]
    ours = ("- from the engine", "## Facts", "# Memory", "<!-- A bullet is a memory")
    return [line for line in lines if line.strip(" \t\ufeff") and not line.lstrip("\ufeff").startswith(ours)]
