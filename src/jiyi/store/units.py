"""Messages where they were said: what a place holds already, and the units they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, delete, exists, func, insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from .contract import NewMessage, Place, Stale, StoredMessage, UnitPart
from .reads import chunks
from .tables import MessageRow, UnitMessageRow, UnitRow


def _in(place: Place) -> list[ColumnElement[bool]]:
    names = {"session_id": place.session_id, "agent_id": place.agent_id, "group_id": place.group_id}
    return [MessageRow.user_id == place.user_id, *(getattr(MessageRow, name) == value for name, value in names.items())]


def _with_unit() -> Select[MessageRow, str | None]:
    return select(MessageRow, UnitMessageRow.unit_id).outerjoin(
        UnitMessageRow,
        and_(UnitMessageRow.user_id == MessageRow.user_id, UnitMessageRow.message_id == MessageRow.id),
    )


async def tail(session: AsyncSession, place: Place, limit: int, *, before: str | None = None) -> list[StoredMessage]:
    """The newest messages of a place, oldest first; those before a message, if one is named."""
    statement = _with_unit().where(*_in(place)).order_by(MessageRow.id.desc()).limit(limit)
    if before is not None:
        statement = statement.where(MessageRow.id < before)
    found = (await session.execute(statement)).all()
    return [_stored(row, unit_id) for row, unit_id in reversed(found)]


async def last_id(session: AsyncSession, place: Place) -> str | None:
    return await session.scalar(select(MessageRow.id).where(*_in(place)).order_by(MessageRow.id.desc()).limit(1))


async def by_id(session: AsyncSession, user_id: str, ids: Sequence[str]) -> list[StoredMessage]:
    """Messages in the order in which they were taken in; those that are gone are left out."""
    found: list[StoredMessage] = []
    for some in chunks(ids):
        statement = _with_unit().where(MessageRow.user_id == user_id, MessageRow.id.in_(some))
        found += [_stored(row, unit_id) for row, unit_id in (await session.execute(statement)).all()]
    return sorted(found, key=lambda message: message.id)


async def by_hash(session: AsyncSession, user_id: str, hashes: Sequence[str]) -> list[StoredMessage]:
    found: list[StoredMessage] = []
    for some in chunks(hashes):
        statement = _with_unit().where(MessageRow.user_id == user_id, MessageRow.dedupe_hash.in_(some))
        found += [_stored(row, unit_id) for row, unit_id in (await session.execute(statement)).all()]
    return found


def _stored(row: MessageRow, unit_id: str | None) -> StoredMessage:
    return StoredMessage(
        id=row.id,
        external_id=row.external_id,
        role=row.role,
        speaker=row.speaker,
        text=row.text,
        sent_at=row.sent_at,
        dedupe_hash=row.dedupe_hash,
        unit_id=unit_id,
    )


async def save_messages(session: AsyncSession, place: Place, new: Sequence[NewMessage], at: datetime) -> None:
    """Keep messages. If one of them is there by now, somebody else took in the same: all is to be looked at again."""
    if not new:
        return
    hashes = [message.dedupe_hash for message in new if message.dedupe_hash is not None]
    if hashes and await by_hash(session, place.user_id, hashes):
        raise Stale
    values = [
        {
            "user_id": place.user_id,
            "session_id": place.session_id,
            "agent_id": place.agent_id,
            "group_id": place.group_id,
            "id": message.id,
            "external_id": message.external_id,
            "role": message.role,
            "speaker": message.speaker,
            "text": message.text,
            "sent_at": message.sent_at,
            "dedupe_hash": message.dedupe_hash,
            "created_at": at,
        }
        for message in new
    ]
    await session.execute(insert(MessageRow), values)


async def save_units(session: AsyncSession, place: Place, parts: Sequence[UnitPart], at: datetime) -> None:
    """Begin units, or let them grow."""
    user_id = place.user_id
    there: dict[str, UnitRow] = {}
    for some in chunks([part.id for part in parts]):
        found = await session.scalars(select(UnitRow).where(UnitRow.user_id == user_id, UnitRow.id.in_(some)))
        there |= {unit.id: unit for unit in found}
    begun = []
    for part in parts:
        unit = there.get(part.id)
        if unit is None:
            unit = there[part.id] = UnitRow(
                user_id=user_id,
                id=part.id,
                session_id=place.session_id,
                group_id=place.group_id,
                subject=part.subject,
                summary=part.summary,
                narrative="",
                participants=list(part.participants),
                started_at=part.started_at,
                ended_at=part.ended_at,
                created_at=at,
            )
            begun.append(unit)
        else:
            unit.participants = list(dict.fromkeys((*unit.participants, *part.participants)))
            unit.started_at, unit.ended_at = min(unit.started_at, part.started_at), max(unit.ended_at, part.ended_at)
    session.add_all(begun)
    await session.flush()
    members = [
        {"user_id": user_id, "message_id": message, "unit_id": part.id}
        for part in parts
        for message in part.message_ids
    ]
    if members:
        await session.execute(insert(UnitMessageRow), members)


async def delete_messages(session: AsyncSession, user_id: str, ids: Sequence[str]) -> None:
    """Remove messages. A unit goes with its last message; one that has others left forgets what it said in short."""
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
