"""Forked processes, as those of gunicorn with `preload` and of Celery: they get an answer or an error, and never wait
for threads that a fork does not copy."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import pytest

import jiyi
import jiyi.sync
from jiyi import Memory, StoreError
from jiyi.embed import BuiltinEmbedder
from jiyi.reader import WEIGHTS, Passage
from jiyi.reader.onnx_reader import OnnxReader
from jiyi.testing import WordEmbedder
from rest import running
from support import Place, contents

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),  # Python warns of threads since 3.12
]
PATIENCE_S = 30
OTHER_PROCESS = "opened before this process was forked"


def forked(work: Callable[[], object]) -> str:
    """Run something in a forked process; return its result or error as text. One that hangs is ended by a signal."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        signal.alarm(PATIENCE_S)
        try:
            told = str(work())
        except BaseException as error:  # noqa: BLE001 - it is told to the test
            told = f"{type(error).__name__}: {error}"
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as answer:
        told = answer.read()
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return told if code == 0 else f"ended with {code}"


def test_a_synchronous_memory_of_another_process_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    with jiyi.sync.Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        memory.add("likes tea", user_id="mei")
        for work in (
            lambda: memory.search("tea", user_id="mei"),
            lambda: memory.add("likes coffee", user_id="mei"),
            lambda: memory.observe("I like milk", user_id="mei"),
            memory.jobs.counts,
            memory.sessions.flush,
        ):
            told = forked(work)
            assert told.startswith("StoreError") and OTHER_PROCESS in told
        assert forked(memory.close) == "None"
        assert contents(memory.search("tea", user_id="mei")) == ["likes tea"]
        assert memory.count(user_id="mei") == 1


def test_a_pool_of_processes_gets_the_error(tmp_path: Path) -> None:
    with jiyi.sync.Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        queue = multiprocessing.get_context("fork").SimpleQueue()

        def work() -> None:
            signal.alarm(PATIENCE_S)
            try:
                memory.count(user_id="mei")
            except StoreError as error:
                queue.put(str(error))

        process = multiprocessing.get_context("fork").Process(target=work)
        process.start()
        process.join()
        assert process.exitcode == 0
        assert OTHER_PROCESS in queue.get()


def test_an_asynchronous_memory_of_another_process_is_an_error(place: Place) -> None:
    loop = asyncio.new_event_loop()
    memory = loop.run_until_complete(Memory.open(place, embedder=WordEmbedder()).__aenter__())
    try:
        loop.run_until_complete(memory.add("likes tea", user_id="mei"))
        loop.run_until_complete(memory.observe("I like milk", user_id="mei"))
        for work in (
            lambda: memory.search("tea", user_id="mei"),
            lambda: memory.add("likes coffee", user_id="mei"),
            lambda: memory.observe("I like cream", user_id="mei"),
            memory.sessions.flush,
            memory.users,
        ):
            told = forked(lambda work=work: asyncio.run(work()))
            assert told.startswith("StoreError") and OTHER_PROCESS in told
        assert forked(lambda: asyncio.run(memory.close())) == "None"
        loop.run_until_complete(memory.sessions.flush())
        found = loop.run_until_complete(memory.list(user_id="mei"))
        assert sorted(item.content for item in found.items if "milk" in item.content) == ["I like milk"]
    finally:
        loop.run_until_complete(memory.close())
        loop.close()


def test_a_memory_that_is_opened_after_the_fork_works(place: Place) -> None:
    unopened = Memory.open(place, embedder=WordEmbedder())

    async def use() -> list[str]:
        async with unopened as memory:
            await memory.add("likes coffee", user_id="mei")
            return sorted(contents(await memory.search("likes", user_id="mei")))

    with jiyi.sync.Memory.open(place, embedder=WordEmbedder()) as memory:
        memory.add("likes tea", user_id="mei")
    assert forked(lambda: asyncio.run(use())) == "['likes coffee', 'likes tea']"


def test_a_file_that_was_open_at_the_fork_is_not_opened_again(tmp_path: Path) -> None:
    """SQLite would believe to hold locks that it does not: the log would be removed while it is written."""

    def use(path: Path) -> int:
        with jiyi.sync.Memory.open(path, embedder=WordEmbedder()) as own:
            own.add("likes coffee", user_id="mei")
            return own.count(user_id="mei")

    with jiyi.sync.Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
        told = forked(lambda: use(tmp_path / "memory.db"))
        assert told.startswith("StoreError") and "open when this process was forked" in told
        assert forked(lambda: use(tmp_path / "other.db")) == "1"
        assert memory.count(user_id="mei") == 0


@contextmanager
def busy_with(work: Callable[[], object]) -> Iterator[None]:
    """Do something over and over in another thread."""
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            work()

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_fork_during_embedding_leaves_the_embedder_usable() -> None:
    embedder = BuiltinEmbedder()
    asyncio.run(embedder.embed_query("ready"))
    texts = [f"number {at} of many sentences" for at in range(8)]
    with busy_with(lambda: asyncio.run(embedder.embed_documents(texts))):
        for _ in range(5):
            sleep(0.02)
            assert forked(lambda: len(asyncio.run(embedder.embed_query("after the fork")))) == "512"


@pytest.mark.parametrize(
    ("question", "statement"), [("Where do I live?", "I live in Oslo."), ("我住在哪里？", "我住在杭州。")]
)
def test_a_fork_during_reading_leaves_the_reader_usable(question: str, statement: str) -> None:
    reader = OnnxReader(WEIGHTS)
    passages = [Passage(statement)] * 8
    [alone] = reader.answers(question, passages[:1])
    with busy_with(lambda: reader.answers(question, passages)):
        for _ in range(5):
            sleep(0.02)
            assert forked(lambda: reader.answers(question, passages[:1])) == str([alone])


def test_a_client_of_another_process_is_an_error(tmp_path: Path) -> None:
    with running(tmp_path / "memory.db") as server:
        loop = asyncio.new_event_loop()
        memory = loop.run_until_complete(Memory.open(server.url).__aenter__())
        told = forked(lambda: asyncio.run(memory.count(user_id="mei")))
        assert told.startswith("StoreError") and OTHER_PROCESS in told
        assert forked(lambda: asyncio.run(memory.close())) == "None"
        loop.run_until_complete(memory.close())
        loop.close()


def test_a_process_that_leaves_the_block_of_another_one_ends(tmp_path: Path) -> None:
    """`with` closes the memory in both processes."""

    def leave() -> None:
        with jiyi.sync.Memory.open(tmp_path / "memory.db", embedder=WordEmbedder()) as memory:
            memory.add("likes tea", user_id="mei")
            if os.fork() == 0:
                signal.alarm(PATIENCE_S)
                sys.exit(0)
            assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
            assert memory.count(user_id="mei") == 1

    assert forked(leave) == "SystemExit: 0" + "None"  # of the inner process, then of the outer one
