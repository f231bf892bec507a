"""Messages and the units they belong to."""

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

from sqlalchemy import BindParameter, Select, and_, bindparam, delete, exists, func, select, update

from ..models import MessagePage, SourceMessage
from ..scope import Scope
from .contract import SCOPE, StoredMessage
from .database import PAGE_SIZE, Repository, chunks, from_row
from .session import Rows, Session
from .tables import MessageRow, UnitMessageRow, UnitRow

AT_ONCE = 200  # messages of one statement
PAGE_PART = 100  # messages of a page that are read at once

_COLUMNS = [field.name for field in fields(StoredMessage)]
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)
_STORED = (
    select(*(UnitMessageRow.unit_id if name == "unit_id" else getattr(MessageRow, name) for name in _COLUMNS))
    .select_from(MessageRow)
    .outerjoin(
        UnitMessageRow,
        and_(UnitMessageRow.user_id == MessageRow.user_id, UnitMessageRow.message_id == MessageRow.id),
    )
    .where(MessageRow.user_id == bindparam("user_id"))
)
_BY_ID, _BY_HASH = (_STORED.where(column.in_(_IDS)) for column in (MessageRow.id, MessageRow.dedupe_hash))


@lru_cache(maxsize=16)
def _newest(nulls: tuple[str, ...], before: bool) -> Select[Any]:
    """Select the newest messages of a scope, in which some columns are NULL; built once, because each `add` runs it."""
    columns = ((name, getattr(MessageRow, name)) for name in SCOPE)
    scope = [column.is_(None) if name in nulls else column == bindparam(name) for name, column in columns]
    statement = _STORED.where(*scope).order_by(MessageRow.id.desc()).limit(bindparam("most"))
    return statement.where(MessageRow.id < bindparam("before")) if before else statement


def _messages(rows: Rows) -> list[StoredMessage]:
    return [StoredMessage(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]


async def delete_messages(session: Session, user_id: str, ids: Sequence[str]) -> None:
    """Remove messages. A unit is removed with its last message; one with others left loses its summary."""
    for some in chunks(ids):
        member = and_(UnitMessageRow.user_id == user_id, UnitMessageRow.message_id.in_(some))
        touched = await session.scalars(select(UnitMessageRow.unit_id).where(member).distinct())
        await session.execute(delete(MessageRow).where(MessageRow.user_id == user_id, MessageRow.id.in_(some)))
        mine = and_(UnitRow.user_id == user_id, UnitRow.id.in_(touched))
        left = exists().where(UnitMessageRow.user_id == UnitRow.user_id, UnitMessageRow.unit_id == UnitRow.id)
        await session.execute(delete(UnitRow).where(mine, ~left))
        for unit_id in await session.scalars(select(UnitRow.id).where(mine)):
            speakers = select(func.coalesce(MessageRow.speaker, MessageRow.role)).join(
                UnitMessageRow,
                and_(UnitMessageRow.user_id == MessageRow.user_id, UnitMessageRow.message_id == MessageRow.id),
            )
            still_there = speakers.where(UnitMessageRow.user_id == user_id, UnitMessageRow.unit_id == unit_id)
            left_over = list(dict.fromkeys(await session.scalars(still_there.order_by(MessageRow.id))))
            values = {"participants": left_over, "subject": None, "summary": "", "narrative": ""}
            await session.execute(
                update(UnitRow).where(UnitRow.user_id == user_id, UnitRow.id == unit_id).values(values)
            )


class Messages(Repository):
    """Messages, verbatim."""

    async def tail(self, place: Scope, limit: int, *, before: str | None = None) -> list[StoredMessage]:
        """Return the newest messages of a scope, oldest first; before a message, if one is named. Of very long ones
        there are fewer."""
        scope = {name: getattr(place, name) for name in SCOPE}
        nulls = tuple(name for name, value in scope.items() if value is None)
        found: list[StoredMessage] = []  # newest first
        while len(found) < limit and sum(len(message.text) for message in found) < PAGE_SIZE:
            most = min(limit - len(found), AT_ONCE)
            values = {"user_id": place.user_id, "most": most, "before": before, **scope}
            given = {name: value for name, value in values.items() if value is not None}
            [rows] = await self._database.select(place.user_id, (_newest(nulls, before is not None), given))
            found += _messages(rows)
            if len(rows) < most:
                break
            before = found[-1].id
        return found[::-1]

    async def page(self, user_id: str, session_id: str | None, *, cursor: str | None, limit: int) -> MessagePage:
        """List messages of a user or of one session, the last stored first."""
        async with self._database.reading(user_id) as session:
            statement = select(MessageRow).where(MessageRow.user_id == user_id)
            if session_id is not None:
                statement = statement.where(MessageRow.session_id == session_id)
            if cursor is not None:
                statement = statement.where(MessageRow.id < cursor)
            statement = statement.order_by(MessageRow.id.desc())
            found: list[SourceMessage] = []
            room = PAGE_SIZE
            while True:
                more = statement.where(MessageRow.id < found[-1].id) if found else statement
                asked = min(limit - len(found), PAGE_PART) + 1
                rows = await session.rows(more.limit(asked))
                for row in rows:
                    if found and (room < 0 or len(found) == limit):
                        return MessagePage(items=tuple(found), next_cursor=found[-1].id)
                    found.append(from_row(SourceMessage, row, span=None))
                    room -= len(row.text)
                if len(rows) < asked:
                    return MessagePage(items=tuple(found), next_cursor=None)

    async def get(self, user_id: str, ids: Sequence[str]) -> list[StoredMessage]:
        """Return existing messages in order."""
        found = await self._where(_BY_ID, user_id, ids)
        return sorted(found, key=lambda message: message.id)

    async def by_hash(self, user_id: str, hashes: Sequence[str]) -> list[StoredMessage]:
        return await self._where(_BY_HASH, user_id, hashes)

    async def _where(self, statement: Select[Any], user_id: str, values: Sequence[str]) -> list[StoredMessage]:
        reads = [(statement, {"user_id": user_id, "ids": list(some)}) for some in chunks(values)]
        return [message for rows in await self._database.select(user_id, *reads) for message in _messages(rows)]
