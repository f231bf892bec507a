"""A sync that is killed, or that the disk fails, at any of its steps: never a torn file, never a lost line."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import verbatim
from jiyi import Memory
from jiyi import durable as folders
from jiyi.files import safe
from jiyi.testing import WordEmbedder
from support import LONG, stored

FAILING = ("open", "write", "fsync", "link", "replace", "unlink", "utime", "mkdir")


def open_at(path: Path, folder: Path) -> Memory:
    return Memory.open(path, settings=verbatim(), embedder=WordEmbedder(16), workspace=folder, workspace_user="mei")


def test_a_sync_killed_at_any_step_leaves_whole_files_and_goes_on(tmp_path: Path) -> None:
    script = Path(__file__).with_name("crash_files.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path, "1" if LONG else "20"],
        capture_output=True,
        text=True,
        timeout=3600 if LONG else 600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout.split()[2]) >= 3


class FullDisk:
    """The module `os`, on a disk that is full from the n-th call on that needs room."""

    def __init__(self, after: int, problem: int) -> None:
        self.left = after
        self.problem = problem
        self.failed = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        if name not in FAILING:
            return call

        def maybe(*args: Any, **kwargs: Any) -> Any:
            reads = name == "open" and not args[1] & (os.O_WRONLY | os.O_RDWR)
            if not reads:
                if self.left == 0:
                    self.failed += 1
                    raise OSError(self.problem, os.strerror(self.problem), str(args[0]))
                self.left -= 1
            return call(*args, **kwargs)

        return maybe


@pytest.mark.parametrize("problem", [errno.ENOSPC, errno.EIO])
async def test_a_full_disk_at_any_call_damages_nothing_and_is_told(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: int
) -> None:
    folder = tmp_path / "notes"
    note = folder / "context/memory.md"
    async with open_at(path, folder) as memory:
        memory._engine.store.database.after_write = lambda users: None
        note.parent.mkdir()
        note.write_bytes("# 我的\r\n\r\nprose\n\n## Facts\n\n- by hand\n\nend".encode())
        await memory.add("from the engine", user_id="mei")
        await memory.workspace.sync()
        for step in range(40):
            await memory.add(f"engine {step}", user_id="mei")
            note.write_bytes(note.read_bytes().replace(b"## Facts\n\n", f"## Facts\n\n- by hand {step}\n".encode()))
            disk = FullDisk(step, problem)
            monkeypatch.setattr(safe, "os", disk)
            monkeypatch.setattr(folders, "os", disk)
            try:
                [report] = await memory.workspace.sync()
                problems = report.problems
            except Exception as error:  # noqa: BLE001 - told, too
                problems = (str(error),)
            finally:
                monkeypatch.setattr(safe, "os", os)
                monkeypatch.setattr(folders, "os", os)
            if disk.failed:
                assert any(os.strerror(problem) in told or "cannot be used" in told for told in problems), problems
            after = note.read_bytes()
            assert after.startswith("# 我的\r\n\r\nprose\n\n## Facts\n".encode()) and after.endswith(b"\n\nend")
            await memory.workspace.sync()
            text = note.read_bytes().decode()
            assert text.count(f"- by hand {step} <!-- jiyi:") == text.count(f"- engine {step} <!-- jiyi:") == 1
            assert await memory.workspace.verify() == []
            if not disk.failed:
                break
        assert not disk.failed and step > 5
        assert len(await stored(memory)) == 2 * (step + 1) + 2
        assert [left.name for left in note.parent.iterdir() if left.name.startswith(".")] == []


async def test_on_a_disk_that_is_really_full_the_file_stays_and_the_line_comes_later(
    path: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.strip()}")
    try:
        async with open_at(path, folder) as memory:
            memory._engine.store.database.after_write = lambda users: None
            await memory.add("has a cat", user_id="mei")
            await memory.workspace.sync()
            note = folder / "context/memory.md"
            before = note.read_bytes()
            ballast = folder / "ballast"
            with ballast.open("wb") as file, pytest.raises(OSError, match="No space left"):
                while True:
                    os.write(file.fileno(), b"x" * 512)
            await memory.add("has a dog", user_id="mei")
            [report] = await memory.workspace.sync()
            assert "No space left" in report.problems[0] and note.read_bytes() == before
            assert {item.content for item in await stored(memory)} == {"has a cat", "has a dog"}
            ballast.unlink()
            await memory.workspace.sync()
            assert b"has a dog" in note.read_bytes() and await memory.workspace.verify() == []
    finally:
        subprocess.run(["umount", folder], check=True)


async def test_what_was_written_but_not_noted_is_not_taken_for_a_persons_edit(path: Path, tmp_path: Path) -> None:
    """A crash can come between writing a file and noting that. The memory may be changed before the next sync."""
    async with open_at(path, tmp_path / "ws") as memory:
        made = (await memory.add("the bike is red", user_id="mei", memory_type="fact")).memories[0]
        kept = (await memory.add("the boat is red", user_id="mei", memory_type="fact")).memories[0]
        await memory.workspace.sync()

        async def crash(*_: Any, **__: Any) -> None:
            raise OSError(errno.EIO, "gone")

        memory._engine.store.files.agree = crash  # type: ignore[method-assign]
        await memory.update(made.id, user_id="mei", content="the bike is blue")
        await memory.update(kept.id, user_id="mei", content="the boat is blue")
        await memory.add("the car is red", user_id="mei", memory_type="fact")
    note = tmp_path / "ws/context/memory.md"
    assert "the bike is blue" in note.read_text("utf-8")
    async with Memory.open(path, settings=verbatim(), embedder=WordEmbedder(16)) as memory:
        await memory.update(made.id, user_id="mei", content="the bike is green")
        await memory.update(kept.id, user_id="mei", status="archived")
        [car] = [one for one in await stored(memory) if "car" in one.content]
        await memory.update(car.id, user_id="mei", content="the car is green")
    async with open_at(path, tmp_path / "ws") as memory:
        [done] = await memory.workspace.sync()
        assert done.conflicts == ()
        assert sorted(one.content for one in await stored(memory)) == ["the bike is green", "the car is green"]
        assert await memory.workspace.verify() == []
    text = note.read_text("utf-8")
    assert "the bike is green" in text and "the car is green" in text and "blue" not in text
