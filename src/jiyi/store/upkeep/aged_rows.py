"""Memories that are old or expired, and the lease of the process that maintains them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, and_, insert, or_, select
from sqlalchemy.orm import Session

from ...languages.terms import WORDS_VERSION
from ...models import ReceiptState
from ..database import Columns, Repository, chunks, from_row, reads, writes
from ..repositories.index_entries import vector_of_memory
from ..repositories.job_queue import change
from ..schema.tables import SHARED, EmbeddingRow, JobRow, MemoryRow, MemorySourceRow
from ..write_set import LeaseLost, Source, StoredMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Aged:
    """Selection of old memories: current, older than `before`, used less than `uses` times or not since `unused_since`,
    and less important than `importance`. Facts that fill a slot are left out unless their confidence is low, because
    later statements confirm or end them. So are memories with a key of the caller's."""

    user_id: str
    model: str  # of the vectors
    now: datetime
    before: datetime
    uses: int
    unused_since: datetime
    importance: float
    confidence: float  # up to which a fact is but a note
    but_types: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(StoredMemory):
    """A memory with its sources and its vector."""

    sources: tuple[Source, ...]
    vector: NDArray[np.float32] | None

    @property
    def level(self) -> int:
        """The number of times it was compressed."""
        level = self.data.get("compressed", 0)
        return level if isinstance(level, int) else 0


def held(session: Session, user_id: str, ids: Sequence[str], model: str) -> list[Held]:
    """Return active memories by id."""
    found: list[Held] = []
    for some in chunks(sorted(ids)):
        told = _sources(session, user_id, some)
        statement = (
            select(MemoryRow.__table__, EmbeddingRow.vector)
            .outerjoin(EmbeddingRow, and_(vector_of_memory(), EmbeddingRow.model == model))
            .where(MemoryRow.user_id == user_id, MemoryRow.id.in_(some), MemoryRow.status == "active")
            .order_by(MemoryRow.id)
        )
        found += [from_row(Held, row, sources=told.get(row.id, ())) for row in session.execute(statement).all()]
    return found


def _sources(session: Session, user_id: str, ids: Sequence[str]) -> dict[str, tuple[Source, ...]]:
    statement = select(MemorySourceRow.__table__).where(
        MemorySourceRow.user_id == user_id, MemorySourceRow.memory_id.in_(ids)
    )
    found: dict[str, tuple[Source, ...]] = {}
    for row in session.execute(statement.order_by(MemorySourceRow.message_id)):
        source = Source(message_id=row.message_id, start=row.span_start, end=row.span_end)
        found[row.memory_id] = (*found.get(row.memory_id, ()), source)
    return found


# The lease stands among the jobs, under no user's name; no worker can claim it, because it is never due.

ROUND = "upkeep"


def _round(session: Session) -> Row[*Columns] | None:
    return session.execute(
        select(JobRow.__table__).where(JobRow.user_id == SHARED, JobRow.id == ROUND).with_for_update()
    ).first()


def _leased(session: Session, owner: str, now: datetime) -> Row[*Columns]:
    row = _round(session)
    if row is None or row.leased_by != owner or row.leased_until is None or row.leased_until <= now:
        raise LeaseLost(ROUND)
    return row


