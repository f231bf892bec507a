"""How many memories there are of each kind: what metrics show."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, ColumnElement, func, select, type_coerce
from sqlalchemy.ext.asyncio import AsyncSession

from ..models import EPOCH
from .tables import MemoryRow

TENTHS = 10
DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    by_importance: tuple[int, ...]  # active ones, in each tenth
    average_importance: float | None
    archived: int
    added_by_day: dict[str, int]


async def tally(session: AsyncSession, user_id: str | None, since: datetime) -> Tally:
    """Of one user or of all; `added_by_day` counts what was added since then and is still there, archived or not."""
    mine: list[ColumnElement[bool]] = [] if user_id is None else [MemoryRow.user_id == user_id]
    statement = select(MemoryRow.status, MemoryRow.importance, func.count()).where(*mine)
    tenths, archived, total = [0] * TENTHS, 0, 0.0
    for status, importance, number in await session.execute(statement.group_by(MemoryRow.status, MemoryRow.importance)):
        if status != "active":
            archived += number
            continue
        tenths[min(int(importance * TENTHS), TENTHS - 1)] += number
        total += importance * number
    day = type_coerce(MemoryRow.created_at, BigInteger) // DAY
    added = select(day, func.count()).where(*mine, MemoryRow.created_at >= since).group_by(day).order_by(day)
    return Tally(
        by_importance=tuple(tenths),
        average_importance=total / sum(tenths) if sum(tenths) else None,
        archived=archived,
        added_by_day={
            (EPOCH + timedelta(days=int(days))).date().isoformat(): number
            for days, number in await session.execute(added)
        },
    )
