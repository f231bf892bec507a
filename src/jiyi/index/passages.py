"""Vectors of passages: a long memory is as similar to a query as its most similar passage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..store.types import VECTOR
from .query import Floats

Slots = NDArray[np.integer[Any]]


class Spans:
    """Vectors of passages, and the slot of each."""

    def __init__(self) -> None:
        self._slot: Slots = np.empty(0, np.int32)
        self._vectors: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def __len__(self) -> int:
        return len(self._slot)

    @property
    def nbytes(self) -> int:
        return self._slot.nbytes + self._vectors.nbytes

    def add(self, dimension: int, given: Sequence[tuple[int, bytes]]) -> None:
        """Add vectors with their slots; other dimensions are ignored."""
        fitting = [(slot, vector) for slot, vector in given if dimension and len(vector) == 4 * dimension]
        if not fitting:
            return
        new = np.frombuffer(b"".join(vector for _, vector in fitting), VECTOR).reshape(len(fitting), dimension)
        self._vectors = np.vstack([self._vectors.reshape(-1, dimension), new]).astype(np.float32, copy=False)
        self._slot = np.append(self._slot, np.array([slot for slot, _ in fitting], np.int32))

    def raised(self, similarity: Floats, vector: NDArray[np.float32]) -> Floats:
        """Return each memory's similarity, or that of its most similar passage."""
        if len(self._slot):
            np.maximum.at(similarity, self._slot, self._vectors @ vector)
        return similarity
