"""Messages, and the units of conversation they belong to, with the memories derived from them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, exists, func, select, update
from sqlalchemy.orm import Session

from ...models import MessagePage, SourceMessage
from ...scope import Scope
from ..database import PAGE_SIZE, Repository, chunks, from_row, reads
from ..schema.tables import MemoryRow, MemorySourceRow, MessageRow, UnitMessageRow, UnitRow
from ..write_set import SCOPE, Addition, NewMemory, NewMessage, Source, StoredMemory, StoredMessage

MESSAGE = "message"  # source of memories that repeat a message, or a statement of it, verbatim
AT_ONCE = 200  # messages of one statement
PAGE_PART = 100  # messages of a page that are read at once


_member, _message = (row.__table__.c for row in (UnitMessageRow, MessageRow))
# Statements that every `add` runs are built once: building one takes longer than running it.
_FIELDS = [name for name in StoredMessage.__dataclass_fields__ if name != "unit_id"]
_STORED = (
    select(_member.unit_id, *(_message[name] for name in _FIELDS))
    .select_from(MessageRow.__table__)
    .outerjoin(UnitMessageRow.__table__, and_(_member.user_id == _message.user_id, _member.message_id == _message.id))
    .where(_message.user_id == bindparam("user_id"))
)
_BY_ID, _BY_HASH = (
    _STORED.where(column.in_(bindparam("values", expanding=True))) for column in (_message.id, _message.dedupe_hash)
)


@lru_cache(maxsize=16)
def _newest(nulls: frozenset[str], before: bool) -> Select[Any]:
    """Select the newest messages of a scope in which some columns are NULL."""
    statement = _STORED.where(*in_scope(nulls)).order_by(_message.id.desc()).limit(bindparam("most"))
    return statement.where(_message.id < bindparam("before")) if before else statement


def in_scope(nulls: frozenset[str]) -> list[ColumnElement[bool]]:
    """Return the conditions of a scope in which some columns are NULL."""
    columns = ((name, _message[name]) for name in SCOPE)
    return [column.is_(None) if name in nulls else column == bindparam(name) for name, column in columns]


def nulls_of(place: Scope | Addition) -> frozenset[str]:
    return frozenset(name for name in SCOPE if getattr(place, name) is None)


def scope_values(place: Scope | Addition) -> dict[str, str]:
    """Return the values of a scope's columns that are not NULL, and its user."""
    values = {name: getattr(place, name) for name in ("user_id", *SCOPE)}
    return {name: value for name, value in values.items() if value is not None}


def _stored(session: Session, statement: Select[Any], values: dict[str, Any]) -> list[StoredMessage]:
    """Return messages with their units."""
    return [StoredMessage(**row) for row in session.execute(statement, values).mappings()]


def delete_messages(session: Session, user_id: str, ids: Sequence[str]) -> None:
    """Remove messages. A unit is removed with its last message; one with others left loses its summary."""
    for some in chunks(ids):
        touched = units_of(session, user_id, some)
        session.execute(delete(MessageRow).where(MessageRow.user_id == user_id, MessageRow.id.in_(some)))
        mine = and_(UnitRow.user_id == user_id, UnitRow.id.in_(touched))
        left = exists().where(UnitMessageRow.user_id == UnitRow.user_id, UnitMessageRow.unit_id == UnitRow.id)
        session.execute(delete(UnitRow).where(mine, ~left))
        for unit_id in session.scalars(select(UnitRow.id).where(mine)).all():
            speakers = select(func.coalesce(MessageRow.speaker, MessageRow.role)).join(
                UnitMessageRow,
                and_(UnitMessageRow.user_id == MessageRow.user_id, UnitMessageRow.message_id == MessageRow.id),
            )
            still_there = speakers.where(UnitMessageRow.user_id == user_id, UnitMessageRow.unit_id == unit_id)
            left_over = list(dict.fromkeys(session.scalars(still_there.order_by(MessageRow.id)).all()))
            values = {"participants": left_over, "subject": None, "summary": "", "narrative": ""}
            session.execute(update(UnitRow).where(UnitRow.user_id == user_id, UnitRow.id == unit_id).values(values))


