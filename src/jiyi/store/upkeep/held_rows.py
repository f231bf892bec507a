"""Memories with the messages that they came from, as deletions read them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from ..database import chunks, from_row
from ..schema.tables import MemoryRow, MemorySourceRow
from ..write_set import StoredMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(StoredMemory):
    """A memory with the ids of its source messages."""

    messages: frozenset[str]


def held_rows(session: Session, user_id: str, memory_ids: Sequence[str]) -> list[Held]:
    found: list[Held] = []
    for some in chunks(list(memory_ids)):
        memories = session.execute(
            select(MemoryRow.__table__)
            .where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some))
            .order_by(MemoryRow.id)
        ).all()
        sources = select(MemorySourceRow.memory_id, MemorySourceRow.message_id).where(
            MemorySourceRow.user_id == user_id, MemorySourceRow.memory_id.in_(some)
        )
        messages: dict[str, set[str]] = {}
        for memory_id, message_id in session.execute(sources):
            messages.setdefault(memory_id, set()).add(message_id)
        found += [from_row(Held, row, messages=frozenset(messages.get(row.id, ()))) for row in memories]
    return found


def from_messages(session: Session, user_id: str, messages: frozenset[str]) -> list[Held]:
    found: set[str] = set()
    for some in chunks(sorted(messages)):
        statement = select(MemorySourceRow.memory_id).where(
            MemorySourceRow.user_id == user_id, MemorySourceRow.message_id.in_(some)
        )
        found.update(session.scalars(statement))
    return held_rows(session, user_id, sorted(found))
