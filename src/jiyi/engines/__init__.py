"""External engines: Milvus, OpenSearch or Elasticsearch, and MongoDB, fed from the change feed.

None of their packages is imported unless an engine is set up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..errors import EngineError, SettingsError
from ..metrics import Meter
from ..settings import EngineSettings, Settings
from ..store.store import Store
from ..store.upkeep.engine_rows import EngineState
from .outbox import Outbox, Progress
from .verify import EngineReport, verify

if TYPE_CHECKING:
    from .base import Engine
    from .reading import EngineSearch

CONFIRM_S = 5.0  # for which a deletion waits for the engines
POLL_S = 0.05


@dataclass(slots=True, kw_only=True)
class Engines:
    """The engines of a store, and the processes that feed them."""

    store: Store
    outboxes: Sequence[Outbox]
    search: EngineSearch | None
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Feed the engines in the background."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(outbox.run(), name=f"jiyi-{outbox.engine.name}") for outbox in self.outboxes
            ]

    def wake(self) -> None:
        for outbox in self.outboxes:
            outbox.wake()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def close(self) -> None:
        await self.stop()
        for outbox in self.outboxes:
            await outbox.close()
        if self.search is not None:
            await self.search.close()

    async def catch_up(self) -> None:
        """Bring every engine up to date once; raises the first `EngineError`."""
        for outbox in self.outboxes:
            await outbox.step()

    async def confirm(self, user_id: str) -> list[str]:
        """Wait until the engines have all changes of a user; return a note for each that does not confirm in time."""
        tip = await self.store.projections.tip(user_id)
        deadline = monotonic() + CONFIRM_S
        while True:
            self.wake()
            states = await self.store.projections.user(user_id)
            behind = []
            for outbox in self.outboxes:
                state = states.get(outbox.engine.name)
                if state is None:
                    done = not tip
                else:
                    done = not state.erase and state.applied is not None and state.applied >= tip
                if not done:
                    behind.append(outbox.engine.name)
            if not behind or monotonic() > deadline:
                return [f"{name} has not confirmed it yet; it is repeated until it does" for name in behind]
            await asyncio.sleep(POLL_S)

    async def states(self) -> list[EngineState]:
        """Return the state of each configured engine."""
        mine = {outbox.engine.name for outbox in self.outboxes}
        return [state for state in await self.store.projections.states() if state.name in mine]

    async def problems(self) -> dict[str, str | None]:
        """Ask each engine whether it answers; return its problem, or None."""
        found: dict[str, str | None] = {}
        for outbox in self.outboxes:
            try:
                found[outbox.engine.name] = await outbox.problem()
            except EngineError as error:
                found[outbox.engine.name] = str(error)
        return found

    def outbox(self, name: str) -> Outbox:
        for one in self.outboxes:
            if one.engine.name == name:
                return one
        known = ", ".join(one.engine.name for one in self.outboxes)
        raise SettingsError(f"engines: {name} is not set up; set up are: {known}")

    async def rebuild(self, name: str, progress: Progress | None = None) -> EngineReport:
        """Drop an engine's documents and load them anew. An interrupted rebuild is continued by the next one."""
        outbox = self.outbox(name)
        if not any(one.loading or not one.seen for one in await self.states() if one.name == name):
            await outbox.engine.drop()  # else a rebuild was interrupted
            await self.store.projections.reset(name)
            outbox.renew()
        await outbox.finish(progress)
        return await verify(self.store, outbox, progress)

    async def verify(self, progress: Progress | None = None) -> list[EngineReport]:
        """Compare the documents of every engine with the memories, by user."""
        return [await verify(self.store, outbox, progress) for outbox in self.outboxes]


def open_engines(store: Store, embedder: Embedder, settings: Settings, meter: Meter) -> Engines | None:
    """Return the engines that the settings name, or None without any. Nothing is connected yet."""
    given = settings.engines
    if given.words != "builtin" and given.vectors == "builtin":
        raise SettingsError('engines.words: "elasticsearch" needs engines.vectors = "milvus"')
    if given.vectors != "builtin" and given.words == "builtin":
        raise SettingsError('engines.vectors: "milvus" needs engines.words = "elasticsearch"')
    if given.vectors != "builtin" and not (given.milvus_url and given.elasticsearch_url):
        raise SettingsError("engines: searching in them needs engines.milvus_url and engines.elasticsearch_url")
    if not (given.milvus_url or given.elasticsearch_url or given.mongodb_url):
        return None
    engines = _engines(given, embedder)
    outboxes = [Outbox(store, engine, embedder.id if engine.name == "milvus" else "") for engine in engines]
    search = None
    if given.vectors == "milvus":
        from .elasticsearch import Elasticsearch
        from .milvus import Milvus
        from .reading import EngineSearch

        # Connections of their own: a search may still read a generation that is no longer written.
        readers = _engines(given, embedder)
        (vectors,) = [one for one in readers if isinstance(one, Milvus)]
        (words,) = [one for one in readers if isinstance(one, Elasticsearch)]
        search = EngineSearch(store, vectors, words, embedder.id, given.above, meter)
    return Engines(store=store, outboxes=outboxes, search=search)


def _engines(given: EngineSettings, embedder: Embedder) -> list[Engine]:
    """Return new connections, which are opened when they are first used."""
    found: list[Engine] = []
    if given.milvus_url:
        from .milvus import Milvus

        url = given.milvus_url.get_secret_value()
        found.append(Milvus(url, given.prefix, embedder.id, given.timeout_s))
    if given.elasticsearch_url:
        from .elasticsearch import Elasticsearch

        found.append(Elasticsearch(given.elasticsearch_url.get_secret_value(), given.prefix, given.timeout_s))
    if given.mongodb_url:
        from .mongodb import MongoDB

        found.append(MongoDB(given.mongodb_url.get_secret_value(), given.prefix, given.timeout_s))
    return found
