"""Whose turn it is to look after all memories: one process at a time, on a lease, and where it goes on after a crash.

It stands among the jobs, under no user's name. No worker can claim it, because it is never due like a job.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from ..languages.version import WORDS_VERSION
from ..models import ReceiptState
from .contract import LeaseLost
from .tables import SHARED, JobRow

ROUND = "upkeep"


async def begin(session: AsyncSession, owner: str, now: datetime, until: datetime, *, forced: bool) -> str | None:
    """Take over the round. → after which user it goes on; None if another has it, or, unless it is forced, if it is
    not time yet"""
    row = await _row(session)
    if row is None:
        row = JobRow(
            user_id=SHARED,
            id=ROUND,
            kind=ROUND,
            state=ReceiptState.ACCEPTED.value,
            created=0,
            problems=[],
            attempts=0,
            created_at=now,
            updated_at=now,
            payload={"after": "", "due": now.isoformat()},
        )
        session.add(row)
    longest = until + (until - now)  # a lease beyond that was taken by a clock that was ahead
    if row.leased_until is not None and now < row.leased_until <= longest and row.leased_by != owner:
        return None
    at = row.payload or {}
    after = str(at.get("after", ""))
    indexed = (
        at.get("words_version") == WORDS_VERSION
    )  # a new version of Jiyi does not wait: memories have to be indexed
    if not forced and not after and indexed and datetime.fromisoformat(at["due"]) > now:
        return None
    row.leased_by, row.leased_until = owner, until
    return after


async def go_on(session: AsyncSession, owner: str, now: datetime, until: datetime, after: str) -> None:
    """All up to this one are done; the lease goes on."""
    row = await _held(session, owner, now)
    row.payload = {**(row.payload or {}), "after": after}
    row.leased_until, row.updated_at = until, now


async def finish(session: AsyncSession, owner: str, now: datetime, due: datetime) -> None:
    """The round is done; the next one is due then."""
    row = await _held(session, owner, now)
    row.payload = {"after": "", "due": due.isoformat(), "words_version": WORDS_VERSION}
    row.leased_by = row.leased_until = None
    row.updated_at = now


async def _row(session: AsyncSession) -> JobRow | None:
    statement = select(JobRow).where(JobRow.user_id == SHARED, JobRow.id == ROUND).with_for_update()
    found: JobRow | None = await session.scalar(statement)
    return found


async def _held(session: AsyncSession, owner: str, now: datetime) -> JobRow:
    row = await _row(session)
    if row is None or row.leased_by != owner or row.leased_until is None or row.leased_until <= now:
        raise LeaseLost(ROUND)
    return row
