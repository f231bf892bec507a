"""The word leg in RAM, postings of terms and keywords with the vocabulary, and the scores of a query by words."""

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..languages.terms import term_hash
from ..store.types import COUNTS, HASHES, WEIGHTS
from .legs import IndexRow, WordLeg
from .query import Floats, IndexQuery, Mask, Slots
from .relations import Episodes

Numbers = NDArray[Any]
Entries = tuple[Slots, Slots, Numbers]  # terms, documents and values, in parallel

K1, B = 1.2, 0.75
KEYWORD = "\0"  # begins the name of a keyword where terms and keywords are counted together
SYNONYM = 0.7  # weight of a synonym against the keyword itself
EXACT, PREFIX = 1.0, 0.8  # how well a keyword fits a wanted one
MOST_CONTINUATIONS = 1000
MANY = 100  # new keywords, from which on sorting all is quicker than inserting each


class RamWords:
    """Terms and keywords of one user's memories."""

    def __init__(self) -> None:
        self._terms = Postings(COUNTS)
        self._keywords = Postings(WEIGHTS)
        self._vocabulary: list[str] = []  # sorted

    @property
    def nbytes(self) -> int:
        return self._terms.nbytes + self._keywords.nbytes

    def put(self, first: int, rows: Sequence[IndexRow]) -> None:
        def join(name: str, dtype: str) -> NDArray[Any]:
            return np.frombuffer(b"".join(getattr(row, name) for row in rows), dtype)

        def slots(name: str) -> Slots:
            sizes = [len(getattr(row, name)) // 8 for row in rows]
            return np.repeat(np.arange(first, first + len(rows), dtype=np.int32), sizes)

        self._terms.add(slots("hashes"), join("hashes", HASHES), join("counts", COUNTS))
        self._keywords.add(slots("keyword_hashes"), join("keyword_hashes", HASHES), join("keyword_weights", WEIGHTS))

    def settle(self) -> None:
        self._terms.fold()
        self._keywords.fold()

    def packed(self) -> dict[str, NDArray[Any]]:
        return self._terms.packed("terms") | self._keywords.packed("keywords")

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._terms.unpack("terms", arrays)
        self._keywords.unpack("keywords", arrays)

    def learn(self, keywords: Iterable[str]) -> None:
        new = [word for word in keywords if not self._vocabulary or not self._knows(word)]
        if len(new) < MANY:
            for word in new:
                insort(self._vocabulary, word)
        else:
            self._vocabulary = sorted({*self._vocabulary, *new})

    def unlearn(self, keywords: Iterable[str]) -> None:
        self._vocabulary = sorted(keywords)

    def find(self, term: str) -> tuple[Slots, Floats]:
        return self._terms.find(term_hash(term))

    def find_keyword(self, keyword: str) -> tuple[Slots, Floats]:
        return self._keywords.find(term_hash(keyword))

    def alike(self, keyword: str) -> list[tuple[str, float]]:
        found = [(keyword, EXACT)]
        if len(keyword) >= 3 or not keyword.isascii():  # one or two Latin letters match too many
            start = bisect_right(self._vocabulary, keyword)
            for other in self._vocabulary[start : start + MOST_CONTINUATIONS]:
                if not other.startswith(keyword):
                    break
                found.append((other, PREFIX))
        return found

    def _knows(self, word: str) -> bool:
        at = bisect_left(self._vocabulary, word)
        return at < len(self._vocabulary) and self._vocabulary[at] == word


class Postings:
    """Memories that contain a term, with a value. A sorted part is searched binarily; a small tail of recent additions
    is merged when it has grown."""

    def __init__(self, dtype: str) -> None:
        nothing = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, dtype))
        self._sorted: Entries = nothing
        self._tail: Entries = nothing

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in (*self._sorted, *self._tail))

    def add(self, docs: Slots, terms: Slots, values: Numbers) -> None:
        """Add entries; the three arrays run in parallel."""
        self._tail = _joined(self._tail, (terms, docs, values))
        if len(self._tail[0]) > 20_000 + len(self._sorted[0]) // 4:
            self.fold()

    def fold(self) -> None:
        """Sort the tail in."""
        terms, docs, values = _joined(self._sorted, self._tail)
        order = np.argsort(terms, kind="stable")
        self._sorted = terms[order], docs[order], values[order]
        self._tail = terms[:0], docs[:0], values[:0]

    def packed(self, name: str) -> dict[str, NDArray[Any]]:
        terms, docs, values = self._sorted
        distinct, times = np.unique(terms, return_counts=True)
        return {
            f"{name} hashes": distinct,
            f"{name} times": times.astype(np.int32),
            f"{name} slots": docs,
            f"{name} values": values,
        }

    def unpack(self, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        terms = np.repeat(arrays[f"{name} hashes"], arrays[f"{name} times"])
        self._sorted = terms, arrays[f"{name} slots"], arrays[f"{name} values"]

    def find(self, term: int) -> tuple[Slots, Numbers]:
        """Return the memories with a term, and the value of each."""
        terms, docs, values = self._sorted
        start, end = terms.searchsorted(term), terms.searchsorted(term, "right")
        tail_terms, tail_docs, tail_values = self._tail
        recent = (tail_terms == term).nonzero()[0] if len(tail_terms) else ()
        if not len(recent):
            return docs[start:end], values[start:end]
        return (
            np.concatenate((docs[start:end], tail_docs[recent])),
            np.concatenate((values[start:end], tail_values[recent])),
        )


def _joined(first: Entries, second: Entries) -> Entries:
    terms, docs, values = (np.concatenate(pair) for pair in zip(first, second, strict=True))
    return terms, docs, values


def _best_of(found: Sequence[tuple[Slots, Floats, float]]) -> tuple[Slots, Floats]:
    """Merge lists of slots, values and a factor: each slot once, with its highest value."""
    slots = np.concatenate([some for some, _, _ in found])
    values = np.concatenate([np.float32(quality) * weights for _, weights, quality in found])
    if len(found) == 1:
        return slots, values
    distinct, place = np.unique(slots, return_inverse=True)
    best = np.zeros(len(distinct), np.float32)
    np.maximum.at(best, place, values)
    return distinct, best


def weighted(terms: Sequence[str]) -> list[tuple[str, float]]:
    """Return the distinct terms with weights that grow with the logarithm of their number."""
    return [(term, 1 + math.log(times)) for term, times in Counter(terms).items()]


def rarity(population: int, holders: int) -> float:
    """Return the inverse document frequency."""
    return math.log(1 + (population - holders + 0.5) / (holders + 0.5))


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
            slots, best = _best_of(found)
            living = self._columns["alive"][slots]
            slots, best = slots[living], best[living]
            worth = self._rarity(slots, f"{KEYWORD}{keyword}")
            scores[slots] += np.float32(worth) * best
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
