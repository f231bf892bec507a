"""Counts of memories, and usage of language models by user and hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BigInteger, ColumnElement, delete, func, select, type_coerce
from sqlalchemy.ext.asyncio import AsyncSession

from ..llm import Usage
from ..models import EPOCH, Stats
from .database import Repository
from .entries import coverage
from .memories import all_users
from .tables import LlmUsageRow, MemoryRow

TENTHS = 10
DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    by_importance: tuple[int, ...]  # active ones, in each tenth
    average_importance: float | None
    archived: int
    added_by_day: dict[str, int]


async def count_by_type(session: AsyncSession, user_id: str | None) -> dict[str, int]:
    """Count active memories by type, the most frequent first."""
    statement = (
        select(MemoryRow.memory_type, func.count())
        .where(MemoryRow.status == "active")
        .group_by(MemoryRow.memory_type)
        .order_by(func.count().desc(), MemoryRow.memory_type)
    )
    if user_id is not None:
        statement = statement.where(MemoryRow.user_id == user_id)
    return dict((await session.execute(statement)).all())


class Statistics(Repository):
    """Counts over all memories."""

    async def stats(self, model: str, user_id: str | None = None) -> Stats:
        info = await self._database.info()
        async with self._database.reading(user_id) as session:
            by_type = await count_by_type(session, user_id)
            return Stats(
                users=len(await all_users(session)) if user_id is None else 1,
                memories=sum(by_type.values()),
                by_type=by_type,
                coverage=await coverage(session, model, user_id),
                embedder=model,
                store=info.url,
                schema_version=info.schema,
                size_bytes=info.size_bytes,
            )

    async def tally(self, user_id: str | None, since: datetime) -> Tally:
        """Count memories of one user or of all; `added_by_day` includes archived ones."""
        async with self._database.reading(user_id) as session:
            mine: list[ColumnElement[bool]] = [] if user_id is None else [MemoryRow.user_id == user_id]
            statement = select(MemoryRow.status, MemoryRow.importance, func.count()).where(*mine)
            tenths, archived, total = [0] * TENTHS, 0, 0.0
            for status, importance, number in await session.execute(
                statement.group_by(MemoryRow.status, MemoryRow.importance)
            ):
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


KEPT = timedelta(days=30)


async def count(session: AsyncSession, user_id: str, hour: datetime, usage: Usage) -> Usage:
    """Add to the usage of an hour, or refund a negative one; return the new usage."""
    row = await session.get(LlmUsageRow, (user_id, hour))
    if row is None:
        row = LlmUsageRow(user_id=user_id, hour=hour, calls=0, input_tokens=0, output_tokens=0)
        session.add(row)
        await session.execute(delete(LlmUsageRow).where(LlmUsageRow.user_id == user_id, LlmUsageRow.hour < hour - KEPT))
    row.calls += usage.calls
    row.input_tokens += usage.input_tokens
    row.output_tokens += usage.output_tokens
    await session.flush()
    return Usage(row.calls, row.input_tokens, row.output_tokens)


class LlmUsage(Repository):
    """Calls and tokens of language models, by user and hour."""

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage) -> Usage:
        return await self._database.write([user_id], lambda session: count(session, user_id, hour, usage))
