"""How far a user's memories have come, and when the next of them ends: what an answer that is kept hangs on."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import and_, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from ..scope import Lifetimes
from .contract import Tip
from .tables import SHARED, ChangeRow, MemoryRow, erased

# Built once: every search runs it. Each newest number is one look at an index; so is the entry behind it.
_TIP = (
    select(ChangeRow.seq, ChangeRow.memory_id, ChangeRow.changed_at)
    .where(
        ChangeRow.seq.in_(
            [
                select(func.max(ChangeRow.seq)).where(ChangeRow.user_id == bindparam(name)).scalar_subquery()
                for name in ("user_id", "erased", "shared")
            ]
        )
    )
    .order_by(ChangeRow.seq.desc())
    .limit(1)
)


async def tip(session: AsyncSession, user_id: str) -> Tip | None:
    """The newest change of this user's memories or synonyms, of the shared synonyms, or the user's erasure."""
    names = {"user_id": user_id, "erased": erased(user_id), "shared": SHARED}
    row = (await (await session.connection()).execute(_TIP, names)).first()
    return None if row is None else Tip(*row)


async def next_end(session: AsyncSession, user_id: str, now: datetime, lifetimes: Lifetimes) -> datetime | None:
    """The next moment at which an active memory of this user expires or ends."""
    mine = and_(MemoryRow.user_id == user_id, MemoryRow.status == "active")
    ends = [
        await session.scalar(select(func.min(column)).where(mine, column > now))
        for column in (MemoryRow.expires_at, MemoryRow.valid_to)
    ]
    for name, lifetime in lifetimes:
        mortal = and_(mine, MemoryRow.memory_type == name, MemoryRow.expires_at.is_(None))
        first = select(func.min(MemoryRow.created_at)).where(mortal, MemoryRow.created_at > now - lifetime)
        created = await session.scalar(first)
        ends.append(None if created is None else created + lifetime)
    return min((end for end in ends if end is not None), default=None)