class Maintenance(Repository):
    """Memories to compress or archive, and the lease of the process that does it."""

    @reads
    def aged(self, session: Session, wanted: Aged, *, after: str, limit: int) -> list[Held]:
        """Return old memories by id, after this one."""
        memory, before = MemoryRow, wanted.before
        where = [
            memory.user_id == wanted.user_id,
            memory.id > after,
            memory.status == "active",
            memory.valid_to.is_(None),
            or_(memory.expires_at.is_(None), memory.expires_at > wanted.now),
            memory.created_at <= before,
            memory.occurred_at <= before,
            or_(memory.last_accessed_at.is_(None), memory.last_accessed_at <= before),
            or_(memory.access_count < wanted.uses, memory.last_accessed_at <= wanted.unused_since),
            memory.importance < wanted.importance,
            memory.memory_key == memory.id,
            or_(
                memory.slot.is_(None),
                memory.layer != "semantic",
                and_(memory.memory_type == "fact", memory.confidence <= wanted.confidence),
            ),
            memory.memory_type.not_in(wanted.but_types),
        ]
        ids = session.scalars(select(memory.id).where(*where).order_by(memory.id).limit(limit)).all()
        return held(session, wanted.user_id, ids, wanted.model)

    @reads
    def get(self, session: Session, user_id: str, ids: Sequence[str], model: str) -> list[Held]:
        return held(session, user_id, ids, model)

    @reads
    def expired(
        self, session: Session, user_id: str, *, now: datetime, lifetimes: Mapping[str, timedelta], limit: int
    ) -> list[tuple[str, int, str]]:
        """Return expired active memories: id, version and reason."""
        expired = MemoryRow.expires_at <= now
        too_old = [
            and_(
                MemoryRow.memory_type == name,
                MemoryRow.expires_at.is_(None),
                MemoryRow.created_at <= now - lifetime,
            )
            for name, lifetime in lifetimes.items()
        ]
        statement = (
            select(MemoryRow.id, MemoryRow.version, MemoryRow.memory_type, MemoryRow.expires_at)
            .where(MemoryRow.user_id == user_id, MemoryRow.status == "active", or_(expired, *too_old))
            .order_by(MemoryRow.id)
            .limit(limit)
        )
        return [
            (
                memory_id,
                version,
                f"it expired on {ends:%Y-%m-%d}"
                if ends is not None
                else f"memories of type {name} last {lifetimes[name].total_seconds() / 86_400:g} days",
            )
            for memory_id, version, name, ends in session.execute(statement).all()
        ]

    @writes(locks=[SHARED])
    def begin_round(self, session: Session, owner: str, now: datetime, until: datetime, *, forced: bool) -> str | None:
        """Take the lease; return the user after whom to continue, or None if another process has it or it is not due,
        unless forced."""
        row = _round(session)
        if row is None:
            first = {
                "user_id": SHARED,
                "id": ROUND,
                "kind": ROUND,
                "state": ReceiptState.ACCEPTED.value,
                "created": 0,
                "problems": [],
                "attempts": 0,
                "created_at": now,
                "updated_at": now,
                "payload": {"after": "", "due": now.isoformat()},
            }
            session.execute(insert(JobRow), [first])
            row = (session.execute(select(JobRow.__table__).where(JobRow.user_id == SHARED, JobRow.id == ROUND)).all())[
                0
            ]
        longest = until + (until - now)  # a lease beyond that was taken by a clock that was ahead
        if row.leased_until is not None and now < row.leased_until <= longest and row.leased_by != owner:
            return None
        at = row.payload or {}
        after = str(at.get("after", ""))
        indexed = (
            at.get("words_version") == WORDS_VERSION
        )  # a new version of Jiyi does not wait: memories have to be indexed
        if not forced and not after and indexed and datetime.fromisoformat(at["due"]) > now:
            return None
        change(session, row, {"leased_by": owner, "leased_until": until})
        return after

    @writes(locks=[SHARED])
    def advance_round(self, session: Session, owner: str, now: datetime, until: datetime, after: str) -> None:
        """Note that all users up to this one are done, and extend the lease."""
        row = _leased(session, owner, now)
        payload = {**(row.payload or {}), "after": after}
        change(session, row, {"payload": payload, "leased_until": until, "updated_at": now})

    @writes(locks=[SHARED])
    def finish_round(self, session: Session, owner: str, now: datetime, due: datetime) -> None:
        """Release the lease until the next round is due."""
        row = _leased(session, owner, now)
        payload = {"after": "", "due": due.isoformat(), "words_version": WORDS_VERSION}
        free = {"leased_by": None, "leased_until": None, "updated_at": now}
        change(session, row, {"payload": payload, **free})
