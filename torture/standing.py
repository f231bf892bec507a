"""Standing wishes and limits in a running process: imported, written by an update, restored from the archive, or
committed with an id that is older than all others, by this process and by another one. The next recall has each."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from jiyi import Memory
from jiyi.agents import recall
from jiyi.agents.recall import Conversation
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

from .stores import stores
from .trial import Trial

PROTECTIONS = {"the change feed": "the position of the change feed never changes"}
WAYS = ("import", "update", "restore", "older id")
LIMIT = "I am allergic to peanuts"
LONG_AGO_NS = 1_500_000_000 * 10**9
USERS = 40  # for each way, process and kind of store
OLDER = 30  # memories before and after


@dataclass(frozen=True, slots=True)
class Commit:
    """A limit that one process is to commit."""

    way: str
    user_id: str
    memory_id: str
    export: str


async def run(trial: Trial) -> None:
    with ExitStack() as off:
        if trial.without is not None:
            off.enter_context(patch("jiyi.areas.standing.feed_position", _standstill))
        async for kind, place in stores(trial):
            folder = trial.scratch / f"exports {kind}"
            folder.mkdir()
            other = await _start(place)
            try:
                async with _opened(place) as memory:
                    for number in range(trial.times(USERS)):
                        for way in WAYS:
                            for process in ("same", "other"):
                                user = f"{way} {process} {number}"
                                commit = await _prepared(memory, way, user, folder / f"{user}.jsonl")
                                await _tried(trial, memory, commit, None if process == "same" else other, kind)
            finally:
                assert other.stdin is not None
                other.stdin.close()
                await other.wait()


async def _standstill(memory: Memory, user_id: str) -> None:
    return None


def _opened(place: str | Path) -> Memory:
    return Memory.open(place, settings=load_settings(extraction={"enabled": False}), embedder=WordEmbedder(16))


@contextmanager
def _clock_behind() -> Iterator[None]:
    """Let new ids be older than all others, as those of a machine whose clock is behind."""
    with patch("jiyi.ids._last", 0), patch("jiyi.ids.time", SimpleNamespace(time_ns=lambda: LONG_AGO_NS)):
        yield


async def _prepared(memory: Memory, way: str, user: str, export: Path) -> Commit:
    """Create the memory that is to change, and newer ones."""
    text = LIMIT if way == "restore" else "I bought peanuts"
    [old] = (await memory.add(text, user_id=user, memory_type="fact")).memories
    if way == "restore":
        await memory.update(old.id, user_id=user, status="archived")
    if way == "import":
        with _clock_behind():
            async with _opened(export.with_suffix(".db")) as elsewhere:
                await elsewhere.add(LIMIT, user_id=user, memory_type="fact")
                await elsewhere.transfer.export(export, user_id=user)
    await memory.add([{"content": f"Door {at} is blue", "memory_type": "fact"} for at in range(OLDER)], user_id=user)
    return Commit(way, user, old.id, str(export))


async def _committed(memory: Memory, commit: Commit) -> None:
    match commit.way:
        case "import":
            await memory.transfer.import_memories(commit.export)
        case "update":
            await memory.update(commit.memory_id, user_id=commit.user_id, content=LIMIT)
        case "restore":
            await memory.restore(commit.memory_id, user_id=commit.user_id)
        case _:
            with _clock_behind():
                await memory.add(LIMIT, user_id=commit.user_id, memory_type="fact")


async def _tried(
    trial: Trial, memory: Memory, commit: Commit, other: asyncio.subprocess.Process | None, kind: str
) -> None:
    conversation = Conversation(memory=memory, user_id=commit.user_id)
    if await conversation.standing():
        trial.breaks("other", f"{kind}: a limit before anybody said it, {commit}")
    if other is None:
        await _committed(memory, commit)
    else:
        await _told(other, commit)
    process = "this process" if other is None else "another process"
    trial.counts[f"limits by {process}"] += 1
    standing = [one.content for one in await conversation.standing()]
    block = (await recall(memory, "Book a table for us", user_id=commit.user_id)).block
    if standing != [LIMIT] or LIMIT not in block:
        trial.breaks("lost", f"{kind}: {commit.way} by {process}: {standing}")


async def _start(place: str | Path) -> asyncio.subprocess.Process:
    """Start the other process, which commits what it reads from its standard input."""
    root = Path(__file__).parents[1]
    path = os.pathsep.join(filter(None, (str(root), str(root / "tests"), os.environ.get("PYTHONPATH"))))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", __name__, str(place)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


async def _told(other: asyncio.subprocess.Process, commit: Commit) -> None:
    assert other.stdin is not None and other.stdout is not None
    fields = [commit.way, commit.user_id, commit.memory_id, commit.export]
    other.stdin.write(json.dumps(fields).encode() + b"\n")
    await other.stdin.drain()
    assert await other.stdout.readline() == b"done\n", "the other process failed"


async def _work(place: str) -> None:
    async with _opened(place) as memory:
        while line := await asyncio.to_thread(sys.stdin.readline):
            await _committed(memory, Commit(*json.loads(line)))
            print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
