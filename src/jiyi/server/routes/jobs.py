"""Routes of jobs."""

from functools import partial
from typing import Annotated, Any

from fastapi import Query, Response

from ...models import Job, Receipt, ReceiptState
from ..auth import AllUsers, Reader, UserId, UserReader, UserWriter
from ..events import follow, stream
from ..requests import Limit
from ..responses import EpochReply, Listing
from . import Id, make_router

router = make_router("jobs")

STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events"}
}


@router.get("/jobs", summary="Jobs, newest first")
async def list_jobs(
    caller: Reader,
    user_id: UserId = None,
    all_users: AllUsers = False,
    state: ReceiptState | None = None,
    limit: Limit = 100,
) -> Listing[Job]:
    user = caller.access.one_or_all(user_id, all_users)
    return Listing(items=await caller.memory.jobs.list(user_id=user, state=state, limit=limit))


@router.get("/epoch", summary="The erasure epoch of a user, for writes that are queued elsewhere")
async def get_epoch(caller: UserWriter) -> EpochReply:
    return EpochReply(epoch=await caller.memory.jobs.epoch(user_id=caller.user_id))


@router.get("/jobs/{job_id}", summary="One job")
async def get_job(caller: UserReader, job_id: Id) -> Job:
    return await caller.memory.jobs.get(job_id, user_id=caller.user_id)


@router.get("/jobs/{job_id}/receipt", summary="The current receipt of an add")
async def get_receipt(
    caller: UserReader,
    job_id: Id,
    wait_s: Annotated[float, Query(ge=0, le=30, description="wait for the end, at most this long")] = 0,
) -> Receipt:
    return await caller.memory.jobs.wait(job_id, user_id=caller.user_id, timeout=wait_s)


@router.post("/jobs/{job_id}/retry", summary="Retry a job now")
async def retry_job(caller: UserWriter, job_id: Id) -> Job:
    return await caller.memory.jobs.retry(job_id, user_id=caller.user_id)


@router.post("/jobs/{job_id}/cancel", summary="Cancel an unfinished job")
async def cancel_job(caller: UserWriter, job_id: Id) -> Job:
    return await caller.memory.jobs.cancel(job_id, user_id=caller.user_id, actor=caller.access.actor(None))


@router.get(
    "/jobs/{job_id}/events", response_class=Response, responses=STREAM, summary="The progress of a job, as events"
)
async def follow_job(caller: UserReader, job_id: Id) -> Response:
    look = partial(caller.memory.jobs.get, job_id, user_id=caller.user_id)
    await look()  # an unknown job is a 404, not an empty stream
    streams = caller.app.streams
    return stream(follow("job", look, lambda job: job.next_attempt_at is None, streams), streams)
