"""Calls and tokens of language models, by user and hour."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.ext.asyncio import AsyncSession

from ..llm import Usage
from .database import Repository
from .tables import LlmUsageRow

KEPT = timedelta(days=30)


async def count(session: AsyncSession, user_id: str, hour: datetime, usage: Usage) -> Usage:
    """Add to an hour's usage; what is negative gives back. → what it is now"""
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
