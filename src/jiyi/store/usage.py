"""Usage: past searches with the memories they returned, counts of memories, and calls of language models. Recalls are
written in batches, and enter neither the change feed nor a memory's history."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    String,
    and_,
    bindparam,
    case,
    cast,
    delete,
    func,
    insert,
    or_,
    select,
    type_coerce,
    update,
)

from ..llm import Usage
from ..models import EPOCH, Recall, Stats
from .database import Inserts, Repository, chunks, from_row
from .entries import coverage
from .erasures import Erasures, check_epoch
from .memories import all_users
from .session import Session
from .tables import LlmUsageRow, MemoryRow, RecallRow
from .types import Instant

TENTHS = 10
DAY = 86_400_000_000  # microseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    by_importance: tuple[int, ...]  # active ones, in each tenth
    average_importance: float | None
    archived: int
    added_by_day: dict[str, int]


async def count_by_type(session: Session, user_id: str | None) -> dict[str, int]:
    """Count active memories by type, the most frequent first."""
    statement = (
        select(MemoryRow.memory_type, func.count())
        .where(MemoryRow.status == "active")
        .group_by(MemoryRow.memory_type)
        .order_by(func.count().desc(), MemoryRow.memory_type)
    )
    if user_id is not None:
        statement = statement.where(MemoryRow.user_id == user_id)
    return dict(await session.rows(statement))


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
            for status, importance, number in await session.rows(
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
                    for days, number in await session.rows(added)
                },
            )


KEPT = timedelta(days=30)


async def count_usage(session: Session, user_id: str, hour: datetime, usage: Usage) -> Usage:
    """Add to the usage of an hour, or refund a negative one; return the new usage."""
    mine = and_(LlmUsageRow.user_id == user_id, LlmUsageRow.hour == hour)
    row = await session.first(select(LlmUsageRow).where(mine))
    before = Usage(0, 0, 0) if row is None else Usage(row.calls, row.input_tokens, row.output_tokens)
    after = before + usage
    if row is None:
        await session.execute(delete(LlmUsageRow).where(LlmUsageRow.user_id == user_id, LlmUsageRow.hour < hour - KEPT))
        await session.execute(insert(LlmUsageRow), [{"user_id": user_id, "hour": hour, **asdict(after)}])
    else:
        await session.execute(update(LlmUsageRow).where(mine).values(asdict(after)))
    return after


class LlmUsage(Repository):
    """Calls and tokens of language models, by user and hour."""

    async def epoch(self, user_id: str) -> str:
        return await Erasures(self._database).epoch(user_id)

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage, epoch: str) -> Usage:
        async def count(session: Session) -> Usage:
            await check_epoch(session, user_id, epoch)
            return await count_usage(session, user_id, hour, usage)

        return await self._database.write([user_id], count)


MOST_COUNTED = 2_000_000_000  # a counter stops here rather than overflow
_AT = bindparam("at", type_=Instant)
# Built once: every flush runs it. Another process may have noted a later access.
_LOOKED_AT = (
    update(MemoryRow)
    .where(MemoryRow.user_id == bindparam("whose"), MemoryRow.id == bindparam("memory"))
    .values(
        access_count=case(
            (MemoryRow.access_count < MOST_COUNTED, MemoryRow.access_count + bindparam("times")), else_=MOST_COUNTED
        ),
        last_accessed_at=case((MemoryRow.last_accessed_at > _AT, MemoryRow.last_accessed_at), else_=_AT),
    )
)


_WHOSE = bindparam("user_id", type_=String)
_ALIVE = select(MemoryRow.id).where(MemoryRow.user_id == _WHOSE, MemoryRow.id.in_(bindparam("ids", expanding=True)))
_TOO_OLD = (
    select(RecallRow.id)
    .where(RecallRow.user_id == _WHOSE)
    .order_by(RecallRow.id.desc())
    .offset(bindparam("keep", type_=BigInteger))
    .limit(1)
)


async def record_recalls(session: Session, recalls: Sequence[Recall], keep: int) -> None:
    """Save recalls, the newest `keep` of each user, and count the accesses of memories. A recall of a memory that was
    deleted meanwhile is dropped, because a question often repeats what its answer says."""
    by_user: defaultdict[str, list[Recall]] = defaultdict(list)
    for recall in recalls:
        by_user[recall.user_id].append(recall)
    looked_at, inserts = [], Inserts()
    for user_id, theirs in sorted(by_user.items()):  # in one order, lest two processes wait for each other
        alive = await _alive(session, user_id, {memory_id for recall in theirs for memory_id in recall.memory_ids})
        kept = [recall for recall in theirs if alive.issuperset(recall.memory_ids)]
        times = Counter(memory_id for recall in kept for memory_id in recall.memory_ids)
        last = {memory_id: recall.recalled_at for recall in kept for memory_id in recall.memory_ids}
        looked_at += [
            {"whose": user_id, "memory": memory_id, "times": times[memory_id], "at": last[memory_id]}
            for memory_id in sorted(times)
        ]
        inserts.add(RecallRow, [{**dict(recall), "memory_ids": list(recall.memory_ids)} for recall in kept])
    if not looked_at:
        return
    await session.execute(_LOOKED_AT, looked_at)
    await inserts.run(session)
    for user_id in by_user:
        await _forget_older(session, user_id, keep)


async def _alive(session: Session, user_id: str, ids: set[str]) -> set[str]:
    reads = [(_ALIVE, {"user_id": user_id, "ids": list(some)}) for some in chunks(sorted(ids))]
    return {memory_id for rows in await session.select(*reads) for (memory_id,) in rows}


async def _forget_older(session: Session, user_id: str, keep: int) -> None:
    for [too_old] in (await session.select((_TOO_OLD, {"user_id": user_id, "keep": keep})))[0]:
        await session.execute(delete(RecallRow).where(RecallRow.user_id == user_id, RecallRow.id <= too_old))


async def forget_recalls(session: Session, user_id: str, memory_ids: Sequence[str], words: Sequence[str] = ()) -> int:
    """Remove recalls that name one of these memories or contain one of these words; return their number."""
    listed, asked = cast(RecallRow.memory_ids, String), func.lower(RecallRow.query)
    removed = 0
    for some in chunks(memory_ids, 100):
        named = or_(*(listed.contains(memory_id) for memory_id in some))  # ids are of one length, in letters and digits
        removed += await _remove(session, user_id, named)
    for some in chunks(words, 100):
        removed += await _remove(session, user_id, or_(*(asked.contains(word, autoescape=True) for word in some)))
    return removed


async def _remove(session: Session, user_id: str, which: ColumnElement[bool]) -> int:
    mine = and_(RecallRow.user_id == user_id, which)
    count = await session.scalar(select(func.count()).select_from(RecallRow).where(mine)) or 0
    if count:
        await session.execute(delete(RecallRow).where(mine))
    return count


class Recalls(Repository):
    """Past searches and the memories they returned."""

    async def add(self, recalled: Sequence[Recall], keep: int) -> None:
        users = sorted({recall.user_id for recall in recalled})
        await self._database.write(users, lambda session: record_recalls(session, recalled, keep))

    async def list(self, user_id: str, *, since: datetime | None, limit: int) -> Sequence[Recall]:
        """Return recalls, newest first."""
        async with self._database.reading(user_id) as session:
            statement = select(RecallRow).where(RecallRow.user_id == user_id).order_by(RecallRow.id.desc()).limit(limit)
            if since is not None:
                statement = statement.where(RecallRow.recalled_at >= since)
            return [from_row(Recall, row) for row in await session.rows(statement)]
