"""Stored memories with their index entries, to be compared with what they should be; and orphaned rows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Table, and_, delete, exists, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from ..languages.terms import WORDS_VERSION
from ..models import utc_now
from .changes import tell
from .contract import Change, IndexEntry
from .database import Repository, chunks, from_row
from .edits import revision_values
from .entries import insert_index
from .memories import known_by_hash
from .tables import SHARED, Base, EmbeddingRow, KeywordRow, MemoryRow, RevisionRow, TermsRow

ACTOR = "verify"
UNKNOWN_VERSION = "its history did not know of this version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A memory with its stored index entry."""

    user_id: str
    id: str
    version: int
    memory_key: str
    memory_type: str
    status: str
    source: str
    agent_id: str | None
    group_id: str | None
    content: str
    summary: str
    tags: tuple[str, ...]
    data: dict[str, Any]
    trust: float
    occurred_at: datetime
    dedupe_hash: str | None
    slot: str | None
    near_hash: int
    length: int | None  # None: it has no terms
    asks: float
    hashes: NDArray[np.int64]
    counts: NDArray[np.uint16]
    keyword_hashes: NDArray[np.int64]
    keywords: tuple[tuple[str, float, str], ...]
    model: str | None  # None: it has no vector
    dimension: int
    vector: NDArray[np.float32] | None
    vectors: int  # of that model: its own, and those of its passages
    told: bool  # its history knows the version it is at


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """The values a memory should have; None means that it is right."""

    user_id: str
    id: str
    version: int
    index: IndexEntry | None = None
    dedupe_hash: str | None = None
    slot: str | None = None
    without_vector: bool = False
    history: bool = False


async def memories(
    session: AsyncSession,
    user_id: str | None,
    *,
    after: tuple[str, str],
    limit: int,
    ids: Sequence[str] | None = None,
) -> list[Checked]:
    """Return some memories of any state, by user and id."""
    key = tuple_(MemoryRow.user_id, MemoryRow.id)
    own = and_(TermsRow.user_id == MemoryRow.user_id, TermsRow.memory_id == MemoryRow.id)
    vector = and_(
        EmbeddingRow.user_id == MemoryRow.user_id, EmbeddingRow.memory_id == MemoryRow.id, EmbeddingRow.part == 0
    )
    told = exists().where(
        RevisionRow.user_id == MemoryRow.user_id,
        RevisionRow.memory_id == MemoryRow.id,
        RevisionRow.version == MemoryRow.version,
    )
    part = aliased(EmbeddingRow)
    parts = (
        select(func.count())
        .where(
            part.user_id == MemoryRow.user_id,
            part.memory_id == MemoryRow.id,
            part.model == EmbeddingRow.model,
            part.dimension == EmbeddingRow.dimension,
        )
        .correlate(MemoryRow, EmbeddingRow)
        .scalar_subquery()
    )
    statement = (
        select(MemoryRow, TermsRow, EmbeddingRow, parts, told)
        .outerjoin(TermsRow, own)
        .outerjoin(EmbeddingRow, vector)
        .where(key > after)
        .order_by(MemoryRow.user_id, MemoryRow.id)
        .limit(limit)
    )
    if user_id is not None:
        statement = statement.where(MemoryRow.user_id == user_id)
    if ids is not None:
        statement = statement.where(MemoryRow.id.in_(ids))
    found = (await session.execute(statement)).all()
    keywords: defaultdict[tuple[str, str], list[tuple[str, float, str]]] = defaultdict(list)
    for some in chunks([(memory.user_id, memory.id) for memory, *_ in found], 200):
        of_these = tuple_(KeywordRow.user_id, KeywordRow.memory_id).in_(some)
        for row in await session.scalars(select(KeywordRow).where(of_these)):
            keywords[row.user_id, row.memory_id].append((row.keyword, row.weight, row.source))
    return [
        _checked(memory, terms, embedding, vectors, keywords[memory.user_id, memory.id], bool(known))
        for memory, terms, embedding, vectors, known in found
    ]


def _checked(
    memory: MemoryRow,
    terms: TermsRow | None,
    embedding: EmbeddingRow | None,
    vectors: int,
    keywords: Sequence[tuple[str, float, str]],
    told: bool,
) -> Checked:
    none = np.empty(0, np.int64)
    return from_row(
        Checked,
        memory,
        length=None if terms is None else terms.length,
        asks=0.0 if terms is None else terms.asks,
        hashes=none if terms is None else terms.hashes,
        counts=none.astype(np.uint16) if terms is None else terms.counts,
        keyword_hashes=none if terms is None else terms.keyword_hashes,
        keywords=tuple(keywords),
        model=None if embedding is None else embedding.model,
        dimension=0 if embedding is None else embedding.dimension,
        vector=None if embedding is None else embedding.vector,
        vectors=vectors,
        told=told,
    )


