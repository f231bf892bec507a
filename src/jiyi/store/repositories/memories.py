"""Memories as callers see them: by id, by filter, by time, and what they came from."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Row, Select, and_, bindparam, exists, func, or_, select, tuple_
from sqlalchemy.orm import Session

from ...errors import InvalidInput, NotFound
from ...models import MemoryItem, Page, SourceMessage, from_micros, to_micros
from ...scope import Filter
from ..database import PAGE_SIZE, Columns, Repository, chunks, from_row, reads
from ..metadata_filter import metadata_condition
from ..schema.tables import KeywordRow, MemoryRow, MemorySourceRow, MessageRow, RelationRow
from ..write_set import PAST, SAID

PAGE_PART = 100  # memories of a page that are read at once
# Allowed values of `session_id`, `agent_id` and `group_id`; None: any, but not none at all.
Places = Mapping[str, Sequence[str] | None]


def memory_rows(session: Session, user_id: str, ids: Sequence[str]) -> dict[str, Row[*Columns]]:
    """Return rows for the ids that exist."""
    found: dict[str, Row[*Columns]] = {}
    for some in chunks(ids):
        rows = session.execute(
            select(MemoryRow.__table__).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some))
        ).all()
        found |= {row.id: row for row in rows}
    return found


def memory_row(session: Session, user_id: str, memory_id: str) -> Row[*Columns]:
    """Return the row of a memory, by id or else by memory_key."""
    for column in (MemoryRow.id, MemoryRow.memory_key):
        row = session.execute(
            select(MemoryRow.__table__).where(MemoryRow.user_id == user_id, column == memory_id)
        ).first()
        if row is not None:
            return row
    raise NotFound(f"user {user_id!r} has no memory {memory_id!r}")


_memory, _keyword, _source, _message = (row.__table__.c for row in (MemoryRow, KeywordRow, MemorySourceRow, MessageRow))
# Statements that every search or `add` runs are built once: building one takes longer than running it.
_USER: BindParameter[str] = bindparam("user_id")
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)
_ITEMS = select(*(column for column in MemoryRow.__table__.columns if column.name in MemoryItem.model_fields)).where(
    _memory.user_id == _USER
)
# Two statements, not one with OR: that would make SQLite read all of the user's rows.
_BY_ID, _BY_KEY = (_ITEMS.where(column.in_(_IDS)) for column in (_memory.id, _memory.memory_key))
_KEYWORDS = (
    select(_keyword.memory_id, _keyword.keyword)
    .where(_keyword.user_id == _USER, _keyword.memory_id.in_(_IDS))
    .order_by(_keyword.weight.desc(), _keyword.keyword)
)
_SOURCES = (
    select(_source.memory_id, func.coalesce(_message.external_id, _message.id))
    .join(MessageRow.__table__, and_(_message.user_id == _source.user_id, _message.id == _source.message_id))
    .where(_source.user_id == _USER, _source.memory_id.in_(_IDS))
    .order_by(_message.id)
)
# The condition that a dedupe hash counts as known at the time `now`: expired memories are not.
IS_KNOWN = or_(
    and_(
        _memory.status == "active",
        _memory.valid_to.is_(None),
        or_(_memory.expires_at.is_(None), _memory.expires_at > bindparam("now")),
    ),
    _memory.dedupe_hash.startswith(SAID),
    _memory.dedupe_hash.startswith(PAST),
)
_KNOWN = select(_memory.dedupe_hash, _memory.id).where(
    _memory.user_id == _USER, _memory.dedupe_hash.in_(_IDS), IS_KNOWN
)


def items(session: Session, user_id: str, names: Sequence[str]) -> list[MemoryItem]:
    """Return memories by id or memory_key, in the order given; unknown ones are left out."""
    found: dict[str, MemoryItem] = {}
    for some in chunks(list(dict.fromkeys(names))):
        found |= {item.id: item for item in _items(session, _BY_ID, user_id, some)}
        # An id always means the memory with that id; only what is none can be a key.
        keys = [name for name in some if name not in found]
        if keys:
            found |= {item.memory_key: item for item in _items(session, _BY_KEY, user_id, keys)}
    return list({found[name].id: found[name] for name in names if name in found}.values())


def _items(session: Session, statement: Select[Any], user_id: str, names: Sequence[str]) -> list[MemoryItem]:
    rows = session.execute(statement, {"user_id": user_id, "ids": names}).mappings().all()
    if not rows:
        return []
    these = {"user_id": user_id, "ids": [row["id"] for row in rows]}
    keywords, sources = (_grouped(session.execute(one, these)) for one in (_KEYWORDS, _SOURCES))
    return [
        MemoryItem.model_validate(
            {**row, "keywords": tuple(keywords[row["id"]]), "source_ids": tuple(sources[row["id"]])}
        )
        for row in rows
    ]


def _grouped(pairs: Iterable[Sequence[Any]]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for memory_id, value in pairs:
        found[memory_id].append(value)
    return found


def page_items(session: Session, user_id: str, ids: Sequence[str]) -> list[MemoryItem]:
    """Return memories by id, in the order given, as many as a page may hold."""
    found: list[MemoryItem] = []
    room = PAGE_SIZE
    for some in chunks(ids, PAGE_PART):
        for memory in items(session, user_id, some):
            if found and room < 0:
                return found
            found.append(memory)
            room -= len(memory.content) + len(memory.summary) + len(str(memory.data)) + len(str(memory.metadata))
    return found


def item(values: Mapping[str, Any], keywords: Sequence[str], source_ids: Sequence[str]) -> MemoryItem:
    """Build a memory from the values of its row."""
    fields = {name: value for name, value in values.items() if name not in ("dedupe_hash", "near_hash", "slot")}
    return MemoryItem.model_validate({**fields, "keywords": tuple(keywords), "source_ids": tuple(source_ids)})


def ended_by(session: Session, user_id: str, ids: Sequence[str]) -> list[MemoryItem]:
    """Return the memories that these have superseded, oldest first."""
    found: list[str] = []
    for some in chunks(list(ids)):
        statement = (
            select(MemoryRow.id)
            .join(
                RelationRow, and_(RelationRow.user_id == MemoryRow.user_id, RelationRow.target_id == MemoryRow.id)
            )  # each supersession has a relation, and relations have an index
            .where(RelationRow.user_id == user_id, RelationRow.memory_id.in_(some))
            .where(MemoryRow.superseded_by == RelationRow.memory_id)
            .distinct()
        )
        found += session.scalars(statement).all()
    return items(session, user_id, sorted(found)) if found else []


GATHERED = ("episode", "profile", "group_profile")  # of many messages: they speak for none of them


def known_by_hash(session: Session, user_id: str, hashes: Sequence[str], now: datetime) -> dict[str, str]:
    """Return the ids of current memories by dedupe hash; expired ones are not known."""
    found: dict[str, str] = {}
    for some in chunks(hashes):
        known = session.connection().execute(_KNOWN, {"user_id": user_id, "ids": some, "now": now})
        found.update((said, memory_id) for said, memory_id in known if said)
    return found


def all_users(session: Session) -> list[str]:
    memories, messages = (select(table.user_id).distinct() for table in (MemoryRow, MessageRow))
    return sorted(session.scalars(memories.union(messages)))


class Memories(Repository):
    """Memories: get, list, count and change them."""

    @reads
    def get(self, session: Session, user_id: str, ids: Sequence[str]) -> list[MemoryItem]:
        return items(session, user_id, ids)

    @reads
    def starting(self, session: Session, user_id: str, beginning: str, limit: int) -> list[str]:
        """Return ids that start with these characters."""
        mine = select(MemoryRow.id).where(MemoryRow.user_id == user_id)
        between = mine.where(MemoryRow.id >= beginning, MemoryRow.id < beginning + "~").limit(limit)
        return list(session.scalars(between))

    @reads
    def known(self, session: Session, user_id: str, hashes: Sequence[str], now: datetime) -> dict[str, str]:
        """Return the ids of current memories by dedupe hash."""
        return known_by_hash(session, user_id, hashes, now)

    @reads
    def sources(self, session: Session, user_id: str, memory_id: str) -> list[SourceMessage]:
        """Return the source messages of a memory, in order."""
        row = memory_row(session, user_id, memory_id)
        statement = (
            select(MessageRow.__table__, MemorySourceRow.span_start, MemorySourceRow.span_end)
            .join(
                MemorySourceRow,
                and_(MessageRow.user_id == MemorySourceRow.user_id, MessageRow.id == MemorySourceRow.message_id),
            )
            .where(MemorySourceRow.user_id == user_id, MemorySourceRow.memory_id == row.id)
            .order_by(MessageRow.id)
        )
        return [
            from_row(SourceMessage, row, span=None if None in (row.span_start, row.span_end) else tuple(row[-2:]))
            for row in session.execute(statement).all()
        ]

    @reads
    def page(self, session: Session, where: Filter, *, cursor: str | None, limit: int) -> Page:
        """Return a page, newest first. Ids grow with time, so a page starts after the last id of the one before."""
        statement = select(MemoryRow.id).where(*conditions(where)).order_by(MemoryRow.id.desc()).limit(limit + 1)
        if cursor is not None:
            statement = statement.where(MemoryRow.id < cursor)
        ids = session.scalars(statement).all()
        found = page_items(session, where.user_id, ids[:limit])
        more = len(found) < len(ids)
        return Page(items=tuple(found), next_cursor=found[-1].id if found and more else None)

    @reads
    def timeline(self, session: Session, where: Filter, *, cursor: str | None, limit: int) -> Page:
        """Return memories that were valid at some time in the filter's range, ended or not, the latest start first."""
        memory = MemoryRow
        statement = (
            select(memory.id, memory.valid_from)
            .where(
                memory.user_id == where.user_id,
                memory.status == where.status,
                or_(memory.expires_at.is_(None), memory.expires_at > where.now),
            )
            .order_by(memory.valid_from.desc(), memory.id.desc())
            .limit(limit + 1)
        )
        if where.memory_types is not None:
            statement = statement.where(memory.memory_type.in_(where.memory_types))
        elif not where.with_messages:
            statement = statement.where(memory.memory_type != "message")
        if where.occurred_from is not None:
            statement = statement.where(or_(memory.valid_to.is_(None), memory.valid_to > where.occurred_from))
        if where.occurred_to is not None:
            statement = statement.where(memory.valid_from < where.occurred_to)
        if cursor is not None:
            micros, _, last = cursor.partition("-")
            if not (micros.removeprefix("~").isdecimal() and len(micros) < 20 and last):
                raise InvalidInput("cursor", "is none that a page before has given")
            began = from_micros(int(micros.replace("~", "-")))
            statement = statement.where(tuple_(memory.valid_from, memory.id) < (began, last))
        ids = [row.id for row in session.execute(statement).all()]
        found = page_items(session, where.user_id, ids[:limit])
        end = found[-1] if len(found) < len(ids) else None
        return Page(
            items=tuple(found),
            next_cursor=None if end is None else f"{str(to_micros(end.valid_from)).replace('-', '~')}-{end.id}",
        )

    @reads
    def most_used(self, session: Session, where: Filter, limit: int) -> list[str]:
        """Return the ids of the most recalled memories, the latest recall first among equals."""
        order = (MemoryRow.access_count.desc(), MemoryRow.last_accessed_at.desc(), MemoryRow.id.desc())
        used = select(MemoryRow.id).where(*conditions(where), MemoryRow.access_count > 0)
        return list(session.scalars(used.order_by(*order).limit(limit)))

    @reads
    def ids(self, session: Session, where: Filter) -> list[str]:
        """Return the ids that a filter selects, newest first."""
        return list(session.scalars(select(MemoryRow.id).where(*conditions(where)).order_by(MemoryRow.id.desc())))

    @reads
    def count(self, session: Session, where: Filter) -> int:
        return session.scalar(select(func.count()).select_from(MemoryRow).where(*conditions(where))) or 0

    @reads
    def count_by_group(self, session: Session, where: Filter) -> dict[str, int]:
        """Count memories by group."""
        group = MemoryRow.group_id
        statement = select(group, func.count()).where(*conditions(where)).group_by(group)
        counted = session.execute(statement).all()
        return dict(sorted((name, number) for name, number in counted if name is not None))

    @reads(everybody=True)
    def owner(self, session: Session, memory_id: str) -> str | None:
        """Return the user of a memory. It reads the ids of all users, so ask by user where the user is known."""
        found = session.scalars(select(MemoryRow.user_id).where(MemoryRow.id == memory_id).limit(2)).all()
        if len(found) > 1:  # one of them has imported it under the id of the other
            raise InvalidInput("memory_id", f"{memory_id} belongs to several users: name the user")
        return found[0] if found else None

    @reads
    def ids_in(self, session: Session, user_id: str, places: Places) -> list[str]:
        """Return the ids of all memories of agents, sessions or groups: of every type, and archived and ended ones."""
        statement = select(MemoryRow.id).where(MemoryRow.user_id == user_id, *_in_places(places))
        return list(session.scalars(statement.order_by(MemoryRow.id)))

    @reads(everybody=True)
    def users_in(self, session: Session, places: Places) -> list[str]:
        """Return the users who have memories of agents, sessions or groups. It reads the memories of all users."""
        return sorted(session.scalars(select(MemoryRow.user_id).where(*_in_places(places)).distinct()))

    @reads(everybody=True)
    def users(self, session: Session) -> list[str]:
        """Return the ids of all users who have memories or messages."""
        return all_users(session)


