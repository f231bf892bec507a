"""Health checks of a running memory."""

import asyncio
import logging
from datetime import timedelta
from time import monotonic

from .embed import address_of, embed_documents
from .engine import Engine
from .errors import JiyiError
from .models import Check, Health, JobCounts, utc_now
from .reader import unused_because

FAILED_JOBS_S = 900.0  # for which a failed job counts
MIN_STALLED_S = 120.0  # a due job that no worker has taken for longer is stalled
STORE_TIMEOUT_S = 5.0  # below the timeouts of load balancers, which then learn the reason
EMBEDDER_EVERY_S = 60.0  # a working embedder is tested again after this time, a failing one at once
EMBEDDER_TIMEOUT_S = 10.0

logger = logging.getLogger(__name__)


class HealthCheck:
    """Checks the parts of a memory. It is ready if the required ones work: without the others searches are slower, find
    less, or memories are derived later, and taking this process out of service would help nobody."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._embedder_worked_at = float("-inf")
        self._counting: asyncio.Task[JobCounts] | None = None
        self._failing: set[str] = set()

    async def __call__(self) -> Health:
        engine = self._engine
        checks = [*await self._check_store(), await self._check_embedder()]
        if engine.llm is not None:
            checks.append(Check(name="llm", ok=True, required=False, detail=f"{engine.llm.id}, {engine.llm.address}"))
        checks += await self._check_engines()
        checks.append(_optional("cache", "; ".join(engine.searcher.cache_use().problems)))
        unused = None if engine.searcher.reader is not None else unused_because(engine.settings)
        checks.append(Check(name="reader", ok=True, required=False, detail=unused))
        self._log_changes(checks)
        return Health(ready=all(check.ok for check in checks if check.required), checks=tuple(checks))

    async def _check_store(self) -> list[Check]:
        """Count the jobs, which needs the store. A count that takes too long goes on; the next check waits for it."""
        if self._counting is None or self._counting.done():
            self._counting = asyncio.create_task(self._engine.store.jobs.counts(utc_now()), name="jiyi-health")
        try:
            counts = await asyncio.wait_for(asyncio.shield(self._counting), STORE_TIMEOUT_S)
        except TimeoutError:
            return [Check(name="store", ok=False, problem=f"no answer in {STORE_TIMEOUT_S:.0f} seconds")]
        except JiyiError as error:
            return [Check(name="store", ok=False, problem=str(error), error=type(error).__name__)]
        return [Check(name="store", ok=True), _optional("jobs", self._job_problem(counts))]

    async def _check_engines(self) -> list[Check]:
        """Without an engine searches are slower or degraded, and it catches up later."""
        engines = self._engine.engines
        if engines is None:
            return []
        try:
            compared = {name: report.summary for name, report in engines.sampled.items()}
            return [_optional(one.name, one.trouble, compared.get(one.name)) for one in await engines.states()]
        except JiyiError as error:
            return [_optional("engines", str(error))]

    def _job_problem(self, counts: JobCounts) -> str | None:
        now, settings = utc_now(), self._engine.settings
        if counts.failed_at is not None and now - counts.failed_at < timedelta(seconds=FAILED_JOBS_S):
            failed = counts.by_state.get("failed", 0)
            return f"{failed:,} jobs have failed, the last at {counts.failed_at:%Y-%m-%d %H:%M:%S} UTC: see the jobs"
        patience = timedelta(seconds=max(MIN_STALLED_S, 2 * settings.jobs.lease_s))
        if counts.waiting_since is not None and now - counts.waiting_since > patience:
            return f"a job is due since {counts.waiting_since:%Y-%m-%d %H:%M:%S} UTC and no worker runs: `jiyi worker`"
        return None

    async def _check_embedder(self) -> Check:
        embedder = self._engine.embedder
        where = f"{embedder.id}, {address_of(embedder)}"
        if monotonic() - self._embedder_worked_at > EMBEDDER_EVERY_S:
            try:
                async with asyncio.timeout(EMBEDDER_TIMEOUT_S):
                    await embed_documents(embedder, ["ready"])
            except TimeoutError:
                return _optional("embedder", f"no answer in {EMBEDDER_TIMEOUT_S:.0f} seconds", where)
            except JiyiError as error:
                return _optional("embedder", str(error), where)
            self._embedder_worked_at = monotonic()
        return _optional("embedder", None, where)

    def _log_changes(self, checks: list[Check]) -> None:
        """Log each part that has begun to fail or works again, once."""
        for check in checks:
            if not check.ok and check.name not in self._failing:
                self._failing.add(check.name)
                logger.warning("health: %s fails: %s", check.name, check.problem)
            elif check.ok and check.name in self._failing:
                self._failing.remove(check.name)
                logger.warning("health: %s works again", check.name)


def _optional(name: str, problem: str | None, detail: str | None = None) -> Check:
    return Check(name=name, ok=not problem, problem=problem or None, required=False, detail=detail)
