"""Searches whose candidates come from external engines: the rows of the candidates and of their neighbours are loaded
from the database into a small index, which scores them exactly."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from sqlalchemy import BindParameter, LargeBinary, String, bindparam, select, type_coerce

from ..store.contract import EXTRACTED
from ..store.database import Rows, chunks
from ..store.memories import GATHERED, Selects
from ..store.store import Store
from ..store.tables import EmbeddingRow, KeywordRow, MemoryRow, MemorySourceRow
from .legs import IndexRow
from .query import Candidates, IndexQuery, Slots
from .search_index import index_row, rows_statement
from .user_index import UserIndex
from .words import WordScores, rarity

# As few as agree with a search of everything (`python -m bench.engines agree`): each is loaded and scored.
NEAREST = 100  # candidates for each vector of a query
BY_WORDS = 200
CENTRES = 80  # best candidates, whose sessions' messages become candidates too
MOST_MESSAGES = 1500  # of these sessions

# Built once: every search runs them. Each begins with the ids and finds its rows by an index, whatever the user's size.
_USER: BindParameter[str] = bindparam("user_id", type_=String)
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)
_MODEL = bindparam("model", type_=String)
_ROWS = rows_statement(_USER, _MODEL).where(MemoryRow.id.in_(_IDS))
_PASSAGES = select(EmbeddingRow.memory_id, type_coerce(EmbeddingRow.vector, LargeBinary)).where(
    EmbeddingRow.user_id == _USER, EmbeddingRow.memory_id.in_(_IDS), EmbeddingRow.part > 0, EmbeddingRow.model == _MODEL
)
_KEYWORDS = select(KeywordRow.keyword).where(KeywordRow.user_id == _USER, KeywordRow.memory_id.in_(_IDS))
_SESSIONS = select(MemoryRow.session_id).where(MemoryRow.user_id == _USER, MemoryRow.id.in_(_IDS))
_OF_SESSIONS = (
    select(MemoryRow.id)
    .where(MemoryRow.user_id == _USER, MemoryRow.session_id.in_(_SESSIONS))
    .where(MemoryRow.memory_type == "message", MemoryRow.status == "active")
    .limit(MOST_MESSAGES)
)
_SOURCES = select(MemorySourceRow.message_id).where(
    MemorySourceRow.user_id == _USER, MemorySourceRow.memory_id.in_(_IDS)
)
_FROM_SOURCES = select(MemorySourceRow.message_id, MemorySourceRow.memory_id).where(
    MemorySourceRow.user_id == _USER, MemorySourceRow.message_id.in_(_IDS)
)
_KINDS = select(MemoryRow.id, MemoryRow.memory_type, MemoryRow.source, MemoryRow.superseded_by).where(
    MemoryRow.user_id == _USER, MemoryRow.id.in_(_IDS), MemoryRow.status == "active"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordStatistics:
    """Counts over all memories of a user that are not derived from others."""

    population: int
    length: float  # average, in terms
    holders: Mapping[str, int]  # memories by term


@dataclass(frozen=True, slots=True, kw_only=True)
class WordMatches:
    ids: Sequence[str]  # the best first
    statistics: WordStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Candidates of the engines, and what they could not tell."""

    ids: Sequence[str]  # the best first
    statistics: WordStatistics | None = None
    missing: Sequence[str] = ()  # problems


class Engines(Protocol):
    """External engines that find candidates."""

    async def find(self, query: IndexQuery) -> Found | None:
        """Return the candidates of a query, or None if the user is searched in RAM."""

    async def people(self, user_id: str) -> frozenset[str] | None:
        """Return the speakers in a user's memories, or None if the user is searched in RAM."""


class CandidateIndex(UserIndex):
    """An index of some memories of a user, with word statistics over all of them."""

    statistics: WordStatistics | None = None

    def _word_scores(self) -> WordScores:
        scores = super()._word_scores()
        return scores if self.statistics is None else _CandidateScores(scores, self.statistics)


