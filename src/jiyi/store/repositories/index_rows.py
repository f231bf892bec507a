"""Rows, keywords, links and packed columns of memories that a search index loads. A statement that names ids finds its
rows by an index of the database, whatever the user's size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    LargeBinary,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    null,
    select,
    type_coerce,
)
from sqlalchemy.orm import Session

from ...ids import erased
from ...languages.words import normalise
from ...roles import is_person, subject_text
from ...text.passages import COMPRESSED
from ...text_cache import text_cache
from ..database import Repository, chunks, reads, writes
from ..schema.tables import (
    SOURCES,
    ChangeRow,
    EmbeddingRow,
    KeywordRow,
    MemoryRow,
    MemorySourceRow,
    PackedIndexRow,
    TermsRow,
)
from ..write_set import EXTRACTED
from .memories import GATHERED

AT_ONCE = 5000  # rows of a page
VECTORS_AT_ONCE = 500  # rows; more would not fit into the processor's cache
MOST_MESSAGES = 1500  # of the sessions of candidates

Link = tuple[str, str, str | None]  # a derived memory, a message it came from, and its successor


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A memory as the index takes it in: times in microseconds, arrays as the bytes they are stored as."""

    id: str
    memory_type: str
    layer: str
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    speaker: str | None  # normalised, like the tags
    assistant: bool
    derived: bool  # from messages
    tags: Sequence[str]
    occurred_at: int
    valid_from: int
    valid_to: int | None
    expires_at: int | None
    last_accessed_at: int | None
    access_count: int
    importance: float
    trust: float
    length: int
    asks: float
    kind: str
    hashes: bytes
    counts: bytes
    keyword_hashes: bytes
    keyword_weights: bytes
    vector: bytes | None  # None also if it stays in the database
    dimension: int | None  # None without a vector
    alone: bool = False  # compressed: an episode by itself
    created_at: int = 0
    lines: int = 1  # of a compressed memory
    passages: Sequence[bytes] = ()  # vectors

    @property
    def of_passage(self) -> int:
        """Length of one passage."""
        return self.length // self.lines


class IndexBatch(NamedTuple):
    """Memories that an index takes in, with their keywords and links."""

    rows: list[IndexRow]
    keywords: set[str]
    links: list[Link]


class PackedIndex(NamedTuple):
    """The columns of an index as they were at one position of the change feed."""

    seen: int
    parts: dict[str, bytes]  # by name


_terms, _vector, _memory, _keyword, _source, _change = (
    row.__table__.c for row in (TermsRow, EmbeddingRow, MemoryRow, KeywordRow, MemorySourceRow, ChangeRow)
)
# Statements that every search after a change runs are built once: building one takes longer than running it.
_USER: BindParameter[str] = bindparam("user_id")
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)
_MODEL: BindParameter[str] = bindparam("model")


def _rows_statement(*, external: bool) -> Select[*tuple[Any, ...]]:
    """Select what `_index_row` takes, of the active memories of a user."""
    memory = _memory
    times = (memory.occurred_at, memory.valid_from, memory.valid_to, memory.expires_at, memory.last_accessed_at)
    return (
        select(
            memory.id,
            memory.memory_type,
            memory.layer,
            memory.session_id,
            memory.agent_id,
            memory.group_id,
            memory.data,
            memory.tags,
            *(type_coerce(column, BigInteger) for column in times),
            memory.access_count,
            memory.importance,
            memory.trust,
            _terms.length,
            _terms.asks,
            _terms.kind,
            type_coerce(_terms.hashes, LargeBinary),
            type_coerce(_terms.counts, LargeBinary),
            type_coerce(_terms.keyword_hashes, LargeBinary),
            type_coerce(_terms.keyword_weights, LargeBinary),
            null() if external else type_coerce(_vector.vector, LargeBinary),
            _vector.dimension,
            type_coerce(memory.created_at, BigInteger),
        )
        .join(TermsRow.__table__, and_(_terms.user_id == memory.user_id, _terms.memory_id == memory.id))
        .outerjoin(
            EmbeddingRow.__table__,
            and_(
                _vector.user_id == memory.user_id,
                _vector.memory_id == memory.id,
                _vector.part == 0,
                _vector.model == _MODEL,
            ),
        )
        .where(memory.user_id == _USER, memory.status == "active")
    )


