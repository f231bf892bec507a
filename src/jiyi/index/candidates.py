"""Searches whose candidates come from external engines: the rows of the candidates and of their neighbours are loaded
from the database into a small index, which scores them exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sqlalchemy import String, bindparam, select
from sqlalchemy.ext.asyncio import AsyncSession

from ..store.database import chunks
from ..store.memories import GIST, MESSAGE, worked_out
from ..store.store import Store
from ..store.tables import MemoryRow
from .query import Candidates, IndexQuery, Slots
from .search_index import index_rows, vocabulary
from .user_index import UserIndex
from .words import WordScores, rarity

NEAREST = 400  # candidates for each vector of a query
FARTHEST = 10  # similarities are scaled from worst to best
BY_WORDS = 1000
SESSIONS = 40  # of the best candidates, whose messages become candidates too
MOST_MESSAGES = 1500  # of these sessions

# Two statements: one with OR would read all memories of the user.
_LINKS = [
    worked_out(bindparam("user_id", type_=String)).where(column.in_(bindparam("ids", expanding=True)))
    for column in (GIST.id, MESSAGE.id)
]


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
    """Load the rows of the candidates, and score them."""
    user_id = query.filter.user_id
    async with store.database.reading(user_id) as session:
        ids = dict.fromkeys((*found.ids, *await _of_same_sessions(session, user_id, found.ids)))
        links = await _links(session, user_id, list(ids))
        ids |= dict.fromkeys(one for link in links for one in link if one)
        index = CandidateIndex(query.model, 0 if query.vector is None else len(query.vector), seen=0)
        index.statistics = found.statistics
        for some in chunks(sorted(ids)):  # messages of one moment are neighbours in the order of their slots
            rows = await index_rows(session, user_id, query.model, ids=some)
            index.put(sorted(rows, key=lambda row: row.id))
            index.words.learn(await vocabulary(session, user_id, ids=some))
    index.words.settle()
    index.link(links)
    return replace(index.gather(query), missing=tuple(found.missing))


async def _of_same_sessions(session: AsyncSession, user_id: str, ids: Sequence[str]) -> Sequence[str]:
    """Return the messages in the sessions of the best candidates: neighbours count in scores."""
    sessions: dict[str, None] = {}
    for some in chunks(ids[: 4 * SESSIONS]):
        named = select(MemoryRow.id, MemoryRow.session_id).where(
            MemoryRow.user_id == user_id, MemoryRow.id.in_(some), MemoryRow.session_id.is_not(None)
        )
        of = dict((await session.execute(named)).all())
        sessions |= dict.fromkeys(str(of[one]) for one in some if one in of)
    if not sessions:
        return ()
    messages = select(MemoryRow.id).where(
        MemoryRow.user_id == user_id,
        MemoryRow.session_id.in_(list(sessions)[:SESSIONS]),
        MemoryRow.memory_type == "message",
        MemoryRow.status == "active",
    )
    return list(await session.scalars(messages.limit(MOST_MESSAGES)))


async def _links(session: AsyncSession, user_id: str, ids: Sequence[str]) -> list[tuple[str, str, str | None]]:
    """Return the memories derived from candidates, the messages that candidates came from, and their successors."""
    found: dict[tuple[str, str, str | None], None] = {}
    for some in chunks(ids):
        for statement in _LINKS:
            linked = await session.execute(statement, {"user_id": user_id, "ids": some})
            found |= dict.fromkeys((derived, message, successor) for derived, message, successor in linked)
    return list(found)
