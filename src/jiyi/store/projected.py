"""Memories as external engines hold them: with their index entries, vectors and source messages."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncSession

from .database import Repository, chunks, from_row
from .memories import memory_rows
from .tables import EmbeddingRow, KeywordRow, MemoryRow, MemorySourceRow, MessageRow, TermsRow

PAGE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedMessage:
    """A source message."""

    id: str
    role: str
    speaker: str | None
    text: str
    sent_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedMemory:
    """A memory with everything that an engine may store of it."""

    user_id: str
    id: str
    memory_key: str
    version: int
    memory_type: str
    layer: str
    status: str
    content: str
    summary: str
    data: dict[str, Any]
    meta: dict[str, Any]
    tags: tuple[str, ...]
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    importance: float
    confidence: float
    trust: float
    occurred_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    expires_at: datetime | None
    created_at: datetime
    superseded_by: str | None
    source: str
    length: int | None  # in terms; None: it has no index entry yet
    keywords: tuple[tuple[str, float, str], ...]  # keyword, weight, source
    vectors: tuple[NDArray[np.float32], ...]  # of the whole, then of its passages; of the model asked for
    messages: tuple[ProjectedMessage, ...]

    @property
    def searchable(self) -> bool:
        """Searches find active memories that have an index entry."""
        return self.status == "active" and self.length is not None

    @property
    def user_tags(self) -> tuple[str, ...]:
        """Normalised tags, by which filters select."""
        return tuple(keyword for keyword, _, source in self.keywords if source == "user_tag")


class ProjectedMemories(Repository):
    """Reads memories for external engines."""

    async def get(self, user_id: str, ids: Sequence[str], model: str) -> list[ProjectedMemory]:
        """Return the memories that exist, with vectors of this model."""
        async with self._database.reading(user_id) as session:
            found: list[ProjectedMemory] = []
            for some in chunks(list(dict.fromkeys(ids)), PAGE):
                found += await _projected(session, user_id, some, model)
            return found

    async def page(self, user_id: str, after: str, model: str) -> list[ProjectedMemory]:
        """Return the next memories of a user, in the order of their ids."""
        async with self._database.reading(user_id) as session:
            mine = select(MemoryRow.id).where(MemoryRow.user_id == user_id, MemoryRow.id > after)
            ids = list(await session.scalars(mine.order_by(MemoryRow.id).limit(PAGE)))
            return await _projected(session, user_id, ids, model)


async def _projected(session: AsyncSession, user_id: str, ids: Sequence[str], model: str) -> list[ProjectedMemory]:
    if not ids:
        return []
    rows = await memory_rows(session, user_id, ids)
    keywords: defaultdict[str, list[tuple[str, float, str]]] = defaultdict(list)
    words = select(KeywordRow).where(KeywordRow.user_id == user_id, KeywordRow.memory_id.in_(ids))
    for word in await session.scalars(words.order_by(KeywordRow.memory_id, KeywordRow.keyword)):
        keywords[word.memory_id].append((word.keyword, word.weight, word.source))
    vectors: defaultdict[str, list[NDArray[np.float32]]] = defaultdict(list)
    embedded = select(EmbeddingRow.memory_id, EmbeddingRow.vector).where(
        EmbeddingRow.user_id == user_id, EmbeddingRow.memory_id.in_(ids), EmbeddingRow.model == model
    )
    for memory_id, vector in await session.execute(embedded.order_by(EmbeddingRow.memory_id, EmbeddingRow.part)):
        vectors[memory_id].append(vector)
    terms = select(TermsRow.memory_id, TermsRow.length).where(TermsRow.user_id == user_id, TermsRow.memory_id.in_(ids))
    lengths: dict[str, int] = dict((await session.execute(terms)).all())
    messages: defaultdict[str, list[ProjectedMessage]] = defaultdict(list)
    sources = (
        select(MemorySourceRow.memory_id, MessageRow)
        .join(
            MessageRow,
            and_(MessageRow.user_id == MemorySourceRow.user_id, MessageRow.id == MemorySourceRow.message_id),
        )
        .where(MemorySourceRow.user_id == user_id, MemorySourceRow.memory_id.in_(ids))
        .order_by(MessageRow.id)
    )
    for memory_id, message in await session.execute(sources):
        messages[memory_id].append(from_row(ProjectedMessage, message))
    return [
        from_row(
            ProjectedMemory,
            row,
            length=lengths.get(row.id),
            keywords=tuple(keywords[row.id]),
            vectors=tuple(vectors[row.id]),
            messages=tuple(messages[row.id]),
        )
        for row in sorted(rows.values(), key=lambda row: row.id)
    ]
