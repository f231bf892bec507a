"""A workspace that is away, empty, moved or copied: nothing is archived, nothing is reverted, no second one begins."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from conftest import verbatim
from jiyi import Memory, SyncReport, WorkspaceError
from jiyi.files.workspace import MARKER, init_workspace
from jiyi.testing import WordEmbedder
from support import stored


def open_at(path: Path, folder: Path, user: str | None = "mei") -> Memory:
    return Memory.open(path, settings=verbatim(), embedder=WordEmbedder(64), workspace=folder, workspace_user=user)


async def sync(memory: Memory) -> SyncReport:
    [report] = await memory.workspace.sync(user_id="mei")
    return report


async def fill(path: Path, folder: Path, count: int = 10, user: str | None = "mei") -> None:
    async with open_at(path, folder, user) as memory:
        memory._engine.store.database.after_write = lambda users: None
        for at in range(count):
            await memory.add(f"fact number {at}", user_id="mei")
        await memory.workspace.sync()


def edit(note: Path, old: str, new: str) -> None:
    text = note.read_text(encoding="utf-8")
    assert old in text
    note.write_text(text.replace(old, new), encoding="utf-8")


def identity(folder: Path) -> str:
    return str(json.loads((folder / MARKER).read_bytes())["id"])


# -- away -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["mei", None])
@pytest.mark.parametrize("there", ["an empty folder", "a folder with something else", "nothing"])
async def test_a_folder_without_notes_is_not_begun_anew_while_the_index_knows_lines(
    path: Path, tmp_path: Path, there: str, user: str | None
) -> None:
    folder = tmp_path / "notes"
    await fill(path, folder, user=user)
    away = folder.rename(tmp_path / "away")
    if there != "nothing":
        folder.mkdir()
    if there == "a folder with something else":
        (folder / "lost+found").mkdir()
        (folder / "README.md").write_text("mount the disk here")
    before = sorted(folder.rglob("*"))
    for _ in range(2):
        with pytest.raises(WorkspaceError, match=r"the index has 10 lines .* `jiyi workspace init"):
            await open_at(path, folder, user)
    assert sorted(folder.rglob("*")) == before and folder.exists() == (there != "nothing"), "nothing is written there"
    async with Memory.open(path, settings=verbatim(), embedder=WordEmbedder(64)) as memory:
        assert len(await stored(memory)) == 10 and await stored(memory, status="archived") == []
    if folder.exists():
        shutil.rmtree(folder)
    away.rename(folder)
    async with open_at(path, folder, user) as memory:
        assert (await sync(memory)).steps == () and await memory.workspace.verify() == []


async def test_a_new_one_is_begun_if_a_person_says_so_and_gets_every_line(path: Path, tmp_path: Path) -> None:
    await fill(path, tmp_path / "notes")
    init_workspace(tmp_path / "new", user="mei")  # what `jiyi workspace init` does
    async with open_at(path, tmp_path / "new") as memory:
        report = await sync(memory)
        assert [step.action for step in report.steps] == ["write"] * 10 and len(await stored(memory)) == 10


async def test_who_has_no_lines_yet_may_begin_anywhere(path: Path, tmp_path: Path) -> None:
    await fill(path, tmp_path / "notes")
    async with open_at(path, tmp_path / "bob", "bob") as memory:
        await memory.add("has a dog", user_id="bob")
    assert "has a dog" in (tmp_path / "bob/context/memory.md").read_text(encoding="utf-8")


async def test_notes_without_their_hidden_folder_are_taken_as_they_are(path: Path, tmp_path: Path) -> None:
    """A clone of notes that lie in git: what is hidden is not in it."""
    folder = tmp_path / "notes"
    await fill(path, folder)
    shutil.rmtree(folder / ".jiyi")
    edit(folder / "context/memory.md", "number 3", "number 33")
    async with open_at(path, folder) as memory:
        report = await sync(memory)
        texts = {item.content for item in await stored(memory)}
        assert {"fact number 33", "fact number 3"} <= texts and len(texts) == 11, "nobody knows which one is newer"
        assert "both are kept" in report.conflicts[0] and await stored(memory, status="archived") == []
        assert await memory.workspace.verify() == []


# -- moved and copied -------------------------------------------------------------------------------------------------


async def test_a_moved_workspace_stays_what_it_is(path: Path, tmp_path: Path) -> None:
    await fill(path, tmp_path / "notes")
    before = identity(tmp_path / "notes")
    moved = (tmp_path / "notes").rename(tmp_path / "笔记")
    edit(moved / "context/memory.md", "number 3", "number 33")
    async with open_at(path, moved) as memory:
        assert [step.action for step in (await sync(memory)).steps] == ["update"]
        assert await memory.workspace.verify() == []
    assert identity(moved) == before
    link = tmp_path / "link"
    link.symlink_to(moved)
    async with open_at(path, link) as memory:
        assert (await sync(memory)).steps == ()
    assert identity(moved) == before, "the same folder by another name is no copy"


async def test_a_copy_is_a_workspace_of_its_own_and_undoes_nothing(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, copy = tmp_path / "notes", tmp_path / "copy"
    await fill(path, folder)
    shutil.copytree(folder, copy)
    async with open_at(path, folder) as memory:  # life goes on
        memory._engine.store.database.after_write = lambda users: None
        await memory.add("came later", user_id="mei")
        edit(folder / "context/memory.md", "number 3", "number 33")
        await sync(memory)
    async with open_at(path, copy) as memory:
        memory._engine.store.database.after_write = lambda users: None
        assert "is a copy of" in caplog.text and identity(copy) != identity(folder)
        report = await sync(memory)
        assert await stored(memory, status="archived") == [], "a line that the copy never had was not removed"
        texts = [item.content for item in await stored(memory)]
        assert sorted(texts) == sorted(["came later", "fact number 33", *(f"fact number {at}" for at in range(10))]), (
            "what the copy says otherwise is kept beside what was said since"
        )
        assert len(report.conflicts) == 1 and await memory.workspace.verify() == []
    again = identity(copy)
    async with open_at(path, folder) as memory, open_at(path, copy) as other:
        await memory.workspace.sync()
        await other.workspace.sync()
        assert await memory.workspace.verify() == await other.workspace.verify() == []
    assert identity(copy) == again


async def test_a_copy_with_an_index_of_its_own_goes_on_by_itself(path: Path, tmp_path: Path) -> None:
    folder, copy = tmp_path / "notes", tmp_path / "copy"
    await fill(path, folder)
    shutil.copytree(folder, copy)
    other = Path(shutil.copy(path, tmp_path / "other.db"))
    async with open_at(other, copy) as memory:
        memory._engine.store.database.after_write = lambda users: None
        assert (await sync(memory)).steps == ()
        edit(copy / "context/memory.md", "number 3", "number 33")
        assert [step.action for step in (await sync(memory)).steps] == ["update"]
    async with open_at(path, folder) as memory:
        assert (await sync(memory)).steps == () and len(await stored(memory)) == 10
