"""Maintenance: archive expired memories, compress old and rarely used ones, re-index those of earlier versions. Users
take turns with a bounded amount of work each, so that a large one does not delay the others. The position is kept in
the store as a hash of the user's id: after a crash another process resumes there."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256

from pydantic import Field

from ..errors import JiyiError, StoreError
from ..ids import new_id
from ..index.search_index import SearchIndex
from ..metrics import Meter
from ..models import Value, utc_now
from ..settings import MaintenanceSettings
from ..store.store import Store
from ..store.upkeep.integrity import Checked, Repair
from ..store.write_set import Change, ChangedMemory, IndexEntry, LeaseLost
from ..write.index import KeywordRules, entry_of
from .compress import Compressor
from .retention import Retention

ACTOR = "maintenance"
# Limits of one user's turn.
MAX_EXPIRED = 500
MAX_INDEXED = 2000
MAX_BUNDLES = 20
MAX_TURNS = 50  # of one user in one run
INDEX_BATCH = 200  # memories re-indexed in one transaction
LEASE = timedelta(minutes=5)

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]


class MaintenanceReport(Value):
    """Result of maintenance."""

    users: int = Field(description="users processed")
    expired: int = Field(description="expired memories, now archived")
    compressed: int = Field(description="memories archived because a compressed one replaces them")
    made: int = Field(description="new compressed memories")
    indexed: int = Field(default=0, description="memories re-indexed because an earlier version had indexed them")
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tally:
    counts: Counter[str] = field(default_factory=Counter)  # by the fields of the report
    problems: list[str] = field(default_factory=list)

    def report(self) -> MaintenanceReport:
        fields = ("users", "expired", "compressed", "made", "indexed")
        return MaintenanceReport(**{name: self.counts[name] for name in fields}, problems=tuple(self.problems))


class Maintainer:
    def __init__(
        self,
        store: Store,
        index: SearchIndex,
        compressor: Compressor,
        rules: KeywordRules,
        settings: MaintenanceSettings,
        meter: Meter,
    ) -> None:
        self._store = store
        self._index = index
        self._compressor = compressor
        self._rules = rules
        self._settings = settings
        self._meter = meter
        self._retention = Retention(settings=settings)
        self._owner = f"{socket.gethostname()[:24]}:{os.getpid()}:{new_id()[-8:]}"

    async def run_user(self, user_id: str) -> MaintenanceReport:
        """Do all maintenance of one user."""
        tally = _Tally(Counter(users=1))
        for _ in range(MAX_TURNS):
            if not await self._turn(user_id, tally):
                break
        return tally.report()

    async def preview(self, user_id: str | None, progress: Progress | None = None) -> MaintenanceReport:
        """Count what there is to do for one user or for all, without changes and without a language model."""
        tally, now = _Tally(), utc_now()
        compressor = replace(self._compressor, llm=None)
        users = [user_id] if user_id is not None else await self._store.memories.users()
        for one in users:
            expired = {
                memory_id
                for memory_id, _, _ in await self._store.maintenance.expired(
                    one, now=now, lifetimes=self._retention.lifetimes, limit=MAX_EXPIRED * MAX_TURNS
                )
            }
            plan = await compressor.plan(one, now) if self._settings.compress else None
            for bundle in () if plan is None else plan.bundles:
                remaining = sum(member.id not in expired for member in bundle.members)
                tally.counts.update(compressed=remaining, made=min(len(bundle.texts), remaining))
            tally.counts.update(expired=len(expired), users=1)
            if progress is not None:
                progress(tally.counts["users"], len(users))
        return tally.report()

    async def run_all(self, *, forced: bool, progress: Progress | None = None) -> MaintenanceReport | None:
        """Do maintenance of all users; None if another process does it, or it is not due yet."""
        now = utc_now()
        after = await self._store.maintenance.begin_round(self._owner, now, now + LEASE, forced=forced)
        if after is None:
            return None
        tally = _Tally()
        users = sorted(await self._store.memories.users(), key=_position)
        waiting = [user_id for user_id in users if _position(user_id) > after]
        done = len(users) - len(waiting)
        more: list[tuple[str, int]] = []
        for user_id in waiting:
            if await self._safe_turn(user_id, tally):
                more.append((user_id, 2))
            tally.counts["users"] += 1
            await self._save_position(_position(user_id))
            if progress is not None:
                progress(done + tally.counts["users"], len(users))
        while more:
            user_id, turn = more.pop(0)
            if turn <= MAX_TURNS and await self._safe_turn(user_id, tally):
                more.append((user_id, turn + 1))
            await self._save_position(_position(users[-1]))
        await self._store.maintenance.finish_round(self._owner, utc_now(), utc_now() + self._every)
        return tally.report()

    @property
    def _every(self) -> timedelta:
        return timedelta(hours=self._settings.interval_hours or 24.0)

    async def _save_position(self, position: str) -> None:
        now = utc_now()
        await self._store.maintenance.advance_round(self._owner, now, now + LEASE, position)

    async def _safe_turn(self, user_id: str, tally: _Tally) -> bool:
        """Log a failure of one user and continue with the next."""
        try:
            return await self._turn(user_id, tally)
        except (LeaseLost, StoreError):
            raise
        except JiyiError as error:
            logger.warning("maintenance of one user failed: %s", error)
            tally.problems.append(str(error))
            return False

    async def _turn(self, user_id: str, tally: _Tally) -> bool:
        """Do a bounded amount of work; return True if there is more."""
        now = utc_now()
        await self._index.maintain(user_id)
        indexed, expired = await self._reindex_outdated(user_id), await self._expire(user_id, now)
        done = {"indexed": indexed, "expired": expired}
        more = expired == MAX_EXPIRED or indexed == MAX_INDEXED
        if self._settings.compress:
            plan = await self._compressor.plan(user_id, now, limit=MAX_BUNDLES)
            compressed = await self._compressor.apply(plan, now=now, actor=ACTOR)
            done |= {"compressed": compressed.archived, "made": compressed.made}
            more = more or len(compressed.bundles) == MAX_BUNDLES
        tally.counts.update(done)
        for what, number in done.items():
            if number:
                self._meter.count("maintenance_memories_total", what, by=number)
        return more

    async def _reindex_outdated(self, user_id: str) -> int:
        """Re-index memories that an earlier version had indexed; until then they are found by their old terms."""
        done = 0
        while done < MAX_INDEXED and (
            found := await self._store.checks.outdated(user_id, limit=min(INDEX_BATCH, MAX_INDEXED - done))
        ):
            entries = await asyncio.to_thread(index_entries_of, found, self._rules)
            repairs = [
                Repair(user_id=user_id, id=memory.id, version=memory.version, index=entry)
                for memory, entry in zip(found, entries, strict=True)
            ]
            done += len(await self._store.checks.repair(repairs))  # one changed meanwhile is up to date by that
        return done

    async def _expire(self, user_id: str, now: datetime) -> int:
        found = await self._store.maintenance.expired(
            user_id, now=now, lifetimes=self._retention.lifetimes, limit=MAX_EXPIRED
        )
        changes = [
            ChangedMemory(
                id=memory_id,
                version=version,
                change=Change(values={"status": "archived"}, action="archive", actor=ACTOR, reason=why, at=now),
            )
            for memory_id, version, why in found
        ]
        return len(changes) - len(await self._store.edits.update_many(user_id, changes)) if changes else 0


def index_entries_of(memories: Sequence[Checked], rules: KeywordRules) -> list[IndexEntry]:
    return [entry_of(memory, rules) for memory in memories]


def _position(user_id: str) -> str:
    """Order of the users in a run; a hash, so that the stored position names nobody."""
    return sha256(user_id.encode()).hexdigest()
