"""The word leg in RAM, postings of terms and keywords with the vocabulary, and the scores of a query by words."""

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..languages.terms import term_hash
from ..store.repositories.index_rows import IndexRow
from ..store.schema.columns import COUNTS, HASHES, WEIGHTS
from .legs import WordLeg
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

    def find(self, terms: Sequence[str]) -> list[tuple[Slots, Numbers]]:
        return self._terms.find(list(map(term_hash, terms)))

    def find_keywords(self, keywords: Sequence[str]) -> list[tuple[Slots, Numbers]]:
        return self._keywords.find(list(map(term_hash, keywords)))

    def alike(self, keyword: str) -> list[tuple[str, float]]:
        found = [(keyword, EXACT)]
        if len(keyword) >= 3 or not keyword.isascii():  # one or two Latin letters match too many
            start = bisect_right(self._vocabulary, keyword)
            for at in range(start, min(start + MOST_CONTINUATIONS, len(self._vocabulary))):
                if not self._vocabulary[at].startswith(keyword):
                    break
                found.append((self._vocabulary[at], PREFIX))
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

    def find(self, wanted: Sequence[int]) -> list[tuple[Slots, Numbers]]:
        """Return for each term the memories with it, and the value of each."""
        terms, docs, values = self._sorted
        hashes = np.array(wanted, np.int64)
        ranges = zip(terms.searchsorted(hashes).tolist(), terms.searchsorted(hashes, "right").tolist(), strict=True)
        found = [(docs[start:end], values[start:end]) for start, end in ranges]
        tail_terms, tail_docs, tail_values = self._tail
        for at, term in enumerate(wanted) if len(tail_terms) else ():
            recent = (tail_terms == term).nonzero()[0]
            if len(recent):
                docs, values = found[at]
                found[at] = np.concatenate((docs, tail_docs[recent])), np.concatenate((values, tail_values[recent]))
        return found


def _joined(first: Entries, second: Entries) -> Entries:
    terms, docs, values = (np.concatenate(pair) for pair in zip(first, second, strict=True))
    return terms, docs, values


