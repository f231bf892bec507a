"""The word leg in RAM: postings of terms and keywords, and the vocabulary."""

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..languages.terms import term_hash
from ..store.types import COUNTS, HASHES, WEIGHTS
from .legs import IndexRow
from .query import Floats, Slots

Numbers = NDArray[Any]
Entries = tuple[Slots, Slots, Numbers]  # terms, documents and values, in parallel

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

    def learn(self, keywords: Iterable[str]) -> None:
        new = [word for word in keywords if not self._knows(word)]
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
            for other in islice(self._vocabulary, start, start + MOST_CONTINUATIONS):
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

    def find(self, term: int) -> tuple[Slots, Numbers]:
        """Return the memories with a term, and the value of each."""
        terms, docs, values = self._sorted
        start, end = (int(np.searchsorted(terms, term, side)) for side in ("left", "right"))
        tail_terms, tail_docs, tail_values = self._tail
        recent = np.flatnonzero(tail_terms == term)
        if not len(recent):
            return docs[start:end], values[start:end]
        return (
            np.concatenate((docs[start:end], tail_docs[recent])),
            np.concatenate((values[start:end], tail_values[recent])),
        )


def _joined(first: Entries, second: Entries) -> Entries:
    terms, docs, values = (np.concatenate(pair) for pair in zip(first, second, strict=True))
    return terms, docs, values


def weighted(terms: Sequence[str]) -> list[tuple[str, float]]:
    """Return the distinct terms with weights that grow with the logarithm of their number."""
    return [(term, 1 + math.log(times)) for term, times in Counter(terms).items()]


def rarity(population: int, holders: int) -> float:
    """Return the inverse document frequency."""
    return math.log(1 + (population - holders + 0.5) / (holders + 0.5))
