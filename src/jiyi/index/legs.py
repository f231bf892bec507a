"""The columns of a `UserIndex`, and the protocols of its word leg and vector leg: the seam for other engines.

A `UserIndex` gives each memory a slot, its position in every column, and asks its legs which slots contain a term and
how similar slots are to a vector. Further engines, such as Milvus or Elasticsearch, implement one of the protocols and
are chosen in `index.open_index`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..scope import Filter
from ..store.repositories.index_rows import IndexRow
from .query import Candidates, Floats, IndexQuery, Scope, Slots

if TYPE_CHECKING:
    from .vectors import PassageVectors


CODED = ("memory_type", "layer", "session_id", "agent_id", "group_id", "speaker", "kind")
TIMES = ("occurred_at", "valid_from", "valid_to", "expires_at", "last_accessed_at", "created_at")
COLUMNS: dict[str, str] = {
    "id": "O",
    **dict.fromkeys(CODED, "i4"),
    **dict.fromkeys(TIMES, "i8"),
    "access_count": "f4",
    "importance": "f4",
    "trust": "f8",
    "asks": "f4",
    "length": "i4",
    "of_passage": "i4",
    "alive": "?",
    "alone": "?",
    "assistant": "?",
    "derived": "?",
    "embedded": "?",
}


class WordLeg(Protocol):
    """Terms and keywords of one user's memories, by slot."""

    @property
    def nbytes(self) -> int: ...

    def put(self, first: int, rows: Sequence[IndexRow]) -> None:
        """Add the terms and keywords of new memories, from slot `first` on."""

    def settle(self) -> None:
        """Optimise for searching, after a load."""

    def packed(self) -> dict[str, NDArray[Any]]:
        """Return the terms and keywords, after `settle`, for `unpack`."""

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what `packed` returned."""

    def learn(self, keywords: Iterable[str]) -> None:
        """Add keywords that can be found by prefix."""

    def unlearn(self, keywords: Iterable[str]) -> None:
        """Keep only these keywords, after a delete."""

    def find(self, terms: Sequence[str]) -> list[tuple[Slots, Floats]]:
        """Return for each term the slots that contain it, and its counts."""

    def find_keywords(self, keywords: Sequence[str]) -> list[tuple[Slots, Floats]]:
        """Return for each keyword the slots that have it, and its weights."""

    def alike(self, keyword: str) -> list[tuple[str, float]]:
        """Return the keyword and those that begin with it, with how well they fit."""


class VectorLeg(Protocol):
    """Vectors of one user's memories, by slot."""

    dimension: int  # 0 until there is a vector
    passages: PassageVectors

    @property
    def nbytes(self) -> int: ...

    def grow(self, size: int, capacity: int) -> None:
        """Reserve room for so many slots."""

    def put(self, first: int, rows: Sequence[IndexRow]) -> list[bool]:
        """Add the vectors of new memories, from slot `first` on; return which of them have one that fits."""

    def set(self, slots: Sequence[int], vectors: Sequence[bytes]) -> None:
        """Set the vectors of slots that exist."""

    def cosine(self, vector: NDArray[np.float32] | None, size: int, slots: Scope) -> Floats:
        """Return the similarity of slots to a vector; 0 where there is none."""


class Engines(Protocol):
    """External engines that search the memories of some users."""

    async def gather(self, query: IndexQuery) -> Candidates | tuple[str, ...]:
        """Return the candidates of a query with their scores; if the user is searched in RAM, the failures that are the
        reason, or nothing."""

    async def people(self, user_id: str) -> frozenset[str] | None:
        """Return the speakers in a user's memories, or None if the user is searched in RAM."""


class ExternalVectors(Protocol):
    """A vector engine that has the vectors of users with very many memories; `vectors.LoadedVectors` takes those that a
    query needs."""

    async def dimension(self, user_id: str, model: str) -> int | None:
        """Return the dimension of the user's vectors in the engine, or None if it has none."""

    async def nearest(
        self, where: Filter, model: str, vectors: Sequence[NDArray[np.float32]], *, often: bool
    ) -> set[str]:
        """Return the ids of the memories nearest to and farthest from vectors; `often`: most are in scope."""

    async def load(
        self, user_id: str, model: str, ids: Sequence[str], dimension: int
    ) -> tuple[list[str], NDArray[np.float32]]:
        """Return vectors with the ids of their memories."""

    async def maintain(self, user_id: str) -> None:
        """Add or remove a user by the number of vectors."""

    async def drop(self, user_id: str) -> None:
        """Remove a deleted user."""
