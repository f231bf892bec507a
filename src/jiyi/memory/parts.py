"""What all verbs share: the store, the embedder, the settings, the worker, and when they are opened and closed."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ..cache import resolve as resolve_caches
from ..embed import Embedder
from ..keep.compress import Compressor
from ..keep.policies import Policies
from ..keep.upkeep import Upkeep
from ..llm import resolve
from ..metrics import Meter
from ..read.accesses import Accesses
from ..read.cached import Answers, Period
from ..read.presets import PRESETS, TYPE_PRIORITIES
from ..read.search import Ranking
from ..write.builtin import BuiltinExtractor
from ..write.change import change
from ..write.flow import Flow
from ..write.index import KeywordRules
from ..write.later import do
from ..write.worker import Worker

if TYPE_CHECKING:
    from ..files.keeper import Files
    from ..settings import Settings
    from ..store.base import Store
    from ..write.drafts import Extractor


class Parts:
    def __init__(
        self, store: Store, embedder: Embedder, settings: Settings, extractor: Extractor | None = None
    ) -> None:
        self.settings = settings
        self.where: str | None = None  # as it was given to `open`; None if the settings said it
        self.meter = Meter()
        self._store = store
        self._embedder = embedder
        preset = settings.search.preset
        self._ranking = Ranking(
            preset=preset,
            weights=PRESETS[preset].but(settings.search),
            priorities=TYPE_PRIORITIES,
            half_lives={
                name: policy.half_life_days
                for name, policy in settings.maintenance.types.items()
                if policy.half_life_days is not None
            },
        )
        self._lifetimes = tuple(sorted(Policies(settings=settings.maintenance).lifetimes.items()))
        self._rules = KeywordRules(settings.extraction.max_keywords_per_memory, settings.extraction.min_keyword_weight)
        self._change = partial(change, store=store, embedder=embedder, rules=self._rules)
        self._llm = resolve(settings, store, self.meter)
        self._expander = None
        if self._llm is not None and settings.search.expand_with_llm:
            from ..llm.keywords import Expander

            self._expander = Expander(self._llm)
        judge = None
        if self._llm is not None:
            from ..write.llm import LlmExtractor, LlmJudge  # their checks take a while to import

            extractor = extractor or LlmExtractor(self._llm)
            judge = LlmJudge(self._llm)
        self._flow = Flow(
            store=store,
            embedder=embedder,
            keyword_rules=self._rules,
            settings=settings.extraction,
            extractors=(BuiltinExtractor(),),
            slow_extractor=extractor,
            judge=judge,
            meter=self.meter,
        )
        self._turns: deque[Callable[[], Awaitable[Any]]] = deque()  # observed, to be taken in
        self._observing: asyncio.Task[None] | None = None
        self._accepted = self._failed = 0
        self._worker: Worker | None = None
        self._working: asyncio.Task[None] | None = None
        caches = resolve_caches(settings)
        period = Period.of(settings.cache.ttl_s, self._ranking.weights.half_life_days)
        self._accesses = Accesses(store, on=settings.recalls.enabled, keep=settings.recalls.max_per_user)
        self._files: Files | None = None  # of a workspace, if there is one
        self._answers = Answers(store, embedder, self._ranking, self._accesses, caches, period)

    async def _start(self) -> None:
        """Open the database: `async with` and `await` do it. Jobs that were left behind are gone on with."""
        await self._store.start()
        if self._files is not None:
            try:
                await self._files.start(self._store, self._embedder, self._rules)
            except BaseException:
                await self._store.close()
                raise
        if self._does_jobs and await self._store.next_due() is not None:
            self._work()

    async def close(self) -> None:
        """Write what is pending, and let go of the database. Jobs that are not done stay in it."""
        if self._working is not None:
            self._working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._working
            self._working = None
        if self._llm is not None:
            await self._llm.close()
        if self._files is not None:
            await self._files.close()
        await self._accesses.close()
        await self._answers.close()
        await self._store.close()

    async def _fresh(self, user_id: str) -> str | None:
        """Before something is read: what a person has changed in the files counts. → what went wrong"""
        return None if self._files is None else await self._files.fresh(user_id)

    def _compressor(self) -> Compressor:
        return Compressor(
            store=self._store,
            embedder=self._embedder,
            rules=self._rules,
            settings=self.settings.maintenance,
            llm=self._llm,
        )

    def _upkeep(self) -> Upkeep:
        return Upkeep(self._store, self._compressor(), self._rules, self.settings.maintenance, self.meter)

    @property
    def _does_jobs(self) -> bool:
        return self._flow.slow_extractor is not None and self.settings.jobs.in_process

    def _new_worker(self) -> Worker:
        return Worker(
            self._store,
            partial(do, flow=self._flow, max_attempts=self.settings.jobs.max_attempts),
            self.settings.jobs,
            self.meter,
        )

    def _work(self) -> None:
        """Let jobs be done beside everything else, as long as there are any."""
        if not self._does_jobs:
            return
        if self._working is None or self._working.done() or self._worker is None:
            self._worker = self._new_worker()
            self._working = asyncio.create_task(self._worker.run(until_idle=True), name="jiyi-worker")
        self._worker.wake()
