"""`jiyi.sync.Memory`: the same verbs for synchronous callers."""

from __future__ import annotations

import asyncio
import inspect
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import jiyi
import jiyi.sync
from jiyi import NotAStore, NotFound, StoreError
from jiyi.engine import runtime
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import Place, contents, verbs


def open_at(place: Place, embedder: Any = None) -> jiyi.sync.Memory:
    return jiyi.sync.Memory.open(place, settings=load_settings(), embedder=embedder or WordEmbedder())


def test_every_verb_has_the_same_signature_and_is_not_a_coroutine() -> None:
    for name, verb in verbs(jiyi.Memory).items():
        area, _, own_name = name.rpartition(".")
        other = getattr(getattr(jiyi.sync, area.title()) if area else jiyi.sync.Memory, own_name)
        assert inspect.signature(verb).parameters == inspect.signature(other).parameters, name
        assert not inspect.iscoroutinefunction(other), name
        assert other.__doc__, name


def test_every_verb_works(tmp_path: Path) -> None:
    with open_at(tmp_path / "memory.db") as memory:
        made = memory.add("likes tea", user_id="mei").memories[0]
        assert contents(memory.search("tea", user_id="mei")) == ["likes tea"]
        assert memory.get(made.id, user_id="mei").content == "likes tea"
        assert [found.id for found in memory.get_many([made.id], user_id="mei")] == [made.id]
        assert [found.id for found in memory.list(user_id="mei").items] == [made.id]
        assert memory.count(user_id="mei") == 1
        assert memory.update(made.id, user_id="mei", content="likes coffee").version == 2
        assert memory.restore(made.id, user_id="mei").content == "likes tea"
        assert len(memory.history(made.id, user_id="mei")) == 3
        assert memory.usage.groups(user_id="mei") == {}
        assert memory.users() == ["mei"]
        assert memory.stats().memories == 1
        assert memory.maintenance.reindex() == 0
        assert memory.delete(made.id, user_id="mei").memories == 1
        with pytest.raises(NotFound):
            memory.get(made.id, user_id="mei")
        assert memory.delete_all("mei").memories == 0
        assert runtime(memory).settings.user == "default"


def test_closing_ends_its_thread_and_twice_does_no_harm(place: Place) -> None:
    before = threading.active_count()
    memory = open_at(place)
    memory.add("likes tea", user_id="mei")
    assert threading.active_count() > before
    memory.close()
    memory.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "jiyi"]
    with pytest.raises(StoreError, match="is not open"):
        memory.count(user_id="mei")


def test_a_refused_file_leaves_no_thread_behind(tmp_path: Path) -> None:
    (tmp_path / "thing").write_text("Dear diary, " * 500)
    with pytest.raises(NotAStore):
        open_at(tmp_path / "thing")
    assert not [thread for thread in threading.enumerate() if thread.name == "jiyi"]


def test_many_threads_may_use_one_memory(place: Place) -> None:
    with open_at(place) as memory, ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda number: memory.add(f"fact {number}", user_id="mei").created, range(40)))
        assert sum(made) == 40
        found = list(threads.map(lambda _: memory.search("fact", user_id="mei").total_found, range(16)))
        assert found == [40] * 16


async def test_it_can_be_used_inside_a_running_loop(place: Place) -> None:
    """A notebook has one; the engine's is another."""
    with open_at(place) as memory:
        assert memory.add("likes tea", user_id="mei").created == 1


class Slow(WordEmbedder):
    """Takes a while, as an endpoint does."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        self.asked.set()
        await asyncio.sleep(0.5)
        return await super().embed_documents(texts)


def test_closing_while_another_thread_works_does_not_leave_it_waiting_for_ever(path: Path) -> None:
    """It gets its answer, or an error."""
    embedder = Slow()
    memory = open_at(path, embedder)
    ended: list[object] = []

    def work() -> None:
        try:
            ended.append(memory.add("likes tea", user_id="mei").created)
        except (StoreError, asyncio.CancelledError) as error:
            ended.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert embedder.asked.wait(60)
    memory.close()
    thread.join(60)
    assert ended, "it still waits"


def test_a_program_that_does_not_close_it_ends_all_the_same(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom jiyi.sync import Memory\nfrom jiyi.testing import WordEmbedder\n"
        "memory = Memory.open(sys.argv[1], embedder=WordEmbedder())\n"
        "memory.add('likes tea', user_id='mei')\nprint('end')\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "memory.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("end\n", "", 0)
