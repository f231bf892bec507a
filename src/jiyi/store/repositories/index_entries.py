"""Index entries: terms, keywords and vectors of memories, as they are stored."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Row,
    and_,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    tuple_,
    union,
)
from sqlalchemy.orm import Session

from ...languages.terms import WORDS_VERSION, term_hash
from ...models import Coverage
from ...text.passages import passages
from ..database import Columns, Inserts, Repository, chunks, ids_by_user, reads, writes
from ..schema.tables import EmbeddingRow, KeywordRow, MemoryRow, TermsRow
from ..write_set import IndexEntry, Unembedded
from .change_feed import tell

INDEX_TABLES = (EmbeddingRow, TermsRow, KeywordRow)
ALIKE = 20  # memories that are compared with a new one
HOLDERS = 500  # memories with a keyword, the newest, among which they are looked for


def index_values(user_id: str, memory_id: str, index: IndexEntry) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of an index entry, by table."""
    key = {"user_id": user_id, "memory_id": memory_id}
    vectors = () if index.vector is None else (index.vector, *index.of_passages)
    return {
        "embeddings": [{**key, **one} for one in vector_values(index.model, vectors)],
        "terms": [
            {
                **key,
                "length": index.length,
                "asks": index.asks,
                "kind": index.kind,
                "salience": index.salience,
                "hashes": index.hashes,
                "counts": index.counts,
                "keyword_hashes": np.array([term_hash(keyword) for keyword, _, _ in index.keywords], np.int64),
                "keyword_weights": np.array([weight for _, weight, _ in index.keywords], np.float32),
                "words_version": WORDS_VERSION,
            }
        ],
        "keywords": [
            {**key, "keyword": keyword, "weight": weight, "source": source}
            for keyword, weight, source in index.keywords
        ],
    }


def vector_values(model: str | None, vectors: Iterable[NDArray[np.float32]]) -> list[dict[str, Any]]:
    """Return the rows of a memory's vector and those of its passages."""
    return [
        {"part": part, "model": model, "dimension": len(vector), "vector": vector}
        for part, vector in enumerate(vectors)
    ]


def insert_index(session: Session, user_id: str, entries: Mapping[str, IndexEntry]) -> None:
    """Insert the index entries of memories, by id."""
    inserts = Inserts()
    for memory_id, entry in entries.items():
        inserts.add_tables(index_values(user_id, memory_id, entry))
    inserts.run(session)


def vector_of_memory() -> ColumnElement[bool]:
    """Return the join condition of a memory and its first vector."""
    return and_(
        EmbeddingRow.user_id == MemoryRow.user_id, EmbeddingRow.memory_id == MemoryRow.id, EmbeddingRow.part == 0
    )


def without_vector(session: Session, user_id: str, ids: Sequence[str], model: str) -> list[str]:
    """Return the ids without a vector of this model."""
    embedded: set[str] = set()
    for some in chunks(ids):
        statement = select(EmbeddingRow.memory_id).where(
            EmbeddingRow.user_id == user_id, EmbeddingRow.memory_id.in_(some), EmbeddingRow.model == model
        )
        embedded.update(session.scalars(statement))
    return [memory_id for memory_id in ids if memory_id not in embedded]


def coverage(session: Session, model: str, user_id: str | None) -> Coverage:
    statement = (
        select(EmbeddingRow.model, func.count())
        .select_from(MemoryRow)
        .outerjoin(EmbeddingRow, vector_of_memory())
        .where(MemoryRow.status == "active")
        .group_by(EmbeddingRow.model)
    )
    if user_id is not None:
        statement = statement.where(MemoryRow.user_id == user_id)
    counted: dict[str | None, int] = dict(session.execute(statement).all())
    models = {name: number for name, number in counted.items() if name is not None}
    has_keyword = exists().where(KeywordRow.user_id == MemoryRow.user_id, KeywordRow.memory_id == MemoryRow.id)
    with_keywords = select(func.count()).select_from(MemoryRow).where(MemoryRow.status == "active", has_keyword)
    if user_id is not None:
        with_keywords = with_keywords.where(MemoryRow.user_id == user_id)
    outdated = select(func.count()).select_from(TermsRow).where(TermsRow.words_version < WORDS_VERSION)
    if user_id is not None:
        outdated = outdated.where(TermsRow.user_id == user_id)
    return Coverage(
        memories=sum(counted.values()),
        embedded=models.get(model, 0),
        models=models,
        with_keywords=session.scalar(with_keywords) or 0,
        outdated=session.scalar(outdated) or 0,
    )


