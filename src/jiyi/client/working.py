"""The verbs about jobs, and about how the server is doing."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import BaseModel

from .. import validation
from ..errors import AccessDenied, NotFound
from ..memory.jobs import MAX_WAIT_S
from ..metrics import Metrics
from ..models import Health, Job, Receipt, ReceiptState
from .connection import Connection

if TYPE_CHECKING:
    from ..settings import Settings

LONGEST_LOOK_S = 20.0  # the server lets a request wait for 30 seconds


class JobList(BaseModel):
    items: tuple[Job, ...]


class Figures(BaseModel):
    memory: Metrics


class Working:
    _server: Connection
    settings: Settings

    async def status(self, receipt: Receipt | str, *, user_id: str) -> Receipt:
        """How far an `add` has come by now: its receipt anew."""
        return await self._receipt(receipt, user_id, wait_s=0)

    async def wait(
        self,
        receipt: Receipt | str,
        *,
        user_id: str,
        timeout: float | None = None,  # noqa: ASYNC109 - its end is no error
    ) -> Receipt:
        """Wait until nothing is left to do for an `add`, or until the time is up; then its state is still accepted."""
        seconds = (
            self.settings.jobs.wait_timeout_s
            if timeout is None
            else validation.seconds("timeout", timeout, most=MAX_WAIT_S)
        )
        until = monotonic() + seconds
        while True:
            rest = max(0.0, until - monotonic())
            now = await self._receipt(receipt, user_id, wait_s=min(rest, LONGEST_LOOK_S))
            if now.state is not ReceiptState.ACCEPTED or rest <= LONGEST_LOOK_S:
                return now

    async def _receipt(self, receipt: Receipt | str, user_id: str, *, wait_s: float) -> Receipt:
        job_id = receipt.id if isinstance(receipt, Receipt) else receipt
        address = _address(job_id, user_id, argument="receipt")
        return await self._server.get(f"{address}/receipt", Receipt, user_id=user_id, wait_s=wait_s)

    async def jobs(
        self, *, user_id: str | None = None, state: ReceiptState | str | None = None, limit: int = 100
    ) -> Sequence[Job]:
        """What was asked for and how far it is, newest first; of one user, or of all."""
        whose = validation.optional_name("user_id", user_id)
        everybody = True if whose is None else None
        wanted = None if state is None else validation.choice("state", state, list(ReceiptState))
        params = {"user_id": whose, "all_users": everybody, "state": wanted, "limit": limit}
        return (await self._server.get("/v1/jobs", JobList, **params)).items

    async def job(self, job_id: str, *, user_id: str) -> Job:
        """One job, by its id, which is its receipt's."""
        return await self._server.get(_address(job_id, user_id), Job, user_id=user_id)

    async def retry_job(self, job_id: str, *, user_id: str) -> Job:
        """Try a failed job again, or one that waits for its next attempt at once."""
        return await self._server.ask("POST", f"{_address(job_id, user_id)}/retry", Job, params={"user_id": user_id})

    async def cancel_job(self, job_id: str, *, user_id: str, actor: str = "user") -> Job:
        """End a job that is not done. The server notes the key, not `actor`."""
        validation.name("actor", actor)
        return await self._server.ask("POST", f"{_address(job_id, user_id)}/cancel", Job, params={"user_id": user_id})

    async def health(self) -> Health:
        """Whether the server can do all that it should, with reasons."""
        return await self._server.get("/v1/health", Health)

    async def metrics(self, user_id: str | None = None) -> Metrics:
        """What the store holds and how the server's memory has done since it was opened; of all users only."""
        if user_id is not None:
            raise AccessDenied("a server tells figures of all users only: leave user_id out, or ask for `stats`")
        return (await self._server.get("/v1/metrics", Figures)).memory

    async def exposition(self) -> str:
        """Everything that the server measures, in Prometheus' text format."""
        answer = await self._server.answer("GET", "/metrics", headers={"Accept": "text/plain"}, repeatable=True)
        return answer.text


def _address(job_id: str, user_id: str, *, argument: str = "job_id") -> str:
    """Where a job lies. Ids are never anything else than letters and digits."""
    validation.name("user_id", user_id)
    if not (validation.name(argument, job_id).isalnum() and job_id.isascii()):
        raise NotFound(f"user {user_id!r} has no job {job_id!r}")
    return f"/v1/jobs/{job_id}"