def _best_of(found: Sequence[tuple[Slots, Floats, float]], size: int) -> tuple[Slots, Floats]:
    """Merge lists of slots, values and a factor: each slot once, with its highest value."""
    if len(found) == 1:
        [(slots, values, quality)] = found
        return slots, np.float32(quality) * values
    slots = np.concatenate([some for some, _, _ in found])
    best, there = np.zeros(size, np.float32), np.zeros(size, np.bool_)
    np.maximum.at(best, slots, np.concatenate([np.float32(quality) * values for _, values, quality in found]))
    there[slots] = True
    distinct = there.nonzero()[0]
    return distinct, best[distinct]


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
        self._found: dict[str, tuple[Slots, Numbers, float]] = {}
        self._bm25: dict[Sequence[str], Floats] = {}

    def bm25(self, terms: Sequence[str]) -> Floats:
        """Return BM25 scores; 1.0 means every term of the query once in a memory of average length."""
        if (known := self._bm25.get(terms)) is not None:
            return known
        wanted = weighted(terms)
        slots, counts, worths, sizes = self._holders_of([term for term, _ in wanted])
        worths *= [weight for _, weight in wanted]
        saturation = counts + K1 * (1 - B + B * self._columns["of_passage"][slots] / self._average_length)
        parts = np.repeat(worths * (K1 + 1), sizes) * counts / saturation
        scores = self._summed(slots, parts, float(worths.sum()))
        self._bm25[terms] = scores
        return scores

    def episode_bm25(self, terms: Sequence[str], episodes: Episodes, limited: Mask | None) -> Floats:
        """Return the BM25 score of each message's episode, as if it were one long message."""
        scores = np.zeros(episodes.count, np.float32)
        norm = K1 * (1 - B + B * episodes.lengths / max(float(episodes.lengths.mean()), 1.0))
        best_possible = 0.0
        self.find(terms)
        for term, weight in weighted(terms):
            slots, counts, _ = self._found[term]
            number = episodes.number[slots]
            inside = number >= 0 if limited is None else (number >= 0) & limited[slots]
            times = np.bincount(number[inside], counts[inside], minlength=episodes.count)
            worth = weight * rarity(episodes.count, int(np.count_nonzero(times)))
            best_possible += worth
            scores += (worth * (K1 + 1)) * times / (times + norm)
        scores /= best_possible or 1.0
        return np.where(episodes.number >= 0, scores[episodes.number], 0)

    def coverage(self, words: Sequence[str], said: Floats | None) -> Floats:
        """Return the share of the words that each memory holds, weighted by rarity. With `said`, a person is named, who
        counts as a word held by the messages they sent."""
        if not words and said is None:
            return np.zeros(self._size, np.float32)
        slots, _, worths, sizes = self._holders_of(list(dict.fromkeys(words)))
        worth, whole = np.repeat(worths, sizes), float(worths.sum())
        person = 0.0 if said is None else rarity(self._population, 0) / 2
        held = self._summed(slots, worth, whole + person)
        if said is not None:
            held += np.float32(person / (whole + person)) * said
        return held

    def keyword_match(self, query: IndexQuery) -> Floats:
        """Return the share of the query's keywords that each memory has, by their weight and rarity."""
        scores = np.zeros(self._size, np.float32)
        whole = 0.0
        alike = {
            keyword: self._words.alike(keyword) + [(word, SYNONYM) for word in query.synonyms.get(keyword, ())]
            for keyword in query.keywords
        }
        words = list(dict.fromkeys(word for some in alike.values() for word, _ in some))
        holders = dict(zip(words, self._words.find_keywords(words), strict=True))
        for keyword, some in alike.items():
            found = [(*holders[word], quality) for word, quality in some if len(holders[word][0])]
            if not found:
                whole += rarity(self._population, 0)
                continue
            slots, values = _best_of(found, self._size)
            if not self._all_alive:
                living = self._columns["alive"][slots]
                slots, values = slots[living], values[living]
            worth = self._rarity(slots, f"{KEYWORD}{keyword}")
            scores[slots] += np.float32(worth) * values
            whole += worth
        return scores / whole if whole else scores

    def holds_phrase(self, phrases: Sequence[Sequence[str]]) -> Floats:
        """Return 1 for memories that contain all words of a phrase."""
        any_of_them = np.zeros(self._size, np.bool_)
        self.find([term for phrase in phrases for term in phrase])
        for phrase in phrases:
            held = np.zeros(self._size, np.int32)
            for term in set(phrase):
                held[self._found[term][0]] += 1
            any_of_them |= held == len(set(phrase))
        return any_of_them.astype(np.float32)

    def find(self, terms: Iterable[str]) -> None:
        """Look up the live slots that contain each term, its counts, and its rarity."""
        new = [term for term in dict.fromkeys(terms) if term not in self._found]
        if not new:
            return
        for term, (slots, counts) in zip(new, self._words.find(new), strict=True):
            living = slice(None) if self._all_alive else self._columns["alive"][slots]
            there = slots[living]
            self._found[term] = there, counts[living], self._rarity(there, term)

    def _holders_of(self, terms: Sequence[str]) -> tuple[Slots, Numbers, NDArray[np.float32], list[int]]:
        """Return the slots and counts of terms, one after the other, the rarity of each, and how many slots it has."""
        self.find(terms)
        found = [self._found[term] for term in terms]
        slots, counts = (np.concatenate([one[at] for one in found] or [np.empty(0, np.int32)]) for at in (0, 1))
        rarities = np.array([rare for _, _, rare in found], np.float32)
        return slots, counts.astype(np.float32), rarities, [len(slots) for slots, _, _ in found]

    def _summed(self, slots: Slots, values: Floats, whole: float) -> Floats:
        """Return the sum of each slot's values, as a share of the whole."""
        return np.bincount(slots, values / (whole or 1.0), minlength=self._size).astype(np.float32)

    def _rarity(self, holders: Slots, term: str) -> float:
        holding = len(holders)
        if self._derived and holding:
            holding -= int(np.count_nonzero(self._columns["derived"][holders]))
        return rarity(self._population, holding)