class _CandidateScores(WordScores):
    """Scores of candidates with the rarity of words among all memories of the user."""

    def __init__(self, scores: WordScores, statistics: WordStatistics) -> None:
        self.__dict__.update(vars(scores))
        self._holding = statistics.holders
        self._population = statistics.population
        self._average_length = max(statistics.length, 1.0)

    def _rarity(self, holders: Slots, term: str) -> float:
        known = self._holding.get(term)
        return super()._rarity(holders, term) if known is None else rarity(self._population, known)


async def gather_candidates(store: Store, query: IndexQuery, found: Found) -> Candidates:
    """Load the rows of the candidates, of the messages around the best of them and of what is derived from them, and
    score them."""
    select: Selects = partial(store.database.select, query.filter.user_id)
    ids = dict.fromkeys((*found.ids, *await _around(select, query, found.ids[:CENTRES])))
    rows = await _rows(select, query, list(ids))
    links = await _links(select, query, [row.id for row in rows if row.memory_type not in GATHERED])
    linked = dict.fromkeys(one for link in links for one in link if one and one not in ids)
    rows += await _rows(select, query, list(linked))
    rows.sort(key=lambda row: row.id)  # messages of one moment are neighbours in the order of their slots
    index = CandidateIndex(query.model, 0 if query.vector is None else len(query.vector), seen=0)
    index.statistics = found.statistics
    index.put(rows)
    index.words.learn(await _keywords(select, query, [row.id for row in rows]))
    index.words.settle()
    index.link(links)
    return replace(index.gather(query), missing=tuple(found.missing))


async def _read(select: Selects, statement: Any, query: IndexQuery, ids: Sequence[str], **more: str) -> Rows:
    """Run a statement for these ids."""
    values = {"user_id": query.filter.user_id, **more}
    found: Rows = []
    for some in chunks(ids):
        [rows] = await select((statement, values | {"ids": list(some)}))
        found += rows
    return found


async def _around(select: Selects, query: IndexQuery, ids: Sequence[str]) -> list[str]:
    """Return the messages in the sessions of the best candidates: neighbours count in scores."""
    return [memory_id for (memory_id,) in await _read(select, _OF_SESSIONS, query, ids)]


async def _links(select: Selects, query: IndexQuery, ids: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Return the memories derived from candidates, the messages that candidates came from, and their successors: what
    `worked_out` selects, in steps that begin with the candidates."""
    sources = dict.fromkeys(source for (source,) in await _read(select, _SOURCES, query, ids))
    by_source: defaultdict[str, set[str]] = defaultdict(set)
    for source, memory_id in await _read(select, _FROM_SOURCES, query, list(sources)):
        by_source[source].add(memory_id)
    messages: set[str] = set()
    successors: dict[str, str | None] = {}
    for memory_id, memory_type, origin, successor in await _read(
        select, _KINDS, query, sorted(set().union(*by_source.values()))
    ):
        if memory_type == "message":
            messages.add(memory_id)
        if origin == EXTRACTED and memory_type not in GATHERED:
            successors[memory_id] = successor
    pairs = {
        (derived, message)
        for some in by_source.values()
        for derived in some & successors.keys()
        for message in some & messages
    }
    return [(derived, message, successors[derived]) for derived, message in sorted(pairs)]


async def _rows(select: Selects, query: IndexQuery, ids: Sequence[str]) -> list[IndexRow]:
    rows = [index_row(*row) for row in await _read(select, _ROWS, query, ids, model=query.model)]
    alone = [row.id for row in rows if row.alone]
    passages: defaultdict[str, list[bytes]] = defaultdict(list)
    for memory_id, vector in await _read(select, _PASSAGES, query, alone, model=query.model):
        passages[memory_id].append(vector)
    return [replace(row, passages=passages[row.id]) if row.id in passages else row for row in rows]


async def _keywords(select: Selects, query: IndexQuery, ids: Sequence[str]) -> list[str]:
    """Return the keywords of candidates that begin with one of the query's."""
    wanted = tuple(query.keywords)
    if not wanted:
        return []
    return sorted({word for (word,) in await _read(select, _KEYWORDS, query, ids) if word.startswith(wanted)})
