"""Does jobs: inside a process that has made some, or apart as `jiyi worker`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from ..errors import JiyiError, LlmError, LlmOverBudget, StoreError
from ..ids import new_id
from ..metrics import Meter
from ..models import utc_now
from ..store.contract import Lease, LeaseLost

if TYPE_CHECKING:
    from ..settings import JobSettings
    from ..store.store import Store

POLL_S = 1.0  # other processes make jobs too, and nobody tells
LONGEST_WAIT_S = 3600.0  # whatever a model asks for

logger = logging.getLogger(__name__)


class Worker:
    def __init__(
        self,
        store: Store,
        do: Callable[[Lease], Awaitable[None]],
        settings: JobSettings,
        meter: Meter | None = None,
    ) -> None:
        self._store = store
        self._do = do
        self._settings = settings
        self._meter = meter or Meter()
        self._owner = f"{socket.gethostname()[:24]}:{os.getpid()}:{new_id()[-8:]}"
        self._more = asyncio.Event()
        self.done = 0

    def wake(self) -> None:
        """There may be something to do."""
        self._more.set()

    async def run(self, *, until_idle: bool) -> None:
        """Take jobs as long as there are any, or for ever. When cancelled, it hands back what it has not finished."""
        running: set[asyncio.Task[None]] = set()
        try:
            while True:
                self._more.clear()
                lease = await self._claim() if len(running) < self._settings.concurrency else None
                if lease is not None:
                    task = asyncio.create_task(self._attempt(lease))
                    running.add(task)
                    task.add_done_callback(running.discard)
                    task.add_done_callback(lambda _: self._more.set())
                    continue
                idle = not running and await self._store.jobs.next_due() is None
                if until_idle and idle and not self._more.is_set():
                    return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._more.wait(), POLL_S)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _claim(self) -> Lease | None:
        now = utc_now()
        try:
            return await self._store.jobs.claim(self._owner, now, now + self._lease_time)
        except StoreError as error:
            logger.warning("no job can be taken now: %s", error)
            return None

    async def _attempt(self, lease: Lease) -> None:
        """One try. How it ends is always written down: by the job itself, or here."""
        heartbeat = asyncio.create_task(self._renew(lease))
        try:
            if lease.attempt > self._settings.max_attempts:
                died = f"its worker died at it, {lease.attempt - 1} times: `jiyi jobs retry {lease.job_id}` tries again"
                await self._store.jobs.fail(lease, utc_now(), died)
                self._meter.count("jobs_total", "failed")
                return
            with self._meter.timing("job"):
                await self._do(lease)
            self.done += 1
            self._meter.count("jobs_total", "done")
        except LeaseLost:
            logger.info("job %s is not this worker's any more", lease.job_id)
            self._meter.count("jobs_total", "lost")
        except asyncio.CancelledError:
            with contextlib.suppress(LeaseLost, StoreError):  # then the lease runs out by itself
                await self._store.jobs.release(lease, utc_now())
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, the job must say so, and the worker goes on
            with contextlib.suppress(LeaseLost, StoreError):
                await self._note_failure(lease, error)
        finally:
            heartbeat.cancel()

    async def _note_failure(self, lease: Lease, error: Exception) -> None:
        known = isinstance(error, JiyiError)
        problem = str(error) if known else f"unexpected {type(error).__name__}: {error}"
        logger.warning("job %s, attempt %d: %s", lease.job_id, lease.attempt, problem, exc_info=not known)
        now = utc_now()
        waits = isinstance(error, LlmOverBudget)  # for the next hour, however often
        hopeless = isinstance(error, LlmError) and not error.temporary
        if hopeless or (lease.attempt >= self._settings.max_attempts and not waits):
            await self._store.jobs.fail(lease, now, problem)
            self._meter.count("jobs_total", "failed")
        else:
            asked_for = error.retry_after_s if isinstance(error, LlmError) else None
            pause = self.pause(lease.attempt) if asked_for is None else min(asked_for, LONGEST_WAIT_S)
            await self._store.jobs.postpone(lease, now, now + timedelta(seconds=pause), problem, counts=not waits)
            self._meter.count("jobs_total", "put_off")

    def pause(self, attempt: int) -> float:
        """Twice as long each time, and never the same for many."""
        longest: float = min(
            self._settings.retry_delay_s * 2.0 ** min(attempt - 1, 30), self._settings.max_retry_delay_s
        )
        share: float = random.uniform(0.5, 1.0)  # noqa: S311 - spreads the crowd, no secret
        return longest * share

    async def _renew(self, lease: Lease) -> None:
        """Say that this worker is alive, until it is done. If that fails for long, the lease runs out."""
        while True:
            await asyncio.sleep(self._settings.lease_s / 3)
            now = utc_now()
            with contextlib.suppress(LeaseLost, StoreError):
                await self._store.jobs.renew(lease, now, now + self._lease_time)

    @property
    def _lease_time(self) -> timedelta:
        return timedelta(seconds=self._settings.lease_s)
