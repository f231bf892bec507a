"""Routes of background jobs."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from ... import validation
from ...models import Job, Receipt, ReceiptState
from ..auth import Caller, Reader, UserId, UserReader, UserWriter
from ..events import follow, stream
from ..requests import JsonRoute, Limit
from ..responses import Listing, json_response

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=JsonRoute)

JobId = Annotated[str, Path(min_length=1, max_length=validation.MAX_NAME)]
AllUsers = Annotated[bool, Query(description="of all users; needs a key for all users")]
STREAM: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Events"}
}


@router.get("/jobs", response_model=Listing[Job], summary="Jobs, the newest first")
async def list_jobs(
    caller: Reader,
    user_id: UserId = None,
    all_users: AllUsers = False,
    state: ReceiptState | None = None,
    limit: Limit = 100,
) -> Response:
    user = one_or_all(caller, user_id, all_users)
    return json_response(
        Listing[Job](items=list(await caller.memory.jobs.list(user_id=user, state=state, limit=limit)))
    )


def one_or_all(caller: Caller, user_id: str | None, all_users: bool) -> str | None:
    """Return the user, or None for all of them."""
    if not all_users:
        return caller.access.user(user_id)
    caller.access.need_all_users()
    return None


@router.get("/jobs/{job_id}", response_model=Job, summary="One job")
async def get_job(caller: UserReader, job_id: JobId) -> Response:
    return json_response(await caller.memory.jobs.get(job_id, user_id=caller.user_id))


@router.get("/jobs/{job_id}/receipt", response_model=Receipt, summary="The current receipt of an add")
async def get_receipt(
    caller: UserReader,
    job_id: JobId,
    wait_s: Annotated[float, Query(ge=0, le=30, description="wait for the end, at most this long")] = 0,
) -> Response:
    return json_response(await caller.memory.jobs.wait(job_id, user_id=caller.user_id, timeout=wait_s))


@router.post("/jobs/{job_id}/retry", response_model=Job, summary="Retry a job now")
async def retry_job(caller: UserWriter, job_id: JobId) -> Response:
    return json_response(await caller.memory.jobs.retry(job_id, user_id=caller.user_id))


@router.post("/jobs/{job_id}/cancel", response_model=Job, summary="Cancel an unfinished job")
async def cancel_job(caller: UserWriter, job_id: JobId) -> Response:
    actor = caller.access.actor(None)
    return json_response(await caller.memory.jobs.cancel(job_id, user_id=caller.user_id, actor=actor))


@router.get(
    "/jobs/{job_id}/events", response_class=Response, responses=STREAM, summary="The progress of a job, as events"
)
async def follow_job(caller: UserReader, job_id: JobId) -> Response:
    look = partial(caller.memory.jobs.get, job_id, user_id=caller.user_id)
    await look()  # an unknown job is a 404, not an empty stream
    streams = caller.app.streams
    return stream(follow("job", look, lambda job: job.next_attempt_at is None, streams), streams)
