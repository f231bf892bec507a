"""Vectors of users with very many memories stay in PostgreSQL and are searched by pgvector. An index over all users'
vectors would walk through other users' rows, so each such user has a partial HNSW index. It finds nearly all of the
nearest; their similarity is computed exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5, sha256

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Float,
    Index,
    MetaData,
    Select,
    String,
    Table,
    and_,
    bindparam,
    cast,
    func,
    literal,
    select,
)
from sqlalchemy.orm import Session

from ...scope import Filter
from ..database import Repository, chunks, reads
from ..repositories.index_entries import vector_of_memory
from ..repositories.memories import conditions
from ..schema.columns import Halfvec
from ..schema.tables import EmbeddingRow, MemoryRow
from .postgres_database import PostgresDatabase

NEAREST = 400  # memories to fetch for each vector of a query
FARTHEST = 10
MOST_SCANNED = 100_000  # vectors in one index scan
LARGEST = 4000  # dimension of an HNSW index
OLDEST = (0, 8)  # version of pgvector with iterative scans, which go on until enough rows are in scope
SETTINGS = {
    "hnsw.ef_search": str(NEAREST),
    "hnsw.iterative_scan": "strict_order",
    "hnsw.max_scan_tuples": str(MOST_SCANNED),
    "enable_sort": "off",  # the planner overestimates the cost of the index
}

_VECTORS = EmbeddingRow.__table__
_catalog = MetaData()
_classes = Table("pg_class", _catalog, Column("oid"), Column("relname", String))
_indexes = Table("pg_index", _catalog, Column("indexrelid"), Column("indisvalid", Boolean))
_SET = select(*(func.set_config(name, value, True) for name, value in SETTINGS.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An index in the database. One whose creation was interrupted is not valid."""

    name: str
    valid: bool

    @property
    def dimension(self) -> int:
        return int(self.name.rpartition("_")[2])


def found(session: Session, user_id: str, model: str | None = None) -> list[Found]:
    joined = _classes.join(_indexes, _indexes.c.indexrelid == _classes.c.oid)
    mine = _classes.c.relname.startswith(_name(user_id, model), autoescape=True)
    rows = session.execute(select(_classes.c.relname, _indexes.c.indisvalid).select_from(joined).where(mine))
    return [Found(name=name, valid=valid) for name, valid in rows]


class PgVectors(Repository):
    """Vectors of very large users, which stay in PostgreSQL."""

    _database: PostgresDatabase

    def __init__(self, database: PostgresDatabase, above: int) -> None:
        super().__init__(database)
        self._above = above  # vectors of one user; 0 means never

    @reads
    def dimension(self, session: Session, user_id: str, model: str) -> int | None:
        """Return the dimension of the vectors that the user's index holds, or None without an index."""
        valid = [one.dimension for one in found(session, user_id, model) if one.valid]
        return valid[0] if valid else None

    @reads
    def nearest(
        self, session: Session, where: Filter, model: str, vectors: Sequence[NDArray[np.float32]], *, often: bool
    ) -> set[str]:
        """Return the ids of the memories nearest to vectors, by the index if many are in scope. Also the farthest,
        nearest to the opposite vector: similarities are scaled from worst to best."""
        if often:
            session.execute(_SET)
        ids: set[str] = set()
        for vector in vectors:
            for one, number in ((vector, NEAREST), (-vector, FARTHEST)):
                ids.update(session.scalars(_nearest(where, model, one, number, indexed=often)))
        return ids

    @reads
    def load(
        self, session: Session, user_id: str, model: str, ids: Sequence[str], dimension: int
    ) -> tuple[list[str], NDArray[np.float32]]:
        """Return vectors with the ids of their memories."""
        names: list[str] = []
        vectors: list[NDArray[np.float32]] = []
        for some in chunks(ids):
            statement = select(EmbeddingRow.memory_id, EmbeddingRow.vector).where(
                EmbeddingRow.user_id == user_id,
                EmbeddingRow.memory_id.in_(some),
                EmbeddingRow.part == 0,
                EmbeddingRow.model == model,
                EmbeddingRow.dimension == dimension,
            )
            for memory_id, vector in session.execute(statement):
                names.append(memory_id)
                vectors.append(vector)
        return names, np.stack(vectors) if vectors else np.empty((0, dimension), np.float32)

    async def maintain(self, user_id: str) -> None:
        """Create the user's index when there are more than so many vectors, and drop it below half of that."""
        above = self._above
        there, counted = await self._counted(user_id)
        able = await self._database.pgvector_version() >= OLDEST
        wanted, kept = set(), set()
        for (model, size), number in counted.items():
            if able and size <= LARGEST:
                index = index_for(user_id, model, size)
                wanted |= {index} if number > above else set()
                kept |= {index.name} if number > above // 2 else set()
        drop = [name for name, index in there.items() if not index.valid or name not in kept]
        create = [one for one in wanted if one.name in drop or one.name not in there]
        await self._database.change_indexes(user_id, drop=[to_drop(name) for name in drop], create=create)

    @reads
    def _counted(self, session: Session, user_id: str) -> tuple[dict[str, Found], dict[tuple[str, int], int]]:
        there = {index.name: index for index in found(session, user_id)}
        return there, sizes(session, user_id, 2 * self._above) if self._above else {}

    async def drop(self, user_id: str) -> None:
        """Drop the user's index."""
        left = await self._database.read(user_id, lambda session: found(session, user_id))
        await self._database.change_indexes(user_id, drop=[to_drop(index.name) for index in left])


