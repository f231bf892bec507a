"""The protocol of external engines. An engine is a projection of the memories and the units of conversation: it can be
verified, dropped and rebuilt, and SQL stays the source of truth."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Protocol

from ..languages.words import normalise
from ..models import to_micros
from ..roles import subject_text
from ..store.upkeep.engine_memories import Projected, ProjectedMemory
from ..text.passages import COMPRESSED

FOREVER = 2**63 - 1  # for times that never come


class Engine(Protocol):
    """An external engine. Failures are raised as `EngineError`; every call may be repeated."""

    name: str
    identity: str  # of the place where its documents are: another one has to be loaded
    parts: frozenset[str]  # that it stores: keywords, vectors and messages of memories, and units

    def use(self, generation: int) -> None:
        """Address the documents of this generation. Loading everything anew makes another one."""

    async def open(self) -> str | None:
        """Connect; return what is missing or is not as `create` made it, or None."""

    async def create(self) -> bool:
        """Create what is missing; return True if there was nothing. Nothing is ever created by a write."""

    async def write(self, user_id: str, documents: Sequence[Projected], deleted: Sequence[str]) -> None:
        """Insert or replace memories and units of a user, and delete others by id."""

    async def siblings(self, user_id: str, ids: Sequence[str]) -> Sequence[str]:
        """Return the other memories whose documents have texts of the same messages: a deletion changes these too."""

    async def load(self, documents: Sequence[Projected]) -> None:
        """Insert memories and units of any users whose documents were deleted before."""

    async def refresh(self) -> None:
        """Make everything written visible to searches."""

    async def delete_keys(self, keys: Sequence[str]) -> None:
        """Delete everything of the users with these keys (`user_key`)."""

    async def digests(self, user_id: str) -> Mapping[str, str]:
        """Return the digests that a user's documents name, by the id of the memory or unit."""

    async def hashes(self, user_id: str, ids: Sequence[str] | None) -> Mapping[str, str]:
        """Return digests of what is stored of memories, or of all of a user."""

    async def foreign(self) -> int:
        """Count the documents that other programs have added."""

    async def user_keys(self) -> set[str]:
        """Return the keys of all users who have documents (`user_key`)."""

    async def drop(self) -> None:
        """Delete everything of this store."""

    async def loaded(self) -> None:
        """Prepare for searches: everything is loaded."""

    async def publish(self) -> None:
        """Have the names that other programs read point to this generation."""

    async def tidy(self) -> None:
        """Delete earlier generations and what another embedder left."""

    async def close(self) -> None: ...

    def digest(self, document: Projected) -> str | None:
        """Return the digest of the document of a memory or unit, or None if this engine has none of it."""


def memories_in(documents: Sequence[Projected]) -> list[ProjectedMemory]:
    """Return the memories without the units."""
    return [document for document in documents if isinstance(document, ProjectedMemory)]


def user_key(user_id: str) -> str:
    """Return a short key of a user: ids may be longer than engines allow."""
    return sha256(user_id.encode()).hexdigest()[:32]


def identity_of(*parts: str) -> str:
    """Return a hash of an address, a prefix and a model."""
    return sha256("\n".join(parts).encode()).hexdigest()[:32]


def document_key(user_id: str, memory_id: str) -> str:
    return f"{user_key(user_id)}-{memory_id}"


def digest_of(document: Mapping[str, Any], vectors: Sequence[Any] = ()) -> str:
    """Hash a document and its vectors."""
    hashed = sha256(json.dumps(document, sort_keys=True, default=str, ensure_ascii=False).encode())
    for vector in vectors:
        hashed.update(vector.tobytes())
    return hashed.hexdigest()[:24]


def micros(at: datetime | None) -> int:
    return FOREVER if at is None else to_micros(at)


def speaker_of(memory: ProjectedMemory) -> str | None:
    """Return the normalised speaker, as the index takes it in."""
    said_by = None if memory.data.get("extractor") == "llm" else memory.data.get("speaker")
    said_by = said_by or subject_text(memory.data)
    return normalise(said_by) if isinstance(said_by, str) else None


def passage_length(memory: ProjectedMemory) -> int:
    """Return the length of one passage of a memory, in terms."""
    lines = memory.data.get("lines") if COMPRESSED in memory.data else 1
    return (memory.length or 0) // (lines if isinstance(lines, int) and lines > 0 else 1)