def save_vectors(
    session: Session, model: str, found: Sequence[Unembedded], vectors: Sequence[NDArray[np.float32]]
) -> int:
    """Save vectors of memories that were not changed meanwhile; return their number."""
    versions: dict[tuple[str, str], int] = {}
    for user_id, ids in ids_by_user((memory.user_id, memory.memory_id) for memory in found).items():
        mine = select(MemoryRow.id, MemoryRow.version).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(ids))
        versions |= {(user_id, memory_id): version for memory_id, version in session.execute(mine).all()}
    fitting = [
        (memory, rows_of)
        for memory, rows_of in zip(found, vectors, strict=True)
        if versions.get((memory.user_id, memory.memory_id)) == memory.version
    ]
    values = [
        {"user_id": memory.user_id, "memory_id": memory.memory_id, **one}
        for memory, rows_of in fitting
        for one in vector_values(model, rows_of)
    ]
    inserts = Inserts()
    inserts.add(EmbeddingRow, values)
    for user_id, ids in ids_by_user((memory.user_id, memory.memory_id) for memory, _ in fitting).items():
        of_these = and_(EmbeddingRow.user_id == user_id, EmbeddingRow.memory_id.in_(ids))
        session.execute(delete(EmbeddingRow).where(of_these))
        inserts.tell(user_id, ids, "update")
    inserts.run(session)
    return len(fitting)


_keyword, _memory = (row.__table__.c for row in (KeywordRow, MemoryRow))
# Statements that every `add` or search runs are built once: building one takes longer than running it.
_USER: BindParameter[str] = bindparam("user_id")
_holders = (  # of two words; the index has them in the order of their ids
    select(_keyword.memory_id)
    .where(_keyword.user_id == _USER, _keyword.keyword == bindparam(word))
    .order_by(_keyword.memory_id.desc())
    .limit(HOLDERS)
    .subquery()
    for word in ("first", "second")
)
_holder = union(*(select(one.c.memory_id) for one in _holders)).subquery()
_other = KeywordRow.__table__.alias().c
_shared = (
    select(func.count())
    .where(
        _other.user_id == _USER,
        _other.memory_id == _holder.c.memory_id,
        _other.keyword.in_(bindparam("words", expanding=True)),
    )
    .correlate(_holder)
    .scalar_subquery()
)
# The newest current memories of a type that have one of two keywords and share enough of some.
_ALIKE = (
    select(_memory.id, _memory.content)
    .where(
        _memory.user_id == _USER,
        _memory.id.in_(select(_holder.c.memory_id).where(_shared >= bindparam("least", type_=Integer()))),
        _memory.memory_type == bindparam("type"),
        _memory.status == "active",
        _memory.valid_to.is_(None),
    )
    .order_by(_memory.id.desc())
    .limit(ALIKE)
)


