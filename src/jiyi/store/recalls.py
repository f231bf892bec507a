"""Past searches and the memories they returned, written in batches.

Nothing here enters the change feed or a memory's history: a memory that was read is the same memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, String, and_, bindparam, case, cast, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from ..models import Recall
from .database import Repository, chunks, from_row
from .tables import MemoryRow, RecallRow
from .types import Instant

_AT = bindparam("at", type_=Instant)
# Built once: every flush runs it. Another process may have noted a later access.
_LOOKED_AT = (
    update(MemoryRow)
    .where(MemoryRow.user_id == bindparam("whose"), MemoryRow.id == bindparam("memory"))
    .values(
        access_count=MemoryRow.access_count + bindparam("times"),
        last_accessed_at=case((MemoryRow.last_accessed_at > _AT, MemoryRow.last_accessed_at), else_=_AT),
    )
)


async def record(session: AsyncSession, recalls: Sequence[Recall], keep: int) -> None:
    """Save recalls, the newest `keep` of each user, and count the accesses of memories.

    A recall of a memory that was deleted meanwhile is dropped, because a question often repeats what its answer says.
    """
    by_user: defaultdict[str, list[Recall]] = defaultdict(list)
    for recall in recalls:
        by_user[recall.user_id].append(recall)
    connection = await session.connection()
    for user_id, theirs in sorted(by_user.items()):  # in one order, lest two processes wait for each other
        alive = await _alive(session, user_id, {memory_id for recall in theirs for memory_id in recall.memory_ids})
        kept = [recall for recall in theirs if alive.issuperset(recall.memory_ids)]
        if not kept:
            continue
        times = Counter(memory_id for recall in kept for memory_id in recall.memory_ids)
        last = {memory_id: recall.recalled_at for recall in kept for memory_id in recall.memory_ids}
        looked_at = [
            {"whose": user_id, "memory": memory_id, "times": times[memory_id], "at": last[memory_id]}
            for memory_id in sorted(times)
        ]
        await connection.execute(_LOOKED_AT, looked_at)
        values = [{**recall.model_dump(), "memory_ids": list(recall.memory_ids)} for recall in kept]
        await session.execute(insert(RecallRow), values)
        await _forget_older(session, user_id, keep)


async def _alive(session: AsyncSession, user_id: str, ids: set[str]) -> set[str]:
    found: set[str] = set()
    for some in chunks(sorted(ids)):
        statement = select(MemoryRow.id).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some))
        found.update(await session.scalars(statement))
    return found


async def _forget_older(session: AsyncSession, user_id: str, keep: int) -> None:
    newest_first = select(RecallRow.id).where(RecallRow.user_id == user_id).order_by(RecallRow.id.desc())
    too_old = await session.scalar(newest_first.offset(keep).limit(1))
    if too_old is not None:
        await session.execute(delete(RecallRow).where(RecallRow.user_id == user_id, RecallRow.id <= too_old))


async def forget(session: AsyncSession, user_id: str, memory_ids: Sequence[str], words: Sequence[str] = ()) -> int:
    """Remove recalls that name one of these memories or contain one of these words; return their number."""
    listed, asked = cast(RecallRow.memory_ids, String), func.lower(RecallRow.query)
    removed = 0
    for some in chunks(memory_ids, 100):
        named = or_(*(listed.contains(memory_id) for memory_id in some))  # ids are of one length, in letters and digits
        removed += await _remove(session, user_id, named)
    for some in chunks(words, 100):
        removed += await _remove(session, user_id, or_(*(asked.contains(word, autoescape=True) for word in some)))
    return removed


async def _remove(session: AsyncSession, user_id: str, which: ColumnElement[bool]) -> int:
    mine = and_(RecallRow.user_id == user_id, which)
    count = await session.scalar(select(func.count()).select_from(RecallRow).where(mine)) or 0
    if count:
        await session.execute(delete(RecallRow).where(mine))
    return count


class Recalls(Repository):
    """Past searches and the memories they returned."""

    async def add(self, recalled: Sequence[Recall], keep: int) -> None:
        users = sorted({recall.user_id for recall in recalled})
        await self._database.write(users, lambda session: record(session, recalled, keep))

    async def list(self, user_id: str, *, since: datetime | None, limit: int) -> Sequence[Recall]:
        """Return recalls, newest first."""
        async with self._database.reading(user_id) as session:
            statement = select(RecallRow).where(RecallRow.user_id == user_id).order_by(RecallRow.id.desc()).limit(limit)
            if since is not None:
                statement = statement.where(RecallRow.recalled_at >= since)
            return [from_row(Recall, row) for row in await session.scalars(statement)]