def _nearest(where: Filter, model: str, vector: NDArray[np.float32], number: int, *, indexed: bool) -> Select[str]:
    """Select the ids of the nearest vectors, by the index or by comparing all."""
    asked = bindparam("asked", vector, Halfvec(len(vector)))
    column = cast(_VECTORS.c.vector, Halfvec(len(vector))) if indexed else _VECTORS.c.vector
    distance = column.op("<=>", return_type=Float())(asked)
    return (
        select(EmbeddingRow.memory_id)
        .join(MemoryRow, vector_of_memory())
        .where(*conditions(where), *_of_index(_VECTORS, where.user_id, model, len(vector)))
        .order_by(distance)
        .limit(number)
    )


def sizes(session: Session, user_id: str, most: int) -> dict[tuple[str, int], int]:
    """Count a user's vectors by model and dimension, up to a limit."""
    some = (
        select(EmbeddingRow.model, EmbeddingRow.dimension).where(EmbeddingRow.user_id == user_id).limit(most).subquery()
    )
    statement = select(some.c.model, some.c.dimension, func.count()).group_by(some.c.model, some.c.dimension)
    return {(model, size): number for model, size, number in session.execute(statement)}


def index_for(user_id: str, model: str, size: int) -> Index:
    """Return the index of a user's vectors, to be created concurrently."""
    vectors = _VECTORS.to_metadata(MetaData())  # a copy of the table: this index is not part of the schema
    return Index(
        f"{_name(user_id, model)}{size}",
        cast(vectors.c.vector, Halfvec(size)).label("near"),
        postgresql_using="hnsw",
        postgresql_ops={"near": "halfvec_cosine_ops"},
        postgresql_with={"m": 16, "ef_construction": 100},
        postgresql_where=and_(*_of_index(vectors, user_id, model, size)),
        postgresql_concurrently=True,
    )


def to_drop(name: str) -> Index:
    return Index(name, _VECTORS.to_metadata(MetaData()).c.vector, postgresql_concurrently=True)


def _of_index(vectors: Table, user_id: str, model: str, size: int) -> list[ColumnElement[bool]]:
    """Return the conditions of a user's index, literally as in its definition, so that the planner uses it. The user
    is hashed because definitions are visible to every role."""
    return [
        func.md5(vectors.c.user_id) == _fixed(md5(user_id.encode(), usedforsecurity=False).hexdigest()),
        vectors.c.model == _fixed(model),
        vectors.c.dimension == literal(size, literal_execute=True),
    ]


def _fixed(value: str) -> ColumnElement[str]:
    """Return a literal, which the planner needs to match the index."""
    return literal(value, String(), literal_execute=True)


def _name(user_id: str, model: str | None) -> str:
    """Return the name of a user's index, up to its dimension or its model."""
    whose = f"ix_embeddings_near_{sha256(user_id.encode()).hexdigest()[:20]}_"
    return whose if model is None else f"{whose}{sha256(model.encode()).hexdigest()[:8]}_"
