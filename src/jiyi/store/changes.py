"""How far a user's memories have come, and when the next of them ends: what an answer that is kept hangs on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import and_, bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from ..scope import Lifetimes
from . import synonyms
from .contract import Outset, Tip
from .database import Repository
from .inserts import Inserts
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


async def changed_users(session: AsyncSession, seen: int) -> tuple[int, list[str]]:
    """Whose memories have changed since then. → with how far the change feed has come"""
    tip = await session.scalar(select(func.max(ChangeRow.seq))) or 0
    since = select(ChangeRow.user_id).where(ChangeRow.seq > seen, ChangeRow.user_id != SHARED).distinct()
    return tip, list(await session.scalars(since)) if tip > seen else []


async def tell(session: AsyncSession, user_id: str, memory_ids: Sequence[str], action: str) -> None:
    """Add changes to the change feed."""
    inserts = Inserts()
    inserts.tell(user_id, memory_ids, action)
    await inserts.run(session)


class Changes(Repository):
    """The change feed: what a search has to catch up with."""

    async def search_snapshot(self, user_id: str, words: Sequence[str]) -> Outset:
        """Return the newest change that concerns a user, and the synonyms of these words."""
        async with self._database.reading(user_id) as session:
            return Outset(await tip(session, user_id), await synonyms.of(session, user_id, words))

    async def next_end(self, user_id: str, now: datetime, lifetimes: Lifetimes = ()) -> datetime | None:
        """Return the next time at which a memory of the user expires or ends."""
        async with self._database.reading(user_id) as session:
            return await next_end(session, user_id, now, lifetimes)

    async def users_since(self, seen: int) -> tuple[int, list[str]]:
        """Return the newest change number, and the users whose memories changed since `seen`."""
        async with self._database.reading(None) as session:
            return await changed_users(session, seen)
