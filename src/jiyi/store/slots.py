"""Slots: the current memories about one attribute of one subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from .contract import BY_A_PERSON, SlotEntry, Source
from .inserts import chunks
from .tables import MemoryRow, MemorySourceRow, MessageRow, RevisionRow

WORDS_AT_ONCE = 200  # a database takes no endless condition


async def slots(session: AsyncSession, user_id: str, wanted: Sequence[str]) -> list[SlotEntry]:
    """The active memories of these slots, those that are over too."""
    edited = (
        select(func.max(RevisionRow.changed_at))
        .where(
            RevisionRow.user_id == MemoryRow.user_id,
            RevisionRow.memory_id == MemoryRow.id,
            RevisionRow.action.in_(BY_A_PERSON),
        )
        .scalar_subquery()
    )
    found: list[SlotEntry] = []
    for some in chunks(wanted):
        statement = select(MemoryRow, edited).where(
            MemoryRow.user_id == user_id, MemoryRow.slot.in_(some), MemoryRow.status == "active"
        )
        rows = (await session.execute(statement)).all()
        told = await _told(session, user_id, [row.id for row, _ in rows])
        found += [
            SlotEntry(
                id=row.id,
                version=row.version,
                slot=row.slot or "",
                memory_type=row.memory_type,
                content=row.content,
                summary=row.summary,
                tags=tuple(row.tags),
                data=row.data,
                valid_from=row.valid_from,
                valid_to=row.valid_to,
                superseded_by=row.superseded_by,
                edited_at=edited_at,
                told=told.get(row.id, ()),
                importance=row.importance,
                confidence=row.confidence,
                trust=row.trust,
            )
            for row, edited_at in rows
        ]
    return sorted(found, key=lambda entry: (entry.valid_from, entry.id))


async def holding(
    session: AsyncSession, user_id: str, memory_types: Collection[str], words: Sequence[str]
) -> dict[str, list[dict[str, Any]]]:
    """Return the data of current memories of these types by slot; with words, only of memories that contain one."""
    statement = select(MemoryRow.id, MemoryRow.slot, MemoryRow.data).where(
        MemoryRow.user_id == user_id,
        MemoryRow.status == "active",
        MemoryRow.memory_type.in_(memory_types),
        MemoryRow.slot.is_not(None),
        MemoryRow.valid_to.is_(None),
    )
    found: dict[str, tuple[str, dict[str, Any]]] = {}
    for start in range(0, max(len(words), 1), WORDS_AT_ONCE):
        said = [MemoryRow.content.icontains(word, autoescape=True) for word in words[start : start + WORDS_AT_ONCE]]
        rows = await session.execute(statement.where(or_(*said)) if said else statement)
        found |= {memory_id: (slot or "", data) for memory_id, slot, data in rows}
    by_slot: dict[str, list[dict[str, Any]]] = {}
    for slot, data in found.values():
        by_slot.setdefault(slot, []).append(data)
    return by_slot


async def _told(
    session: AsyncSession, user_id: str, memory_ids: Sequence[str]
) -> dict[str, tuple[tuple[datetime, Source], ...]]:
    """By which messages memories were told, and when."""
    statement = (
        select(
            MemorySourceRow.memory_id,
            MemorySourceRow.message_id,
            MemorySourceRow.span_start,
            MemorySourceRow.span_end,
            MessageRow.sent_at,
        )
        .join(
            MessageRow,
            and_(MessageRow.user_id == MemorySourceRow.user_id, MessageRow.id == MemorySourceRow.message_id),
        )
        .where(MemorySourceRow.user_id == user_id, MemorySourceRow.memory_id.in_(memory_ids))
    )
    found: defaultdict[str, list[tuple[datetime, Source]]] = defaultdict(list)
    for memory_id, message_id, start, end, sent_at in (await session.execute(statement)).all():
        found[memory_id].append((sent_at, Source(message_id=message_id, start=start, end=end)))
    return {memory_id: tuple(told) for memory_id, told in found.items()}
