"""Vectors of one user's memories in RAM, by slot: all of them, or those that a query needs if they stay in the
database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..store.types import VECTOR
from .passages import Spans
from .query import Floats
from .row import IndexRow

Slots = NDArray[np.integer[Any]]
Scope = Slots | slice


class Vectors:
    def __init__(self, dimension: int, *, outside: bool) -> None:
        self.dimension = dimension  # 0 until there is one
        self.outside = outside
        self._all: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self._lent: tuple[Slots, NDArray[np.float32]] = np.empty(0, np.int64), self._all
        self._spans = Spans()  # in RAM for everybody: there are few

    @property
    def nbytes(self) -> int:
        return self._all.nbytes + self._spans.nbytes

    def grow(self, size: int, capacity: int) -> None:
        if not self.outside:
            grown = np.zeros((capacity, self.dimension), np.float32)
            grown[:size] = self._all[:size]
            self._all = grown

    def put(self, first: int, rows: Sequence[IndexRow]) -> list[bool]:
        """Add vectors of new memories, from slot `first` on; return which ones fit the dimension."""
        given = [row.dimension for row in rows if row.dimension is not None]
        if given and not self.dimension:  # the first vector tells the dimension
            self.dimension = given[0]
            self._all = np.zeros((len(self._all), self.dimension), np.float32)
        fitting = [row.dimension == self.dimension for row in rows]
        self._spans.add(self.dimension, [(at, one) for at, row in enumerate(rows, first) for one in row.passages])
        if any(fitting) and not self.outside:
            blank = bytes(4 * self.dimension)
            joined = b"".join(row.vector or blank if fits else blank for row, fits in zip(rows, fitting, strict=True))
            self._all[first : first + len(rows)] = np.frombuffer(joined, VECTOR).reshape(len(rows), -1)
        return fitting

    def lend(self, slots: Slots, vectors: NDArray[np.float32]) -> None:
        """Set the vectors for the next query, where vectors stay in the database."""
        self._lent = slots, vectors

    def cosine(self, vector: NDArray[np.float32] | None, size: int, slots: Scope) -> Floats:
        """Return the similarity of memories to a vector; 0 for unknown ones."""
        if vector is None or not self.dimension:
            return np.zeros(size, np.float32)[slots]
        if self.outside:
            known, lent = self._lent
            similarity: Floats = np.zeros(size, np.float32)
            similarity[known] = lent @ vector
            return self._spans.raised(similarity, vector)[slots]
        # A scan of everything is faster than gathering rows, unless few are wanted.
        if isinstance(slots, slice) or len(self._spans) or len(slots) > size // 4:
            return np.asarray(self._spans.raised(self._all[:size] @ vector, vector)[slots])
        return np.asarray(self._all[slots] @ vector)