_ROWS = {external: _rows_statement(external=external) for external in (False, True)}
_BY_ID = {external: statement.where(_memory.id.in_(_IDS)) for external, statement in _ROWS.items()}
_PAGE = {
    external: statement.where(_memory.id > bindparam("after")).order_by(_memory.id).limit(AT_ONCE)
    for external, statement in _ROWS.items()
}
_PASSAGES = select(_vector.memory_id, type_coerce(_vector.vector, LargeBinary)).where(
    _vector.user_id == _USER, _vector.memory_id.in_(_IDS), _vector.part > 0, _vector.model == _MODEL
)
_VECTORS = (
    select(_vector.memory_id, type_coerce(_vector.vector, LargeBinary))
    .where(_vector.user_id == _USER, _vector.model == _MODEL, _vector.part == 0)
    .where(_vector.memory_id.between(bindparam("first"), bindparam("last")))
    .order_by(_vector.memory_id)
)
_VOCABULARY = select(_keyword.keyword).where(_keyword.user_id == _USER).distinct()
_KEYWORDS = select(_keyword.keyword).where(_keyword.user_id == _USER, _keyword.memory_id.in_(_IDS))
_SOURCES = select(_source.message_id).where(_source.user_id == _USER, _source.memory_id.in_(_IDS))
_ALL_SOURCES = select(_source.message_id, _source.memory_id, _source.span_start, _source.span_end).where(
    _source.user_id == _USER
)
_FROM_SOURCES = _ALL_SOURCES.where(_source.message_id.in_(_IDS))
_ALL_KINDS = select(_memory.id, _memory.memory_type, _memory.source, _memory.superseded_by).where(
    _memory.user_id == _USER, _memory.status == "active"
)
_KINDS = _ALL_KINDS.where(_memory.id.in_(_IDS))
_SUPERSEDED = select(_memory.id).where(_memory.user_id == _USER, _memory.superseded_by.in_(_IDS))
_CHANGES = (
    select(_change.seq, _change.memory_id, _change.action)
    .where(_change.user_id.in_([_USER, bindparam("erased")]), _change.seq > bindparam("seen"))
    .where(_change.action != SOURCES)  # an index has no messages
    .order_by(_change.seq)
    .limit(bindparam("most"))
)


def _found(session: Session, statement: Any, user_id: str, ids: Sequence[str], **more: Any) -> list[Any]:
    """Run a statement for these ids of a user."""
    found: list[Any] = []
    for some in chunks(ids):
        found += session.execute(statement, {"user_id": user_id, "ids": some, **more}).all()
    return found


def _rows(session: Session, user_id: str, ids: Sequence[str], model: str, *, external: bool = False) -> list[IndexRow]:
    """Return the rows of active memories."""
    rows = _found(session, _BY_ID[external], user_id, ids, model=model)
    return _with_passages(session, user_id, [_index_row(*row) for row in rows], model)


def _with_passages(session: Session, user_id: str, rows: list[IndexRow], model: str) -> list[IndexRow]:
    """Add the vectors of passages to the rows of compressed memories."""
    vectors: defaultdict[str, list[bytes]] = defaultdict(list)
    for memory_id, vector in _found(session, _PASSAGES, user_id, [row.id for row in rows if row.alone], model=model):
        vectors[memory_id].append(vector)
    return [replace(row, passages=vectors[row.id]) if row.id in vectors else row for row in rows]


def _keywords(session: Session, user_id: str, ids: Sequence[str]) -> set[str]:
    return {keyword for (keyword,) in _found(session, _KEYWORDS, user_id, ids)}


def links_of(session: Session, user_id: str, ids: Sequence[str]) -> list[Link]:
    """Return the memories derived from these, the messages that these came from, and successors, in steps that begin
    with the ids."""
    sources = dict.fromkeys(source for (source,) in _found(session, _SOURCES, user_id, ids))
    told = _found(session, _FROM_SOURCES, user_id, list(sources))
    return _linked(told, _found(session, _KINDS, user_id, sorted({memory_id for _, memory_id, *_ in told})))


