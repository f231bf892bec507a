"""External engines: Milvus, OpenSearch or Elasticsearch, and MongoDB, fed from the change feed.

None of their packages is imported unless an engine is set up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..errors import EngineError, JiyiError, SettingsError
from ..metrics import Meter
from ..models import utc_now
from ..settings import EngineSettings, Settings
from ..store.store import Store
from ..store.upkeep.engine_rows import EngineState
from .breaker import Breaker
from .outbox import GRACE_S, Outbox, Progress
from .verify import EngineReport, verify, verify_some

if TYPE_CHECKING:
    from .base import Engine
    from .reading import EngineSearch

CONFIRM_S = 5.0  # for which a deletion waits for the engines
POLL_S = 0.05
FIRST_SAMPLE_S, SAMPLE_EVERY_S = 60.0, 3600.0  # a process that feeds an engine compares some users with the store
SAMPLED_USERS = 20
RESUME_S = 30.0
CANCEL_S = 5.0  # in which a task that is cancelled has cleaned up

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class Engines:
    """The engines of a store, and the processes that feed them."""

    store: Store
    outboxes: Sequence[Outbox]
    search: EngineSearch | None
    makers: Mapping[str, Callable[[], Engine]]  # of a second connection, to engines that have generations
    sampled: dict[str, EngineReport] = field(default_factory=dict)  # the last comparison of some users, by engine
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Feed the engines in the background, and compare a sample of them with the store now and then."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(work, name=f"jiyi-{outbox.engine.name}")
                for outbox in self.outboxes
                for work in (outbox.run(), self._sample_regularly(outbox), self._resume_rebuild(outbox.name))
            ]

    async def _sample_regularly(self, outbox: Outbox) -> None:
        pause = FIRST_SAMPLE_S
        while True:
            await asyncio.sleep(pause)
            if outbox.is_feeding:
                try:
                    report = await verify_some(self.store, outbox, SAMPLED_USERS)
                except JiyiError:  # the outbox meets and shows it too
                    continue
                except Exception:
                    logger.exception("%s could not be compared with the store", outbox.engine.name)
                    continue
                self.sampled[outbox.engine.name] = report
                if not report.sound:
                    logger.warning("%s differs from the store: %s", outbox.engine.name, report.summary)
                pause = SAMPLE_EVERY_S

    def wake(self) -> None:
        for outbox in self.outboxes:
            outbox.wake()

    async def stop(self) -> None:
        while rest := [task for task in self._tasks if not task.done()]:
            for task in rest:
                task.cancel()
            # Once more if it was lost, as `asyncio.wait_for` of Python 3.11 can do, which MongoDB's driver uses.
            await asyncio.wait(rest, timeout=CANCEL_S)
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
        """Return the state of each configured engine; its problem may be one that only this process has met."""
        mine = {outbox.engine.name for outbox in self.outboxes}
        states = [state for state in await self.store.projections.states() if state.name in mine]
        return [replace(state, problem=state.problem or self._problem(state.name)) for state in states]

    def _problem(self, name: str) -> str | None:
        """Return the last failure of a search, or what the last comparison has found."""
        breaker = self.search.breakers.get(name) if self.search is not None else None
        if breaker is not None and breaker.problem is not None:
            return breaker.problem
        report = self.sampled.get(name)
        if report is None or report.sound:
            return None
        return f"differs from the store: {report.summary}; repair it with `jiyi verify --engines --repair`"

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
        """Load everything into the next generation, compare it, and put it in the place of the present one. Searches
        go on meanwhile; an interrupted rebuild is continued by the next one, or by a process that feeds the engine."""
        outbox = self.outbox(name)
        if name not in self.makers:  # its documents are replaced in place
            await outbox.step(progress)
            return await verify(self.store, outbox, full=True, repair=True, progress=progress)
        projections = self.store.projections
        if not await projections.generation(name):
            await outbox.step(progress)  # there is none yet
        await projections.begin_rebuild(name)
        new = Outbox(self.store, self.makers[name](), outbox.model, rebuilds=True)
        try:
            while not await new.step(progress):
                if not await projections.is_rebuilding(name):  # another process has done it
                    return await verify(self.store, outbox, progress=progress)
                await asyncio.sleep(POLL_S)
            report = await verify(self.store, new, repair=True, progress=progress)
            if report.sound and await new.step() and await projections.switch(name, new.owner):
                await new.engine.publish()
                outbox.look_again()
                outbox.wake()
                await asyncio.sleep(GRACE_S)
                await new.engine.tidy()
            return report
        finally:
            await new.close()

    async def _resume_rebuild(self, name: str) -> None:
        """Continue a rebuild whose process has ended."""
        while True:
            await asyncio.sleep(RESUME_S)
            with contextlib.suppress(JiyiError):
                if await self.store.projections.is_rebuilding(name, utc_now()):
                    logger.info("the rebuild of %s is continued", name)
                    await self.rebuild(name)

    async def verify(
        self, *, full: bool = False, repair: bool = False, progress: Progress | None = None
    ) -> list[EngineReport]:
        """Compare the documents of every engine with the memories, by user."""
        reports = [
            await verify(self.store, outbox, full=full, repair=repair, progress=progress) for outbox in self.outboxes
        ]
        self.sampled |= {report.engine: report for report in reports}
        return reports


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
    makers = _makers(given, embedder)
    outboxes = [Outbox(store, make(), embedder.id if name == "milvus" else "") for name, make in makers.items()]
    search = None
    if given.vectors == "milvus":
        from .elasticsearch import Elasticsearch
        from .milvus import Milvus
        from .reading import EngineSearch

        # Not those of the outboxes, which may be in another generation for a moment.
        vectors, words = Milvus(given, embedder.id), Elasticsearch(given)
        breakers = {one.name: Breaker(one.name, given.search_timeout_s, meter) for one in (vectors, words)}
        search = EngineSearch(store, vectors, words, model=embedder.id, above=given.above, breakers=breakers)
    again = {name: make for name, make in makers.items() if name != "mongodb"}
    return Engines(store=store, outboxes=outboxes, search=search, makers=again)


def _makers(given: EngineSettings, embedder: Embedder) -> dict[str, Callable[[], Engine]]:
    """Return what makes each engine that the settings name."""
    found: dict[str, Callable[[], Engine]] = {}
    if given.milvus_url:
        from .milvus import Milvus

        found["milvus"] = partial(Milvus, given, embedder.id)
    if given.elasticsearch_url:
        from .elasticsearch import Elasticsearch

        found["elasticsearch"] = partial(Elasticsearch, given)
    if given.mongodb_url:
        from .mongodb import MongoDB

        found["mongodb"] = partial(MongoDB, given)
    return found
