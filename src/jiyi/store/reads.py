"""The statements that read. Each function takes a session and names its user."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    and_,
    bindparam,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from ..errors import IdempotencyConflict, InvalidInput, NotFound
from ..languages.version import WORDS_VERSION
from ..models import Coverage, MemoryItem, Page, Receipt, Revision, SourceMessage, from_micros, to_micros
from ..scope import Filter
from ..text.passages import passages
from . import rows
from .contract import EXTRACTED, PAST, SAID, Unembedded
from .filters import conditions
from .tables import (
    EmbeddingRow,
    JobMemoryRow,
    JobRow,
    KeywordRow,
    MemoryRow,
    MemorySourceRow,
    MessageRow,
    RevisionRow,
    TermsRow,
)
from .types import Instant

T = TypeVar("T")


def chunks(values: Sequence[T], size: int = 500) -> Iterator[Sequence[T]]:
    """Parts of a sequence that fit into one IN list."""
    for start in range(0, len(values), size):
        yield values[start : start + size]


async def memory_rows(session: AsyncSession, user_id: str, ids: Sequence[str]) -> dict[str, MemoryRow]:
    """Those of these ids that are there."""
    found: dict[str, MemoryRow] = {}
    for some in chunks(ids):
        rows = await session.scalars(select(MemoryRow).where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some)))
        found |= {row.id: row for row in rows}
    return found


async def memory_row(session: AsyncSession, user_id: str, memory_id: str) -> MemoryRow:
    """The row of a memory, by id or memory_key. An id always means the memory with that id."""
    for column in (MemoryRow.id, MemoryRow.memory_key):
        row = await session.scalar(select(MemoryRow).where(MemoryRow.user_id == user_id, column == memory_id))
        if row is not None:
            return row
    raise NotFound(f"user {user_id!r} has no memory {memory_id!r}")


# Built once: every search or `add` runs them, and building a statement costs about as much as running it.
_IDS: BindParameter[list[str]] = bindparam("ids", expanding=True)
_USER: BindParameter[str] = bindparam("user_id")
# Two statements, not one with OR: that would make SQLite read all of the user's rows.
_BY_ID = select(MemoryRow.__table__).where(MemoryRow.user_id == _USER, MemoryRow.id.in_(_IDS))
_BY_KEY = select(MemoryRow.__table__).where(MemoryRow.user_id == _USER, MemoryRow.memory_key.in_(_IDS))
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
_DETAILS = union_all(
    select(KeywordRow.memory_id, literal("keyword"), KeywordRow.keyword, -KeywordRow.weight, KeywordRow.keyword).where(
        KeywordRow.user_id == _USER, KeywordRow.memory_id.in_(_IDS)
    ),
    select(
        MemorySourceRow.memory_id,
        literal("source"),
        func.coalesce(MessageRow.external_id, MessageRow.id),
        literal(0.0),
        MessageRow.id,
    )
    .join(
        MessageRow,
        and_(MessageRow.user_id == MemorySourceRow.user_id, MessageRow.id == MemorySourceRow.message_id),
    )
    .where(MemorySourceRow.user_id == _USER, MemorySourceRow.memory_id.in_(_IDS)),
)


async def items(session: AsyncSession, user_id: str, names: Sequence[str]) -> list[MemoryItem]:
    """Memories by id or memory_key, in the order asked for; unknown ones are left out."""
    found: dict[str, MemoryItem] = {}
    for some in chunks(list(dict.fromkeys(names))):
        found |= {item.id: item for item in await _items(session, _BY_ID, user_id, some)}
        # An id always means the memory with that id; only what is none can be a key.
        keys = [name for name in some if name not in found]
        if keys:
            found |= {item.memory_key: item for item in await _items(session, _BY_KEY, user_id, keys)}
    return list({found[name].id: found[name] for name in names if name in found}.values())


async def _items(session: AsyncSession, statement: Select[Any], user_id: str, names: Sequence[str]) -> list[MemoryItem]:
    connection = await session.connection()
    memories = (await connection.execute(statement, {"user_id": user_id, "ids": names})).mappings().all()
    if not memories:
        return []
    ids = [memory["id"] for memory in memories]
    lines = (await connection.execute(_DETAILS, {"user_id": user_id, "ids": ids})).all()
    details: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for memory_id, kind, value, *_ in sorted(lines, key=lambda line: line[3:]):
        details[memory_id, kind].append(value)
    return [rows.item(dict(row), details[row["id"], "keyword"], details[row["id"], "source"]) for row in memories]


GATHERED = ("episode", "profile", "group_profile")  # of many messages: they speak for none of them
GIST, MESSAGE = aliased(MemoryRow), aliased(MemoryRow)


def worked_out(user_id: str) -> Select[str, str, str | None]:
    """Which memory (GIST) was worked out of which message that is a memory itself (MESSAGE), and its successor."""
    of_gist, of_message = aliased(MemorySourceRow), aliased(MemorySourceRow)
    return (
        select(GIST.id, MESSAGE.id, GIST.superseded_by)
        .join(of_gist, and_(of_gist.user_id == GIST.user_id, of_gist.memory_id == GIST.id))
        .join(of_message, and_(of_message.user_id == GIST.user_id, of_message.message_id == of_gist.message_id))
        .join(MESSAGE, and_(MESSAGE.user_id == GIST.user_id, MESSAGE.id == of_message.memory_id))
        .where(GIST.user_id == user_id, GIST.source == EXTRACTED, GIST.memory_type.not_in(GATHERED))
        .where(MESSAGE.memory_type == "message", GIST.status == "active", MESSAGE.status == "active")
    )


async def gists(session: AsyncSession, where: Filter, ids: Sequence[str]) -> dict[str, list[MemoryItem]]:
    """What was worked out of these messages, as far as it is meant, by message, in the order in which it was said."""
    pairs: list[tuple[str, str]] = []
    meant: set[str] = set()
    for some in chunks(ids):
        found = await session.execute(worked_out(where.user_id).where(MESSAGE.id.in_(some)))
        pairs += [(gist, message) for gist, message, _ in found]
    for some in chunks(sorted({gist for gist, _ in pairs})):
        meant |= set(await session.scalars(select(MemoryRow.id).where(*conditions(where), MemoryRow.id.in_(some))))
    by_id = {item.id: item for item in await items(session, where.user_id, sorted(meant))}
    by_message = defaultdict[str, list[MemoryItem]](list)
    for gist, message in sorted(pairs):
        if gist in by_id:
            by_message[message].append(by_id[gist])
    return dict(by_message)


async def known_by_hash(session: AsyncSession, user_id: str, hashes: Sequence[str], now: datetime) -> dict[str, str]:
    """The ids of the memories that say exactly this, by hash. What has expired is not known any more."""
    known: dict[str, str] = {}
    for some in chunks(hashes):
        found = await session.execute(_KNOWN, {"user_id": user_id, "ids": some, "now": now})
        known.update({said: memory_id for said, memory_id in found if said})
    return known


async def receipt(session: AsyncSession, user_id: str, idempotency_key: str, request_hash: str) -> Receipt | None:
    """The receipt of an earlier `add` with this key."""
    job = await session.scalar(
        select(JobRow).where(JobRow.user_id == user_id, JobRow.idempotency_key == idempotency_key)
    )
    if job is None:
        return None
    if job.request_hash != request_hash:
        raise IdempotencyConflict(
            f"the idempotency key {idempotency_key!r} was used before for another text: take a new key for new input"
        )
    return await _receipt(session, job)


async def receipt_by_id(session: AsyncSession, user_id: str, job_id: str) -> Receipt | None:
    """The receipt of one certain `add`, if it was kept."""
    job = await session.scalar(select(JobRow).where(JobRow.user_id == user_id, JobRow.id == job_id))
    return None if job is None else await _receipt(session, job)


async def _receipt(session: AsyncSession, job: JobRow) -> Receipt:
    ids = await session.scalars(memories_of_job(job))
    return rows.receipt(job, await items(session, job.user_id, ids.all()))


def memories_of_job(job: JobRow) -> Select[str]:
    """The ids of the memories that it made or met."""
    return (
        select(JobMemoryRow.memory_id)
        .where(JobMemoryRow.user_id == job.user_id, JobMemoryRow.job_id == job.id)
        .order_by(JobMemoryRow.position)
    )


async def most_used(session: AsyncSession, where: Filter, limit: int) -> list[str]:
    """The ids of the memories that were recalled most often, those recalled latest first among equals."""
    order = (MemoryRow.access_count.desc(), MemoryRow.last_accessed_at.desc(), MemoryRow.id.desc())
    used = select(MemoryRow.id).where(*conditions(where), MemoryRow.access_count > 0)
    return list(await session.scalars(used.order_by(*order).limit(limit)))


async def page(session: AsyncSession, where: Filter, cursor: str | None, limit: int) -> Page:
    """Newest first. Ids grow with time, so a page starts after the last id of the one before."""
    statement = select(MemoryRow.id).where(*conditions(where)).order_by(MemoryRow.id.desc()).limit(limit + 1)
    if cursor is not None:
        statement = statement.where(MemoryRow.id < cursor)
    ids = list(await session.scalars(statement))
    return Page(
        items=tuple(await items(session, where.user_id, ids[:limit])),
        next_cursor=ids[limit - 1] if len(ids) > limit else None,
    )


async def timeline(session: AsyncSession, where: Filter, cursor: str | None, limit: int) -> Page:
    """Whatever was valid at some time of the span that the filter names, over by now or not; the latest start first."""
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
    else:
        statement = statement.where(memory.memory_type != "message")  # what was said is not true for a time
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
    found = list((await session.execute(statement)).all())
    end = found[limit - 1] if len(found) > limit else None
    return Page(
        items=tuple(await items(session, where.user_id, [row.id for row in found[:limit]])),
        next_cursor=None if end is None else f"{str(to_micros(end.valid_from)).replace('-', '~')}-{end.id}",
    )


async def sources(session: AsyncSession, user_id: str, memory_id: str) -> list[SourceMessage]:
    """The messages that a memory came from, in the order in which they were taken in."""
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
        SourceMessage(
            id=message.id,
            external_id=message.external_id,
            session_id=message.session_id,
            role=message.role,
            speaker=message.speaker,
            text=message.text,
            sent_at=message.sent_at,
            span=None if start is None or end is None else (start, end),
        )
        for message, start, end in (await session.execute(statement)).all()
    ]


async def count_by_type(session: AsyncSession, user_id: str | None) -> dict[str, int]:
    """Active memories by type, the most frequent first; of one user or of all."""
    statement = (
        select(MemoryRow.memory_type, func.count())
        .where(MemoryRow.status == "active")
        .group_by(MemoryRow.memory_type)
        .order_by(func.count().desc(), MemoryRow.memory_type)
    )
    if user_id is not None:
        statement = statement.where(MemoryRow.user_id == user_id)
    return dict((await session.execute(statement)).all())


async def count_by_group(session: AsyncSession, where: Filter) -> dict[str, int]:
    """How many memories each group has; those of no group are not counted."""
    group = MemoryRow.group_id
    statement = select(group, func.count()).where(*conditions(where), group.is_not(None)).group_by(group)
    counted = (await session.execute(statement)).all()
    return dict(sorted((name, number) for name, number in counted if name is not None))


async def users(session: AsyncSession) -> list[str]:
    memories, messages = (select(table.user_id).distinct() for table in (MemoryRow, MessageRow))
    return sorted(await session.scalars(memories.union(messages)))


async def history(session: AsyncSession, user_id: str, memory_id: str) -> list[Revision]:
    row = await memory_row(session, user_id, memory_id)
    changes = await session.scalars(
        select(RevisionRow)
        .where(RevisionRow.user_id == user_id, RevisionRow.memory_id == row.id)
        .order_by(RevisionRow.version)
    )
    return rows.revisions(changes.all(), row)


def vector_of_memory() -> ColumnElement[bool]:
    """The condition that joins a memory with its (first) vector."""
    return and_(
        EmbeddingRow.user_id == MemoryRow.user_id, EmbeddingRow.memory_id == MemoryRow.id, EmbeddingRow.part == 0
    )


async def without_vector(session: AsyncSession, user_id: str, ids: Sequence[str], model: str) -> list[str]:
    """Those of the memories that have no vector of this model."""
    embedded: set[str] = set()
    for some in chunks(ids):
        statement = select(EmbeddingRow.memory_id).where(
            EmbeddingRow.user_id == user_id, EmbeddingRow.memory_id.in_(some), EmbeddingRow.model == model
        )
        embedded.update(await session.scalars(statement))
    return [memory_id for memory_id in ids if memory_id not in embedded]


async def coverage(session: AsyncSession, model: str, user_id: str | None) -> Coverage:
    statement = (
        select(EmbeddingRow.model, func.count())
        .select_from(MemoryRow)
        .outerjoin(EmbeddingRow, vector_of_memory())
        .where(MemoryRow.status == "active")
        .group_by(EmbeddingRow.model)
    )
    if user_id is not None:
        statement = statement.where(MemoryRow.user_id == user_id)
    counted: dict[str | None, int] = dict((await session.execute(statement)).all())
    models = {name: number for name, number in counted.items() if name is not None}
    has_keyword = exists().where(KeywordRow.user_id == MemoryRow.user_id, KeywordRow.memory_id == MemoryRow.id)
    with_keywords = select(func.count()).select_from(MemoryRow).where(MemoryRow.status == "active", has_keyword)
    if user_id is not None:
        with_keywords = with_keywords.where(MemoryRow.user_id == user_id)
    outdated = select(func.count()).select_from(TermsRow).where(TermsRow.words_version < WORDS_VERSION)
    if user_id is not None:
        outdated = outdated.where(TermsRow.user_id == user_id)
    return Coverage(
        memories=sum(counted.values()),
        embedded=models.get(model, 0),
        models=models,
        with_keywords=await session.scalar(with_keywords) or 0,
        outdated=await session.scalar(outdated) or 0,
    )


async def unembedded(
    session: AsyncSession, model: str, dimension: int, *, after: tuple[str, str], limit: int
) -> list[Unembedded]:
    """Some memories that have no vector of this model and dimension, in order of user and id."""
    missing = or_(EmbeddingRow.model.is_(None), EmbeddingRow.model != model, EmbeddingRow.dimension != dimension)
    statement = (
        select(MemoryRow.user_id, MemoryRow.id, MemoryRow.version, MemoryRow.content, MemoryRow.data)
        .outerjoin(EmbeddingRow, vector_of_memory())
        .where(MemoryRow.status == "active", missing, tuple_(MemoryRow.user_id, MemoryRow.id) > after)
        .order_by(MemoryRow.user_id, MemoryRow.id)
        .limit(limit)
    )
    return [
        Unembedded(user_id=user_id, memory_id=memory_id, version=version, texts=(content, *passages(content, data)))
        for user_id, memory_id, version, content, data in (await session.execute(statement))
    ]