class IndexEntries(Repository):
    """The stored index entries of memories."""

    @reads
    def alike(self, session: Session, user_id: str, words: Sequence[str], *, memory_type: str) -> list[tuple[str, str]]:
        """Return ids and texts of the newest current memories of a type that share all but one of some keywords."""
        values = {
            "user_id": user_id,
            "words": list(words),
            "first": words[0],  # without one of the words at most, a memory has one of the first two
            "second": words[1] if len(words) > 1 else words[0],
            "least": max(1, len(words) - 1),
            "type": memory_type,
        }
        return [(memory_id, content) for memory_id, content in session.connection().execute(_ALIKE, values)]

    async def coverage(self, model: str, user_id: str | None = None) -> Coverage:
        return await self._database.read(user_id, lambda session: coverage(session, model, user_id))

    @reads(everybody=True)
    def unembedded(
        self, session: Session, model: str, dimension: int, *, after: tuple[str, str], limit: int
    ) -> list[Unembedded]:
        """Return some memories without a vector of this model and dimension, by user and id."""
        missing = or_(EmbeddingRow.model.is_(None), EmbeddingRow.model != model, EmbeddingRow.dimension != dimension)
        statement = (
            select(MemoryRow.user_id, MemoryRow.id, MemoryRow.version, MemoryRow.content, MemoryRow.data)
            .outerjoin(EmbeddingRow, vector_of_memory())
            .where(MemoryRow.status == "active", missing, tuple_(MemoryRow.user_id, MemoryRow.id) > after)
            .order_by(MemoryRow.user_id, MemoryRow.id)
            .limit(limit)
        )
        return [
            Unembedded(user_id=user_id, memory_id=memory_id, version=version, texts=(content, *passages(content, data)))
            for user_id, memory_id, version, content, data in session.execute(statement).all()
        ]

    async def save_vectors(
        self, model: str, found: Sequence[Unembedded], vectors: Sequence[NDArray[np.float32]]
    ) -> int:
        users = sorted({memory.user_id for memory in found})
        return await self._database.write(users, lambda session: save_vectors(session, model, found, vectors))

    @reads
    def get(self, session: Session, user_id: str, ids: Sequence[str]) -> dict[str, IndexEntry]:
        """Return stored index entries; memories without terms are left out."""
        mine = {"user_id": user_id}
        keywords: defaultdict[str, list[tuple[str, float, str]]] = defaultdict(list)
        vectors: dict[str, Row[*Columns]] = {}
        terms: dict[str, Row[*Columns]] = {}
        for some in chunks(ids):
            for word in session.execute(
                select(KeywordRow.__table__).filter_by(**mine).where(KeywordRow.memory_id.in_(some))
            ).all():
                keywords[word.memory_id].append((word.keyword, word.weight, word.source))
            found = session.execute(
                select(EmbeddingRow.__table__).filter_by(**mine).where(EmbeddingRow.memory_id.in_(some))
            ).all()
            vectors |= {row.memory_id: row for row in found}
            words = session.execute(
                select(TermsRow.__table__).filter_by(**mine).where(TermsRow.memory_id.in_(some))
            ).all()
            terms |= {row.memory_id: row for row in words}
        return {
            memory_id: IndexEntry(
                length=row.length,
                asks=row.asks,
                kind=row.kind,
                salience=row.salience,
                hashes=row.hashes,
                counts=row.counts,
                keywords=tuple(keywords[memory_id]),
                near_hash=0,
                vector=vectors[memory_id].vector if memory_id in vectors else None,
                model=vectors[memory_id].model if memory_id in vectors else None,
            )
            for memory_id, row in terms.items()
        }

    @writes
    def replace(self, session: Session, user_id: str, entries: Mapping[str, tuple[int, IndexEntry]]) -> int:
        """Replace the index entries of memories that still have the given version; return their number."""
        done: dict[str, IndexEntry] = {}
        for some in chunks(list(entries)):
            mine = select(MemoryRow.id, MemoryRow.version).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some))
            at = [memory_id for memory_id, version in session.execute(mine).all() if version == entries[memory_id][0]]
            for table in INDEX_TABLES:
                of_these = and_(table.user_id == user_id, table.memory_id.in_(at))
                session.execute(delete(table).where(of_these))
            done |= {memory_id: entries[memory_id][1] for memory_id in at}
        insert_index(session, user_id, done)
        tell(session, user_id, list(done), "update")
        return len(done)
