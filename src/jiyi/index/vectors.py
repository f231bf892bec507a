"""Vector legs: all vectors of a user in RAM, or those that a query needs. Rows have float16, and sums need float32."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..store.repositories.index_rows import IndexRow
from ..store.schema.columns import HALF
from .query import Floats, Scope, Slots

HALF_BYTES = np.dtype(HALF).itemsize
FEW = 500  # vectors that are copied at once: more would not fit into the processor's cache


class RamVectors:
    """All vectors of a user."""

    def __init__(self, dimension: int = 0) -> None:
        self.dimension = dimension  # 0 until there is one
        self._all: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self.passages = PassageVectors()

    @property
    def nbytes(self) -> int:
        return self._all.nbytes + self.passages.nbytes

    def grow(self, size: int, capacity: int) -> None:
        grown = np.zeros((capacity, self.dimension), np.float32)
        grown[:size] = self._all[:size]
        self._all = grown

    def put(self, first: int, rows: Sequence[IndexRow]) -> list[bool]:
        given = [row.dimension for row in rows if row.dimension is not None]
        if given and not self.dimension:  # the first vector sets the dimension
            self.dimension = given[0]
            self._all = np.zeros((len(self._all), self.dimension), np.float32)
        fitting = [row.dimension == self.dimension for row in rows]
        self.passages.add(self.dimension, first, rows)
        if any(fitting):
            blank = bytes(HALF_BYTES * self.dimension)
            joined = b"".join(row.vector or blank if fits else blank for row, fits in zip(rows, fitting, strict=True))
            self._all[first : first + len(rows)] = np.frombuffer(joined, HALF).reshape(len(rows), -1)
        return fitting

    def set(self, slots: Sequence[int], vectors: Sequence[bytes]) -> None:
        if set(map(len, vectors)) - {HALF_BYTES * self.dimension}:
            fitting = [at for at, vector in enumerate(vectors) if len(vector) == HALF_BYTES * self.dimension]
            slots, vectors = [slots[at] for at in fitting], [vectors[at] for at in fitting]
        for at in range(0, len(slots), FEW):
            some, few = slots[at : at + FEW], vectors[at : at + FEW]
            in_a_row = isinstance(some, range) or (some[-1] - some[0] + 1 == len(some) and some == sorted(some))
            place = slice(some[0], some[-1] + 1) if in_a_row else some  # a slice is copied faster
            self._all[place] = np.frombuffer(b"".join(few), HALF).reshape(len(few), -1)

    def cosine(self, vector: NDArray[np.float32] | None, size: int, slots: Scope) -> Floats:
        if vector is None or not self.dimension:
            return np.zeros(size, np.float32)[slots]
        # A scan of everything is faster than gathering rows, unless few are wanted.
        if isinstance(slots, slice) or len(self.passages) or len(slots) > size // 4:
            return np.asarray(self.passages.raised(self._all[:size] @ vector, vector)[slots])
        return np.asarray(self._all[slots] @ vector)


class LoadedVectors:
    """Vectors that the next query needs, loaded from an engine that has all of them. The few passages stay in RAM."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._slots: Slots = np.empty(0, np.int64)
        self._vectors: NDArray[np.float32] = np.empty((0, dimension), np.float32)
        self.passages = PassageVectors()

    @property
    def nbytes(self) -> int:
        return self.passages.nbytes

    def grow(self, size: int, capacity: int) -> None:
        """Do nothing: vectors are not kept by slot."""

    def set(self, slots: Sequence[int], vectors: Sequence[bytes]) -> None:
        """Do nothing: vectors stay in the engine."""

    def put(self, first: int, rows: Sequence[IndexRow]) -> list[bool]:
        self.passages.add(self.dimension, first, rows)
        return [row.dimension == self.dimension for row in rows]

    def load(self, slots: Slots, vectors: NDArray[np.float32]) -> None:
        """Replace the loaded vectors."""
        self._slots, self._vectors = slots, vectors

    def cosine(self, vector: NDArray[np.float32] | None, size: int, slots: Scope) -> Floats:
        similarity: Floats = np.zeros(size, np.float32)
        if vector is None or not self.dimension:
            return similarity[slots]
        similarity[self._slots] = self._vectors @ vector
        return self.passages.raised(similarity, vector)[slots]


class PassageVectors:
    """Vectors of passages: a long memory is as similar to a query as its most similar passage."""

    def __init__(self) -> None:
        self._slot: Slots = np.empty(0, np.int32)
        self._vectors: NDArray[np.float32] = np.empty((0, 0), np.float32)

    def __len__(self) -> int:
        return len(self._slot)

    @property
    def nbytes(self) -> int:
        return self._slot.nbytes + self._vectors.nbytes

    def add(self, dimension: int, first: int, rows: Sequence[IndexRow]) -> None:
        """Add the passages of new memories, from slot `first` on; other dimensions are ignored."""
        given = [(slot, vector) for slot, row in enumerate(rows, first) for vector in row.passages]
        fitting = [(slot, vector) for slot, vector in given if dimension and len(vector) == HALF_BYTES * dimension]
        if not fitting:
            return
        new = np.frombuffer(b"".join(vector for _, vector in fitting), HALF).reshape(len(fitting), dimension)
        self._vectors = np.vstack([self._vectors.reshape(-1, dimension), new]).astype(np.float32, copy=False)
        self._slot = np.append(self._slot, np.array([slot for slot, _ in fitting], np.int32))

    def packed(self) -> dict[str, NDArray[Any]]:
        return {"passage slots": self._slot, "passage vectors": self._vectors.ravel().astype(HALF)}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._slot = arrays["passage slots"]
        if len(self._slot):
            self._vectors = arrays["passage vectors"].reshape(len(self._slot), -1).astype(np.float32)

    def raised(self, similarity: Floats, vector: NDArray[np.float32]) -> Floats:
        """Return each memory's similarity, or that of its most similar passage."""
        if len(self._slot):
            np.maximum.at(similarity, self._slot, self._vectors @ vector)
        return similarity
