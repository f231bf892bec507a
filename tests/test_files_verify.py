"""`verify` finds each kind of drift, `rebuild` works the index out of the files alone."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import pytest

from conftest import verbatim
from jiyi import Memory, SearchResult
from jiyi.embed import BuiltinEmbedder
from jiyi.ids import new_id
from jiyi.testing import WordEmbedder

QUERIES = ("what does she drink?", "喝什么", "Berlin", "migrate a database", "宠物")


def open_at(where: Path, folder: Path, embedder: object = None) -> Memory:
    return Memory.open(
        where,
        settings=verbatim(),
        embedder=embedder or WordEmbedder(64),  # type: ignore[arg-type]
        workspace=folder,
        workspace_user="mei",
    )


async def fill(memory: Memory) -> None:
    memory._engine.store.database.after_write = lambda users: None
    await memory.add("早上喝绿茶，不喝咖啡", user_id="mei", memory_type="preference", importance=0.8, tags=["饮食"])
    await memory.add("lives in Berlin, Prenzlauer Berg", user_id="mei")
    await memory.add("有一只叫小黑的猫", user_id="mei", tags=["宠物", "two words"], agent_id="agent 7")
    await memory.add("back up first,\nthen migrate the database", user_id="mei", memory_type="lesson")
    await memory.workspace.sync()


@pytest.fixture
async def memory(path: Path, tmp_path: Path) -> AsyncIterator[Memory]:
    async with open_at(path, tmp_path / "notes") as memory:
        await fill(memory)
        yield memory


def change(path: Path, statement: str) -> None:
    """Past Jiyi, as an accident would."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        assert connection.execute(statement).rowcount > 0, statement
        connection.commit()


def replaced(old: str, new: str) -> Callable[[Path], None]:
    def edit(note: Path) -> None:
        text = note.read_text(encoding="utf-8")
        assert old in text
        note.write_text(text.replace(old, new), encoding="utf-8")

    return edit


BERLIN = "WHERE content LIKE '%Berlin%'"
OF_BERLIN = f"WHERE memory_id IN (SELECT id FROM memories {BERLIN})"
IN_FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a line was edited": (replaced("in Berlin", "in Munich"), "line"),
    "a line was added": (replaced("## 事实\n", "## 事实\n\n- new\n"), "line"),
    "a line was removed": (lambda note: note.write_text(_without(note, "Berlin"), encoding="utf-8"), "line"),
    "a line lost its id": (lambda note: note.write_text(_stripped(note, "Berlin"), encoding="utf-8"), "line"),
    "a line of nobody": (replaced("## 事实\n", f"## 事实\n\n- x <!-- jiyi:{new_id()} -->\n"), "line"),
    "tags were changed": (replaced("tags=饮食", "tags=drinks"), "line"),
    "a heading was renamed": (replaced("## 事实", "## 习惯"), "line"),
    "an id twice": (lambda note: note.write_text(_twice(note, "Berlin"), encoding="utf-8"), "file"),
    "a file that cannot be read": (lambda note: note.write_bytes(b"\xff"), "file"),
}
IN_INDEX: dict[str, tuple[str, str]] = {
    "a text was changed": (f"UPDATE memories SET content = 'lives in Rome, Berlin gone' {BERLIN}", "memory"),
    "a type was changed": (f"UPDATE memories SET memory_type = 'pattern' {BERLIN}", "memory"),
    "an importance was changed": (f"UPDATE memories SET importance = 0.9 {BERLIN}", "memory"),
    "a memory was archived": (f"UPDATE memories SET status = 'archived' {BERLIN}", "memory"),
    "a memory is gone": (f"DELETE FROM memories {BERLIN}", "memory"),
    "an agreement is gone": (f"DELETE FROM file_entries {OF_BERLIN}", "agreement"),
    "words are gone": (f"DELETE FROM terms {OF_BERLIN}", "words"),
    "words are another's": (f"UPDATE terms SET hashes = (SELECT hashes FROM terms LIMIT 1) {OF_BERLIN}", "words"),
    "keywords are gone": (f"DELETE FROM keywords {OF_BERLIN}", "words"),
    "a vector is gone": (f"DELETE FROM embeddings {OF_BERLIN}", "vector"),
    "a vector of another model": (f"UPDATE embeddings SET model = 'x' {OF_BERLIN}", "vector"),
    "a vector is another's": (
        f"UPDATE embeddings SET half_vector = (SELECT half_vector FROM embeddings LIMIT 1) {OF_BERLIN}",
        "vector",
    ),
}


def _without(note: Path, text: str) -> str:
    return "\n".join(line for line in note.read_text(encoding="utf-8").split("\n") if text not in line)


def _stripped(note: Path, text: str) -> str:
    lines = note.read_text(encoding="utf-8").split("\n")
    return "\n".join(line.split(" <!-- jiyi:")[0] if text in line else line for line in lines)


def _twice(note: Path, text: str) -> str:
    lines = note.read_text(encoding="utf-8").split("\n")
    return "\n".join(f"{line}\n{line}" if text in line else line for line in lines)


@pytest.mark.parametrize("name", [*IN_FILES, *IN_INDEX])
async def test_each_kind_of_drift_is_found_and_mended(name: str, memory: Memory, path: Path, tmp_path: Path) -> None:
    assert await memory.workspace.verify(vectors=True) == []
    note = tmp_path / "notes/context/memory.md"
    whole = note.read_bytes()
    if name in IN_FILES:
        plant, kind = IN_FILES[name]
        plant(note)
    else:
        statement, kind = IN_INDEX[name]
        change(path, statement)
    drifts = await memory.workspace.verify(vectors=True)
    assert kind in {drift.kind for drift in drifts}, drifts
    if kind == "file":
        note.write_bytes(whole)
    await memory.workspace.rebuild(confirm=True)
    assert await memory.workspace.verify(vectors=True) == []


def shown(found: SearchResult) -> list[tuple[object, ...]]:
    return [
        (
            hit.id,
            hit.content_preview,
            hit.memory_type,
            hit.tags,
            hit.agent_id,
            hit.keywords,
            round(hit.relevance_score, 3),
        )
        for hit in found.hits
    ]


@pytest.mark.parametrize("lost", ["everything", "the index", "nothing"])
async def test_a_rebuild_from_the_files_alone_finds_the_same(
    lost: str, path: Path, tmp_path: Path, builtin: BuiltinEmbedder
) -> None:
    folder = tmp_path / "notes"
    async with open_at(path, folder, builtin) as memory:
        await fill(memory)
        before = [shown(await memory.search(query, user_id="mei")) for query in QUERIES]
    if lost == "everything":
        path.unlink()
    elif lost == "the index":
        for table in ("terms", "keywords", "embeddings"):
            change(path, f"DELETE FROM {table}")
    async with open_at(path, folder, builtin) as memory:
        [report] = await memory.workspace.rebuild()
        assert report.indexed == 4 and report.problems == ()
        assert [shown(await memory.search(query, user_id="mei")) for query in QUERIES] == before
