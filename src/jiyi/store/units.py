"""Units of conversation with their messages and the memories derived from them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from ..models import SourceMessage
from .database import PAGE_SIZE, Repository, chunks, from_row, reads
from .tables import MemoryRow, MemorySourceRow, MessageRow, UnitMessageRow, UnitRow

UNITS_PART = 20  # units that are read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUnit:
    id: str
    session_id: str | None
    group_id: str | None
    messages: tuple[SourceMessage, ...]  # oldest first
    memory_ids: tuple[str, ...]  # of active memories, oldest first


class Units(Repository):
    @reads
    def page(
        self, session: Session, user_id: str, session_id: str | None, *, cursor: str | None, limit: int
    ) -> tuple[list[StoredUnit], bool]:
        """Return units of a user or of one session, the last begun first, as many as a page may hold, and True if there
        are more."""
        statement = select(UnitRow.__table__).where(UnitRow.user_id == user_id)
        if session_id is not None:
            statement = statement.where(UnitRow.session_id == session_id)
        if cursor is not None:
            statement = statement.where(UnitRow.id < cursor)
        units = session.execute(statement.order_by(UnitRow.id.desc()).limit(limit + 1)).all()
        found: list[StoredUnit] = []
        room = PAGE_SIZE
        for some in chunks(units[:limit], UNITS_PART):
            for unit in _with_messages(session, user_id, some):
                found.append(unit)
                room -= sum(len(message.text) for message in unit.messages)
                if room < 0:
                    return found, len(found) < len(units)
        return found, len(units) > limit


def _with_messages(session: Session, user_id: str, units: Sequence[Any]) -> list[StoredUnit]:
    """Return units with their messages and the ids of the memories derived from them."""
    messages: dict[str, list[SourceMessage]] = defaultdict(list)
    derived: dict[str, list[str]] = defaultdict(list)
    of_unit = and_(UnitMessageRow.user_id == MessageRow.user_id, UnitMessageRow.message_id == MessageRow.id)
    of_message = and_(
        MemorySourceRow.user_id == UnitMessageRow.user_id,
        MemorySourceRow.message_id == UnitMessageRow.message_id,
    )
    of_memory = and_(
        MemoryRow.user_id == MemorySourceRow.user_id,
        MemoryRow.id == MemorySourceRow.memory_id,
        MemoryRow.memory_type != "message",
        MemoryRow.status == "active",
    )
    mine = and_(UnitMessageRow.user_id == user_id, UnitMessageRow.unit_id.in_([unit.id for unit in units]))
    said = select(UnitMessageRow.unit_id, MessageRow).join(MessageRow, of_unit).where(mine)
    for row in session.execute(said.order_by(MessageRow.sent_at, MessageRow.id)):
        messages[row.unit_id].append(from_row(SourceMessage, row, span=None))
    made = select(UnitMessageRow.unit_id, MemoryRow.id).distinct()
    made = made.join(MemorySourceRow, of_message).join(MemoryRow, of_memory).where(mine)
    for unit_id, memory_id in session.execute(made.order_by(MemoryRow.id)):
        derived[unit_id].append(memory_id)
    return [
        StoredUnit(
            id=unit.id,
            session_id=unit.session_id,
            group_id=unit.group_id,
            messages=tuple(messages[unit.id]),
            memory_ids=tuple(derived[unit.id]),
        )
        for unit in units
    ]
