"""All that a store holds, as records, in one order on every database: by user, then by kind, then by id. The session is
a snapshot, so what is written meanwhile is in it as a whole or not at all; a few rows of it are in RAM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

from sqlalchemy import RowMapping, Table, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from . import records as r
from .tables import (
    SHARED,
    Base,
    EmbeddingRow,
    JobMemoryRow,
    JobRow,
    KeywordRow,
    MemoryRow,
    MemorySourceRow,
    MessageRow,
    RecallRow,
    RelationRow,
    RevisionRow,
    SynonymRow,
    UnitMessageRow,
    UnitRow,
)

AT_ONCE = 200
JOBS_AT_ONCE = 5  # each may have led to a thousand memories
USERS_AT_ONCE = 1000
OWNING = (MemoryRow, MessageRow, JobRow, RecallRow, SynonymRow)  # who has none of these has nothing

Row = RowMapping


async def size(session: AsyncSession, user_id: str | None) -> int:
    """How many memories and messages there are: what takes time."""
    whole = 0
    for table in (MemoryRow, MessageRow):
        count = select(func.count()).select_from(table)
        whole += await session.scalar(count if user_id is None else count.where(table.user_id == user_id)) or 0
    return whole


async def lines(session: AsyncSession, user_id: str | None) -> AsyncIterator[list[r.Line]]:
    """Everything of one user, or of all with what they share."""
    if user_id is not None:
        async for some in _of_user(session, user_id):
            yield some
        return
    async for some in _synonyms(session, SHARED):
        yield some
    last = SHARED
    while users := await _users(session, last):
        for each in users:
            async for some in _of_user(session, each):
                yield some
        last = users[-1]


async def _users(session: AsyncSession, after: str) -> list[str]:
    found: set[str] = set()
    for table in OWNING:
        own = select(table.user_id).where(table.user_id > after).distinct().order_by(table.user_id)
        found.update(await session.scalars(own.limit(USERS_AT_ONCE)))
    return sorted(found)[:USERS_AT_ONCE]


async def _of_user(session: AsyncSession, user_id: str) -> AsyncIterator[list[r.Line]]:
    async for some in _synonyms(session, user_id):
        yield some
    async for rows in _pages(session, UnitRow, user_id):
        yield [r.UnitRecord(**row) for row in rows]
    async for rows in _pages(session, MessageRow, user_id):
        units = {
            row["message_id"]: row["unit_id"] for row in await _beside(session, UnitMessageRow, rows, "message_id")
        }
        yield [r.MessageRecord(**row, unit_id=units.get(row["id"])) for row in rows]
    async for rows in _pages(session, MemoryRow, user_id):
        yield await _memories(session, rows)
    async for rows in _pages(session, RelationRow, user_id):
        yield [r.RelationRecord(**row) for row in rows]
    async for rows in _pages(session, RecallRow, user_id):
        yield [r.RecallRecord(**row) for row in rows]
    async for rows in _pages(session, JobRow, user_id, JOBS_AT_ONCE):
        yield await _jobs(session, rows)


async def _synonyms(session: AsyncSession, user_id: str) -> AsyncIterator[list[r.Line]]:
    async for rows in _pages(session, SynonymRow, user_id):
        yield [r.SynonymRecord(**row) for row in rows]


async def _memories(session: AsyncSession, rows: Sequence[Row]) -> list[r.Line]:
    keywords, sources, vectors, revisions = [
        _by_memory(await _beside(session, table, rows, "memory_id"))
        for table in (KeywordRow, MemorySourceRow, EmbeddingRow, RevisionRow)
    ]
    return [
        r.MemoryRecord(
            **{name: value for name, value in row.items() if name != "near_hash"},
            keywords=[r.KeywordRecord(**_but(one)) for one in keywords[row["id"]]],
            sources=[r.SourceRecord(**_but(one)) for one in sources[row["id"]]],
            vectors=[
                r.VectorRecord(part=one["part"], model=one["model"], vector=r.encoded(one["vector"]))
                for one in vectors[row["id"]]
            ],
            revisions=[r.RevisionRecord(**_but(one)) for one in revisions[row["id"]]],
        )
        for row in rows
    ]


async def _jobs(session: AsyncSession, rows: Sequence[Row]) -> list[r.Line]:
    led_to: defaultdict[str, list[str]] = defaultdict(list)
    for one in await _beside(session, JobMemoryRow, rows, "job_id"):
        led_to[one["job_id"]].append(one["memory_id"])
    left_out = ("kind", "leased_by", "leased_until")
    return [
        r.JobRecord(
            **{name: value for name, value in row.items() if name not in left_out},
            job=row["kind"],
            memory_ids=led_to[row["id"]],
        )
        for row in rows
    ]


def _by_memory(rows: Sequence[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["memory_id"]].append(row)
    return found


def _but(row: Row) -> dict[str, Any]:
    """Without what the record around it says."""
    return {name: value for name, value in row.items() if name not in ("user_id", "memory_id")}


async def _pages(
    session: AsyncSession, table: type[Base], user_id: str, at_once: int = AT_ONCE
) -> AsyncIterator[Sequence[Row]]:
    """A user's rows of a table, some at a time, in the order of their keys."""
    own = cast(Table, table.__table__)
    key = [column for column in own.primary_key.columns if column.name != "user_id"]
    statement = select(own).where(own.columns["user_id"] == user_id).order_by(*key).limit(at_once)
    connection = await session.connection()
    page = statement
    while rows := (await connection.execute(page)).mappings().all():
        yield rows
        if len(rows) < at_once:
            return
        last = [rows[-1][column.name] for column in key]
        page = statement.where(tuple_(*key) > tuple_(*last) if len(key) > 1 else key[0] > last[0])


async def _beside(session: AsyncSession, table: type[Base], rows: Sequence[Row], name: str) -> Sequence[Row]:
    """The rows of a table that belong to a page of others, which is a range of ids of one user."""
    own = cast(Table, table.__table__)
    statement = select(own).where(
        own.columns["user_id"] == rows[0]["user_id"], own.columns[name].between(rows[0]["id"], rows[-1]["id"])
    )
    in_order = statement.order_by(*own.primary_key.columns)
    return (await (await session.connection()).execute(in_order)).mappings().all()
