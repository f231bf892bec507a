"""Scores by words for one query: every term is looked up once, however many scores need it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .legs import WordLeg
from .query import Floats, IndexQuery, Mask, Slots
from .relations import Episodes
from .words import rarity, weighted

K1, B = 1.2, 0.75
KEYWORD = "\0"  # begins the name of a keyword where terms and keywords are counted together
SYNONYM = 0.7  # weight of a synonym against the keyword itself


class WordScores:
    """Scores of all slots of a `UserIndex` as it is now; derived memories repeat their message, so they change neither
    rarity nor average length."""

    def __init__(
        self, words: WordLeg, columns: Mapping[str, NDArray[Any]], *, living: int, derived: int, total_length: int
    ) -> None:
        self._words = words
        self._columns = columns
        self._size = len(columns["alive"])
        self._all_alive = living == self._size
        self._derived = derived
        self._population = living - derived
        self._average_length = max(total_length / max(self._population, 1), 1.0)
        self._found: dict[str, tuple[Slots, Floats, float]] = {}
        self._bm25: dict[Sequence[str], Floats] = {}
        self._coverage: dict[tuple[Sequence[str], bool], tuple[Floats, Floats]] = {}

    def bm25(self, terms: Sequence[str]) -> Floats:
        """Return BM25 scores; 1.0 means every term of the query once in a memory of average length."""
        if (known := self._bm25.get(terms)) is not None:
            return known
        scores = np.zeros(self._size, np.float32)
        lengths = self._columns["of_passage"]
        best_possible = 0.0
        for term, weight in weighted(terms):
            slots, counts, rare = self._holders(term)
            worth = weight * rare
            best_possible += worth
            if len(slots):
                saturation = counts + K1 * (1 - B + B * lengths[slots] / self._average_length)
                scores[slots] += (worth * (K1 + 1)) * counts / saturation
        if best_possible:
            scores /= np.float32(best_possible)
        self._bm25[terms] = scores
        return scores

    def episode_bm25(self, terms: Sequence[str], episodes: Episodes, limited: Mask | None) -> Floats:
        """Return the BM25 score of each message's episode, as if it were one long message."""
        scores = np.zeros(episodes.count, np.float32)
        norm = K1 * (1 - B + B * episodes.lengths / max(float(episodes.lengths.mean()), 1.0))
        best_possible = 0.0
        for term, weight in weighted(terms):
            slots, counts, _ = self._holders(term)
            number = episodes.number[slots]
            inside = number >= 0 if limited is None else (number >= 0) & limited[slots]
            times = np.bincount(number[inside], counts[inside], minlength=episodes.count)
            worth = weight * rarity(episodes.count, int(np.count_nonzero(times)))
            best_possible += worth
            scores += (worth * (K1 + 1)) * times / (times + norm)
        scores /= best_possible or 1.0
        return np.where(episodes.number >= 0, scores[episodes.number], 0)

    def coverage(self, words: Sequence[str], said: Floats | None) -> tuple[Floats, Floats]:
        """Return the share of the words that each memory holds, weighted by rarity, and its rarest word's share of the
        rarest one. With `said`, a person is named, who counts as a word held by the messages they sent."""
        if (known := self._coverage.get((words, said is None))) is not None:
            return known
        held, rarest = np.zeros(self._size, np.float32), np.zeros(self._size, np.float32)
        whole, rarest_of_all = 0.0, 0.0
        for word in dict.fromkeys(words):
            slots, _, worth = self._holders(word)
            held[slots] += worth
            rarest[slots] = np.maximum(rarest[slots], worth)
            whole, rarest_of_all = whole + worth, max(rarest_of_all, worth)
        if said is not None:
            person = rarity(self._population, 0) / 2
            held += person * said
            whole += person
        found = held / np.float32(whole or 1.0), rarest / np.float32(rarest_of_all or 1.0)
        self._coverage[words, said is None] = found
        return found

    def keyword_match(self, query: IndexQuery) -> Floats:
        """Return the share of the query's keywords that each memory has, by their weight and rarity."""
        scores = np.zeros(self._size, np.float32)
        whole = 0.0
        for keyword in dict.fromkeys(query.keywords):
            alike = self._words.alike(keyword) + [(word, SYNONYM) for word in query.synonyms.get(keyword, ())]
            found = [(*self._words.find_keyword(word), quality) for word, quality in alike]
            found = [(slots, weights, quality) for slots, weights, quality in found if len(slots)]
            if not found:
                whole += rarity(self._population, 0)
                continue
            best = np.zeros(self._size, np.float32)
            for slots, weights, quality in found:
                best[slots] = np.maximum(best[slots], quality * weights)
            best *= self._columns["alive"]
            worth = self._rarity(np.flatnonzero(best), f"{KEYWORD}{keyword}")
            best *= np.float32(worth)
            scores += best
            whole += worth
        return scores / whole if whole else scores

    def holds_phrase(self, phrases: Sequence[Sequence[str]]) -> Floats:
        """Return 1 for memories that contain all words of a phrase."""
        any_of_them = np.zeros(self._size, np.bool_)
        for phrase in phrases:
            held = np.zeros(self._size, np.int32)
            for term in set(phrase):
                held[self._holders(term)[0]] += 1
            any_of_them |= held == len(set(phrase))
        return any_of_them.astype(np.float32)

    def _holders(self, term: str) -> tuple[Slots, Floats, float]:
        """Return the live slots that contain a term, its counts, and its rarity."""
        found = self._found.get(term)
        if found is None:
            slots, counts = self._words.find(term)
            if not self._all_alive:
                living = self._columns["alive"][slots]
                slots, counts = slots[living], counts[living]
            found = self._found[term] = slots, counts.astype(np.float32), self._rarity(slots, term)
        return found

    def _rarity(self, holders: Slots, term: str) -> float:
        holding = len(holders)
        if self._derived and holding:
            holding -= int(np.count_nonzero(self._columns["derived"][holders]))
        return rarity(self._population, holding)
