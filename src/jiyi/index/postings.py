"""Postings of one user in RAM: the memories that contain a term, with a value. A sorted part is searched binarily; a
small tail of recent additions is merged when it has grown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]
Numbers = NDArray[Any]
Entries = tuple[Ints, Ints, Numbers]  # terms, documents and values, in parallel


class Postings:
    def __init__(self, dtype: str) -> None:
        nothing = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, dtype))
        self._sorted: Entries = nothing
        self._tail: Entries = nothing

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in (*self._sorted, *self._tail))

    def add(self, docs: Ints, terms: Ints, values: Numbers) -> None:
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

    def find(self, term: int) -> tuple[Ints, Numbers]:
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
    """The terms; one that the query repeats counts more, but not as often as it is repeated."""
    return [(term, 1 + math.log(times)) for term, times in Counter(terms).items()]


def rarity(population: int, holders: int) -> float:
    """Inverse document frequency."""
    return math.log(1 + (population - holders + 0.5) / (holders + 0.5))
