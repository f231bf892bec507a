"""The store on any SQL database: a session for each call. A backend adds its engine and its way of gathering."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from ..index.query import Candidates, Question
from ..keys import ApiKey, AuditEntry
from ..llm import Usage
from ..models import (
    Coverage,
    Job,
    JobCounts,
    MemoryItem,
    Page,
    Recall,
    Receipt,
    ReceiptState,
    Relation,
    Revision,
    SourceMessage,
    Stats,
)
from ..scope import Filter, Lifetimes, Scope
from ..synonyms import Company, Pair, Synonym
from . import (
    additions,
    checking,
    effects,
    erasing,
    exporting,
    files,
    freshness,
    importing,
    jobs,
    keys,
    measures,
    reads,
    recalls,
    records,
    saves,
    synonyms,
    units,
)
from . import usage as llm_usage
from .contract import (
    Addition,
    Advance,
    Agreed,
    AgreedEntry,
    Change,
    Filed,
    FileLook,
    FileWork,
    IndexEntry,
    Lease,
    Outset,
    Past,
    SlotEntry,
    StoredMessage,
    StoreInfo,
    Unembedded,
)
from .filters import conditions
from .keeping import Keeping
from .tables import SHARED, MemoryRow

T = TypeVar("T")


class Store(Keeping):
    """Holds memories. Every call names its user; none can reach another user's rows."""

    @abstractmethod
    async def start(self) -> None: ...

    async def close(self) -> None:
        """Wait for what is being written."""
        while self._unfinished:
            await asyncio.gather(*self._unfinished, return_exceptions=True)

    @abstractmethod
    async def info(self) -> StoreInfo: ...

    @abstractmethod
    async def people(self, user_id: str, model: str) -> frozenset[str]:
        """The names, normalised, of those who have said something in this user's memory."""

    @abstractmethod
    async def gather(self, question: Question) -> Candidates: ...

    async def receipt(self, user_id: str, idempotency_key: str, request_hash: str) -> Receipt | None:
        async with self._reading(user_id) as session:
            return await reads.receipt(session, user_id, idempotency_key, request_hash)

    async def save(self, addition: Addition) -> Receipt:
        return await self._write([addition.user_id], lambda session: additions.save(session, addition))

    async def complete(self, lease: Lease, addition: Addition) -> None:
        await self._write([lease.user_id], lambda session: additions.complete(session, lease, addition))

    async def tail(self, place: Scope, limit: int, *, before: str | None = None) -> list[StoredMessage]:
        async with self._reading(place.user_id) as session:
            return await units.tail(session, place, limit, before=before)

    async def messages(self, user_id: str, ids: Sequence[str]) -> list[StoredMessage]:
        async with self._reading(user_id) as session:
            return await units.by_id(session, user_id, ids)

    async def messages_by_hash(self, user_id: str, hashes: Sequence[str]) -> list[StoredMessage]:
        async with self._reading(user_id) as session:
            return await units.by_hash(session, user_id, hashes)

    async def known(self, user_id: str, hashes: Sequence[str], now: datetime) -> dict[str, str]:
        """The ids of the memories that say exactly this, by hash."""
        async with self._reading(user_id) as session:
            return await reads.known_by_hash(session, user_id, hashes, now)

    async def slots(self, user_id: str, wanted: Sequence[str]) -> list[SlotEntry]:
        async with self._reading(user_id) as session:
            return await effects.slots(session, user_id, wanted)

    async def holding(
        self, user_id: str, memory_types: Collection[str], words: Sequence[str] = ()
    ) -> dict[str, list[dict[str, Any]]]:
        async with self._reading(user_id) as session:
            return await effects.holding(session, user_id, memory_types, words)

    async def gists(self, where: Filter, ids: Sequence[str]) -> dict[str, list[MemoryItem]]:
        async with self._reading(where.user_id) as session:
            return await reads.gists(session, where, ids)

    async def relations(self, user_id: str, memory_id: str) -> list[Relation]:
        async with self._reading(user_id) as session:
            return await effects.relations(session, user_id, memory_id)

    async def update(self, user_id: str, memory_id: str, change: Change, *, version: int | None) -> None:
        await self._write([user_id], lambda session: saves.update(session, user_id, memory_id, change, version))

    async def erase(
        self, user_id: str, memory_ids: Sequence[str], *, with_sources: bool, rewrite: erasing.Rewrite
    ) -> erasing.Erasure:
        return await self._write(
            [user_id],
            lambda session: erasing.erase(session, user_id, memory_ids, with_sources=with_sources, rewrite=rewrite),
        )

    async def erase_all(self, user_id: str) -> erasing.Erasure:
        return await self._write([user_id], lambda session: erasing.erase_all(session, user_id))

    @abstractmethod
    async def scrub(self, *, everything: bool) -> list[str]:
        """After a delete, of some memories or of everything of a user: let go of what the database itself still keeps
        of it, as far as nobody else has to wait for that. → what is left, and what would end it"""

    async def check(self, user_id: str | None, *, after: tuple[str, str], limit: int) -> list[checking.Checked]:
        async with self._reading(user_id) as session:
            return await checking.memories(session, user_id, after=after, limit=limit)

    async def outdated(self, user_id: str, *, limit: int) -> list[checking.Checked]:
        async with self._reading(user_id) as session:
            return await checking.outdated(session, user_id, limit)

    async def loose_ends(self, user_id: str | None) -> tuple[dict[str, int], int]:
        """Rows that belong to nothing, by table, and memories whose successor is not there."""
        async with self._reading(user_id) as session:
            return await checking.orphans(session, user_id), await checking.dangling(session, user_id)

    async def repair(self, wanted: Sequence[checking.Repair]) -> list[str]:
        users = sorted({one.user_id for one in wanted})
        return await self._write(users, lambda session: checking.repair(session, wanted))

    async def tend(self, user_id: str) -> None:
        """What the database wants to be done for a user from time to time; see `nearest.py`."""

    async def tie_up(self, user_id: str | None) -> tuple[Mapping[str, int], int]:
        """Remove rows that belong to nothing, and let memories not point to what is not there."""

        async def work(session: AsyncSession) -> tuple[Mapping[str, int], int]:
            return await checking.remove_orphans(session, user_id), await checking.let_go(session, user_id)

        return await self._write([user_id or SHARED], work)

    @abstractmethod
    async def backup(self, path: Path, advance: Advance) -> None:
        """Write all that the store holds at one moment into a SQLite file, which is there and empty."""

    @abstractmethod
    async def vacuum(self) -> list[str]:
        """Rewrite the database without what was deleted, while others wait. → what is left, and what would end it"""

    async def get(self, user_id: str, ids: Sequence[str]) -> list[MemoryItem]:
        async with self._reading(user_id) as session:
            return await reads.items(session, user_id, ids)

    async def page(self, where: Filter, *, cursor: str | None, limit: int) -> Page:
        async with self._reading(where.user_id) as session:
            return await reads.page(session, where, cursor, limit)

    async def most_used(self, where: Filter, limit: int) -> list[str]:
        async with self._reading(where.user_id) as session:
            return await reads.most_used(session, where, limit)

    async def timeline(self, where: Filter, *, cursor: str | None, limit: int) -> Page:
        async with self._reading(where.user_id) as session:
            return await reads.timeline(session, where, cursor, limit)

    async def sources(self, user_id: str, memory_id: str) -> list[SourceMessage]:
        async with self._reading(user_id) as session:
            return await reads.sources(session, user_id, memory_id)

    async def count(self, where: Filter) -> int:
        async with self._reading(where.user_id) as session:
            return await session.scalar(select(func.count()).select_from(MemoryRow).where(*conditions(where))) or 0

    async def groups(self, where: Filter) -> dict[str, int]:
        async with self._reading(where.user_id) as session:
            return await reads.count_by_group(session, where)

    async def stats(self, model: str, user_id: str | None = None) -> Stats:
        info = await self.info()
        async with self._reading(user_id) as session:
            by_type = await reads.count_by_type(session, user_id)
            return Stats(
                users=len(await reads.users(session)) if user_id is None else 1,
                memories=sum(by_type.values()),
                by_type=by_type,
                coverage=await reads.coverage(session, model, user_id),
                embedder=model,
                store=info.url,
                schema_version=info.schema,
                size_bytes=info.size_bytes,
            )

    async def tally(self, user_id: str | None, since: datetime) -> measures.Tally:
        async with self._reading(user_id) as session:
            return await measures.tally(session, user_id, since)

    async def users(self) -> list[str]:
        async with self._reading(None) as session:
            return await reads.users(session)

    async def history(self, user_id: str, memory_id: str) -> list[Revision]:
        async with self._reading(user_id) as session:
            return await reads.history(session, user_id, memory_id)

    async def coverage(self, model: str, user_id: str | None = None) -> Coverage:
        async with self._reading(user_id) as session:
            return await reads.coverage(session, model, user_id)

    async def claim(self, owner: str, now: datetime, until: datetime) -> Lease | None:
        return await self._write([], lambda session: jobs.claim(session, owner, now, until))

    async def renew(self, lease: Lease, now: datetime, until: datetime) -> None:
        await self._write([], lambda session: jobs.renew(session, lease, now, until))

    async def put_off(
        self, lease: Lease, now: datetime, not_before: datetime, problem: str, *, counts: bool = True
    ) -> None:
        await self._write([], lambda session: jobs.put_off(session, lease, now, not_before, problem, counts=counts))

    async def give_up(self, lease: Lease, now: datetime, problem: str) -> None:
        await self._write([], lambda session: jobs.give_up(session, lease, now, problem))

    async def release(self, lease: Lease, now: datetime) -> None:
        await self._write([], lambda session: jobs.release(session, lease, now))

    async def next_due(self) -> datetime | None:
        async with self._reading(None) as session:
            return await jobs.next_due(session)

    async def job(self, user_id: str, job_id: str) -> Job:
        async with self._reading(user_id) as session:
            return await jobs.get(session, user_id, job_id)

    async def jobs(self, user_id: str | None, state: ReceiptState | None, limit: int) -> list[Job]:
        async with self._reading(user_id) as session:
            return await jobs.listing(session, user_id, state, limit)

    async def job_counts(self, now: datetime) -> JobCounts:
        async with self._reading(None) as session:
            return await jobs.counts(session, now)

    async def status(self, user_id: str, job_id: str, model: str) -> Receipt:
        async with self._reading(user_id) as session:
            return await jobs.receipt(session, user_id, job_id, model)

    async def retry(self, user_id: str, job_id: str, now: datetime) -> Job:
        return await self._write([user_id], lambda session: jobs.retry(session, user_id, job_id, now))

    async def cancel(self, user_id: str, job_id: str, now: datetime, problem: str) -> Job:
        return await self._write([user_id], lambda session: jobs.cancel(session, user_id, job_id, now, problem))

    async def unembedded(self, model: str, dimension: int, *, after: tuple[str, str], limit: int) -> list[Unembedded]:
        async with self._reading(None) as session:
            return await reads.unembedded(session, model, dimension, after=after, limit=limit)

    async def embed(self, model: str, found: Sequence[Unembedded], vectors: Sequence[NDArray[np.float32]]) -> int:
        users = sorted({memory.user_id for memory in found})
        return await self._write(users, lambda session: saves.embed(session, model, found, vectors))

    async def outset(self, user_id: str, words: Sequence[str]) -> Outset:
        """How far this user's memories and synonyms have come, and the synonyms of these words."""
        async with self._reading(user_id) as session:
            tip = await freshness.tip(session, user_id)
            return Outset(tip, await synonyms.of(session, user_id, words))

    async def next_end(self, user_id: str, now: datetime, lifetimes: Lifetimes = ()) -> datetime | None:
        """The next moment at which a memory of this user expires or ends by itself."""
        async with self._reading(user_id) as session:
            return await freshness.next_end(session, user_id, now, lifetimes)

    def touch(self, user_id: str, accessed: Mapping[str, datetime]) -> None:
        """Let a copy of the user's memories in RAM, if there is one, know when some of them were last accessed."""

    async def record(self, recalled: Sequence[Recall], keep: int) -> None:
        users = sorted({recall.user_id for recall in recalled})
        await self._write(users, lambda session: recalls.record(session, recalled, keep))

    async def recalls(self, user_id: str, *, since: datetime | None, limit: int) -> list[Recall]:
        async with self._reading(user_id) as session:
            return await recalls.listing(session, user_id, since, limit)

    async def export(self, user_id: str | None) -> AsyncGenerator[tuple[int, list[records.Line]], None]:
        """All that one user, or everybody, has at one moment, some records at a time; each time with how many memories
        and messages there are in all."""
        async with self._snapshot(user_id) as session:
            whole = await exporting.size(session, user_id)
            async for some in exporting.lines(session, user_id):
                yield whole, some

    async def take_in(
        self, arriving: importing.Arriving, some: Sequence[records.Line], indexed: Sequence[IndexEntry]
    ) -> None:
        """Write records of one kind of one user, those that are not known."""
        await self._write([arriving.user_id], lambda session: importing.take_in(session, arriving, some, indexed))

    async def finish_copy(self) -> None:
        """After rows were copied in with their own numbers: let new ones be numbered after them."""

    async def add_synonyms(self, user_id: str | None, pairs: Mapping[Pair, float]) -> int:
        """Without a user, for all of them; so in the three below."""
        whose = user_id or SHARED
        return await self._write([whose], lambda session: synonyms.add(session, whose, pairs))

    async def synonyms(self, user_id: str | None) -> list[Synonym]:
        async with self._reading(user_id) as session:
            return await synonyms.listing(session, user_id or SHARED)

    async def remove_synonym(self, user_id: str | None, keyword: str, synonym: str | None) -> int:
        whose = user_id or SHARED
        return await self._write([whose], lambda session: synonyms.remove(session, whose, keyword, synonym))

    async def synonyms_of(self, user_id: str, words: Sequence[str]) -> dict[str, list[tuple[str, float]]]:
        async with self._reading(user_id) as session:
            return await synonyms.of(session, user_id, words)

    async def company(self, where: Filter, words: Sequence[str]) -> Company:
        async with self._reading(where.user_id) as session:
            return await synonyms.company(session, where, words)

    async def count_llm_usage(self, user_id: str, hour: datetime, usage: Usage) -> Usage:
        return await self._write([user_id], lambda session: llm_usage.count(session, user_id, hour, usage))

    async def add_key(self, key: ApiKey, key_hash: str) -> None:
        await self._write([], lambda session: keys.add(session, key, key_hash))

    async def keys(self) -> list[tuple[ApiKey, str]]:
        """Each with its hash."""
        async with self._reading(None) as session:
            return await keys.listing(session)

    async def revoke_key(self, key_id: str, now: datetime) -> ApiKey:
        return await self._write([], lambda session: keys.revoke(session, key_id, now))

    async def note_audit(self, entries: Sequence[AuditEntry], keep: int) -> None:
        await self._write([], lambda session: keys.note(session, entries, keep))

    async def audit(self, limit: int) -> list[AuditEntry]:
        async with self._reading(None) as session:
            return await keys.audit(session, limit)

    async def agreed(self, user_id: str, workspace: str, known: Agreed | None = None) -> Agreed:
        async with self._reading(user_id) as session:
            return await files.agreed(session, user_id, workspace, known)

    async def count_lines(self, user_id: str | None) -> int:
        async with self._reading(user_id) as session:
            return await files.count_lines(session, user_id)

    async def look_for_files(self, wanted: FileLook, now: datetime) -> Filed:
        async with self._reading(wanted.user_id) as session:
            return await files.look(session, wanted, now)

    async def changed_users(self, seen: int) -> tuple[int, list[str]]:
        async with self._reading(None) as session:
            return await files.changed_users(session, seen)

    async def changes_since(self, user_id: str, versions: Mapping[str, int]) -> dict[str, list[Past]]:
        async with self._reading(user_id) as session:
            return await files.changes_since(session, user_id, versions)

    async def indexed(self, user_id: str, ids: Sequence[str]) -> dict[str, IndexEntry]:
        async with self._reading(user_id) as session:
            return await files.indexed(session, user_id, ids)

    async def index_anew(self, user_id: str, entries: Mapping[str, tuple[int, IndexEntry]]) -> int:
        return await self._write([user_id], lambda session: files.index_anew(session, user_id, entries))

    async def take_from_files(self, work: FileWork) -> None:
        await self._write([work.user_id], lambda session: files.work(session, work))

    async def agree(
        self,
        user_id: str,
        workspace: str,
        *,
        entries: Sequence[AgreedEntry],
        gone: Sequence[str],
        checksums: Mapping[str, str],
        seen: int,
        at: datetime,
    ) -> None:
        async def note(session: AsyncSession) -> None:
            await files.agree(session, user_id, workspace, entries, gone)
            await files.note_files(session, user_id, workspace, checksums, seen, at)

        await self._write([user_id], note)