def _changed_links(session: Session, user_id: str, rows: Sequence[IndexRow]) -> list[Link]:
    """Return the links of memories that were just read, also as successors."""
    changed = {row.id for row in rows}
    ids = [row.id for row in rows if row.memory_type not in GATHERED]
    superseded = [memory_id for (memory_id,) in _found(session, _SUPERSEDED, user_id, ids)]
    links = links_of(session, user_id, [*ids, *(one for one in superseded if one not in changed)])
    return [link for link in links if not changed.isdisjoint(link)]


def _linked(told: Iterable[Sequence[Any]], kinds: Iterable[Sequence[Any]]) -> list[Link]:
    """Join messages and the memories that they told, given in pairs, with the type, origin and successor of each
    memory."""
    messages: set[str] = set()
    successors: dict[str, str | None] = {}
    for memory_id, memory_type, origin, successor in kinds:
        if memory_type == "message":
            messages.add(memory_id)
        if origin == EXTRACTED and memory_type not in GATHERED:
            successors[memory_id] = successor
    by_source: defaultdict[str, dict[str, tuple[int | None, int | None]]] = defaultdict(dict)
    for source, memory_id, *span in told:
        by_source[source][memory_id] = span[0], span[1]
    pairs = {
        (derived, message)
        for together in by_source.values()
        for derived in together.keys() & successors.keys()
        for message in together.keys() & messages
        if _overlap(*together[derived], *together[message])
    }
    return [(derived, message, successors[derived]) for derived, message in sorted(pairs)]


def _overlap(start: int | None, end: int | None, first: int | None, last: int | None) -> bool:
    """Return True if two spans of a message have a character in common; without a position, a span is all of it."""
    return start is None or end is None or first is None or last is None or (start < last and first < end)


def _index_row(*values: Any) -> IndexRow:
    data, tags = values[6:8]
    by_model = data.get("extractor") == "llm"  # its text names people itself: who said it is no evidence
    speaker = None if by_model else data.get("speaker")
    speaker = speaker or subject_text(data)
    assistant, derived = "role" in data and not is_person(data["role"]), "extractor" in data
    known = (
        _normal(speaker) if isinstance(speaker, str) else None,
        assistant,
        derived,
        [normalise(tag) for tag in tags],
    )
    alone = COMPRESSED in data  # a compressed memory is an episode by itself
    own = values[3] or (f"\0{values[0]}" if alone else None)
    count = data.get("lines") if alone else 1
    lines = count if isinstance(count, int) and count > 0 else 1
    *rest, created_at = values[8:]
    return IndexRow(*(*values[:3], own, *values[4:6], *known, *rest, alone, created_at, lines))


_normal = text_cache(4096)(normalise)  # most memories have one of a few speakers


