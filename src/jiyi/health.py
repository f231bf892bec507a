"""Health checks of a running memory."""

import asyncio
from datetime import timedelta
from time import monotonic

from .embed import embed_documents
from .engine import Engine
from .errors import JiyiError
from .models import Check, Health, JobCounts, utc_now
from .read.rerank import problem as reranker_problem

FAILED_JOBS_S = 900.0  # for which a failed job counts
MIN_STALLED_S = 120.0  # a due job that no worker has taken for longer is stalled
EMBEDDER_EVERY_S = 60.0  # a working embedder is tested again after this time, a failing one at once
EMBEDDER_TIMEOUT_S = 10.0


class HealthCheck:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._embedder_worked_at = float("-inf")

    async def __call__(self) -> Health:
        checks: list[Check] = []
        try:
            counts = await self._engine.store.jobs.counts(utc_now())
            checks += [Check(name="store", ok=True), self._check_jobs(counts)]
        except JiyiError as error:
            checks.append(Check(name="store", ok=False, problem=str(error)))
        checks.append(await self._check_embedder())
        checks += await self._check_engines()
        cache = self._engine.searcher.cache_use()
        # Without a cache searches are slower, not wrong.
        checks.append(Check(name="cache", ok=True, problem="; ".join(cache.problems) or None))
        missing = reranker_problem(self._engine.settings, self._engine.searcher.reranker)
        checks.append(Check(name="reranker", ok=True, problem=missing))
        return Health(ready=all(check.ok for check in checks), checks=tuple(checks))

    async def _check_engines(self) -> list[Check]:
        """Without an engine searches are slower or degraded, and it catches up later."""
        engines = self._engine.engines
        if engines is None:
            return []
        try:
            return [Check(name=one.name, ok=True, problem=one.trouble) for one in await engines.states()]
        except JiyiError as error:
            return [Check(name="engines", ok=True, problem=str(error))]

    def _check_jobs(self, counts: JobCounts) -> Check:
        now, settings = utc_now(), self._engine.settings
        if counts.failed_at is not None and now - counts.failed_at < timedelta(seconds=FAILED_JOBS_S):
            failed = counts.by_state.get("failed", 0)
            problem = f"{failed:,} jobs have failed, the last at {counts.failed_at:%Y-%m-%d %H:%M:%S} UTC: see the jobs"
            return Check(name="jobs", ok=False, problem=problem)
        patience = timedelta(seconds=max(MIN_STALLED_S, 2 * settings.jobs.lease_s))
        if counts.waiting_since is not None and now - counts.waiting_since > patience:
            since = f"{counts.waiting_since:%Y-%m-%d %H:%M:%S} UTC"
            return Check(name="jobs", ok=False, problem=f"a job is due since {since} and no worker runs: `jiyi worker`")
        return Check(name="jobs", ok=True)

    async def _check_embedder(self) -> Check:
        if monotonic() - self._embedder_worked_at > EMBEDDER_EVERY_S:
            try:
                async with asyncio.timeout(EMBEDDER_TIMEOUT_S):
                    await embed_documents(self._engine.embedder, ["ready"])
            except TimeoutError:
                return Check(name="embedder", ok=False, problem=f"no answer in {EMBEDDER_TIMEOUT_S:.0f} seconds")
            except JiyiError as error:
                return Check(name="embedder", ok=False, problem=str(error))
            self._embedder_worked_at = monotonic()
        return Check(name="embedder", ok=True)
