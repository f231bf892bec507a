"""Messages and the units they belong to."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, delete, exists, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from ..models import MessagePage, SourceMessage
from ..scope import Scope
from .contract import StoredMessage
from .database import Repository, chunks, from_row
from .tables import MessageRow, UnitMessageRow, UnitRow


def _in(place: Scope) -> list[ColumnElement[bool]]:
    names = {"session_id": place.session_id, "agent_id": place.agent_id, "group_id": place.group_id}
    return [MessageRow.user_id == place.user_id, *(getattr(MessageRow, name) == value for name, value in names.items())]


def _with_unit() -> Select[MessageRow, str | None]:
    return select(MessageRow, UnitMessageRow.unit_id).outerjoin(
        UnitMessageRow,
        and_(UnitMessageRow.user_id == MessageRow.user_id, UnitMessageRow.message_id == MessageRow.id),
    )


async def _stored(session: AsyncSession, statement: Select[MessageRow, str | None]) -> list[StoredMessage]:
    return [from_row(StoredMessage, row, unit_id=unit_id) for row, unit_id in (await session.execute(statement)).all()]


async def delete_messages(session: AsyncSession, user_id: str, ids: Sequence[str]) -> None:
    """Remove messages. A unit is removed with its last message; one with others left loses its summary."""
    for some in chunks(ids):
        member = and_(UnitMessageRow.user_id == user_id, UnitMessageRow.message_id.in_(some))
        touched = list(await session.scalars(select(UnitMessageRow.unit_id).where(member).distinct()))
        await session.execute(delete(MessageRow).where(MessageRow.user_id == user_id, MessageRow.id.in_(some)))
        mine = and_(UnitRow.user_id == user_id, UnitRow.id.in_(touched))
        left = exists().where(UnitMessageRow.user_id == UnitRow.user_id, UnitMessageRow.unit_id == UnitRow.id)
        await session.execute(delete(UnitRow).where(mine, ~left))
        for unit in (await session.scalars(select(UnitRow).where(mine))).all():
            speakers = select(func.coalesce(MessageRow.speaker, MessageRow.role)).join(
                UnitMessageRow,
                and_(UnitMessageRow.user_id == MessageRow.user_id, UnitMessageRow.message_id == MessageRow.id),
            )
            still_there = speakers.where(UnitMessageRow.user_id == user_id, UnitMessageRow.unit_id == unit.id)
            unit.participants = list(dict.fromkeys(await session.scalars(still_there.order_by(MessageRow.id))))
            unit.subject, unit.summary, unit.narrative = None, "", ""


class Messages(Repository):
    """Messages, verbatim."""

    async def tail(self, place: Scope, limit: int, *, before: str | None = None) -> list[StoredMessage]:
        """Return the newest messages of a scope, oldest first; before a message, if one is named."""
        async with self._database.reading(place.user_id) as session:
            statement = _with_unit().where(*_in(place)).order_by(MessageRow.id.desc()).limit(limit)
            if before is not None:
                statement = statement.where(MessageRow.id < before)
            return (await _stored(session, statement))[::-1]

    async def page(self, user_id: str, session_id: str | None, *, cursor: str | None, limit: int) -> MessagePage:
        """List messages of a user or of one session, the last stored first."""
        async with self._database.reading(user_id) as session:
            statement = select(MessageRow).where(MessageRow.user_id == user_id)
            if session_id is not None:
                statement = statement.where(MessageRow.session_id == session_id)
            if cursor is not None:
                statement = statement.where(MessageRow.id < cursor)
            rows = list(await session.scalars(statement.order_by(MessageRow.id.desc()).limit(limit + 1)))
            items = [from_row(SourceMessage, row, span=None) for row in rows[:limit]]
            return MessagePage(items=tuple(items), next_cursor=items[-1].id if len(rows) > limit else None)

    async def get(self, user_id: str, ids: Sequence[str]) -> list[StoredMessage]:
        """Return existing messages in order."""
        found = await self._where(user_id, MessageRow.id, ids)
        return sorted(found, key=lambda message: message.id)

    async def by_hash(self, user_id: str, hashes: Sequence[str]) -> list[StoredMessage]:
        return await self._where(user_id, MessageRow.dedupe_hash, hashes)

    async def _where(self, user_id: str, column: Any, values: Sequence[str]) -> list[StoredMessage]:
        found: list[StoredMessage] = []
        async with self._database.reading(user_id) as session:
            for some in chunks(values):
                statement = _with_unit().where(MessageRow.user_id == user_id, column.in_(some))
                found += await _stored(session, statement)
        return found
