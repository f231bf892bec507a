"""What the test's other processes do. They are forked from a server that has loaded Jiyi already."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from jiyi import Memory, VersionConflict
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import Place

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    ["workers", "jiyi.memory", "jiyi.store.sqlite", "jiyi.store.postgres.postgres_database", "rjieba", "Stemmer"]
)


def crew(jobs: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]], *, timeout: float = 120) -> list[Any]:
    """Run each job in a process of its own, all from the same moment. → what they return, or their error's text"""
    start = processes.Barrier(len(jobs))
    pipes, running = [], []
    for work, arguments in jobs:
        mine, theirs = processes.Pipe(duplex=False)
        process = processes.Process(target=_work, args=(theirs, start, work, arguments))
        process.start()
        theirs.close()
        pipes.append(mine)
        running.append(process)
    told = []
    until = time.monotonic() + timeout
    for pipe, process in zip(pipes, running, strict=True):
        try:
            told.append(pipe.recv() if pipe.poll(max(until - time.monotonic(), 0)) else "it hangs")
        except EOFError:
            told.append("it died")
        process.join(5)
        if process.is_alive():
            process.kill()
        process.join()
        process.close()
        pipe.close()
    return told


def _work(pipe: Any, start: Barrier, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        start.wait(60)
        pipe.send(asyncio.run(work(*arguments)))
    except BaseException:  # noqa: BLE001 - the test shows it
        pipe.send(traceback.format_exc())


def memory_at(place: Place) -> Memory:
    return Memory.open(place, settings=load_settings(extraction={"enabled": False}), embedder=WordEmbedder())


def spelled(number: int) -> str:
    """A number as a word that shares no part with any other."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number)) + "z"


async def open_and_add(place: Place, text: str) -> None:
    async with memory_at(place) as memory:
        await memory.add(text, user_id="mei")


async def same_statements(place: Place, texts: Sequence[str]) -> int:
    """Say what all the others say. → how many of them this process was the first to say"""
    async with memory_at(place) as memory:
        return sum([(await memory.add(text, user_id="mei")).created for text in texts])


async def repeat_the_same(place: Place, trials: int) -> tuple[list[str], int]:
    """Say what all the others say, with a key and without. → the receipts of what had a key, and how much of what had
    none this process was the first to say"""
    receipts, first = [], 0
    async with memory_at(place) as memory:
        for trial in range(trials):
            user_id, word = f"user {trial % 3}", spelled(trial)
            receipts.append((await memory.add(f"keyed {word}", user_id=user_id, idempotency_key=f"key {trial}")).id)
            first += (await memory.add(f"plain {word}", user_id=user_id)).created
    return receipts, first


async def count_up(place: Place, memory_id: str, times: int) -> None:
    """Add one to a counter in a memory's metadata, again and again."""
    async with memory_at(place) as memory:
        for _ in range(times):
            while True:
                now = await memory.get(memory_id, user_id="mei")
                try:
                    n = now.metadata["n"] + 1
                    await memory.update(memory_id, user_id="mei", expected_version=now.version, metadata={"n": n})
                    break
                except VersionConflict:
                    continue


async def live(place: Place, number: int, seconds: float) -> list[str]:
    """Add and search for a while: own words are found at once, and what others wrote is never lost from sight.
    → the ids of what was acknowledged"""
    acknowledged: list[str] = []
    seen = 0
    async with memory_at(place) as memory:
        until = time.monotonic() + seconds
        turn = 0
        while time.monotonic() < until:
            word = spelled(number) + "q" + spelled(turn)
            receipt = await memory.add([f"common {word}", f"common shared {turn}"], user_id="mei")
            acknowledged += [made.id for made in receipt.memories]
            found = await memory.search(word, user_id="mei", search_mode="keyword", limit=3)
            assert [hit.content_preview for hit in found.hits] == [f"common {word}"], found
            everything = await memory.search("common", user_id="mei", limit=1)
            assert everything.total_found >= max(seen, len(set(acknowledged)))
            assert everything.searched == everything.total_found
            seen = everything.total_found
            turn += 1
    return acknowledged


async def see_each_other(place: Place, number: int, folder: Path, of: int) -> None:
    """Write, tell the others by an empty file, and find in the next search what each of them wrote."""
    async with memory_at(place) as memory:
        for turn in range(5):
            await memory.search("anything", user_id="mei")
            await memory.add(f"{spelled(turn)}turn from {number}", user_id="mei")
            (folder / f"{turn}-{number}").touch()
            until = time.monotonic() + 60
            while not all((folder / f"{turn}-{other}").exists() for other in range(of)):
                assert time.monotonic() < until
                await asyncio.sleep(0.01)
            found = await memory.search(f"{spelled(turn)}turn", user_id="mei", search_mode="keyword", limit=of + 1)
            expected = [f"{spelled(turn)}turn from {other}" for other in range(of)]
            assert sorted(hit.content_preview for hit in found.hits) == expected


async def ask_again(place: Place, number: int, folder: Path, of: int) -> None:
    """Ask the same question before and after each turn, in which everybody writes."""
    async with memory_at(place) as memory:
        for turn in range(5):
            for _ in range(2):
                await memory.search("turn", user_id="mei", limit=100)
            await memory.add(f"turn {turn} from {number}", user_id="mei")
            (folder / f"{turn}-{number}").touch()
            until = time.monotonic() + 60
            while not all((folder / f"{turn}-{other}").exists() for other in range(of)):
                assert time.monotonic() < until
                await asyncio.sleep(0.01)
            found = await memory.search("turn", user_id="mei", limit=100)
            there = {hit.content_preview for hit in found.hits}
            assert there >= {f"turn {before} from {other}" for before in range(turn + 1) for other in range(of)}
        use = (await memory.stats()).cache
        assert use is not None and use.answered


def write_until_killed(place: Place, log: Path, number: int) -> None:
    """Write down each acknowledged id, after `add` has returned, until killed."""

    async def write() -> None:
        async with memory_at(place) as memory:
            with log.open("a") as acknowledged:
                turn = 0
                while True:
                    said = [
                        {"role": "user", "content": f"process {number} turn {turn} part {part}"} for part in range(3)
                    ]
                    receipt = await memory.add(said, user_id="mei")
                    acknowledged.writelines(f"+{made.id}\n" for made in receipt.memories)
                    acknowledged.flush()
                    os.fsync(acknowledged.fileno())
                    if turn % 5 == 4:
                        await memory.update(receipt.memories[0].id, user_id="mei", content=f"changed {turn}")
                        acknowledged.write(f"?{receipt.memories[1].id}\n")  # from here on it may be gone
                        acknowledged.flush()
                        await memory.delete(receipt.memories[1].id, user_id="mei")
                        acknowledged.write(f"-{receipt.memories[1].id}\n")
                        acknowledged.flush()
                    turn += 1

    asyncio.run(write())


async def add_with_files(place: Place, folder: Path, name: str) -> int:
    """Say something again and again, with files that others write, too. → how often"""
    async with _with_files(place, folder) as memory:
        return sum([(await memory.add(f"{name} {at}", user_id="mei")).created for at in range(10)])


def _with_files(place: Place, folder: Path) -> Memory:
    settings = load_settings(extraction={"enabled": False})
    return Memory.open(place, settings=settings, embedder=WordEmbedder(64), workspace=folder, workspace_user="mei")


async def watch_files(place: Place, folder: Path, until: Path) -> int:
    """Keep files and index equal until there is such a file. → how many syncs did something"""
    told: list[object] = []
    async with _with_files(place, folder) as memory:
        watching = asyncio.create_task(memory.workspace.watch(report=told.append))
        until.with_suffix(".begun").touch()
        while not until.exists():
            await asyncio.sleep(0.05)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    return len(told)


async def add_and_change(place: Place, folder: Path, name: str, count: int) -> dict[str, str]:
    """Say things and change them, with files that others write, too; each is found at once. → texts by id"""
    said: dict[str, str] = {}
    async with _with_files(place, folder) as memory:
        for at in range(count):
            made = (await memory.add(f"{name} said {spelled(at)}", user_id="mei")).memories[0].id
            said[made] = f"{name} said {spelled(at)}"
            if at % 2:
                first = next(iter(said))
                said[first] = f"{name} changed {spelled(at)}"
                await memory.update(first, user_id="mei", content=said[first])
            for memory_id in list(said)[-2:]:
                now = (await memory.get(memory_id, user_id="mei")).content
                assert now == said[memory_id], f"{now!r} instead of {said[memory_id]!r}"
            await memory.workspace.sync()
    return said


async def do_jobs(place: Place) -> list[str]:
    """Work until there is nothing left to do. → what this process' extractor was given"""
    from extractors import SpelledOut

    model = SpelledOut()
    settings = load_settings(jobs={"in_process": False, "concurrency": 3})
    async with Memory.open(place, settings=settings, embedder=WordEmbedder(), extractor=model) as memory:
        await memory.jobs.work(until_idle=True)
    return [message.text for unit in model.seen for message in unit.messages]
