"""Upkeep: what has run out is archived, what is old and seldom used is compressed. Decay needs none: it is a matter of
ranking.

All users in turn, a bounded piece of work for each, so that one with very much does not keep the others waiting. Where
it has come to is kept in the store, without naming anybody: after a crash another process goes on from there.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING

from ..errors import JiyiError, StoreError
from ..ids import new_id
from ..metrics import Meter
from ..models import utc_now
from ..store.contract import Change, ChangedMemory, LeaseLost
from .compress import Compressor
from .plans import Upkept
from .policies import Policies
from .renew import renew

if TYPE_CHECKING:
    from ..settings import MaintenanceSettings
    from ..store.base import Store
    from ..write.index import KeywordRules

ACTOR = "upkeep"
MOST_RUN_OUT = 500  # memories that are archived at once
MOST_INDEXED = 2000  # memories of an earlier version that are indexed anew in one turn
MOST_BUNDLES = 20  # of one user, in one turn
MOST_TURNS = 50  # of one user, in one round
MOST_LOOKED_AT = MOST_RUN_OUT * MOST_TURNS
LEASE = timedelta(minutes=5)

logger = logging.getLogger(__name__)

Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _Tally:
    users: int = 0
    expired: int = 0
    archived: int = 0
    made: int = 0
    indexed: int = 0
    problems: list[str] = field(default_factory=list)

    def value(self) -> Upkept:
        return Upkept(
            users=self.users,
            expired=self.expired,
            compressed=self.archived,
            made=self.made,
            indexed=self.indexed,
            problems=tuple(self.problems),
        )


class Upkeep:
    def __init__(
        self, store: Store, compressor: Compressor, rules: KeywordRules, settings: MaintenanceSettings, meter: Meter
    ) -> None:
        self._store = store
        self._compressor = compressor
        self._rules = rules
        self._settings = settings
        self._meter = meter
        self._policies = Policies(settings=settings)
        self._owner = f"{socket.gethostname()[:24]}:{os.getpid()}:{new_id()[-8:]}"

    async def of(self, user_id: str) -> Upkept:
        """Everything there is to do for one user."""
        tally = _Tally(users=1)
        for _ in range(MOST_TURNS):
            if not await self._turn(user_id, tally):
                break
        return tally.value()

    async def look(self, user_id: str | None, progress: Progress | None = None) -> Upkept:
        """What there is to do for one user, or for all, by extract. Nothing is changed, and no language model asked."""
        tally, now = _Tally(), utc_now()
        compressor = replace(self._compressor, llm=None)
        everyone = [user_id] if user_id is not None else await self._store.users()
        for one in everyone:
            over = {
                memory_id
                for memory_id, _, _ in await self._store.run_out(
                    one, now=now, lifetimes=self._policies.lifetimes, limit=MOST_LOOKED_AT
                )
            }
            plan = await compressor.plan(one, now) if self._settings.compress else None
            for bundle in () if plan is None else plan.bundles:
                left = sum(member.id not in over for member in bundle.members)
                tally.archived += left
                tally.made += min(len(bundle.texts), left)
            tally.expired += len(over)
            tally.users += 1
            if progress is not None:
                progress(tally.users, len(everyone))
        return tally.value()

    async def round(self, *, forced: bool, progress: Progress | None = None) -> Upkept | None:
        """All users. None: another process is at it, or it is not time yet."""
        now = utc_now()
        after = await self._store.begin_round(self._owner, now, now + LEASE, forced=forced)
        if after is None:
            return None
        tally = _Tally()
        everyone = sorted(await self._store.users(), key=_place)
        waiting = [(user_id, 1) for user_id in everyone if _place(user_id) > after]
        done = len(everyone) - len(waiting)
        more: list[tuple[str, int]] = []
        for user_id, _ in waiting:
            if await self._safe_turn(user_id, tally):
                more.append((user_id, 2))
            tally.users += 1
            await self._go_on(_place(user_id))
            if progress is not None:
                progress(done + tally.users, len(everyone))
        while more:  # those who have more to do, again in turn
            user_id, turn = more.pop(0)
            if turn <= MOST_TURNS and await self._safe_turn(user_id, tally):
                more.append((user_id, turn + 1))
            await self._go_on(_place(everyone[-1]))
        await self._store.finish_round(self._owner, utc_now(), utc_now() + self._every)
        return tally.value()

    @property
    def _every(self) -> timedelta:
        return timedelta(hours=self._settings.interval_hours or 24.0)

    async def _go_on(self, place: str) -> None:
        now = utc_now()
        await self._store.continue_round(self._owner, now, now + LEASE, place)

    async def _safe_turn(self, user_id: str, tally: _Tally) -> bool:
        """One user's trouble is told, and is not the others'."""
        try:
            return await self._turn(user_id, tally)
        except (LeaseLost, StoreError):
            raise
        except JiyiError as error:
            logger.warning("upkeep of one user failed: %s", error)
            tally.problems.append(str(error))
            return False

    async def _turn(self, user_id: str, tally: _Tally) -> bool:
        """A bounded piece of work. → whether there is more"""
        now = utc_now()
        await self._store.tend(user_id)
        indexed = await renew(self._store, self._rules, user_id, most=MOST_INDEXED)
        tally.indexed += indexed
        expired = await self._expire(user_id, now)
        tally.expired += expired
        more = expired == MOST_RUN_OUT or indexed == MOST_INDEXED
        if not self._settings.compress:
            return more
        plan = await self._compressor.plan(user_id, now, most=MOST_BUNDLES)
        done = await self._compressor.apply(plan, now=now, actor=ACTOR)
        tally.archived += done.archived
        tally.made += done.made
        counted = {"expired": expired, "compressed": done.archived, "made": done.made, "indexed": indexed}
        for what, number in counted.items():
            if number:
                self._meter.count("upkeep_memories_total", what, by=number)
        return more or len(done.bundles) == MOST_BUNDLES

    async def _expire(self, user_id: str, now: datetime) -> int:
        found = await self._store.run_out(user_id, now=now, lifetimes=self._policies.lifetimes, limit=MOST_RUN_OUT)
        changes = [
            ChangedMemory(
                id=memory_id,
                version=version,
                change=Change(values={"status": "archived"}, action="archive", actor=ACTOR, reason=why, at=now),
            )
            for memory_id, version, why in found
        ]
        return len(changes) - len(await self._store.change_all(user_id, changes)) if changes else 0


def _place(user_id: str) -> str:
    """Where a user stands in a round; it does not tell who it is."""
    return sha256(user_id.encode()).hexdigest()
