"""Stored memories with their index entries, to be compared with what they should be; and orphaned rows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Row, Table, and_, delete, exists, func, insert, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from ...languages.terms import WORDS_VERSION
from ...models import utc_now
from ..database import Columns, Repository, Values, chunks, from_row, ids_by_user, reads
from ..repositories.change_feed import tell
from ..repositories.index_entries import insert_index
from ..repositories.memories import known_by_hash
from ..repositories.revisions import revision_values
from ..schema.columns import METADATA
from ..schema.tables import SHARED, EmbeddingRow, KeywordRow, MemoryRow, RevisionRow, TermsRow
from ..write_set import Change, IndexEntry, StoredMemory

ACTOR = "verify"
UNKNOWN_VERSION = "its history did not know of this version"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked(StoredMemory):
    """A memory with its stored index entry."""

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


def memories(
    session: Session,
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
        select(MemoryRow.__table__, *_TERMS, *_VECTOR, parts.label("vectors"), told.label("told"))
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
    found = session.execute(statement).all()
    keywords: defaultdict[tuple[str, str], list[tuple[str, float, str]]] = defaultdict(list)
    for owner, of_owner in ids_by_user((row.user_id, row.id) for row in found).items():
        for some in chunks(of_owner):
            of_these = and_(KeywordRow.user_id == owner, KeywordRow.memory_id.in_(some))
            for word in session.execute(select(KeywordRow.__table__).where(of_these)):
                keywords[owner, word.memory_id].append((word.keyword, word.weight, word.source))
    return [_checked(row, keywords[row.user_id, row.id]) for row in found]


_TERMS = (TermsRow.length, TermsRow.asks, TermsRow.hashes, TermsRow.counts, TermsRow.keyword_hashes)
_VECTOR = (EmbeddingRow.model, EmbeddingRow.dimension, EmbeddingRow.vector)


def _checked(row: Any, keywords: Sequence[tuple[str, float, str]]) -> Checked:
    none = np.empty(0, np.int64)
    instead = {  # of terms and vectors that are missing
        "asks": 0.0,
        "hashes": none,
        "counts": none.astype(np.uint16),
        "keyword_hashes": none,
        "dimension": 0,
    }
    known = {name: value if (stored := getattr(row, name)) is None else stored for name, value in instead.items()}
    return from_row(Checked, row, **known, keywords=tuple(keywords), told=bool(row.told))


def repair(session: Session, wanted: Sequence[Repair]) -> list[str]:
    """Repair memories that were not changed meanwhile; return their ids."""
    done = []
    for one in wanted:
        mine = and_(MemoryRow.user_id == one.user_id, MemoryRow.id == one.id)
        row = session.execute(select(MemoryRow.__table__).where(mine)).first()
        if row is None or row.version != one.version:
            continue
        if one.dedupe_hash is not None and not _may_have(session, row, one.dedupe_hash):
            continue
        values: Values = {
            name: getattr(one, name) for name in ("dedupe_hash", "slot") if getattr(one, name) is not None
        }
        if one.index is not None:
            values["near_hash"] = one.index.near_hash
        if values:
            session.execute(update(MemoryRow).where(mine).values(values))
        if one.index is not None:
            for table in (TermsRow, KeywordRow):
                session.execute(delete(table).where(table.user_id == one.user_id, table.memory_id == one.id))
            insert_index(session, one.user_id, {one.id: one.index})
        if one.without_vector:
            of_memory = and_(EmbeddingRow.user_id == one.user_id, EmbeddingRow.memory_id == one.id)
            session.execute(delete(EmbeddingRow).where(of_memory))
        if one.history:
            change = Change(values={}, action="update", actor=ACTOR, reason=UNKNOWN_VERSION, at=row.updated_at)
            missing = revision_values(row.user_id, row.id, row.version, change, None)
            session.execute(insert(RevisionRow), [missing])
        tell(session, one.user_id, [one.id], "update")
        done.append(one.id)
    return done


def _may_have(session: Session, row: Row[*Columns], said: str) -> bool:
    """Return False if another current memory has this dedupe hash."""
    twin = (known_by_hash(session, row.user_id, [said], utc_now())).get(said, row.id)
    return twin == row.id or row.status != "active" or row.valid_to is not None


def _orphans(user_id: str | None) -> list[tuple[Table, ColumnElement[bool]]]:
    """Return each table that refers to another, with the condition that the parent is missing."""
    found: list[tuple[Table, ColumnElement[bool]]] = []
    for table in METADATA.sorted_tables:
        for constraint in table.foreign_key_constraints:
            parent = constraint.referred_table.alias()
            same = [parent.columns[key.column.name] == key.parent for key in constraint.elements]
            missing = ~exists().where(and_(*same))
            mine = table.columns["user_id"] == user_id
            found.append((table, missing if user_id is None else and_(mine, missing)))
    return found


def orphans(session: Session, user_id: str | None) -> dict[str, int]:
    """Count rows whose parent is missing, by table."""
    found: dict[str, int] = {}
    for table, missing in _orphans(user_id):
        count = session.scalar(select(func.count()).select_from(table).where(missing)) or 0
        if count:
            found[table.name] = found.get(table.name, 0) + count
    return found


def _dangling(user_id: str | None) -> ColumnElement[bool]:
    other = aliased(MemoryRow)
    missing = ~exists().where(other.user_id == MemoryRow.user_id, other.id == MemoryRow.superseded_by)
    lost = and_(MemoryRow.superseded_by.is_not(None), missing)
    return lost if user_id is None else and_(MemoryRow.user_id == user_id, lost)


def dangling(session: Session, user_id: str | None) -> int:
    """Count dangling `superseded_by` references."""
    return session.scalar(select(func.count()).select_from(MemoryRow).where(_dangling(user_id))) or 0


def remove_orphans(session: Session, user_id: str | None) -> Mapping[str, int]:
    found = orphans(session, user_id)
    for table, missing in _orphans(user_id):
        if table.name in found:
            session.execute(delete(table).where(missing))
    return found


def let_go(session: Session, user_id: str | None) -> int:
    """Clear dangling `superseded_by` references; return their number."""
    lost = session.execute(select(MemoryRow.user_id, MemoryRow.id).where(_dangling(user_id))).all()
    for whose, memory_id in lost:
        mine = and_(MemoryRow.user_id == whose, MemoryRow.id == memory_id)
        session.execute(update(MemoryRow).where(mine).values(superseded_by=None))
        tell(session, whose, [memory_id], "update")
    return len(lost)


class Checks(Repository):
    """Comparing what is stored with what should be, and repairing it."""

    @reads
    def page(self, session: Session, user_id: str | None, *, after: tuple[str, str], limit: int) -> list[Checked]:
        return memories(session, user_id, after=after, limit=limit)

    @reads
    def outdated(self, session: Session, user_id: str, *, limit: int) -> list[Checked]:
        """Return some memories whose terms an earlier version computed."""
        older = and_(TermsRow.user_id == user_id, TermsRow.words_version < WORDS_VERSION)
        ids = session.scalars(select(TermsRow.memory_id).where(older).order_by(TermsRow.memory_id).limit(limit)).all()
        return memories(session, user_id, after=("", ""), limit=limit, ids=ids) if ids else []

    async def repair(self, wanted: Sequence[Repair]) -> list[str]:
        users = sorted({one.user_id for one in wanted})
        return await self._database.write(users, lambda session: repair(session, wanted))

    @reads
    def orphans(self, session: Session, user_id: str | None) -> tuple[dict[str, int], int]:
        """Count rows whose parent is missing, by table, and dangling `superseded_by` references."""
        return orphans(session, user_id), dangling(session, user_id)

    async def remove_orphans(self, user_id: str | None) -> tuple[Mapping[str, int], int]:
        """Remove rows whose parent is missing, and clear dangling `superseded_by` references."""

        def work(session: Session) -> tuple[Mapping[str, int], int]:
            return remove_orphans(session, user_id), let_go(session, user_id)

        return await self._database.write([user_id or SHARED], work)
