"""Memories, and units of conversation, as external engines hold them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, and_, exists, select
from sqlalchemy.orm import Session

from ...models import MemoryItem
from ..database import Repository, chunks, from_row, reads
from ..repositories.memories import items
from ..repositories.messages import UNITS_PART, StoredUnit, with_messages
from ..schema.tables import (
    EmbeddingRow,
    KeywordRow,
    MemoryRow,
    MemorySourceRow,
    MessageRow,
    TermsRow,
    UnitMessageRow,
    UnitRow,
)
from ..write_set import StoredMemory

PAGE = 1000
PARTS = frozenset(("keywords", "vectors", "messages"))  # of a memory, which not every engine stores
UNITS = "units"  # beside the memories


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedMessage:
    """A source message."""

    id: str
    role: str
    speaker: str | None
    text: str
    sent_at: datetime
    unit_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedMemory(StoredMemory):
    """A memory with everything that an engine may store of it."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedUnit:
    """A unit of conversation that has messages, and the active memories derived from it."""

    user_id: str
    stored: StoredUnit
    memories: tuple[MemoryItem, ...]

    @property
    def id(self) -> str:
        return self.stored.id


Projected = ProjectedMemory | ProjectedUnit

_OF_MESSAGE = [
    UnitMessageRow.unit_id if name == "unit_id" else getattr(MessageRow, name)
    for name in ProjectedMessage.__dataclass_fields__
]
_NOT_EMPTY = exists().where(UnitMessageRow.user_id == UnitRow.user_id, UnitMessageRow.unit_id == UnitRow.id)


class ProjectedMemories(Repository):
    """Reads memories, and units if they are asked for, for external engines."""

    @reads
    def get(
        self, session: Session, user_id: str, ids: Sequence[str], model: str, parts: frozenset[str] = PARTS
    ) -> list[Projected]:
        """Return the memories and units that exist, with vectors of this model."""
        found: list[Projected] = []
        for some in chunks(list(dict.fromkeys(ids)), PAGE):
            found += _projected(session, [user_id], model, parts, some)
            if UNITS in parts:
                found += _units(session, user_id, some)
        return found

    @reads
    def page(
        self, session: Session, user_id: str, after: str, model: str, parts: frozenset[str] = PARTS
    ) -> list[Projected]:
        """Return the next memories and units of a user, in the order of their ids."""
        mine = select(MemoryRow.id).where(MemoryRow.user_id == user_id, MemoryRow.id > after)
        ids = list(session.scalars(mine.order_by(MemoryRow.id).limit(PAGE)))
        if UNITS not in parts:
            return [*_projected(session, [user_id], model, parts, ids)]
        units = select(UnitRow.id).where(UnitRow.user_id == user_id, UnitRow.id > after, _NOT_EMPTY)
        ids = sorted([*ids, *session.scalars(units.order_by(UnitRow.id).limit(PAGE))])[:PAGE]
        found: list[Projected] = [*_projected(session, [user_id], model, parts, ids), *_units(session, user_id, ids)]
        return sorted(found, key=attrgetter("id"))

    @reads(everybody=True)
    def of_users(self, session: Session, users: Sequence[str], model: str, parts: frozenset[str]) -> list[Projected]:
        """Return all memories and units of users who have few."""
        found: list[Projected] = [*_projected(session, users, model, parts)]
        if UNITS in parts:
            mine = select(UnitRow.user_id, UnitRow.id).where(UnitRow.user_id.in_(users))
            ids = defaultdict[str, list[str]](list)
            for user_id, unit_id in session.execute(mine.order_by(UnitRow.user_id, UnitRow.id)):
                ids[user_id].append(unit_id)
            for user_id, own in ids.items():
                found += _units(session, user_id, own)
        return found


def _units(session: Session, user_id: str, ids: Sequence[str]) -> list[ProjectedUnit]:
    """Return the units that exist and have messages."""
    found: list[ProjectedUnit] = []
    for some in chunks(ids, UNITS_PART):
        mine = select(UnitRow.__table__).where(UnitRow.user_id == user_id, UnitRow.id.in_(some), _NOT_EMPTY)
        units = with_messages(session, user_id, session.execute(mine.order_by(UnitRow.id)).all())
        derived = [memory_id for unit in units for memory_id in unit.memory_ids]
        memories = {memory.id: memory for memory in items(session, user_id, derived)}
        found += [
            ProjectedUnit(user_id=user_id, stored=unit, memories=tuple(memories[one] for one in unit.memory_ids))
            for unit in units
        ]
    return found


def _projected(
    session: Session, users: Sequence[str], model: str, parts: frozenset[str], ids: Sequence[str] | None = None
) -> list[ProjectedMemory]:
    """Return memories of users; with `ids`, only those. Parts that are not asked for stay empty."""
    if ids is not None and not ids:
        return []

    def rows(user: Any, memory: Any, *columns: Any) -> Select[Any]:
        mine = select(user, memory, *columns).where(user.in_(users))
        return mine if ids is None else mine.where(memory.in_(ids))

    keyword, vector, source = KeywordRow, EmbeddingRow, MemorySourceRow
    statements = {
        "keywords": rows(keyword.user_id, keyword.memory_id, keyword.keyword, keyword.weight, keyword.source),
        "vectors": rows(vector.user_id, vector.memory_id, vector.part, vector.vector).where(vector.model == model),
        "messages": rows(source.user_id, source.memory_id, *_OF_MESSAGE)
        .join(MessageRow, and_(MessageRow.user_id == source.user_id, MessageRow.id == source.message_id))
        .outerjoin(
            UnitMessageRow,
            and_(UnitMessageRow.user_id == source.user_id, UnitMessageRow.message_id == source.message_id),
        ),
    }
    more = {name: _grouped(session.execute(one) if name in parts else ()) for name, one in statements.items()}
    terms = session.execute(rows(TermsRow.user_id, TermsRow.memory_id, TermsRow.length))
    lengths = {(user, memory_id): length for user, memory_id, length in terms}
    mine = select(MemoryRow.__table__).where(MemoryRow.user_id.in_(users)).order_by(MemoryRow.user_id, MemoryRow.id)
    memories = []
    for row in session.execute(mine if ids is None else mine.where(MemoryRow.id.in_(ids))):
        key = (row.user_id, row.id)
        memories.append(
            from_row(
                ProjectedMemory,
                row,
                length=lengths.get(key),
                keywords=tuple(sorted(more["keywords"].get(key, ()))),
                vectors=tuple(vector for _, vector in sorted(more["vectors"].get(key, ()), key=itemgetter(0))),
                messages=tuple(_message(message) for message in sorted(more["messages"].get(key, ()))),
            )
        )
    return memories


def _message(values: Sequence[Any]) -> ProjectedMessage:
    return ProjectedMessage(**dict(zip(ProjectedMessage.__dataclass_fields__, values, strict=True)))


def _grouped(rows: Iterable[Any]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Return rows by user and memory."""
    found: defaultdict[tuple[str, str], list[tuple[Any, ...]]] = defaultdict(list)
    for user, memory, *values in rows:
        found[user, memory].append(tuple(values))
    return found
