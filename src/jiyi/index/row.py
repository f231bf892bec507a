"""A memory as the index takes it in, and its columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A memory as the index wants it: times in microseconds, arrays as the bytes they are stored as."""

    id: str
    memory_type: str
    layer: str
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    speaker: str | None  # normalised, as the tags are
    assistant: bool
    derived: bool  # worked out of messages
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
    vector: bytes | None  # None also where it stays in the database
    dimension: int | None  # None: it has no vector
    alone: bool = False  # tells of many talks, and is one by itself
    created_at: int = 0
    lines: int = 1  # how many things it tells, one after the other
    passages: Sequence[bytes] = ()  # their vectors

    @property
    def of_passage(self) -> int:
        """The length of one passage."""
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
    "derived": "?",
    "embedded": "?",
}
