"""Memories as callers see them: by id, by filter, by time, and what they came from."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    exists,
    func,
    or_,
    select,
    tuple_,
)

from ..errors import InvalidInput, NotFound
from ..models import MemoryItem, Page, SourceMessage, from_micros, to_micros
from ..scope import Filter
from .contract import PAST, SAID
from .database import PAGE_SIZE, Repository, chunks, from_row
from .session import Rows, Session
from .tables import KeywordRow, MemoryRow, MemorySourceRow, MessageRow, RelationRow
from .types import Instant, JsonRows

AT_ONCE = 500  # ids in one statement
PAGE_PART = 100  # memories of a page that are read at once
Selects = Callable[..., Awaitable[list[Rows]]]  # takes any number of `Read`
# Allowed values of `session_id`, `agent_id` and `group_id`; None: any, but not none at all.
Places = Mapping[str, Sequence[str] | None]


async def memory_rows(session: Session, user_id: str, ids: Sequence[str]) -> dict[str, Row[MemoryRow]]:
    """Return rows for the ids that exist."""
    found: dict[str, Row[MemoryRow]] = {}
    for some in chunks(ids):
        rows = await session.rows(select(MemoryRow).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some)))
        found |= {row.id: row for row in rows}
    return found


async def memory_row(session: Session, user_id: str, memory_id: str) -> Row[MemoryRow]:
    """Return the row of a memory, by id or else by memory_key."""
    for column in (MemoryRow.id, MemoryRow.memory_key):
        row = await session.first(select(MemoryRow).where(MemoryRow.user_id == user_id, column == memory_id))
        if row is not None:
            return row
    raise NotFound(f"user {user_id!r} has no memory {memory_id!r}")


# Built once: every search or `add` runs them, and building a statement costs about as much as running it.
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)
_USER: BindParameter[str] = bindparam("user_id")
_READ = [column for column in MemoryRow.__table__.columns if column.name in MemoryItem.model_fields]
_COLUMNS = [column.name for column in _READ]
_KEYWORDS = select(JsonRows(-KeywordRow.weight, KeywordRow.keyword)).where(
    KeywordRow.user_id == MemoryRow.user_id, KeywordRow.memory_id == MemoryRow.id
)
_SOURCES = (
    select(JsonRows(MessageRow.id, func.coalesce(MessageRow.external_id, MessageRow.id)))
    .select_from(MemorySourceRow)
    .join(
        MessageRow,
        and_(MessageRow.user_id == MemorySourceRow.user_id, MessageRow.id == MemorySourceRow.message_id),
    )
    .where(MemorySourceRow.user_id == MemoryRow.user_id, MemorySourceRow.memory_id == MemoryRow.id)
)
_ITEMS = select(*_READ, _KEYWORDS.scalar_subquery(), _SOURCES.scalar_subquery()).where(MemoryRow.user_id == _USER)
# Two statements, not one with OR: that would make SQLite read all of the user's rows.
_BY_ID = _ITEMS.where(MemoryRow.id.in_(_IDS))
_BY_KEY = _ITEMS.where(MemoryRow.memory_key.in_(_IDS))
# The condition that a dedupe hash counts as known at the time `now`.
IS_KNOWN = or_(
    and_(
        MemoryRow.status == "active",
        MemoryRow.valid_to.is_(None),
        or_(MemoryRow.expires_at.is_(None), MemoryRow.expires_at > bindparam("now", type_=Instant())),
    ),
    MemoryRow.dedupe_hash.startswith(SAID),
    MemoryRow.dedupe_hash.startswith(PAST),
)
_KNOWN = select(MemoryRow.dedupe_hash, MemoryRow.id).where(
    MemoryRow.user_id == _USER, MemoryRow.dedupe_hash.in_(_IDS), IS_KNOWN
)


async def items(session: Session, user_id: str, names: Sequence[str]) -> list[MemoryItem]:
    """Return memories by id or memory_key, in the order given; unknown ones are left out."""
    return await _named(session.select, user_id, names)


async def page_items(session: Session, user_id: str, ids: Sequence[str]) -> list[MemoryItem]:
    """Return memories by id, in the order given, as many as a page may hold."""
    found: list[MemoryItem] = []
    room = PAGE_SIZE
    for some in chunks(ids, PAGE_PART):
        for memory in await items(session, user_id, some):
            if found and room < 0:
                return found
            found.append(memory)
            room -= len(memory.content) + len(memory.summary) + len(str(memory.data)) + len(str(memory.metadata))
    return found


async def _named(select: Selects, user_id: str, names: Sequence[str]) -> list[MemoryItem]:
    found: dict[str, MemoryItem] = {}
    distinct = list(dict.fromkeys(names))
    for start in range(0, len(distinct), AT_ONCE):
        some = distinct[start : start + AT_ONCE]
        found |= {item.id: item for item in await _items(select, _BY_ID, user_id, some)}
        # An id always means the memory with that id; only what is none can be a key.
        keys = [name for name in some if name not in found]
        if keys:
            found |= {item.memory_key: item for item in await _items(select, _BY_KEY, user_id, keys)}
    return list({found[name].id: found[name] for name in names if name in found}.values())


async def _items(select: Selects, statement: Select[Any], user_id: str, names: list[str]) -> list[MemoryItem]:
    [rows] = await select((statement, {"user_id": user_id, "ids": names}))
    return [
        MemoryItem.model_validate(
            {
                **dict(zip(_COLUMNS, row, strict=True)),
                "keywords": tuple([keyword for _, keyword in sorted(keywords or ())]),
                "source_ids": tuple([source_id for _, source_id in sorted(sources or ())]),
            }
        )
        for *row, keywords, sources in rows
    ]


def item(values: Mapping[str, Any], keywords: Sequence[str], source_ids: Sequence[str]) -> MemoryItem:
    """Build a memory from the values of its row."""
    fields = {name: value for name, value in values.items() if name not in ("dedupe_hash", "near_hash", "slot")}
    return MemoryItem.model_validate({**fields, "keywords": tuple(keywords), "source_ids": tuple(source_ids)})


async def ended_by(session: Session, user_id: str, ids: Sequence[str]) -> list[MemoryItem]:
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
        found += await session.scalars(statement)
    return await items(session, user_id, sorted(found)) if found else []


GATHERED = ("episode", "profile", "group_profile")  # of many messages: they speak for none of them


async def known_by_hash(session: Session, user_id: str, hashes: Sequence[str], now: datetime) -> dict[str, str]:
    """Return the ids of current memories by dedupe hash, with the changes of this session."""
    return await select_known(session.select, user_id, hashes, now)


async def select_known(select: Selects, user_id: str, hashes: Sequence[str], now: datetime) -> dict[str, str]:
    """Return the ids of current memories by dedupe hash; expired ones are not known."""
    reads = [(_KNOWN, {"user_id": user_id, "ids": list(some), "now": now}) for some in chunks(hashes)]
    found = await select(*reads) if reads else []
    return {said: memory_id for rows in found for said, memory_id in rows if said}


async def all_users(session: Session) -> list[str]:
    memories, messages = (select(table.user_id).distinct() for table in (MemoryRow, MessageRow))
    return sorted(await session.scalars(memories.union(messages)))


class Memories(Repository):
    """Memories: get, list, count and change them."""

    async def get(self, user_id: str, ids: Sequence[str]) -> list[MemoryItem]:
        return await _named(partial(self._database.select, user_id), user_id, ids)

    async def starting(self, user_id: str, beginning: str, limit: int) -> list[str]:
        """Return ids that start with these characters."""
        async with self._database.reading(user_id) as session:
            mine = select(MemoryRow.id).where(MemoryRow.user_id == user_id)
            between = mine.where(MemoryRow.id >= beginning, MemoryRow.id < beginning + "~").limit(limit)
            return await session.scalars(between)

    async def known(self, user_id: str, hashes: Sequence[str], now: datetime) -> dict[str, str]:
        """Return the ids of current memories by dedupe hash."""
        return await select_known(partial(self._database.select, user_id), user_id, hashes, now)

    async def sources(self, user_id: str, memory_id: str) -> list[SourceMessage]:
        """Return the source messages of a memory, in order."""
        async with self._database.reading(user_id) as session:
            row = await memory_row(session, user_id, memory_id)
            statement = (
                select(MessageRow, MemorySourceRow.span_start, MemorySourceRow.span_end)
                .join(
                    MemorySourceRow,
                    and_(MessageRow.user_id == MemorySourceRow.user_id, MessageRow.id == MemorySourceRow.message_id),
                )
                .where(MemorySourceRow.user_id == user_id, MemorySourceRow.memory_id == row.id)
                .order_by(MessageRow.id)
            )
            return [
                from_row(SourceMessage, row, span=None if None in (row.span_start, row.span_end) else tuple(row[-2:]))
                for row in await session.rows(statement)
            ]

    async def page(self, where: Filter, *, cursor: str | None, limit: int) -> Page:
        """Return a page, newest first. Ids grow with time, so a page starts after the last id of the one before."""
        statement = select(MemoryRow.id).where(*conditions(where)).order_by(MemoryRow.id.desc()).limit(limit + 1)
        if cursor is not None:
            statement = statement.where(MemoryRow.id < cursor)

        async def page(session: Session) -> Page:
            ids = await session.scalars(statement)
            found = await page_items(session, where.user_id, ids[:limit])
            more = len(found) < len(ids)
            return Page(items=tuple(found), next_cursor=found[-1].id if found and more else None)

        return await self._database.read(where.user_id, page)

    async def timeline(self, where: Filter, *, cursor: str | None, limit: int) -> Page:
        """Return memories that were valid at some time in the filter's range, ended or not, the latest start first."""
        async with self._database.reading(where.user_id) as session:
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
            ids = [row.id for row in await session.rows(statement)]
            found = await page_items(session, where.user_id, ids[:limit])
            end = found[-1] if len(found) < len(ids) else None
            return Page(
                items=tuple(found),
                next_cursor=None if end is None else f"{str(to_micros(end.valid_from)).replace('-', '~')}-{end.id}",
            )

    async def most_used(self, where: Filter, limit: int) -> list[str]:
        """Return the ids of the most recalled memories, the latest recall first among equals."""
        async with self._database.reading(where.user_id) as session:
            order = (MemoryRow.access_count.desc(), MemoryRow.last_accessed_at.desc(), MemoryRow.id.desc())
            used = select(MemoryRow.id).where(*conditions(where), MemoryRow.access_count > 0)
            return await session.scalars(used.order_by(*order).limit(limit))

    async def count(self, where: Filter) -> int:
        async with self._database.reading(where.user_id) as session:
            return await session.scalar(select(func.count()).select_from(MemoryRow).where(*conditions(where))) or 0

    async def count_by_group(self, where: Filter) -> dict[str, int]:
        """Count memories by group."""
        async with self._database.reading(where.user_id) as session:
            group = MemoryRow.group_id
            statement = select(group, func.count()).where(*conditions(where)).group_by(group)
            counted = await session.rows(statement)
            return dict(sorted((name, number) for name, number in counted if name is not None))

    async def owner(self, memory_id: str) -> str | None:
        """Return the user of a memory. It reads the ids of all users, so ask by user where the user is known."""
        async with self._database.reading(None) as session:
            found = await session.scalars(select(MemoryRow.user_id).where(MemoryRow.id == memory_id).limit(2))
        if len(found) > 1:  # one of them has imported it under the id of the other
            raise InvalidInput("memory_id", f"{memory_id} belongs to several users: name the user")
        return found[0] if found else None

    async def ids_in(self, user_id: str, places: Places) -> list[str]:
        """Return the ids of all memories of agents, sessions or groups: of every type, and archived and ended ones."""
        async with self._database.reading(user_id) as session:
            statement = select(MemoryRow.id).where(MemoryRow.user_id == user_id, *_in_places(places))
            return await session.scalars(statement.order_by(MemoryRow.id))

    async def users_in(self, places: Places) -> list[str]:
        """Return the users who have memories of agents, sessions or groups. It reads the memories of all users."""
        async with self._database.reading(None) as session:
            return sorted(await session.scalars(select(MemoryRow.user_id).where(*_in_places(places)).distinct()))

    async def users(self) -> list[str]:
        """Return the ids of all users who have memories or messages."""
        async with self._database.reading(None) as session:
            return await all_users(session)


def _in_places(places: Places) -> list[ColumnElement[bool]]:
    columns = {name: getattr(MemoryRow, name) for name in places}
    return [
        columns[name].is_not(None) if values is None else columns[name].in_(list(values))
        for name, values in places.items()
    ]


def conditions(where: Filter) -> list[ColumnElement[bool]]:
    """Return a filter as SQL conditions. `index/` has the same in numpy; a test compares the two."""
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
    return found
