"""The verbs about what goes on after `add` has accepted something."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from time import monotonic

from .. import validation
from ..errors import JiyiError
from ..models import Job, Receipt, ReceiptState, utc_now
from ..store.contract import LeaseLost
from .parts import Parts

FIRST_LOOK_S, LONGEST_LOOK_S = 0.02, 0.5
MAX_WAIT_S = 86_400
LOOK_FOR_UPKEEP_S = 60.0

logger = logging.getLogger(__name__)


class Jobs(Parts):
    async def status(self, receipt: Receipt | str, *, user_id: str) -> Receipt:
        """How far an `add` has come by now: its receipt anew. It is named by its receipt or the receipt's id."""
        return await self._store.status(validation.name("user_id", user_id), _id_of(receipt), self._embedder.id)

    async def wait(
        self,
        receipt: Receipt | str,
        *,
        user_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 - its end is no error
    ) -> Receipt:
        """Wait until nothing is left to do for an `add`, or until the time is up; then its state is still accepted.

        receipt = await memory.add(messages, user_id="mei", wait=False)
        receipt = await memory.wait(receipt, user_id="mei", timeout=30)
        """
        seconds = (
            self.settings.jobs.wait_timeout_s
            if timeout is None
            else validation.seconds("timeout", timeout, most=MAX_WAIT_S)
        )
        until = monotonic() + seconds
        pause = FIRST_LOOK_S
        self._work()
        while True:
            now = await self.status(receipt, user_id=user_id)
            rest = until - monotonic()
            if now.state is not ReceiptState.ACCEPTED or rest <= 0:
                return now
            await asyncio.sleep(min(pause, rest))
            pause = min(2 * pause, LONGEST_LOOK_S)

    async def jobs(
        self, *, user_id: str | None = None, state: ReceiptState | str | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """What was asked for and how far it is, newest first; of one user, or of all."""
        wanted = None if state is None else ReceiptState(validation.choice("state", state, list(ReceiptState)))
        return await self._store.jobs(
            validation.optional_name("user_id", user_id),
            wanted,
            validation.whole("limit", limit, highest=validation.MAX_LIMIT),
        )

    async def job(self, job_id: str, *, user_id: str) -> Job:
        """One job, by its id, which is its receipt's."""
        return await self._store.job(validation.name("user_id", user_id), validation.name("job_id", job_id))

    async def retry_job(self, job_id: str, *, user_id: str) -> Job:
        """Try a failed job again, or one that waits for its next attempt at once."""
        found = await self._store.retry(
            validation.name("user_id", user_id), validation.name("job_id", job_id), utc_now()
        )
        self._work()
        return found

    async def cancel_job(self, job_id: str, *, user_id: str, actor: str = "user") -> Job:
        """End a job that is not done. The messages stay; what was worked out of them so far is not kept."""
        problem = f"cancelled by {validation.name('actor', actor)}"
        return await self._store.cancel(
            validation.name("user_id", user_id), validation.name("job_id", job_id), utc_now(), problem
        )

    async def work(self, *, until_idle: bool = True) -> int:
        """Do the jobs of all users: those that are there, or for ever. → how many were done

        For ever means also to look after memories from time to time, as `maintenance.interval_hours` says.
        """
        worker = self._new_worker()
        keeping = None if until_idle else asyncio.create_task(self._keep_in_order(), name="jiyi-upkeep")
        try:
            await worker.run(until_idle=until_idle)
        finally:
            if keeping is not None:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
        return worker.done

    async def _keep_in_order(self) -> None:
        """Upkeep whenever it is due; which of several workers does it is decided in the store."""
        upkeep = self._upkeep()
        while self.settings.maintenance.interval_hours is not None:
            try:
                done = await upkeep.round(forced=False)
                if done is not None:
                    logger.info("upkeep: %s", done)
            except (JiyiError, LeaseLost) as error:
                logger.warning("upkeep goes on later: %s", error)
            await asyncio.sleep(LOOK_FOR_UPKEEP_S)


def _id_of(receipt: Receipt | str) -> str:
    return receipt.id if isinstance(receipt, Receipt) else validation.name("receipt", receipt)
