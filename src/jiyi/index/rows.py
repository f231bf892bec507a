"""Reading what a search index holds of memories. A statement that names ids finds its rows by an index of the database,
whatever the user's size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    LargeBinary,
    Select,
    String,
    and_,
    bindparam,
    null,
    select,
    type_coerce,
)

from ..languages.words import normalise
from ..roles import is_person, subject_text
from ..store.contract import EXTRACTED
from ..store.database import chunks
from ..store.entries import vector_of_memory
from ..store.memories import GATHERED, Selects
from ..store.session import Rows
from ..store.tables import EmbeddingRow, KeywordRow, MemoryRow, MemorySourceRow, TermsRow
from ..text.passages import COMPRESSED
from ..text_cache import text_cache
from .legs import IndexRow

Link = tuple[str, str, str | None]  # a derived memory, a message it came from, and its successor


def rows_statement(user_id: Any, model: Any, *, external: bool = False) -> Select[*tuple[Any, ...]]:
    """Select what `index_row` takes, of the active memories of a user."""
    memory = MemoryRow
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
            TermsRow.length,
            TermsRow.asks,
            TermsRow.kind,
            TermsRow.salience,
            type_coerce(TermsRow.hashes, LargeBinary),
            type_coerce(TermsRow.counts, LargeBinary),
            type_coerce(TermsRow.keyword_hashes, LargeBinary),
            type_coerce(TermsRow.keyword_weights, LargeBinary),
            null() if external else type_coerce(EmbeddingRow.vector, LargeBinary),
            EmbeddingRow.dimension,
            type_coerce(memory.created_at, BigInteger),
        )
        .join(TermsRow, and_(TermsRow.user_id == memory.user_id, TermsRow.memory_id == memory.id))
        .outerjoin(EmbeddingRow, and_(vector_of_memory(), EmbeddingRow.model == model))
        .where(memory.user_id == user_id, memory.status == "active")
    )


# Built once: every search of an external engine and each one after a change runs them.
_USER: BindParameter[str] = bindparam("user_id", type_=String)
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)
_MODEL = bindparam("model", type_=String)
_ROWS = {
    external: rows_statement(_USER, _MODEL, external=external).where(MemoryRow.id.in_(_IDS))
    for external in (False, True)
}
_PASSAGES = select(EmbeddingRow.memory_id, type_coerce(EmbeddingRow.vector, LargeBinary)).where(
    EmbeddingRow.user_id == _USER, EmbeddingRow.memory_id.in_(_IDS), EmbeddingRow.part > 0, EmbeddingRow.model == _MODEL
)
_KEYWORDS = select(KeywordRow.keyword).where(KeywordRow.user_id == _USER, KeywordRow.memory_id.in_(_IDS))
_SOURCES = select(MemorySourceRow.message_id).where(
    MemorySourceRow.user_id == _USER, MemorySourceRow.memory_id.in_(_IDS)
)
_ALL_SOURCES = select(MemorySourceRow.message_id, MemorySourceRow.memory_id).where(MemorySourceRow.user_id == _USER)
_FROM_SOURCES = _ALL_SOURCES.where(MemorySourceRow.message_id.in_(_IDS))
_ALL_KINDS = select(MemoryRow.id, MemoryRow.memory_type, MemoryRow.source, MemoryRow.superseded_by).where(
    MemoryRow.user_id == _USER, MemoryRow.status == "active"
)
_KINDS = _ALL_KINDS.where(MemoryRow.id.in_(_IDS))
_SUPERSEDED = select(MemoryRow.id).where(MemoryRow.user_id == _USER, MemoryRow.superseded_by.in_(_IDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReader:
    """Reads what an index holds of some memories of a user."""

    select: Selects
    user_id: str
    model: str
    external: bool = False  # vectors are searched elsewhere

    async def read(self, statement: Any, ids: Sequence[str]) -> Rows:
        """Run a statement for these ids."""
        found: Rows = []
        for some in chunks(ids):
            values = {"user_id": self.user_id, "model": self.model, "ids": list(some)}
            [rows] = await self.select((statement, values))
            found += rows
        return found

    async def rows(self, ids: Sequence[str]) -> list[IndexRow]:
        """Return the rows of active memories."""
        return await self.with_passages([index_row(*row) for row in await self.read(_ROWS[self.external], ids)])

    async def with_passages(self, rows: list[IndexRow]) -> list[IndexRow]:
        """Add the vectors of passages to the rows of compressed memories."""
        vectors: defaultdict[str, list[bytes]] = defaultdict(list)
        for memory_id, vector in await self.read(_PASSAGES, [row.id for row in rows if row.alone]):
            vectors[memory_id].append(vector)
        return [replace(row, passages=vectors[row.id]) if row.id in vectors else row for row in rows]

    async def keywords(self, ids: Sequence[str]) -> set[str]:
        return {keyword for (keyword,) in await self.read(_KEYWORDS, ids)}

    async def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the memories derived from these, the messages that these came from, and successors, in steps that
        begin with the ids."""
        sources = dict.fromkeys(source for (source,) in await self.read(_SOURCES, ids))
        told = await self.read(_FROM_SOURCES, list(sources))
        return _linked(told, await self.read(_KINDS, sorted({memory_id for _, memory_id in told})))

    async def all_links(self) -> list[Link]:
        """Return the links of all memories of the user. Joined here: without statistics, and a new database has none,
        SQLite compares every source with every memory."""
        mine = {"user_id": self.user_id}
        return _linked(*await self.select((_ALL_SOURCES, mine), (_ALL_KINDS, mine)))

    async def changed_links(self, rows: Sequence[IndexRow]) -> list[Link]:
        """Return the links of memories that were just read, also as successors."""
        changed = {row.id for row in rows}
        ids = [row.id for row in rows if row.memory_type not in GATHERED]
        superseded = [memory_id for (memory_id,) in await self.read(_SUPERSEDED, ids)]
        links = await self.links([*ids, *(one for one in superseded if one not in changed)])
        return [link for link in links if not changed.isdisjoint(link)]


def _linked(told: Rows, kinds: Rows) -> list[Link]:
    """Join messages and the memories that they told, given in pairs, with the type, origin and successor of each
    memory."""
    messages: set[str] = set()
    successors: dict[str, str | None] = {}
    for memory_id, memory_type, origin, successor in kinds:
        if memory_type == "message":
            messages.add(memory_id)
        if origin == EXTRACTED and memory_type not in GATHERED:
            successors[memory_id] = successor
    by_source: defaultdict[str, set[str]] = defaultdict(set)
    for source, memory_id in told:
        by_source[source].add(memory_id)
    pairs = {
        (derived, message)
        for together in by_source.values()
        for derived in together & successors.keys()
        for message in together & messages
    }
    return [(derived, message, successors[derived]) for derived, message in sorted(pairs)]


def index_row(*values: Any) -> IndexRow:
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
    return IndexRow(*(*values[:3], own, *values[4:6], *known, *rest, alone, created_at, lines, by_model))


_normal = text_cache(4096)(normalise)  # most memories have one of a few speakers