def units_of(session: Session, user_id: str, message_ids: Sequence[str]) -> list[str]:
    """Return the units of messages."""
    found: dict[str, None] = {}
    for some in chunks(message_ids):
        mine = and_(UnitMessageRow.user_id == user_id, UnitMessageRow.message_id.in_(some))
        found |= dict.fromkeys(session.scalars(select(UnitMessageRow.unit_id).where(mine).distinct()))
    return list(found)


def newest(session: Session, place: Scope, limit: int, before: str | None = None) -> list[StoredMessage]:
    """Return the newest messages of a scope, oldest first; before a message, if one is named. Of very long ones there
    are fewer."""
    found: list[StoredMessage] = []  # newest first
    while len(found) < limit and sum(len(message.text) for message in found) < PAGE_SIZE:
        most = min(limit - len(found), AT_ONCE)
        values = {**scope_values(place), "most": most} | ({} if before is None else {"before": before})
        some = _stored(session, _newest(nulls_of(place), before is not None), values)
        found += some
        if len(some) < most:
            break
        before = found[-1].id
    return found[::-1]


def delivered(session: Session, user_id: str, hashes: Sequence[str]) -> list[StoredMessage]:
    """Return messages by dedupe hash."""
    return _named(session, _BY_HASH, user_id, hashes)


def _named(session: Session, statement: Select[Any], user_id: str, values: Sequence[str]) -> list[StoredMessage]:
    named = (_stored(session, statement, {"user_id": user_id, "values": some}) for some in chunks(values))
    return [message for some in named for message in some]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotation:
    """A memory derived from a message, and the words of the message that it quotes."""

    memory: StoredMemory | NewMemory
    by: Source


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedMessage:
    """A row that repeats a message, and the memories derived from the message: some of them, and all others."""

    row: StoredMemory
    by: Source
    message: NewMessage
    some: tuple[Quotation, ...]
    others: tuple[Quotation, ...]


def repeated_messages(
    session: Session, user_id: str, memory_ids: Sequence[str], message_ids: Sequence[str] = ()
) -> list[RepeatedMessage]:
    """Return the active rows of the messages that some memories came from, and of other messages."""
    asked = select(MemorySourceRow.message_id).join(MemoryRow, _OF_MEMORY).where(MemoryRow.source != MESSAGE)
    names = {
        name
        for some in chunks(list(memory_ids))
        for name in session.scalars(asked.where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some)))
    }
    found = rows_of_messages(session, user_id, sorted(names.union(message_ids)), memory_ids)
    return [one for one in found if one.row.status == "active" and one.row.valid_to is None]


_OF_MEMORY = and_(MemoryRow.user_id == MemorySourceRow.user_id, MemoryRow.id == MemorySourceRow.memory_id)


def rows_of_messages(
    session: Session, user_id: str, names: Sequence[str], memory_ids: Sequence[str]
) -> list[RepeatedMessage]:
    """Return the rows that repeat messages, in any state; `memory_ids`: those among the derived that count as some."""
    messages = {message.id: message for message in _named(session, _BY_ID, user_id, names)}
    rows: list[tuple[StoredMemory, Source]] = []
    quotations: dict[str, list[Quotation]] = defaultdict(list)
    spans = (MemorySourceRow.message_id, MemorySourceRow.span_start, MemorySourceRow.span_end)
    told = select(MemoryRow.__table__, *spans).join(MemorySourceRow, _OF_MEMORY).order_by(MemoryRow.id)
    for some in chunks(names):
        for row in session.execute(told.where(MemoryRow.user_id == user_id, MemorySourceRow.message_id.in_(some))):
            by = Source(message_id=row.message_id, start=row.span_start, end=row.span_end)
            if row.source == MESSAGE:
                rows.append((from_row(StoredMemory, row), by))
            else:
                quotations[by.message_id].append(Quotation(memory=from_row(StoredMemory, row), by=by))
    wanted = frozenset(memory_ids)
    return [
        RepeatedMessage(
            row=row,
            by=by,
            message=messages[by.message_id],
            some=tuple(one for one in quotations[by.message_id] if one.memory.id in wanted),
            others=tuple(one for one in quotations[by.message_id] if one.memory.id not in wanted),
        )
        for row, by in rows
    ]


