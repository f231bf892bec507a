"""The rows that a `UserIndex` takes in, and the protocols of its word leg and vector leg: the seam for other engines.

A `UserIndex` gives each memory a slot, its position in every column, and asks its legs which slots contain a term and
how similar slots are to a vector. Further engines, such as Milvus or Elasticsearch, implement one of the protocols and
are chosen in `index.open_index`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .query import Floats, IndexQuery, Scope, Slots

if TYPE_CHECKING:
    from ..store.session import Session
    from .user_index import UserIndex
    from .vectors import PassageVectors


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A memory as the index takes it in: times in microseconds, arrays as the bytes they are stored as."""

    id: str
    memory_type: str
    layer: str
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    speaker: str | None  # normalised, like the tags
    assistant: bool
    derived: bool  # from messages
    tags: Sequence[str]
    occurred_at: int
    valid_from: int
    valid_to: int | None
    expires_at: int | None
    last_accessed_at: int | None
    access_count: int
    importance: float
    trust: float
    length: int
    asks: float
    kind: str
    salience: float
    hashes: bytes
    counts: bytes
    keyword_hashes: bytes
    keyword_weights: bytes
    vector: bytes | None  # None also if it stays in the database
    dimension: int | None  # None without a vector
    alone: bool = False  # compressed: an episode by itself
    created_at: int = 0
    lines: int = 1  # of a compressed memory
    by_model: bool = False  # worded by a language model
    passages: Sequence[bytes] = ()  # vectors

    @property
    def of_passage(self) -> int:
        """Length of one passage."""
        return self.length // self.lines


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
    "salience": "f4",
    "length": "i4",
    "of_passage": "i4",
    "alive": "?",
    "alone": "?",
    "assistant": "?",
    "by_model": "?",
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

    def rows(self, slots: Slots) -> NDArray[np.float32]:
        """Return the vectors of these slots; zeros for a slot below 0 and where there is none."""


class ExternalVectors(Protocol):
    """A vector engine that fills `vectors.LoadedVectors` before each query, for users with very many memories."""

    async def dimension(self, session: Session, user_id: str, model: str) -> int | None:
        """Return the dimension of the user's vectors in the engine, or None if it has none."""

    async def load(self, session: Session, index: UserIndex, query: IndexQuery) -> None:
        """Load the vectors that a query needs into the index."""

    async def maintain(self, user_id: str) -> None:
        """Add or remove a user by the number of vectors."""

    async def drop(self, user_id: str) -> None:
        """Remove a deleted user."""
