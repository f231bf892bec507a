"""Jobs: work that is left after an `add` was accepted. A worker runs a job on a lease, and only the holder of the lease
can finish it, so a slow worker writes nothing twice."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Row, Select, and_, case, func, or_, select, type_coerce, update
from sqlalchemy.orm import Session

from ...errors import IdempotencyConflict, InvalidInput, NotFound
from ...models import Job, JobCounts, MemoryItem, Receipt, ReceiptState
from ..database import Columns, Repository, Values, chunks, from_row, reads, writes
from ..schema.tables import SHARED, JobMemoryRow, JobRow
from ..write_set import ADD, OBSERVED, REQUEST_VERSION, Lease, LeaseLost
from .index_entries import without_vector
from .memories import ended_by, items

# A comparison, not IS NOT NULL, for which SQLite reads finished jobs too.
OPEN = type_coerce(JobRow.not_before, BigInteger) > 0
# Pauses and leases are shorter than this. A longer one was written by a clock that was ahead, and is ignored.
FAR = timedelta(hours=2)


def held(session: Session, lease: Lease, now: datetime) -> Row[*Columns]:
    """Lock and return the job if the lease is still valid."""
    job = session.execute(
        select(JobRow.__table__).where(JobRow.user_id == lease.user_id, JobRow.id == lease.job_id).with_for_update()
    ).first()
    if job is None or job.leased_by != lease.owner or job.leased_until is None or job.leased_until <= now:
        raise LeaseLost(lease.job_id)
    return job


def change(session: Session, job: Row[*Columns], values: Values) -> None:
    mine = and_(JobRow.user_id == job.user_id, JobRow.id == job.id)
    session.execute(update(JobRow).where(mine).values(values))


def _let_go(now: datetime) -> Values:
    return {"leased_by": None, "leased_until": None, "updated_at": now}


def _failed(job: Row[*Columns], now: datetime, problem: str) -> Values:
    # Memories that are stored already were only to be compared.
    state = job.state if (job.payload or {}).get("saved") else ReceiptState.FAILED.value
    return {**_let_go(now), "state": state, "not_before": None, "problems": [problem]}


def finish(
    session: Session, job: Row[*Columns], now: datetime, state: ReceiptState, problems: Sequence[str], created: int
) -> None:
    done = {"kind": ADD, "state": state.value, "not_before": None, "payload": None, "problems": list(problems)}
    change(session, job, {**_let_go(now), **done, "created": job.created + created})


def go_on(
    session: Session, job: Row[*Columns], now: datetime, payload: Values, problems: Sequence[str], created: int
) -> None:
    """Leave further work of a job to a worker."""
    left = {"kind": ADD, "attempts": 0, "not_before": now, "payload": payload, "problems": list(problems)}
    change(session, job, {**_let_go(now), **left, "created": job.created + created})


def _row(session: Session, user_id: str, job_id: str, *, to_change: bool = False) -> Row[*Columns]:
    statement = select(JobRow.__table__).where(JobRow.user_id == user_id, JobRow.id == job_id)
    job = session.execute(statement.with_for_update() if to_change else statement).first()
    if job is None:
        raise NotFound(f"user {user_id!r} has no job {job_id!r}")
    return job


GONE = "what it was about was deleted"


def _due(session: Session, now: datetime) -> list[Row[str, str | None, str, datetime | None, str]]:
    """Return the first unfinished job of each session, and of the observed turns of each user, if it is due, the one
    due for longest first. Ordered here: for each unfinished job, SQLite would read all earlier ones of its user."""
    columns = (JobRow.user_id, JobRow.session_id, JobRow.id, JobRow.not_before, JobRow.kind)
    unfinished = session.execute(select(*columns).where(OPEN)).all()
    first = {_line(job): job for job in sorted(unfinished, key=lambda job: job.id, reverse=True)}
    due = [
        (job.not_before, job.id, job)
        for job in first.values()
        if job.not_before is not None and not now < job.not_before <= now + FAR
    ]
    return [job for _, _, job in sorted(due)]


def _line(job: Any) -> tuple[str, str, str | None]:
    """Return the key of jobs that run one after the other."""
    return job.user_id, job.kind, None if job.kind == OBSERVED else job.session_id


def drop_payloads(session: Session, user_id: str, memory_ids: Sequence[str]) -> int:
    """Drop payloads and problems of finished jobs that led to deleted memories; return the number of payloads."""
    dropped = 0
    for some in chunks(memory_ids):
        led_to = select(JobMemoryRow.job_id).where(JobMemoryRow.user_id == user_id, JobMemoryRow.memory_id.in_(some))
        closed = and_(JobRow.user_id == user_id, JobRow.id.in_(led_to), JobRow.not_before.is_(None))
        for job in session.execute(select(JobRow.__table__).where(closed)).all():
            dropped += job.payload is not None
            change(session, job, {"payload": None, "problems": [GONE] if job.problems else []})
    return dropped


def forget_messages(session: Session, user_id: str, message_ids: Sequence[str], now: datetime) -> int:
    """Remove deleted messages from waiting jobs; jobs without any left fail. Returns their number."""
    gone, over = set(message_ids), 0
    if not gone:
        return 0
    waiting = select(JobRow.__table__).where(JobRow.user_id == user_id, JobRow.payload.is_not(None))
    for job in session.execute(waiting).all():
        named = (job.payload or {}).get("messages")
        if not isinstance(named, list) or gone.isdisjoint(named):
            continue
        left = [name for name in named if name not in gone]
        if left:
            change(session, job, {"payload": {**(job.payload or {}), "messages": left}})
        else:
            change(session, job, {**_failed(job, now, GONE), "payload": None})
            over += 1
    return over


def to_receipt(job: Any, memories: Sequence[MemoryItem], ended: Sequence[MemoryItem]) -> Receipt:
    return from_row(Receipt, job, state=ReceiptState(job.state), memories=tuple(memories), ended=tuple(ended), rows=())


def to_job(row: Row[*Columns]) -> Job:
    return from_row(Job, row, state=ReceiptState(row.state), next_attempt_at=row.not_before)


def earlier_receipt(session: Session, user_id: str, idempotency_key: str, request_hash: str) -> Receipt | None:
    """Return the receipt of an earlier `add` with this key."""
    job = session.execute(
        select(JobRow.__table__).where(JobRow.user_id == user_id, JobRow.idempotency_key == idempotency_key)
    ).first()
    if job is None:
        return None
    if job.request_hash != request_hash and job.request_hash.startswith(REQUEST_VERSION):
        raise IdempotencyConflict(
            f"the idempotency key {idempotency_key!r} was used before for another text: take a new key for new input"
        )
    return _receipt(session, job)


def receipt_by_id(session: Session, user_id: str, job_id: str) -> Receipt | None:
    """Return the receipt of an `add`, if it was saved."""
    job = session.execute(select(JobRow.__table__).where(JobRow.user_id == user_id, JobRow.id == job_id)).first()
    return None if job is None else _receipt(session, job)


def _receipt(session: Session, job: Row[*Columns]) -> Receipt:
    ids = session.scalars(memories_of_job(job)).all()
    return to_receipt(job, items(session, job.user_id, ids), ended_by(session, job.user_id, ids))


def memories_of_job(job: Row[*Columns]) -> Select[str]:
    """Select the ids of memories that a job created or met."""
    return (
        select(JobMemoryRow.memory_id)
        .where(JobMemoryRow.user_id == job.user_id, JobMemoryRow.job_id == job.id)
        .order_by(JobMemoryRow.position)
    )


class Jobs(Repository):
    """Jobs and their leases."""

    @writes(locks=())
    def claim(self, session: Session, owner: str, now: datetime, until: datetime) -> Lease | None:
        """Take the job that has been due for longest. Jobs of one session run in order."""
        free = or_(JobRow.leased_until.is_(None), JobRow.leased_until <= now, JobRow.leased_until > now + FAR)
        for waiting in _due(session, now):
            mine = and_(JobRow.user_id == waiting.user_id, JobRow.id == waiting.id)
            statement = select(JobRow.__table__).where(mine, OPEN, free).with_for_update(skip_locked=True)
            if (job := session.execute(statement).first()) is not None:
                break
        else:
            return None
        attempt = job.attempts + 1
        change(session, job, {"leased_by": owner, "leased_until": until, "attempts": attempt})
        return Lease(
            user_id=job.user_id,
            job_id=job.id,
            session_id=job.session_id,
            owner=owner,
            attempt=attempt,
            payload=job.payload or {},
            accepted_at=job.created_at,
        )

    @writes(locks=())
    def renew(self, session: Session, lease: Lease, now: datetime, until: datetime) -> None:
        change(session, held(session, lease, now), {"leased_until": until})

    @writes(locks=())
    def postpone(
        self,
        session: Session,
        lease: Lease,
        now: datetime,
        not_before: datetime,
        problem: str,
        *,
        counts: bool = True,
    ) -> None:
        """Return a job after a failure, to be tried again. Waiting for a model does not count as an attempt."""
        job = held(session, lease, now)
        attempts = job.attempts - (0 if counts else 1)
        later = {"attempts": attempts, "not_before": not_before, "problems": [problem]}
        change(session, job, {**_let_go(now), **later})

    @writes(locks=())
    def fail(self, session: Session, lease: Lease, now: datetime, problem: str) -> None:
        job = held(session, lease, now)
        change(session, job, _failed(job, now, problem))

    @writes(locks=())
    def release(self, session: Session, lease: Lease, now: datetime) -> None:
        """Return a job unfinished because the worker stops; does not count as an attempt."""
        job = held(session, lease, now)
        change(session, job, {**_let_go(now), "attempts": job.attempts - 1})

    @reads(everybody=True)
    def next_due(self, session: Session) -> datetime | None:
        """Return the time from which the next unfinished job can be claimed."""
        due = case((JobRow.leased_until > JobRow.not_before, JobRow.leased_until), else_=JobRow.not_before)
        found: datetime | None = session.scalar(select(func.min(due)).where(OPEN))
        return found

    @reads
    def get(self, session: Session, user_id: str, job_id: str) -> Job:
        return to_job(_row(session, user_id, job_id))

    @reads
    def list(self, session: Session, user_id: str | None, state: ReceiptState | None, limit: int) -> list[Job]:
        """Return jobs of one user or of all, newest first."""
        statement = select(JobRow.__table__).order_by(JobRow.id.desc()).limit(limit)
        statement = statement.where(JobRow.user_id != SHARED if user_id is None else JobRow.user_id == user_id)
        if state is not None:
            statement = statement.where(JobRow.state == state.value)
        return [to_job(job) for job in session.execute(statement).all()]

    @reads(everybody=True)
    def counts(self, session: Session, now: datetime) -> JobCounts:
        by_state = dict(session.execute(select(JobRow.state, func.count()).group_by(JobRow.state)).all())
        free = or_(JobRow.leased_until.is_(None), JobRow.leased_until <= now)
        return JobCounts(
            by_state=by_state,
            waiting_since=session.scalar(select(func.min(JobRow.not_before)).where(JobRow.not_before <= now, free)),
            failed_at=session.scalar(
                select(func.max(JobRow.updated_at)).where(JobRow.state == ReceiptState.FAILED.value)
            ),
        )

    @reads
    def receipt(self, session: Session, user_id: str, job_id: str, model: str) -> Receipt:
        """Return the receipt of a job. Memories without a vector may have been embedded since."""
        job = _row(session, user_id, job_id)
        ids = session.scalars(memories_of_job(job)).all()
        found = _receipt(session, job)
        if found.state is ReceiptState.EXTRACTED and not without_vector(session, user_id, ids, model):
            found = found.model_copy(update={"state": ReceiptState.INDEXED, "problems": ()})
        return found

    @writes
    def retry(self, session: Session, user_id: str, job_id: str, now: datetime) -> Job:
        """Run a failed job again, or a waiting one at once."""
        job = _row(session, user_id, job_id, to_change=True)
        if job.payload is None:
            raise InvalidInput("job_id", f"job {job_id} is {job.state}: there is nothing left to do")
        free = job.leased_until is None or job.leased_until <= now
        anew = {**_let_go(now), "attempts": 0} if free else {}
        change(session, job, {**anew, "state": ReceiptState.ACCEPTED.value, "not_before": now})
        return to_job(_row(session, user_id, job_id))

    @writes
    def cancel(self, session: Session, user_id: str, job_id: str, now: datetime, problem: str) -> Job:
        """End an unfinished job. A worker that holds its lease can no longer write."""
        job = _row(session, user_id, job_id, to_change=True)
        if job.not_before is None:
            raise InvalidInput("job_id", f"job {job_id} is {job.state}: there is nothing to cancel")
        change(session, job, _failed(job, now, problem))
        return to_job(_row(session, user_id, job_id))