def _in_places(places: Places) -> list[ColumnElement[bool]]:
    columns = {name: MemoryRow.__table__.columns[name] for name in places}
    return [
        columns[name].is_not(None) if values is None else columns[name].in_(list(values))
        for name, values in places.items()
    ]


def conditions(where: Filter) -> list[ColumnElement[bool]]:
    """Return a filter as SQL conditions. `index/` has the same in numpy, but for metadata; a test compares the two."""
    memory = MemoryRow
    found: list[ColumnElement[bool]] = [
        memory.user_id == where.user_id,
        memory.status == where.status,
    ]
    if where.status == "active" or where.as_of is not None:
        found.append(or_(memory.valid_to.is_(None), memory.valid_to > (where.as_of or where.now)))
    if where.status == "active":  # whatever was archived, for its age or not, is among the archived
        found.append(or_(memory.expires_at.is_(None), memory.expires_at > where.now))
        found += [
            or_(memory.memory_type != name, memory.expires_at.is_not(None), memory.created_at > where.now - lifetime)
            for name, lifetime in where.lifetimes
        ]
    if where.as_of is not None:
        found.append(memory.valid_from <= where.as_of)
    if where.min_trust:
        found.append(memory.trust >= where.min_trust)
    places = (memory.session_id, memory.agent_id, memory.group_id)
    found += [
        column == value
        for column, value in zip(places, (where.session_id, where.agent_id, where.group_id), strict=True)
        if value is not None
    ]
    if where.memory_types is not None:
        found.append(memory.memory_type.in_(where.memory_types))
    elif not where.with_messages:
        found.append(memory.memory_type != "message")
    if where.layers is not None:
        found.append(memory.layer.in_(where.layers))
    if where.occurred_from is not None:
        found.append(memory.occurred_at >= where.occurred_from)
    if where.occurred_to is not None:
        found.append(memory.occurred_at < where.occurred_to)
    if where.tags is not None:
        found.append(
            exists().where(
                KeywordRow.user_id == memory.user_id,
                KeywordRow.memory_id == memory.id,
                KeywordRow.source == "user_tag",
                KeywordRow.keyword.in_(where.tags),
            )
        )
    found += [metadata_condition(memory.__table__.c.metadata, condition) for condition in where.metadata]
    return found
