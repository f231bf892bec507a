"""Jobs and maintenance that run in this process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ..errors import JiyiError, NotFound, StoreError, UserErased
from ..models import ReceiptState, utc_now
from ..store.write_set import Lease, LeaseLost

if TYPE_CHECKING:
    from ..engine import Engine
    from ..write.accept import Accepted
    from ..write.build import Context
    from ..write.worker import Worker

MAINTENANCE_POLL_S = 60.0
RETRY_S = 1.0  # while the store does not answer
TURN_LEASE_S = 10.0  # of an observed turn, which usually takes milliseconds: after a crash it is continued soon

logger = logging.getLogger(__name__)


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
            self._task = asyncio.create_task(self._run(self._worker), name="jiyi-worker")
        self._worker.wake()

    async def _run(self, worker: Worker) -> None:
        """Run the pending jobs; try again as long as the store does not answer."""
        while True:
            try:
                await worker.run(until_idle=True)
            except StoreError:  # logged by the worker
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def keep_turn(self, accepted: Accepted, context: Context, *, actor: str) -> Callable[[], Awaitable[None]]:
        """Store the messages of a turn. Return the rest of the work: making memories of them."""
        from ..write.worker import keep_turn

        flow = self._engine.pipeline
        lease = await keep_turn(accepted, context, actor=actor, flow=flow, worker=self._turn_worker)
        return partial(self._derive, lease)

    async def _derive(self, lease: Lease) -> None:
        """Make memories of a turn. If that fails, or a language model goes on, a worker does the rest. Raise
        `UserErased` if the turn was deleted meanwhile."""
        jobs, worker, now = self._engine.store.jobs, self._turn_worker, utc_now()
        if now - lease.accepted_at > worker.lease_time / 2:  # turns before it took long
            with contextlib.suppress(LeaseLost, StoreError):
                await jobs.renew(lease, now, now + worker.lease_time)
        with self._engine.meter.timing("add"):
            if await worker.attempt(lease):
                return
        with contextlib.suppress(StoreError):
            try:
                job = await jobs.get(lease.user_id, lease.job_id)
            except NotFound:
                raise UserErased(user_id=lease.user_id) from None
            if job.state is not ReceiptState.ACCEPTED:
                return
        self.wake()

    @cached_property
    def _turn_worker(self) -> Worker:
        return new_worker(self._engine, longest_lease_s=TURN_LEASE_S)

    async def resume(self) -> None:
        """Continue jobs that an earlier process left unfinished."""
        if self._enabled and self._engine.engines is not None:
            self._engine.engines.start()
        if self._enabled and await self._engine.store.jobs.next_due() is not None:
            self.wake()

    async def stop(self) -> None:
        if self._engine.engines is not None:
            await self._engine.engines.stop()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None


def new_worker(engine: Engine, longest_lease_s: float = math.inf) -> Worker:
    from ..write.worker import Answers, Worker, run_job

    settings = engine.settings.jobs
    settings = settings.model_copy(update={"lease_s": min(settings.lease_s, longest_lease_s)})
    run = partial(run_job, flow=engine.pipeline, max_attempts=engine.settings.jobs.max_attempts, answers=Answers())
    return Worker(engine.store, run, settings, engine.meter)


async def maintain(engine: Engine) -> None:
    """Run maintenance whenever it is due. The store decides which of several workers does it."""
    from .maintenance import maintainer_of

    maintainer = maintainer_of(engine)
    while engine.settings.maintenance.interval_hours is not None:
        try:
            done = await maintainer.run_all(forced=False)
            if done is not None:
                logger.info("maintenance: %s", done)
        except (JiyiError, LeaseLost) as error:
            logger.warning("maintenance continues later: %s", error)
        await asyncio.sleep(MAINTENANCE_POLL_S)
