"""The verbs that tell whether everything works."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from time import monotonic

from ..embed import embed_documents
from ..errors import JiyiError
from ..models import Check, Health, JobCounts, utc_now
from .parts import Parts

FAILED_JOBS_S = 900.0
STALLED_S = 120.0  # at least; a job that nobody takes for longer has been forgotten
ASKED_EVERY_S = 60.0  # an embedder that works is asked again after this time, one that does not at once
ANSWERS_IN_S = 10.0


class Watching(Parts):
    _embedder_worked_at = float("-inf")

    async def health(self) -> Health:
        """Whether the store answers, jobs get done, and memories can be found by meaning.

        A failed job counts for `FAILED_JOBS_S`.
        """
        checks: list[Check] = []
        try:
            checks += [Check(name="store", ok=True), self._check_jobs(await self.job_counts())]
        except JiyiError as error:
            checks.append(Check(name="store", ok=False, problem=str(error)))
        checks.append(await self._check_embedder())
        cache = self._answers.use()
        # Without a cache searches are slower, not wrong.
        checks.append(Check(name="cache", ok=True, problem="; ".join(cache.problems) or None))
        return Health(ready=all(check.ok for check in checks), checks=tuple(checks))

    async def job_counts(self) -> JobCounts:
        """How many jobs there are in each state, over all users, and since when one waits or has failed."""
        return await self._store.job_counts(utc_now())

    def _check_jobs(self, counts: JobCounts) -> Check:
        now = utc_now()
        settings = self.settings
        if counts.failed_at is not None and now - counts.failed_at < timedelta(seconds=FAILED_JOBS_S):
            failed = counts.by_state.get("failed", 0)
            problem = f"{failed:,} jobs have failed, the last at {counts.failed_at:%Y-%m-%d %H:%M:%S} UTC: see the jobs"
            return Check(name="jobs", ok=False, problem=problem)
        patience = timedelta(seconds=max(STALLED_S, 2 * settings.jobs.lease_s))
        if counts.waiting_since is not None and now - counts.waiting_since > patience:
            since = f"{counts.waiting_since:%Y-%m-%d %H:%M:%S} UTC"
            return Check(name="jobs", ok=False, problem=f"nobody takes a job that is due since {since}: `jiyi worker`")
        return Check(name="jobs", ok=True)

    async def _check_embedder(self) -> Check:
        if monotonic() - self._embedder_worked_at > ASKED_EVERY_S:
            try:
                async with asyncio.timeout(ANSWERS_IN_S):
                    await embed_documents(self._embedder, ["ready"])
            except TimeoutError:
                return Check(name="embedder", ok=False, problem=f"no answer in {ANSWERS_IN_S:.0f} seconds")
            except JiyiError as error:
                return Check(name="embedder", ok=False, problem=str(error))
            self._embedder_worked_at = monotonic()
        return Check(name="embedder", ok=True)
