"""Searches whose candidates come from external engines: the rows of the candidates and of their neighbours are loaded
from the database into a small index, which scores them exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..index.query import Candidates, IndexQuery, Slots
from ..index.user_index import UserIndex
from ..index.words import WordScores, rarity
from ..store.store import Store

# As few as agree with a search of everything (`python -m bench.engines agree`): each is loaded and scored.
NEAREST = 100  # candidates for each vector of a query
BY_WORDS = 200
CENTRES = 80  # best candidates, whose sessions' messages become candidates too


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
    engines: Sequence[str]  # that answered


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
    # Neighbours count in scores.
    batch = await store.index_rows.candidates(query.filter.user_id, found.ids, found.ids[:CENTRES], query.model)
    index = CandidateIndex(query.model, 0 if query.vector is None else len(query.vector), seen=0)
    index.statistics = found.statistics
    # Messages of one moment are neighbours in the order of their slots.
    index.put(sorted(batch.rows, key=lambda row: row.id))
    if wanted := tuple(query.keywords):
        index.words.learn(sorted(word for word in batch.keywords if word.startswith(wanted)))
    index.words.settle()
    index.link(batch.links)
    return replace(index.gather(query), missing=tuple(found.missing), engines=tuple(found.engines))
