"""Where one memory may be used: each process model works or raises an error that says what to do, and none hangs.
`test_the_table_of_the_documentation_holds` tries each cell of docs/processes.md; `test_fork` has more on forks."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import jiyi.sync
from jiyi import Memory, StoreError
from jiyi.testing import WordEmbedder
from support import Place, contents
from test_fork import forked

PATIENCE_S = 60
DOCUMENT = Path(__file__).parents[1] / "docs" / "processes.md"


def add_in_process(path: str, number: int) -> None:
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
        memory.add(f"likes tea number {number}", user_id="mei")


@pytest.mark.parametrize("processes", [1, 2])
def test_spawned_processes_open_a_memory_of_their_own(path: Path, processes: int) -> None:
    context = multiprocessing.get_context("spawn")
    with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
        running = [context.Process(target=add_in_process, args=(str(path), at)) for at in range(processes)]
        for process in running:
            process.start()
        for process in running:
            process.join(PATIENCE_S)
            assert process.exitcode == 0
        assert memory.count(user_id="mei") == processes, "all see what each has written"


def test_threads_share_a_synchronous_memory(place: Place) -> None:
    with jiyi.sync.Memory.open(place, embedder=WordEmbedder()) as memory, ThreadPoolExecutor(8) as threads:
        added = [threads.submit(memory.add, f"likes tea number {at}", user_id="mei") for at in range(16)]
        assert [future.result(PATIENCE_S).created for future in added] == [1] * 16
        found = [threads.submit(memory.search, "tea", user_id="mei", limit=3) for _ in range(16)]
        assert {len(future.result(PATIENCE_S)) for future in found} == {3}


async def test_another_event_loop_gets_an_error_at_once(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        await memory.add("likes tea", user_id="mei")
        for work in (
            lambda: memory.search("tea", user_id="mei"),
            lambda: memory.add("likes coffee", user_id="mei"),
            lambda: memory.observe("I like milk", user_id="mei"),
        ):
            with pytest.raises(StoreError, match=r"another event loop.*jiyi\.sync"):
                await asyncio.wait_for(asyncio.to_thread(lambda work=work: asyncio.run(work())), PATIENCE_S)
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]


async def test_each_event_loop_may_open_a_memory_of_its_own(place: Place) -> None:
    async def use() -> int:
        async with Memory.open(place, embedder=WordEmbedder()) as memory:
            await memory.add("likes coffee", user_id="mei")
            return await memory.count(user_id="mei")

    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        await memory.add("likes tea", user_id="mei")
        assert await asyncio.wait_for(asyncio.to_thread(lambda: asyncio.run(use())), PATIENCE_S) == 2
        assert await memory.count(user_id="mei") == 2


def use_shared(memory: Any) -> None:
    """Use a memory that somebody else has opened, an asynchronous one in an event loop of its own."""
    if isinstance(memory, jiyi.sync.Memory):
        memory.add("likes tea", user_id="mei")
        assert contents(memory.search("tea", user_id="mei"))[0] == "likes tea"
    else:
        asyncio.run(asyncio.wait_for(memory.search("tea", user_id="mei"), PATIENCE_S))


def use_in_a_loop(memory: Any) -> None:
    async def use() -> None:
        use_shared(memory)

    asyncio.run(use()) if isinstance(memory, jiyi.sync.Memory) else use_shared(memory)


def use_own(path: Path, face: str) -> None:
    async def use() -> None:
        async with Memory.open(path, embedder=WordEmbedder()) as memory:
            await memory.add("likes coffee", user_id="mei")
            assert "likes coffee" in contents(await memory.search("coffee", user_id="mei"))

    if face == "Memory":
        asyncio.run(asyncio.wait_for(use(), PATIENCE_S))
    else:
        with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as memory:
            use_shared(memory)


def in_threads(work: Callable[[], None]) -> str:
    with ThreadPoolExecutor(2) as threads:
        outcomes = [threads.submit(work).exception(PATIENCE_S) for _ in range(2)]
    assert len({type(error) for error in outcomes}) == 1, outcomes
    return "works" if outcomes[0] is None else f"{type(outcomes[0]).__name__}: {outcomes[0]}"


def in_spawned_processes(path: Path, face: str) -> str:
    context = multiprocessing.get_context("spawn")
    running = [context.Process(target=use_own, args=(path, face)) for _ in range(2)]
    for process in running:
        process.start()
    for process in running:
        process.join(PATIENCE_S)
    return "works" if [process.exitcode for process in running] == [0, 0] else "failed"


def table() -> dict[tuple[str, str], str]:
    """Return what docs/processes.md says, by process model and class."""
    lines = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)[:5]
    cells = {(model, "Memory"): first for model, first, _ in lines} | {
        (model, "sync"): last for model, _, last in lines
    }
    return {cell: cells[cell[0], "Memory"] if told == "the same" else told for cell, told in cells.items()}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize(("model", "face"), table().keys())
def test_the_table_of_the_documentation_holds(model: str, face: str, tmp_path: Path) -> None:
    path, loop = tmp_path / "memory.db", asyncio.new_event_loop()
    own = (path, face)
    if model == "`fork`, opened after it":
        outcome = forked(lambda: use_own(*own) or "works")
    elif model == "two processes, `spawn`":
        outcome = in_spawned_processes(*own)
    elif model == "threads" and face == "Memory":
        outcome = in_threads(lambda: use_own(*own))
    else:
        sync = jiyi.sync.Memory.open(path, embedder=WordEmbedder()) if face == "sync" else None
        opened = Memory.open(tmp_path / "asynchronous.db", embedder=WordEmbedder())
        shared = sync or loop.run_until_complete(opened.__aenter__())
        if model == "`fork` after opening":
            outcome = forked(lambda: use_shared(shared))
        else:
            outcome = in_threads(lambda: (use_in_a_loop if model == "two event loops" else use_shared)(shared))
        sync.close() if sync else loop.run_until_complete(opened.close())
    loop.close()
    told = table()[model, face]
    assert outcome.startswith("StoreError: " if told.startswith("`StoreError`") else "works"), (told, outcome)
