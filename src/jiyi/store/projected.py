"""Memories as external engines hold them: with their index entries, vectors and source messages."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BindParameter, ColumnElement, String, and_, bindparam, select

from .database import Repository, chunks
from .session import Rows, Session
from .tables import EmbeddingRow, KeywordRow, MemoryRow, MemorySourceRow, MessageRow, TermsRow

PAGE = 1000
PARTS = frozenset(("keywords", "vectors", "messages"))  # of a memory, which not every engine stores


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
    metadata: dict[str, Any]
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


_OF_MESSAGE = [getattr(MessageRow, name) for name in ProjectedMessage.__dataclass_fields__]
_OF_MEMORY = [name for name in ProjectedMemory.__dataclass_fields__ if name not in {*PARTS, "length"}]
_USERS: BindParameter[list[str]] = bindparam("users", expanding=True)
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)


def _statements(*, by_id: bool) -> dict[str, Any]:
    """Select what belongs to memories, by users or by users and ids."""

    def mine(user: Any, memory: Any) -> ColumnElement[bool]:
        chosen: ColumnElement[bool] = user.in_(_USERS)
        return and_(chosen, memory.in_(_IDS)) if by_id else chosen

    keyword, vector, source = KeywordRow, EmbeddingRow, MemorySourceRow
    return {
        "memories": select(*(getattr(MemoryRow, name) for name in _OF_MEMORY)).where(
            mine(MemoryRow.user_id, MemoryRow.id)
        ),
        "terms": select(TermsRow.user_id, TermsRow.memory_id, TermsRow.length).where(
            mine(TermsRow.user_id, TermsRow.memory_id)
        ),
        "keywords": select(keyword.user_id, keyword.memory_id, keyword.keyword, keyword.weight, keyword.source).where(
            mine(keyword.user_id, keyword.memory_id)
        ),
        "vectors": select(vector.user_id, vector.memory_id, vector.part, vector.vector).where(
            mine(vector.user_id, vector.memory_id), vector.model == bindparam("model", type_=String)
        ),
        "messages": select(source.user_id, source.memory_id, *_OF_MESSAGE)
        .join(MessageRow, and_(MessageRow.user_id == source.user_id, MessageRow.id == source.message_id))
        .where(mine(source.user_id, source.memory_id)),
    }


_BY_USER, _BY_ID = _statements(by_id=False), _statements(by_id=True)


class ProjectedMemories(Repository):
    """Reads memories for external engines."""

    async def get(
        self, user_id: str, ids: Sequence[str], model: str, parts: frozenset[str] = PARTS
    ) -> list[ProjectedMemory]:
        """Return the memories that exist, with vectors of this model."""

        async def read(session: Session) -> list[ProjectedMemory]:
            found: list[ProjectedMemory] = []
            for some in chunks(list(dict.fromkeys(ids)), PAGE):
                found += await _projected(session, [user_id], model, parts, some)
            return found

        return await self._database.read(user_id, read)

    async def page(self, user_id: str, after: str, model: str, parts: frozenset[str] = PARTS) -> list[ProjectedMemory]:
        """Return the next memories of a user, in the order of their ids."""

        async def read(session: Session) -> list[ProjectedMemory]:
            mine = select(MemoryRow.id).where(MemoryRow.user_id == user_id, MemoryRow.id > after)
            ids = await session.scalars(mine.order_by(MemoryRow.id).limit(PAGE))
            return await _projected(session, [user_id], model, parts, ids)

        return await self._database.read(user_id, read)

    async def of_users(self, users: Sequence[str], model: str, parts: frozenset[str]) -> list[ProjectedMemory]:
        """Return all memories of users who have few."""
        return await self._database.read(None, lambda session: _projected(session, users, model, parts))


async def _projected(
    session: Session, users: Sequence[str], model: str, parts: frozenset[str], ids: Sequence[str] | None = None
) -> list[ProjectedMemory]:
    """Return memories of users; with `ids`, only those. Parts that are not asked for stay empty."""
    if ids is not None and not ids:
        return []
    statements = _BY_USER if ids is None else _BY_ID
    wanted = [name for name in statements if name not in PARTS or name in parts]
    place: dict[str, Any] = {"users": list(users)} | ({} if ids is None else {"ids": list(ids)})
    reads = [(statements[name], place | ({"model": model} if name == "vectors" else {})) for name in wanted]
    found = dict(zip(wanted, await session.select(*reads), strict=True))
    lengths = {(user, memory): length for user, memory, length in found["terms"]}
    more = {name: _grouped(found.get(name, [])) for name in PARTS}
    memories = []
    for row in found["memories"]:
        values = dict(zip(_OF_MEMORY, row, strict=True))
        key = (values["user_id"], values["id"])
        memories.append(
            ProjectedMemory(
                **values | {"tags": tuple(values["tags"])},
                length=lengths.get(key),
                keywords=tuple(sorted(more["keywords"].get(key, ()))),
                vectors=tuple(vector for _, vector in sorted(more["vectors"].get(key, ()), key=itemgetter(0))),
                messages=tuple(_message(message) for message in sorted(more["messages"].get(key, ()))),
            )
        )
    return sorted(memories, key=lambda memory: (memory.user_id, memory.id))


def _message(values: Sequence[Any]) -> ProjectedMessage:
    return ProjectedMessage(**dict(zip(ProjectedMessage.__dataclass_fields__, values, strict=True)))


def _grouped(rows: Rows) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Return rows by user and memory."""
    found: defaultdict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for user, memory, *values in rows:
        found[user, memory].append(tuple(values))
    return found
