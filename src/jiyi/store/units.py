"""Units of conversation with their messages and the memories derived from them."""

from collections import defaultdict
from dataclasses import dataclass

from sqlalchemy import and_, select

from ..models import SourceMessage
from .database import Repository, chunks, from_row
from .tables import MemoryRow, MemorySourceRow, MessageRow, UnitMessageRow, UnitRow


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredUnit:
    id: str
    session_id: str | None
    group_id: str | None
    messages: tuple[SourceMessage, ...]  # oldest first
    memory_ids: tuple[str, ...]  # of active memories, oldest first


class Units(Repository):
    async def page(self, user_id: str, session_id: str | None, *, cursor: str | None, limit: int) -> list[StoredUnit]:
        """Return units of a user or of one session, the last begun first."""
        statement = select(UnitRow).where(UnitRow.user_id == user_id)
        if session_id is not None:
            statement = statement.where(UnitRow.session_id == session_id)
        if cursor is not None:
            statement = statement.where(UnitRow.id < cursor)
        messages: dict[str, list[SourceMessage]] = defaultdict(list)
        derived: dict[str, list[str]] = defaultdict(list)
        async with self._database.reading(user_id) as session:
            units = await session.rows(statement.order_by(UnitRow.id.desc()).limit(limit))
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
            for some in chunks([unit.id for unit in units]):
                mine = and_(UnitMessageRow.user_id == user_id, UnitMessageRow.unit_id.in_(some))
                said = select(UnitMessageRow.unit_id, MessageRow).join(MessageRow, of_unit).where(mine)
                for row in await session.rows(said.order_by(MessageRow.sent_at, MessageRow.id)):
                    messages[row.unit_id].append(from_row(SourceMessage, row, span=None))
                made = select(UnitMessageRow.unit_id, MemoryRow.id).distinct()
                made = made.join(MemorySourceRow, of_message).join(MemoryRow, of_memory).where(mine)
                for unit_id, memory_id in await session.rows(made.order_by(MemoryRow.id)):
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
