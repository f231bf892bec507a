"""Random changes, faults, and restarts of Jiyi and of engines: afterwards every engine equals the store, and at no time
does a search return a deleted memory or another user's."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from engine_servers import STARTS, EngineServer
from jiyi.errors import EngineError
from jiyi.settings import Settings
from support import LONG
from test_engines import engine_settings, engines_of, open_with, settled

USERS = ("mei", "bo", 'quote"s and 空格')
WORDS = ("green tea", "black coffee", "柏林的公寓", "大提琴", "the cello", "a red bicycle")
ENGINES = ("milvus", "elasticsearch", "mongodb")
RESTARTED = ENGINES if LONG else ("mongodb",)  # this one starts in no time


class Fault:
    """Makes the next write of an engine fail, before or after it was done."""

    def __init__(self, engine: Any) -> None:
        self.next: str | None = None
        engine.write, engine.load = partial(self._do, engine.write), partial(self._do, engine.load)

    async def _do(self, work: Callable[..., Awaitable[None]], *what: Any) -> None:
        fault, self.next = self.next, None
        if fault == "refused":
            raise EngineError("refused")
        await work(*what)
        if fault == "answer lost":
            raise EngineError("the answer was lost")


class EngineMachine(RuleBasedStateMachine):
    empty: Path
    engines: Settings
    servers: dict[str, EngineServer]  # that are restarted

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        shutil.copy(self.empty, self.folder / "memory.db")
        self.alive: dict[str, dict[str, str]] = {user: {} for user in USERS}
        self.number = 0
        self.restarted: set[str] = set()
        self.open()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def open(self) -> None:
        self.memory = open_with(self.folder / "memory.db", self.engines)
        self.run(self.memory.__aenter__())
        self.faults = {box.engine.name: Fault(box.engine) for box in engines_of(self.memory).outboxes}

    @rule(user=st.sampled_from(USERS), word=st.sampled_from(WORDS))
    def add(self, user: str, word: str) -> None:
        self.number += 1
        added = self.run(self.memory.add(f"{word} {self.number}", user_id=user)).memories[0]
        self.alive[user][added.id] = added.content

    @precondition(lambda self: any(self.alive.values()))
    @rule(data=st.data(), word=st.sampled_from(WORDS))
    def update(self, data: st.DataObject, word: str) -> None:
        user, memory_id = self.some(data)
        self.number += 1
        content = f"{word} changed {self.number}"
        self.run(self.memory.update(memory_id, user_id=user, content=content))
        self.alive[user][memory_id] = content

    @precondition(lambda self: any(self.alive.values()))
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        user, memory_id = self.some(data)
        self.run(self.memory.delete(memory_id, user_id=user))
        del self.alive[user][memory_id]

    @rule(user=st.sampled_from(USERS))
    def delete_all(self, user: str) -> None:
        self.run(self.memory.delete_all(user_id=user))
        self.alive[user] = {}

    def some(self, data: st.DataObject) -> tuple[str, str]:
        return data.draw(st.sampled_from([(user, one) for user, own in self.alive.items() for one in own]))

    def step(self, name: str) -> None:
        """Feed an engine; after a restart, the first request may fail on the old connection."""
        outbox = engines_of(self.memory).outbox(name)
        if name in self.restarted:
            self.restarted.remove(name)
            with contextlib.suppress(EngineError):
                self.run(outbox.step())
        self.run(outbox.step())

    @rule(name=st.sampled_from(ENGINES))
    def feed(self, name: str) -> None:
        self.step(name)

    @rule(name=st.sampled_from(RESTARTED), how=st.sampled_from([signal.SIGKILL, signal.SIGTERM]), data=st.data())
    def restart_engine(self, name: str, how: signal.Signals, data: st.DataObject) -> None:
        """An engine ends and starts again; meanwhile the store is changed and searched."""
        self.servers[name].end(how)
        user, word = data.draw(st.sampled_from(USERS)), data.draw(st.sampled_from(WORDS))
        self.add(user, word)
        if any(self.alive.values()) and data.draw(st.booleans()):
            self.delete(data)
        self.search(user, word)
        self.servers[name].start()
        self.restarted.add(name)

    @rule(name=st.sampled_from(ENGINES), fault=st.sampled_from(["refused", "answer lost"]))
    def feed_with_a_fault(self, name: str, fault: str) -> None:
        self.faults[name].next = fault
        with contextlib.suppress(EngineError):
            self.run(engines_of(self.memory).outbox(name).step())
        self.faults[name].next = None  # there may have been nothing to write

    @rule(name=st.sampled_from(ENGINES), user=st.sampled_from(USERS), back=st.integers(1, 50))
    def deliver_again(self, name: str, user: str, back: int) -> None:
        """Changes that were applied come again, as after a crash before the position was stored."""
        outbox = engines_of(self.memory).outbox(name)
        self.step(name)
        projections = self.memory._engine.store.projections
        state = self.run(projections.user(user)).get(name)
        if state is not None and state.applied is not None:
            earlier = replace(state, applied=max(state.applied - back, 0))
            assert self.run(projections.advance(outbox._owner, state, earlier))
            self.run(outbox._sync(user))

    @rule(name=st.sampled_from(ENGINES), user=st.sampled_from(USERS))
    def deliver_late(self, name: str, user: str) -> None:
        """A process that was suspended writes what it read before another one wrote more, and loses its lease."""
        store, outbox = self.memory._engine.store, engines_of(self.memory).outbox(name)
        self.add(user, WORDS[0])
        self.step(name)
        old = self.run(store.projected.page(user, "", self.memory._engine.embedder.id))
        state = self.run(store.projections.user(user))[name]
        first, *others = list(self.alive[user])
        self.run(self.memory.delete(first, user_id=user))
        del self.alive[user][first]
        if others:
            self.run(self.memory.update(others[0], user_id=user, content="written meanwhile"))
            self.alive[user][others[0]] = "written meanwhile"
        self.run(outbox.step())
        self.run(outbox.engine.write(user, old, ()))
        assert not self.run(store.projections.advance("another process", state, replace(state, applied=10**9)))
        self.run(outbox._lost(user))

    @rule()
    def restart(self) -> None:
        self.run(self.memory.close())
        self.open()

    @rule(user=st.sampled_from(USERS), word=st.sampled_from(WORDS))
    def search(self, user: str, word: str) -> None:
        found = self.run(self.memory.search(word, user_id=user, limit=20))
        shown = {hit.id: hit.content for hit in found.hits}
        assert shown.items() <= self.alive[user].items()
        for memory_id, content in self.alive[user].items():
            if content.startswith(word) and len(self.alive[user]) <= 20:
                assert memory_id in shown

    def teardown(self) -> None:
        try:
            for name in ENGINES:
                self.step(name)
            self.run(settled(self.memory))
            for report in self.run(self.memory.maintenance.verify_engines()):
                assert report.documents == sum(map(len, self.alive.values()))
            for user in USERS:  # the next example begins with empty engines
                self.run(self.memory.delete_all(user_id=user))
            self.run(settled(self.memory))
        finally:
            self.run(self.memory.close())
            self.loop.close()
            shutil.rmtree(self.folder)


@pytest.fixture
def restarted_servers(engine_urls: dict[str, str]) -> Iterator[dict[str, EngineServer]]:
    """Servers that no other test uses."""
    servers = {name: STARTS[name]() for name in RESTARTED}
    yield servers
    for server in servers.values():
        server.stop()


def test_engines_equal_the_store_after_anything(
    engine_urls: dict[str, str],
    restarted_servers: dict[str, EngineServer],
    empty_store: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jiyi.engines.CONFIRM_S", 0.0)
    EngineMachine.servers = restarted_servers
    urls = engine_urls | {name: server.url for name, server in restarted_servers.items()}
    EngineMachine.engines, EngineMachine.empty = engine_settings(urls), empty_store
    run_state_machine_as_test(
        EngineMachine,
        settings=settings(
            max_examples=200 if LONG else 5,
            stateful_step_count=20,
            deadline=None,
            phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take many minutes
            suppress_health_check=list(HealthCheck),
        ),
    )