def spoken_after(session: Session, user_id: str, names: Sequence[str], most: int) -> list[StoredMessage]:
    """Return what assistants said in the sessions of some messages after the first of these."""
    first = select(func.min(MessageRow.id)).where(MessageRow.user_id == user_id, MessageRow.id.in_(names))
    there = select(MessageRow.session_id).where(MessageRow.user_id == user_id, MessageRow.id.in_(names))
    since = session.scalar(first)
    if since is None:
        return []
    later = select(MessageRow.id).where(
        MessageRow.user_id == user_id,
        MessageRow.session_id.in_(there),
        MessageRow.role == "assistant",
        MessageRow.id > since,
    )
    ids = session.scalars(later.order_by(MessageRow.id).limit(most)).all()
    return _named(session, _BY_ID, user_id, ids)


class Messages(Repository):
    """Messages, verbatim."""

    @reads
    def repeated(
        self, session: Session, user_id: str, memory_ids: Sequence[str], message_ids: Sequence[str] = ()
    ) -> list[RepeatedMessage]:
        """Return the active rows of the messages that some memories came from, and of other messages."""
        return repeated_messages(session, user_id, memory_ids, message_ids)

    @reads
    def quoted(
        self, session: Session, user_id: str, memory_ids: Sequence[str]
    ) -> list[tuple[Quotation, StoredMessage]]:
        """Return what some memories quote, with the messages."""
        spans = (MemorySourceRow.message_id, MemorySourceRow.span_start, MemorySourceRow.span_end)
        told = select(MemoryRow.__table__, *spans).join(MemorySourceRow, _OF_MEMORY).order_by(MemoryRow.id)
        found = []
        for some in chunks(list(memory_ids)):
            for row in session.execute(told.where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some))):
                by = Source(message_id=row.message_id, start=row.span_start, end=row.span_end)
                found.append(Quotation(memory=from_row(StoredMemory, row), by=by))
        names = sorted({one.by.message_id for one in found})
        messages = {message.id: message for message in _named(session, _BY_ID, user_id, names)}
        return [(one, messages[one.by.message_id]) for one in found]

    @reads
    def tail(self, session: Session, place: Scope, limit: int, *, before: str | None = None) -> list[StoredMessage]:
        return newest(session, place, limit, before)

    @reads
    def page(
        self, session: Session, user_id: str, session_id: str | None, *, cursor: str | None, limit: int
    ) -> MessagePage:
        """List messages of a user or of one session, the last stored first."""
        statement = select(MessageRow.__table__).where(MessageRow.user_id == user_id)
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
            rows = session.execute(more.limit(asked)).all()
            for row in rows:
                if found and (room < 0 or len(found) == limit):
                    return MessagePage(items=tuple(found), next_cursor=found[-1].id)
                found.append(from_row(SourceMessage, row, span=None))
                room -= len(row.text)
            if len(rows) < asked:
                return MessagePage(items=tuple(found), next_cursor=None)

    @reads
    def get(self, session: Session, user_id: str, ids: Sequence[str]) -> list[StoredMessage]:
        """Return existing messages in order."""
        return sorted(_named(session, _BY_ID, user_id, ids), key=lambda message: message.id)


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
            for unit in with_messages(session, user_id, some):
                found.append(unit)
                room -= sum(len(message.text) for message in unit.messages)
                if room < 0:
                    return found, len(found) < len(units)
        return found, len(units) > limit


def with_messages(session: Session, user_id: str, units: Sequence[Any]) -> list[StoredUnit]:
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
    said = select(UnitMessageRow.unit_id, MessageRow.__table__).join(MessageRow, of_unit).where(mine)
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
