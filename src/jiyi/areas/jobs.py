"""Background jobs: extraction that continues after `add` has accepted messages."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from time import monotonic

from .. import validation
from ..engine import Engine
from ..errors import NotFound, UserErased
from ..models import Job, JobCounts, Receipt, ReceiptState, utc_now
from .background import BackgroundJobs, maintain, new_worker

FIRST_POLL_S, LONGEST_POLL_S = 0.02, 0.5
MAX_WAIT_S = 86_400


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
        epoch = await self._engine.epoch(user_id)
        self._background.wake()
        while True:
            try:
                now = await self.status(receipt, user_id=user_id)
            except NotFound:
                if await self._engine.epoch(user_id) != epoch:
                    raise UserErased(user_id=user_id) from None
                raise
            left = deadline - monotonic()
            if now.state is not ReceiptState.ACCEPTED or left <= 0:
                return now
            await asyncio.sleep(min(pause, left))
            pause = min(2 * pause, LONGEST_POLL_S)

    async def epoch(self, *, user_id: str) -> str:
        """Return the user's erasure epoch, which changes when all data of the user is deleted.

        A program that queues writes reads it when it queues one, and passes it to `add` later: nothing is saved if the
        user was deleted in between.

            epoch = await memory.jobs.epoch(user_id="mei")
            await memory.add("I moved to Berlin in May", user_id="mei", epoch=epoch)
        """
        return await self._engine.epoch(user_id)

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
        worker, engines = new_worker(self._engine), self._engine.engines
        if engines is not None and not until_idle:
            engines.start()
        maintenance = None if until_idle else asyncio.create_task(maintain(self._engine), name="jiyi-maintenance")
        try:
            await worker.run(until_idle=until_idle)
        finally:
            if maintenance is not None:
                maintenance.cancel()
                await asyncio.gather(maintenance, return_exceptions=True)
        if engines is not None and until_idle:
            await engines.catch_up()
        return worker.done


def receipt_id(receipt: Receipt | str) -> str:
    return receipt.id if isinstance(receipt, Receipt) else validation.name("receipt", receipt)


def wait_seconds(timeout: float | None, default: float) -> float:
    return default if timeout is None else validation.seconds("timeout", timeout, most=MAX_WAIT_S)
