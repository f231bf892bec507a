"""Where one memory may be used: each process model works or raises an error that says what to do, and none hangs.
`test_fork` has the forks, and the table is in docs/processes.md."""

from __future__ import annotations

import asyncio
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import jiyi.sync
from jiyi import Memory, StoreError
from jiyi.testing import WordEmbedder
from support import Place, contents

PATIENCE_S = 60


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
