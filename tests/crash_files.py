"""Kill a sync at each of its steps, by SIGKILL, and look what is left: `python crash_files.py FOLDER`.

Each sync runs in a process of its own, forked from this one, which has loaded everything already.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from jiyi import Memory
from jiyi import durable as folders
from jiyi.files import safe
from jiyi.keep.erase import erase
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

PROSE = ("# Mine\r\n", "prose before\n", "| a | b |\n", "- milk\n", "the end")
CALLS = ("open", "write", "fsync", "close", "link", "replace", "unlink", "utime")


def kill_at(step: int) -> Callable[[], None]:
    """After this many calls of the system or the store, the process is gone."""
    left = step

    def count() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    return count


class Counting:
    """The module `os`, as safe.py sees it."""

    def __init__(self, count: Callable[[], None]) -> None:
        self._count = count

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)
        if name not in CALLS:
            return call

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._count()
            done = call(*args, **kwargs)
            self._count()
            return done

        return counted


async def opened(folder: Path) -> Memory:
    settings = load_settings(extraction={"enabled": False})
    memory = await Memory.open(
        folder / "memory.db",
        settings=settings,
        embedder=WordEmbedder(16),
        workspace=folder / "ws",
        workspace_user="mei",
    )
    memory._engine.store.database.after_write = lambda users: None
    return memory


async def prepare(folder: Path) -> None:
    """Something to do in both directions: new, changed, moved and removed, in two files."""
    memory = await opened(folder)
    for at in range(8):
        await memory.add(f"fact number {at}", user_id="mei")
    await memory.add("a skill", user_id="mei", memory_type="skill")
    note = folder / "ws/context/memory.md"
    note.parent.mkdir(parents=True)
    note.write_bytes("".join(PROSE[:3]).encode() + b"\n## Facts\n\n## Other\n" + "".join(PROSE[3:]).encode())
    await memory.workspace.sync()
    text = note.read_bytes().decode()
    text = text.replace("fact number 1 ", "fact by hand ").replace("## Facts\n", "## Facts\n\n- new by hand\n")
    text = re.sub(r"- fact number 2 .*\n", "", text)
    note.write_bytes(text.encode())
    there = {item.content: item.id for item in (await memory.list(user_id="mei")).items}
    # `list` has looked at the files; so the edits that count are made past it
    note.write_bytes(
        note.read_bytes().replace(b"new by hand", b"newer by hand").replace(b"number 3 ", b"number 3 too ")
    )
    await memory._engine.change(
        there["fact number 4"],
        {"memory_type": "skill"},
        user_id="mei",
        expected=None,
        action="update",
        actor="x",
        reason=None,
    )
    await memory._engine.change(
        there["fact number 5"],
        {"content": "fact from the index"},
        user_id="mei",
        expected=None,
        action="update",
        actor="x",
        reason=None,
    )
    gone = [there["fact number 6"]]
    await erase(memory._engine.store, memory._engine.embedder, memory._engine.rules, "mei", gone, with_sources=False)
    await memory.close()


async def sync(folder: Path, step: int | None) -> None:
    memory = await opened(folder)
    if step is not None:
        count = kill_at(step)
        safe.os = folders.os = Counting(count)  # type: ignore[assignment]
        exchange = safe._exchange

        def exchanged(one: Path, other: Path) -> bool:
            count()
            done = exchange(one, other)
            count()
            return done

        safe._exchange = exchanged
        files = memory._engine.store.files
        for name in ("apply", "agree"):
            setattr(files, name, _around(getattr(files, name), count))
    await memory.workspace.sync(confirm=True)
    await memory.close()


def _around(call: Callable[..., Awaitable[Any]], count: Callable[[], None]) -> Callable[..., Awaitable[Any]]:
    async def counted(*args: Any, **kwargs: Any) -> Any:
        count()
        done = await call(*args, **kwargs)
        count()
        return done

    return counted


FACTS = {
    *(f"fact number {at}" for at in (0, 7)),
    "fact by hand",
    "fact number 3 too",
    "fact number 4",
    "fact from the index",
    "newer by hand",
    "a skill",
}


def whole(folder: Path) -> None:
    """No file is torn: every line that is not ours is there, in order, and every line of ours is one."""
    text = (folder / "ws/context/memory.md").read_bytes().decode()
    at = -1
    for line in PROSE:
        at = text.index(line, at + 1)
    for line in text.splitlines():
        assert not line.startswith("- fact") or re.search(r" <!-- jiyi:\w{26}( \S+=\S+)* -->$", line), line
    learnt = (folder / "ws/context/learnings.md").read_text(encoding="utf-8")
    assert "- a skill <!-- jiyi:" in learnt and learnt.endswith("-->\n")


async def check(folder: Path) -> None:
    whole(folder)
    await sync(folder, None)
    whole(folder)
    memory = await opened(folder)
    assert await memory.workspace.verify() == []
    found = [item.content for item in (await memory.list(user_id="mei")).items]
    assert sorted(found) == sorted(FACTS), found
    left = [path.name for path in (folder / "ws").rglob(".*") if path.suffix in (safe.NEW, safe.SWAP)]
    assert not left, left
    await memory.close()


def forked(work: Callable[[], Awaitable[None]]) -> int:
    """Run something in a process of its own. → how that ended"""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            asyncio.run(work())  # type: ignore[arg-type]
            code = 0
        except Exception:  # noqa: BLE001 - it is told, and the process ends
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitpid(process, 0)[1]


def main(folder: Path, stride: int) -> None:
    assert forked(lambda: prepare(folder / "begun")) == 0
    (folder / "begun").rename(folder / "template")  # so that what is copied from here is no copy, but moved
    step = killed = 0
    while True:
        here = folder / str(step)
        shutil.copytree(folder / "template", here)
        ended = forked(lambda here=here, step=step: sync(here, step))
        assert ended in (0, signal.SIGKILL), ended
        assert forked(lambda here=here: check(here)) == 0, f"after a kill at step {step}"
        shutil.rmtree(here)
        if ended == 0:
            break
        killed += 1
        step += stride
    print(f"killed at {killed} of {step} steps")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