async def repair(session: AsyncSession, wanted: Sequence[Repair]) -> list[str]:
    """Repair memories that were not changed meanwhile; return their ids."""
    done = []
    for one in wanted:
        row = await session.get(MemoryRow, (one.user_id, one.id))
        if row is None or row.version != one.version:
            continue
        if one.dedupe_hash is not None and not await _set_hash(session, row, one.dedupe_hash):
            continue
        row.slot = row.slot if one.slot is None else one.slot
        if one.index is not None:
            row.near_hash = one.index.near_hash
            for table in (TermsRow, KeywordRow):
                await session.execute(delete(table).where(table.user_id == one.user_id, table.memory_id == one.id))
            await insert_index(session, one.user_id, {one.id: one.index})
        if one.without_vector:
            mine = and_(EmbeddingRow.user_id == one.user_id, EmbeddingRow.memory_id == one.id)
            await session.execute(delete(EmbeddingRow).where(mine))
        if one.history:
            change = Change(values={}, action="update", actor=ACTOR, reason=UNKNOWN_VERSION, at=row.updated_at)
            session.add(RevisionRow(**revision_values(row.user_id, row.id, row.version, change, None)))
        await tell(session, one.user_id, [one.id], "update")
        done.append(one.id)
    return done


async def _set_hash(session: AsyncSession, row: MemoryRow, said: str) -> bool:
    """Set the dedupe hash unless another current memory has it."""
    twin = (await known_by_hash(session, row.user_id, [said], utc_now())).get(said, row.id)
    if row.status == "active" and row.valid_to is None and twin != row.id:
        return False
    row.dedupe_hash = said
    return True


def _orphans(user_id: str | None) -> list[tuple[Table, ColumnElement[bool]]]:
    """Return each table that refers to another, with the condition that the parent is missing."""
    found: list[tuple[Table, ColumnElement[bool]]] = []
    for table in Base.metadata.sorted_tables:
        for constraint in table.foreign_key_constraints:
            parent = constraint.referred_table.alias()
            same = [parent.columns[key.column.name] == key.parent for key in constraint.elements]
            missing = ~exists().where(and_(*same))
            mine = table.columns["user_id"] == user_id
            found.append((table, missing if user_id is None else and_(mine, missing)))
    return found


async def orphans(session: AsyncSession, user_id: str | None) -> dict[str, int]:
    """Count rows whose parent is missing, by table."""
    found: dict[str, int] = {}
    for table, missing in _orphans(user_id):
        count = await session.scalar(select(func.count()).select_from(table).where(missing)) or 0
        if count:
            found[table.name] = found.get(table.name, 0) + count
    return found


def _dangling(user_id: str | None) -> ColumnElement[bool]:
    other = aliased(MemoryRow)
    missing = ~exists().where(other.user_id == MemoryRow.user_id, other.id == MemoryRow.superseded_by)
    lost = and_(MemoryRow.superseded_by.is_not(None), missing)
    return lost if user_id is None else and_(MemoryRow.user_id == user_id, lost)


async def dangling(session: AsyncSession, user_id: str | None) -> int:
    """Count dangling `superseded_by` references."""
    return await session.scalar(select(func.count()).select_from(MemoryRow).where(_dangling(user_id))) or 0


async def remove_orphans(session: AsyncSession, user_id: str | None) -> Mapping[str, int]:
    found = await orphans(session, user_id)
    for table, missing in _orphans(user_id):
        if table.name in found:
            await session.execute(delete(table).where(missing))
    return found


async def let_go(session: AsyncSession, user_id: str | None) -> int:
    """Clear dangling `superseded_by` references; return their number."""
    lost = (await session.execute(select(MemoryRow.user_id, MemoryRow.id).where(_dangling(user_id)))).all()
    for whose, memory_id in lost:
        mine = and_(MemoryRow.user_id == whose, MemoryRow.id == memory_id)
        await session.execute(update(MemoryRow).where(mine).values(superseded_by=None))
        await tell(session, whose, [memory_id], "update")
    return len(lost)


class Checks(Repository):
    """Comparing what is stored with what should be, and repairing it."""

    async def page(self, user_id: str | None, *, after: tuple[str, str], limit: int) -> list[Checked]:
        async with self._database.reading(user_id) as session:
            return await memories(session, user_id, after=after, limit=limit)

    async def outdated(self, user_id: str, *, limit: int) -> list[Checked]:
        """Return some memories whose terms an earlier version computed."""
        async with self._database.reading(user_id) as session:
            older = and_(TermsRow.user_id == user_id, TermsRow.words_version < WORDS_VERSION)
            ids = list(
                await session.scalars(select(TermsRow.memory_id).where(older).order_by(TermsRow.memory_id).limit(limit))
            )
            return await memories(session, user_id, after=("", ""), limit=limit, ids=ids) if ids else []

    async def repair(self, wanted: Sequence[Repair]) -> list[str]:
        users = sorted({one.user_id for one in wanted})
        return await self._database.write(users, lambda session: repair(session, wanted))

    async def orphans(self, user_id: str | None) -> tuple[dict[str, int], int]:
        """Count rows whose parent is missing, by table, and dangling `superseded_by` references."""
        async with self._database.reading(user_id) as session:
            return await orphans(session, user_id), await dangling(session, user_id)

    async def remove_orphans(self, user_id: str | None) -> tuple[Mapping[str, int], int]:
        """Remove rows whose parent is missing, and clear dangling `superseded_by` references."""

        async def work(session: AsyncSession) -> tuple[Mapping[str, int], int]:
            return await remove_orphans(session, user_id), await let_go(session, user_id)

        return await self._database.write([user_id or SHARED], work)
