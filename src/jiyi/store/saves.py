"""The statements that write. Each function runs inside one transaction that holds the right to write from its start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Table, and_, delete, insert, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from ..errors import InvalidInput, VersionConflict
from ..models import MemoryItem, Receipt, ReceiptState, utc_now
from . import effects, jobs, reads, rows, units
from .contract import NOT_INDEXED, Addition, Change, ChangedMemory, Lease, NewMemory, Place, Stale, Unembedded
from .tables import (
    Base,
    ChangeRow,
    EmbeddingRow,
    JobMemoryRow,
    JobRow,
    KeywordRow,
    MemoryRow,
    MemorySourceRow,
    RevisionRow,
    TermsRow,
)

INDEX_TABLES: dict[str, type[Base]] = {"embeddings": EmbeddingRow, "terms": TermsRow, "keywords": KeywordRow}


async def save(session: AsyncSession, addition: Addition) -> Receipt:
    """Write one `add`: messages, memories, what they are found by, history, change feed, and the job or receipt."""
    user_id = addition.user_id
    if addition.idempotency_key is not None:
        earlier = await reads.receipt(session, user_id, addition.idempotency_key, addition.request_hash)
        if earlier is not None:
            return earlier
    memories, made = await _save_all(session, addition)
    state, problems = await _state(session, addition, [memory.id for memory in memories if memory.id not in made])
    job = JobRow(
        user_id=user_id,
        id=addition.id,
        kind=addition.kind,
        state=state.value,
        idempotency_key=addition.idempotency_key,
        request_hash=addition.request_hash if addition.idempotency_key is not None else None,
        created=len(made),
        problems=problems,
        attempts=0 if addition.payload else 1,
        leased_until=None,
        created_at=addition.at,
        updated_at=addition.at,
        session_id=addition.session_id,
        payload=addition.payload,
        not_before=addition.at if addition.payload else None,
    )
    session.add(job)
    await session.flush()
    await _note(session, job, memories)
    return rows.receipt(job, memories)


async def complete(session: AsyncSession, lease: Lease, addition: Addition) -> None:
    """Write what a worker made of an accepted `add`, if it still has the right to."""
    job = await jobs.held(session, lease, utc_now())
    memories, made = await _save_all(session, addition)
    await _note(session, job, memories)
    state, problems = await _state(session, addition, list(await session.scalars(reads.memories_of_job(job))))
    jobs.finish(job, utc_now(), state, problems, created=len(made))


async def _save_all(session: AsyncSession, addition: Addition) -> tuple[list[MemoryItem], set[str]]:
    """→ the memories that it led to, in the order given, and the ids of those that are new"""
    user_id = addition.user_id
    place = Place(
        user_id=user_id, session_id=addition.session_id, agent_id=addition.agent_id, group_id=addition.group_id
    )
    if addition.follows is not None and addition.follows.message_id != await units.last_id(session, place):
        raise Stale
    await _check_cited(session, addition)
    await units.save_messages(session, place, addition.messages, addition.at)
    await units.save_units(session, place, addition.units, addition.at)
    hashes = [new.dedupe_hash for new in addition.memories]
    await retire_expired(session, user_id, hashes, addition.at)
    known = await reads.known_by_hash(session, user_id, hashes, addition.at)
    fresh = {new.dedupe_hash: new for new in reversed(addition.memories) if new.dedupe_hash not in known}
    fresh = dict(reversed(fresh.items()))  # the first of equal ones, in the order given
    if any(new.index is NOT_INDEXED for new in fresh.values()):
        raise Stale  # it was known when this was worked out
    if any(
        new.slot is not None and new.dedupe_hash in known and new.index is not NOT_INDEXED for new in addition.memories
    ):
        raise Stale  # it was new when this was worked out
    await _refuse_taken_keys(session, user_id, list(fresh.values()))
    await effects.check(session, user_id, addition.effects)
    made = await save_memories(session, addition, list(fresh.values()))
    await _change_all(session, user_id, addition.effects.changes)
    await effects.save(session, user_id, addition.effects, addition.at)
    there = await reads.items(session, user_id, [*known.values(), *addition.met])
    by_id = {memory.id: memory for memory in [*made, *there]}
    ids = {known.get(new.dedupe_hash) or fresh[new.dedupe_hash].id: None for new in addition.memories}
    ids |= dict.fromkeys(memory_id for memory_id in addition.met if memory_id in by_id)
    return [by_id[memory_id] for memory_id in ids], {memory.id for memory in made}


async def _check_cited(session: AsyncSession, addition: Addition) -> None:
    """Whether the messages that this was worked out of are still there: one may have been deleted meanwhile."""
    sources = [source for memory in addition.memories for source in memory.sources]
    sources += [source for some in addition.effects.evidence.values() for source in some]
    cited = {*(source.message_id for source in sources), *(one for part in addition.units for one in part.message_ids)}
    earlier = cited - {message.id for message in addition.messages}
    if len(await units.by_id(session, addition.user_id, list(earlier))) < len(earlier):
        raise Stale


async def _state(session: AsyncSession, addition: Addition, earlier: Sequence[str]) -> tuple[ReceiptState, list[str]]:
    """Everything can be found, unless one of the memories that were there before has no vector."""
    state, problems = addition.state, list(addition.problems)
    if state is ReceiptState.INDEXED:
        deaf = await reads.without_vector(session, addition.user_id, earlier, addition.model)
        if deaf:
            state = ReceiptState.EXTRACTED
            problems.append(f"{len(deaf)} known before, but not found by meaning yet: run `jiyi reindex --embeddings`")
    return state, problems


async def _note(session: AsyncSession, job: JobRow, memories: Sequence[MemoryItem]) -> None:
    """Which memories a job led to; some may stand there from when it was accepted."""
    mine = and_(JobMemoryRow.user_id == job.user_id, JobMemoryRow.job_id == job.id)
    before = dict((await session.execute(select(JobMemoryRow.memory_id, JobMemoryRow.position).where(mine))).all())
    ids = [memory.id for memory in memories if memory.id not in before]
    next_one = max(before.values(), default=-1) + 1  # those before it may have been deleted since
    values = [
        {"user_id": job.user_id, "job_id": job.id, "position": position, "memory_id": memory_id}
        for position, memory_id in enumerate(ids, start=next_one)
    ]
    await insert_all(session, JobMemoryRow, values)


async def retire_expired(
    session: AsyncSession, user_id: str, hashes: Sequence[str], at: datetime, *, but: str = ""
) -> None:
    """Archive what has expired, so that it does not stand in the way of the same thing said anew. `but` is the one that
    says it anew."""
    for some in reads.chunks(hashes):
        expired = await session.scalars(
            select(MemoryRow).where(
                MemoryRow.user_id == user_id,
                MemoryRow.dedupe_hash.in_(some),
                MemoryRow.id != but,
                MemoryRow.status == "active",
                MemoryRow.expires_at <= at,
            )
        )
        for row in expired.all():
            change = Change(
                values={"status": "archived"}, action="archive", actor="system", reason="it had expired", at=at
            )
            await _apply(session, row, change)


async def _refuse_taken_keys(session: AsyncSession, user_id: str, new: Sequence[NewMemory]) -> None:
    """A memory_key that the caller chose must be free, among the new ones and the stored ones."""
    chosen = [memory.memory_key for memory in new if memory.memory_key != memory.id]
    taken = {key for key in chosen if chosen.count(key) > 1} if len(set(chosen)) < len(chosen) else set()
    for some in reads.chunks(chosen):
        taken.update(
            await session.scalars(
                select(MemoryRow.memory_key).where(MemoryRow.user_id == user_id, MemoryRow.memory_key.in_(some))
            )
        )
    if taken:
        raise InvalidInput("memory_key", f"{sorted(taken)[0]!r} is taken: update that memory, or choose another key")


async def save_memories(session: AsyncSession, addition: Addition, new: Sequence[NewMemory]) -> list[MemoryItem]:
    user_id = addition.user_id
    names = {
        **addition.external_ids,
        **{message.id: message.external_id or message.id for message in addition.messages},
    }
    values = [rows.memory_values(addition, memory) for memory in new]
    await insert_all(session, MemoryRow, values)
    await insert_index(session, (rows.index_values(user_id, memory.id, memory.index) for memory in new))
    sources = [
        {
            "user_id": user_id,
            "memory_id": memory.id,
            "message_id": source.message_id,
            "span_start": source.start,
            "span_end": source.end,
        }
        for memory in new
        for source in memory.sources
    ]
    await insert_all(session, MemorySourceRow, sources)
    added = {"user_id": user_id, "version": 1, "action": "add", "actor": addition.actor, "changed_at": addition.at}
    revisions = [{**added, "memory_id": memory.id, "reason": memory.reason} for memory in new]
    await insert_all(session, RevisionRow, revisions)
    await tell(session, user_id, [memory.id for memory in new], "add")
    return [
        rows.item(
            value,
            keywords=[keyword for keyword, _, _ in memory.index.keywords],
            source_ids=[names.get(source.message_id, source.message_id) for source in memory.sources],
        )
        for value, memory in zip(values, new, strict=True)
    ]


async def update(session: AsyncSession, user_id: str, memory_id: str, change: Change, version: int | None) -> None:
    """Change a memory; if a version is named, only that one."""
    row = await reads.memory_row(session, user_id, memory_id)
    if version is not None and row.version != version:
        raise VersionConflict(memory_id, version, row.version)
    await _refuse_twin(session, row, change)
    await _apply(session, row, change)


async def change_all(session: AsyncSession, user_id: str, wanted: Sequence[ChangedMemory]) -> list[tuple[str, str]]:
    """Change many memories, each if it is still at its version. → those that stayed as they were, and why"""
    left: list[tuple[str, str]] = []
    for one in wanted:
        row = await session.scalar(select(MemoryRow).where(MemoryRow.user_id == user_id, MemoryRow.id == one.id))
        try:
            if row is None:
                left.append((one.id, "it is gone"))
            elif one.version is not None and row.version != one.version:
                left.append((one.id, f"it was changed meanwhile, to version {row.version}"))
            else:
                await _refuse_twin(session, row, one.change)
                await _apply(session, row, one.change)
        except InvalidInput as error:
            left.append((one.id, error.problem))
    return left


async def _refuse_twin(session: AsyncSession, row: MemoryRow, change: Change) -> None:
    """There is one current memory for each thing said."""
    said = change.dedupe_hash or row.dedupe_hash
    status, valid_to = (change.values.get(name, getattr(row, name)) for name in ("status", "valid_to"))
    if said is None or status != "active" or valid_to is not None:
        return
    await retire_expired(session, row.user_id, [said], change.at, but=row.id)
    twin = (await reads.known_by_hash(session, row.user_id, [said], change.at)).get(said, row.id)
    if twin != row.id:
        raise InvalidInput("content", f"memory {twin} says the same already: change or delete that one")


async def _change_all(session: AsyncSession, user_id: str, changes: Sequence[ChangedMemory]) -> None:
    """If one of them was changed or deleted meanwhile, all is to be looked at again."""
    there = await reads.memory_rows(session, user_id, [one.id for one in changes])
    versions = {memory_id: row.version for memory_id, row in there.items()}
    if any(one.id not in there or one.version not in (None, versions[one.id]) for one in changes):
        raise Stale
    if changes:
        await apply_changes(session, user_id, [(there[one.id], one.change) for one in changes])


async def _apply(session: AsyncSession, row: MemoryRow, change: Change) -> None:
    await apply_changes(session, row.user_id, [(row, change)])


async def apply_changes(session: AsyncSession, user_id: str, changes: Sequence[tuple[MemoryRow, Change]]) -> None:
    """Make changes, and write them into the history and the change feed."""
    revisions = []
    for row, change in changes:
        before = rows.snapshot(row)
        for name, value in change.values.items():
            setattr(row, rows.NO_ATTRIBUTE.get(name, name), value)
        if change.dedupe_hash is not None:
            row.dedupe_hash = change.dedupe_hash
        row.version += 1
        row.updated_at = change.at
        if change.index is not None:
            row.near_hash = change.index.near_hash
        revisions.append(
            {
                "user_id": user_id,
                "memory_id": row.id,
                "version": row.version,
                "action": change.action,
                "actor": change.actor,
                "reason": change.reason,
                "before": before,
                "changed_at": change.at,
            }
        )
    await session.flush()
    found_anew = {row.id: change.index for row, change in changes if change.index is not None}
    for some in reads.chunks(list(found_anew)):
        for table in (EmbeddingRow, TermsRow, KeywordRow):
            await session.execute(delete(table).where(table.user_id == user_id, table.memory_id.in_(some)))
    await insert_index(session, (rows.index_values(user_id, name, index) for name, index in found_anew.items()))
    await insert_all(session, RevisionRow, revisions)
    await tell(session, user_id, [row.id for row, _ in changes], "update")


async def bring_back(session: AsyncSession, row: MemoryRow, actor: str, reason: str, at: datetime) -> None:
    """Let an archived memory be active again."""
    change = Change(values={"status": "active"}, action="restore", actor=actor, reason=reason, at=at)
    await _apply(session, row, change)


async def embed(
    session: AsyncSession, model: str, found: Sequence[Unembedded], vectors: Sequence[NDArray[np.float32]]
) -> int:
    """Give memories their vectors, a row for each of their texts, unless they were changed or deleted meanwhile. → how
    many"""
    key = tuple_(MemoryRow.user_id, MemoryRow.id)
    wanted = [(memory.user_id, memory.memory_id) for memory in found]
    statement = select(MemoryRow.user_id, MemoryRow.id, MemoryRow.version).where(key.in_(wanted))
    versions = {(user_id, memory_id): version for user_id, memory_id, version in await session.execute(statement)}
    fitting = [
        (memory, rows_of)
        for memory, rows_of in zip(found, vectors, strict=True)
        if versions.get((memory.user_id, memory.memory_id)) == memory.version
    ]
    values = [
        {"user_id": memory.user_id, "memory_id": memory.memory_id, **one}
        for memory, rows_of in fitting
        for one in rows.vector_values(model, rows_of)
    ]
    done = [(memory.user_id, memory.memory_id) for memory, _ in fitting]
    await session.execute(delete(EmbeddingRow).where(tuple_(EmbeddingRow.user_id, EmbeddingRow.memory_id).in_(done)))
    await insert_all(session, EmbeddingRow, values)
    for user_id, memory_id in done:
        await tell(session, user_id, [memory_id], "update")
    return len(done)


async def insert_index(session: AsyncSession, entries: Iterable[dict[str, list[dict[str, Any]]]]) -> None:
    together: dict[str, list[dict[str, Any]]] = {name: [] for name in INDEX_TABLES}
    for entry in entries:
        for name, values in entry.items():
            together[name].extend(values)
    for name, table in INDEX_TABLES.items():
        await insert_all(session, table, together[name])


async def tell(session: AsyncSession, user_id: str, memory_ids: Sequence[str], action: str) -> None:
    """Put a change into the feed."""
    now = utc_now()
    changes = [
        {"user_id": user_id, "memory_id": memory_id, "action": action, "changed_at": now} for memory_id in memory_ids
    ]
    await insert_all(session, ChangeRow, changes)


async def insert_all(session: AsyncSession, table: type[Base], values: list[dict[str, Any]]) -> None:
    """By the names of the columns: an object for each row would cost more than writing it."""
    if values:
        await session.execute(insert(cast(Table, table.__table__)), values)
