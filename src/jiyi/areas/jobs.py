"""Background jobs: extraction that continues after `add` has accepted messages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from functools import partial
from time import monotonic

from .. import validation
from ..engine import Engine
from ..errors import JiyiError
from ..models import Job, JobCounts, Receipt, ReceiptState, utc_now
from ..store.contract import LeaseLost
from ..write.worker import Worker, run_job
from .maintenance import maintainer_of

FIRST_POLL_S, LONGEST_POLL_S = 0.02, 0.5
MAX_WAIT_S = 86_400
MAINTENANCE_POLL_S = 60.0

logger = logging.getLogger(__name__)


class Jobs:
    def __init__(self, engine: Engine, background: BackgroundJobs) -> None:
        self._engine = engine
        self._background = background

    async def status(self, receipt: Receipt | str, *, user_id: str) -> Receipt:
        """Return the current receipt of an `add`, given its receipt or the receipt's id."""
        user_id = validation.name("user_id", user_id)
        return await self._engine.store.jobs.receipt(user_id, receipt_id(receipt), self._engine.embedder.id)

    async def wait(
        self,
        receipt: Receipt | str,
        *,
        user_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 - reaching it is not an error
    ) -> Receipt:
        """Wait until the jobs of an `add` are done or the timeout has passed; then its state is still accepted.

        receipt = await memory.add(messages, user_id="mei", wait=False)
        receipt = await memory.jobs.wait(receipt, user_id="mei", timeout=30)
        """
        deadline = monotonic() + wait_seconds(timeout, self._engine.settings.jobs.wait_timeout_s)
        pause = FIRST_POLL_S
        self._background.wake()
        while True:
            now = await self.status(receipt, user_id=user_id)
            left = deadline - monotonic()
            if now.state is not ReceiptState.ACCEPTED or left <= 0:
                return now
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_POLL_S)

    async def list(
        self, *, user_id: str | None = None, state: ReceiptState | str | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """List jobs of one user or of all, newest first."""
        wanted = None if state is None else ReceiptState(validation.choice("state", state, [*ReceiptState]))
        user_id = validation.optional_name("user_id", user_id)
        return await self._engine.store.jobs.list(user_id, wanted, validation.whole("limit", limit))

    async def get(self, job_id: str, *, user_id: str) -> Job:
        """Return one job by its id, which is also its receipt's id."""
        return await self._engine.store.jobs.get(validation.name("user_id", user_id), validation.name("job_id", job_id))

    async def retry(self, job_id: str, *, user_id: str) -> Job:
        """Run a failed job, or one that waits for its next attempt, again now."""
        user_id, job_id = validation.name("user_id", user_id), validation.name("job_id", job_id)
        job = await self._engine.store.jobs.retry(user_id, job_id, utc_now())
        self._background.wake()
        return job

    async def cancel(self, job_id: str, *, user_id: str, actor: str = "user") -> Job:
        """Cancel an unfinished job. The messages stay; partial results are discarded."""
        problem = f"cancelled by {validation.name('actor', actor)}"
        user_id, job_id = validation.name("user_id", user_id), validation.name("job_id", job_id)
        return await self._engine.store.jobs.cancel(user_id, job_id, utc_now(), problem)

    async def counts(self) -> JobCounts:
        """Count the jobs of all users by state."""
        return await self._engine.store.jobs.counts(utc_now())

    async def work(self, *, until_idle: bool = True) -> int:
        """Run the jobs of all users: the pending ones, or forever. Returns the number of jobs done.

        Running forever includes maintenance, as often as `maintenance.interval_hours` says.
        """
        worker = new_worker(self._engine)
        maintenance = None if until_idle else asyncio.create_task(maintain(self._engine), name="jiyi-maintenance")
        try:
            await worker.run(until_idle=until_idle)
        finally:
            if maintenance is not None:
                maintenance.cancel()
                await asyncio.gather(maintenance, return_exceptions=True)
        return worker.done


class BackgroundJobs:
    """Runs pending jobs in this process, as long as there are any."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._enabled = engine.settings.jobs.in_process
        self._worker: Worker | None = None
        self._task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        if not self._enabled:
            return
        if self._task is None or self._task.done() or self._worker is None:
            self._worker = new_worker(self._engine)
            self._task = asyncio.create_task(self._worker.run(until_idle=True), name="jiyi-worker")
        self._worker.wake()

    async def resume(self) -> None:
        """Continue jobs that an earlier process left unfinished."""
        if self._enabled and await self._engine.store.jobs.next_due() is not None:
            self.wake()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None


def new_worker(engine: Engine) -> Worker:
    run = partial(run_job, flow=engine.pipeline, max_attempts=engine.settings.jobs.max_attempts)
    return Worker(engine.store, run, engine.settings.jobs, engine.meter)


async def maintain(engine: Engine) -> None:
    """Run maintenance whenever it is due. The store decides which of several workers does it."""
    maintainer = maintainer_of(engine)
    while engine.settings.maintenance.interval_hours is not None:
        try:
            done = await maintainer.run_all(forced=False)
            if done is not None:
                logger.info("maintenance: %s", done)
        except (JiyiError, LeaseLost) as error:
            logger.warning("maintenance continues later: %s", error)
        await asyncio.sleep(MAINTENANCE_POLL_S)


def receipt_id(receipt: Receipt | str) -> str:
    return receipt.id if isinstance(receipt, Receipt) else validation.name("receipt", receipt)


def wait_seconds(timeout: float | None, default: float) -> float:
    return default if timeout is None else validation.seconds("timeout", timeout, most=MAX_WAIT_S)
