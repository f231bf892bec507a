"""Files that are watched, and files that several processes and a person work on at once."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

import workers
from conftest import verbatim
from jiyi import Memory, SyncReport
from jiyi.files import safe
from jiyi.testing import WordEmbedder
from support import contents, stored
from workers import crew

LINES = 1000


def open_at(where: Path, folder: Path) -> Memory:
    return Memory.open(where, settings=verbatim(), embedder=WordEmbedder(64), workspace=folder, workspace_user="mei")


async def fill(memory: Memory) -> None:
    await memory.add("早上喝绿茶，不喝咖啡", user_id="mei", memory_type="preference", importance=0.8, tags=["饮食"])
    await memory.add("lives in Berlin, Prenzlauer Berg", user_id="mei")
    await memory.add("back up first,\nthen migrate the database", user_id="mei", memory_type="lesson")
    await memory.workspace.sync()


async def soon(holds: Callable[[], bool], what: str, within_s: float = 60) -> None:
    began = monotonic()
    while not holds():
        assert monotonic() - began < within_s, what
        await asyncio.sleep(0.05)


@asynccontextmanager
async def watched(memory: Memory, told: list[SyncReport]) -> AsyncIterator[None]:
    watching = asyncio.create_task(memory.workspace.watch(report=told.append))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def change(note: Path, edit: Callable[[str], str]) -> None:
    """As an editor does it that asks before it overwrites what others have saved meanwhile."""
    while True:
        before = note.read_bytes()
        try:
            safe.replace_file(note, edit(before.decode()).encode(), expected=safe.checksum(before))
        except safe.Changed:
            continue
        return


async def test_an_edit_is_found_and_what_others_write_appears_while_it_is_watched(path: Path, tmp_path: Path) -> None:
    """How soon, `python -m bench.files` measures."""
    folder = tmp_path / "notes"
    note = folder / "context/memory.md"
    told: list[SyncReport] = []
    async with open_at(path, folder) as memory:
        await fill(memory)
        reader = await Memory.open(path, settings=verbatim(), embedder=WordEmbedder(64))  # knows nothing of files
        async with watched(memory, told):
            note.write_text(note.read_text(encoding="utf-8") + "\n## Skills\n\n- plays the cello\n", encoding="utf-8")
            began = monotonic()
            while "plays the cello" not in contents(await reader.search("cello", user_id="mei")):
                assert monotonic() - began < 60, "it is never found"
                await asyncio.sleep(0.05)
            await reader.add("collects stamps", user_id="mei")  # in another process, so to say
            await soon(lambda: "collects stamps" in note.read_text(encoding="utf-8"), "it is never written")
        await reader.close()
        assert [step.action for report in told for step in report.steps][:1] == ["create"]


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=mei", "-c", "user.email=mei@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
async def test_a_pull_that_changes_a_thousand_lines_is_one_pass(path: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    told: list[SyncReport] = []
    async with open_at(path, here) as memory:
        note = here / "context/memory.md"
        note.parent.mkdir()
        async with watched(memory, told):
            facts = "".join(f"- fact {at}\n" for at in range(LINES))
            note.write_text(f"# 我的\n\n## Facts\n\n{facts}", encoding="utf-8")
            await soon(lambda: bool(told), "the watcher does not begin")
            git(here, "init")
            git(here, "add", ".")
            git(here, "commit", "-m", "notes")
            git(tmp_path, "clone", str(here), str(there))
            assert not (there / ".jiyi").exists(), "which workspace this is belongs to this place alone"
            text = (there / "context/memory.md").read_text(encoding="utf-8")
            (there / "context/memory.md").write_text(re.sub(r"- fact (\d+)", r"- 事实 \1", text), encoding="utf-8")
            git(there, "commit", "-am", "all of them")
            told.clear()
            git(here, "pull", str(there))
            await soon(lambda: bool(told), "the pull is not noticed")
            await asyncio.sleep(1)
    [report] = told
    assert [step.action for step in report.steps] == ["update"] * LINES and not report.problems
    async with open_at(path, here) as memory:
        assert {item.content for item in await stored(memory)} == {f"事实 {at}" for at in range(LINES)}
        assert await memory.workspace.verify() == []


async def test_an_edit_in_the_moment_when_watching_begins_is_not_missed(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    note = folder / "context/memory.md"
    told: list[SyncReport] = []
    async with open_at(path, folder) as memory:
        await fill(memory)
        files = memory.workspace.files
        look = files.sync

        async def then_an_edit(user_id: str, **options: bool) -> SyncReport:
            done = await look(user_id, **options)
            files.sync = look  # type: ignore[method-assign]
            note.write_text(note.read_text(encoding="utf-8") + "\n## Skills\n\n- plays the cello\n", encoding="utf-8")
            return done

        files.sync = then_an_edit  # type: ignore[method-assign]
        async with watched(memory, told):
            await soon(lambda: bool(told), "it is missed")
        assert [step.text for step in told[0].steps] == ["plays the cello"]


async def test_a_caller_reads_what_it_and_a_person_wrote_while_others_watch(path: Path, tmp_path: Path) -> None:
    folder, end = tmp_path / "notes", tmp_path / "end"
    note = folder / "context/memory.md"
    async with open_at(path, folder) as memory:
        await fill(memory)
        watcher = asyncio.create_task(asyncio.to_thread(crew, [(workers.watch_files, (path, folder, end))]))
        try:
            await soon(end.with_suffix(".begun").exists, "the watcher does not begin")
            for at in range(6):
                word = workers.spelled(at)
                made = (await memory.add(f"said {word}", user_id="mei")).memories[0].id
                assert contents(await memory.search(f"said {word}", user_id="mei"))[0] == f"said {word}"
                await memory.update(made, user_id="mei", content=f"changed {word}")
                assert (await memory.get(made, user_id="mei")).content == f"changed {word}"
                change(note, lambda text, word=word: text.rstrip("\n") + f"\n- written {word}\n")  # type: ignore[misc]
                found = await asyncio.gather(
                    *(memory.search(f"written {word}", user_id="mei") for _ in range(3)),
                )
                for one in found:  # also a search that came while the first was taking the edit in
                    assert contents(one)[0] == f"written {word}"
        finally:
            end.touch()
        assert isinstance((await watcher)[0], int)
        await memory.workspace.sync()
        texts = sorted(item.content for item in await stored(memory))
        words = [workers.spelled(at) for at in range(6)]
        assert [text for text in texts if text.split()[0] in ("said", "changed", "written")] == sorted(
            [f"{verb} {word}" for verb in ("changed", "written") for word in words]
        )
        assert await memory.workspace.verify() == []


async def test_an_edit_that_comes_during_a_sync_is_not_missed(path: Path, tmp_path: Path) -> None:
    """It came after the files were read: the next search must look again."""
    folder = tmp_path / "notes"
    note = folder / "context/memory.md"
    async with open_at(path, folder) as memory:
        await fill(memory)
        memory._engine.store.database.after_write = lambda users: None
        agree = memory._engine.store.files.agree

        async def saved_meanwhile(*args: object, **options: object) -> None:
            await agree(*args, **options)  # type: ignore[arg-type]
            note.write_text(note.read_text(encoding="utf-8") + "\n## Skills\n\n- plays the cello\n", encoding="utf-8")

        memory._engine.store.files.agree = saved_meanwhile  # type: ignore[method-assign]
        await memory.add("collects stamps", user_id="mei")
        await memory.workspace.sync()
        memory._engine.store.files.agree = agree  # type: ignore[method-assign]
        assert contents(await memory.search("cello", user_id="mei"))[0] == "plays the cello"


async def test_files_that_cannot_be_looked_at_are_told_of_with_every_answer(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with open_at(path, folder) as memory:
        await fill(memory)
        away = folder.rename(tmp_path / "away")
        for _ in range(3):
            found = await memory.search("Berlin", user_id="mei")
            assert found.hits and "files could not be read" in found.degraded[0]
        away.rename(folder)
        assert (await memory.search("Berlin", user_id="mei")).degraded == ()


# -- several ----------------------------------------------------------------------------------------------------------


async def test_several_processes_and_a_person_lose_nothing(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with open_at(path, folder) as memory:
        await fill(memory)
    note = folder / "context/memory.md"
    jobs = [(workers.add_with_files, (path, folder, name)) for name in ("one", "two")]
    busy = asyncio.create_task(asyncio.to_thread(crew, jobs))
    for at in range(10):
        while f"- by hand {at}" not in note.read_text(encoding="utf-8"):  # else the file was replaced under the pen
            with note.open("a", encoding="utf-8") as file:
                file.write(f"\n## Facts\n\n- by hand {at}\n")
        await asyncio.sleep(0.1)
    assert await busy == [10, 10]
    async with open_at(path, folder) as memory:
        await memory.workspace.sync()
        found = {item.content for item in await stored(memory)}
        expected = {f"{name} {at}" for name in ("one", "two") for at in range(10)}
        assert expected <= found
        assert {item for item in found if item.startswith("by hand")} == {f"by hand {at}" for at in range(10)}
        assert await memory.workspace.verify() == []


async def test_while_processes_sync_a_person_edits_moves_and_removes_lines(path: Path, tmp_path: Path) -> None:
    """Two processes say, change and sync, a third one watches, and a person works on lines that are there already."""
    folder, end = tmp_path / "notes", tmp_path / "end"
    note = folder / "context/memory.md"
    async with open_at(path, folder) as memory:
        for at in range(30):
            await memory.add(f"line {workers.spelled(at)}", user_id="mei")
        await memory.workspace.sync()
        ids = {item.content: item.id for item in await stored(memory)}
    jobs = [(workers.add_and_change, (path, folder, name, 8)) for name in ("one", "two")]
    busy = asyncio.create_task(asyncio.to_thread(crew, [*jobs, (workers.watch_files, (path, folder, end))]))
    try:
        await soon(end.with_suffix(".begun").exists, "the watcher does not begin")
        for at in range(10):
            word, gone, moved = workers.spelled(at), workers.spelled(10 + at), workers.spelled(20 + at)
            change(note, lambda text, word=word: re.sub(rf"- line {word} ", f"- by hand {word} ", text))  # type: ignore[misc]
            if at < 3:
                change(note, lambda text, gone=gone: re.sub(rf"- line {gone} .*\n", "", text))  # type: ignore[misc]
            line = next(line for line in note.read_text("utf-8").splitlines() if f"line {moved} " in line)
            change(
                note,
                lambda text, line=line: text.replace(line + "\n", "") + f"\n## Habits\n\n{line}\n",  # type: ignore[misc]
            )
            change(note, lambda text, at=at: text + f"\nprose {at}\n")  # type: ignore[misc]
            await asyncio.sleep(0.1)
    finally:
        end.touch()
    one, two, _ = await busy
    assert isinstance(one, dict) and isinstance(two, dict), (one, two)
    async with open_at(path, folder) as memory:
        await memory.workspace.sync()
        there = {item.id: item for item in await stored(memory)}
        for memory_id, text in (one | two).items():
            assert there[memory_id].content == text
        for at in range(10):
            word, gone, moved = workers.spelled(at), workers.spelled(10 + at), workers.spelled(20 + at)
            assert there[ids[f"line {word}"]].content == f"by hand {word}"
            assert (ids[f"line {gone}"] in there) == (at >= 3)
            assert there[ids[f"line {moved}"]].memory_type == "pattern"
        assert len(there) == 30 - 3 + len(one) + len(two), "nothing is there twice"
        text = note.read_text(encoding="utf-8")
        for memory_id, item in there.items():
            assert text.count(memory_id) == 1 and f"- {item.content} <!-- jiyi:{memory_id}" in text
        assert all(text.count(f"\nprose {at}\n") == 1 for at in range(10))
        assert await memory.workspace.verify() == []