class IndexRows(Repository):
    """Rows of memories that search indexes read, and packed indexes."""

    @reads
    def size(self, session: Session, user_id: str) -> tuple[int, int]:
        """Return the newest change of a user and the number of active memories. The position is read first: a change
        that is committed while the rows are read is then applied again, not missed."""
        newest = select(func.max(ChangeRow.seq)).where(ChangeRow.user_id.in_([user_id, erased(user_id)]))
        seen = session.scalar(newest) or 0
        count = select(func.count()).where(MemoryRow.user_id == user_id, MemoryRow.status == "active")
        return seen, session.scalar(count) or 0

    @reads
    def page(
        self, session: Session, user_id: str, model: str, *, after: str = "", external: bool = False
    ) -> list[IndexRow]:
        """Return the next rows of a user, in the order of their ids."""
        rows = session.execute(_PAGE[external], {"user_id": user_id, "model": model, "after": after})
        return _with_passages(session, user_id, [_index_row(*row) for row in rows], model)

    @reads
    def changes(self, session: Session, user_id: str, seen: int, most: int) -> list[tuple[int, str, str]]:
        """Return numbers, memories and actions of the next changes of a user."""
        values = {"user_id": user_id, "erased": erased(user_id), "seen": seen, "most": most}
        return [(seq, memory_id, action) for seq, memory_id, action in session.execute(_CHANGES, values)]

    @reads
    def changed(self, session: Session, user_id: str, ids: Sequence[str], model: str, *, external: bool) -> IndexBatch:
        """Return memories that changed, those that are active."""
        rows = _rows(session, user_id, ids, model, external=external)
        return IndexBatch(rows, _keywords(session, user_id, ids), _changed_links(session, user_id, rows))

    @reads
    def candidates(
        self, session: Session, user_id: str, ids: Sequence[str], centres: Sequence[str], model: str
    ) -> IndexBatch:
        """Return memories with the messages of the sessions of some of them, and what is derived from these."""
        sessions = select(MemoryRow.session_id).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(centres))
        around = (
            select(MemoryRow.id)
            .where(MemoryRow.user_id == user_id, MemoryRow.session_id.in_(sessions))
            .where(MemoryRow.memory_type == "message", MemoryRow.status == "active")
            .limit(MOST_MESSAGES)
        )
        wanted = dict.fromkeys((*ids, *session.scalars(around)))
        rows = _rows(session, user_id, list(wanted), model)
        links = links_of(session, user_id, [row.id for row in rows if row.memory_type not in GATHERED])
        linked = dict.fromkeys(one for link in links for one in link if one and one not in wanted)
        rows += _rows(session, user_id, list(linked), model)
        return IndexBatch(rows, _keywords(session, user_id, [row.id for row in rows]), links)

    @reads
    def vocabulary(self, session: Session, user_id: str) -> list[str]:
        """Return the keywords of all memories of a user."""
        return list(session.scalars(_VOCABULARY, {"user_id": user_id}))

    @reads
    def links(self, session: Session, user_id: str) -> list[Link]:
        """Return the links of all memories of the user. Joined here: without statistics, and a new database has none,
        SQLite compares every source with every memory."""
        mine = {"user_id": user_id}
        return _linked(session.execute(_ALL_SOURCES, mine), session.execute(_ALL_KINDS, mine))

    @reads
    def packed(self, session: Session, user_id: str) -> PackedIndex | None:
        mine = select(PackedIndexRow.name, PackedIndexRow.seen, PackedIndexRow.data)
        rows = session.execute(mine.where(PackedIndexRow.user_id == user_id)).all()
        return PackedIndex(rows[0].seen, {row.name: row.data for row in rows}) if rows else None

    @writes
    def pack(self, session: Session, user_id: str, seen: int, parts: Mapping[str, bytes]) -> None:
        """Replace a user's packed index, unless something was deleted meanwhile: a deletion drops what is packed."""
        deleted = select(ChangeRow.seq).where(
            ChangeRow.user_id.in_([user_id, erased(user_id)]),
            ChangeRow.seq > seen,
            ChangeRow.action.in_(["delete", "erase"]),
        )
        if session.scalar(deleted.limit(1)) is None:
            session.execute(delete(PackedIndexRow).where(PackedIndexRow.user_id == user_id))
            rows = [{"user_id": user_id, "name": name, "seen": seen, "data": data} for name, data in parts.items()]
            session.execute(insert(PackedIndexRow), rows)

    @reads
    def vectors(
        self,
        session: Session,
        user_id: str,
        model: str,
        ids: Sequence[str],
        put: Callable[[int, Sequence[Sequence[Any]]], None],
    ) -> None:
        """Hand over the vectors of memories, whose ids are in order, in parts: the position of the first id, then ids
        and vectors. It happens where they are read, because copying them takes as long."""
        for first in range(0, len(ids), VECTORS_AT_ONCE):
            last = min(first + VECTORS_AT_ONCE, len(ids)) - 1
            between = {"user_id": user_id, "model": model, "first": ids[first], "last": ids[last]}
            put(first, session.execute(_VECTORS, between).all())

    @reads
    def recalls(self, session: Session, user_id: str) -> list[tuple[str, int, int]]:
        """Return how often and when memories were recalled, those that were."""
        at = type_coerce(MemoryRow.last_accessed_at, BigInteger)
        # A comparison, not IS NOT NULL: without two columns to look up, SQLite takes any index that begins with the
        # user.
        statement = select(MemoryRow.id, MemoryRow.access_count, at).where(MemoryRow.user_id == user_id, at > 0)
        return [(memory_id, count, when) for memory_id, count, when in session.execute(statement)]
