"""Feeds an engine from the change feed: finds users with changes, writes their current memories, and then stores how
far it has come. Every write can be repeated, so a process may be killed at any point."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from time import monotonic

from ..errors import EngineError, JiyiError, StoreError
from ..ids import new_id
from ..models import utc_now
from ..store.database import chunks
from ..store.store import Store
from ..store.upkeep import engine_memories
from ..store.upkeep.engine_memories import UNITS, Projected
from ..store.upkeep.engine_rows import EngineUser, rebuilding, users_in
from .base import Engine, memories_in, user_key

LEASE_S = 30.0  # longer than any request to an engine may take
RENEW_S = 10.0
BATCH = 1000  # changes
POLL_S = 1.0
GRACE_S = 5.0  # for searches that have begun in an earlier generation
CHECK_S = 15.0  # in which a removed or changed index is noticed
LONGEST_WAIT_S = 30.0

Progress = Callable[[str, int, int], None]
logger = logging.getLogger(__name__)


class Lost(Exception):
    """Another process feeds the engine now."""


class Outbox:
    """Feeds one engine. Of several processes, one does it at a time."""

    def __init__(self, store: Store, engine: Engine, model: str, *, rebuilds: bool = False) -> None:
        self._store = store
        self.engine = engine
        self.model = model
        self.name = rebuilding(engine.name) if rebuilds else engine.name  # of its row in the store
        self._rebuilds = rebuilds  # loads the next generation beside the one that is searched
        self._owner = f"{socket.gethostname()[:24]}:{os.getpid()}:{new_id()[-8:]}"
        self._renew_at = utc_now()
        self._seen: int | None = None
        self._wake = asyncio.Event()
        self._registered = False
        self._well = False  # until the first success
        self._check_at = 0.0  # when the engine is asked again whether all of it is there
        self._empty = False  # the engine had nothing when this process opened it, and only this process has written
        self._generation = 0
        self._tidy_at: float | None = None  # when earlier generations may be deleted
        self._begun: set[str] = set()  # users of whom something may be there although no state says so

    def wake(self) -> None:
        """Look for changes now."""
        self._wake.set()

    async def run(self) -> None:
        """Follow the change feed until cancelled. Failures are logged once, until it works again."""
        failures = 0
        while True:
            self._wake.clear()
            try:
                await self.step()
            except Exception as error:  # feeding ends only when it is cancelled
                if not failures:
                    unexpected = None if isinstance(error, JiyiError) else error
                    message = "%s is not fed, and tried again until it is: %s"
                    logger.warning(message, self.engine.name, _told(error), exc_info=unexpected)
                failures += 1
                # New changes do not make it try earlier.
                await asyncio.sleep(min(POLL_S * 2.0 ** min(failures - 1, 10), LONGEST_WAIT_S))
                continue
            if failures:
                logger.warning("%s is fed again", self.engine.name)
                failures = 0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):  # not wait_for, which in Python 3.11 can miss a cancellation
                    await self._wake.wait()

    async def close(self) -> None:
        """Let another process feed the engine, and disconnect."""
        if self._registered:
            self._seen = None
            with contextlib.suppress(JiyiError):
                await self._store.projections.release(self.name, self._owner)
        with contextlib.suppress(JiyiError):
            await self.engine.close()

    async def step(self, progress: Progress | None = None) -> bool:
        """Bring every user up to date; return False if another process is at it."""
        if not self._registered:
            await self._store.projections.register(self.name, self.engine.identity)
            self._registered = True
        if not await self._claim():
            return False
        try:
            await self._feed(progress)
        except Lost:
            self.look_again()
            return False
        except StoreError:
            raise
        except Exception as error:  # whatever it is, the store shows it
            self._well = False
            await self._store.projections.note(self.name, self._owner, problem=_told(error))
            self.look_again()  # it may be a generation that another process has deleted
            raise
        return True

    async def _feed(self, progress: Progress | None) -> None:
        if not self._well or monotonic() > self._check_at:
            await self._check()
        for user_id in await self._store.projections.unfinished(self.name):
            await self._sync(user_id)
        seen = self._seen or 0
        tip, changed = await self._store.changes.users_since(seen)
        users = users_in(changed)
        rest = await self._load_new(users, progress)
        for at, user_id in enumerate(rest, len(users) - len(rest) + 1):
            await self._sync(user_id)
            if progress is not None:
                progress(f"loading {self.engine.name}", at, len(users))
        if not self._well:
            await self.engine.loaded()
            if not self._rebuilds:
                await self.engine.publish()
        await self._tidy()
        if tip != seen or not self._well:
            if not await self._store.projections.note(self.name, self._owner, seen=tip):
                raise Lost
            self._seen, self._well = tip, True

    def look_again(self) -> None:
        """Look up who feeds the engine, and which generation, before anything else is written."""
        self._seen = None

    async def _tidy(self) -> None:
        """Delete earlier generations, when no search can be under way in them any more."""
        if self._tidy_at is not None and monotonic() >= self._tidy_at and not self._rebuilds:
            await self.engine.tidy()
            self._tidy_at = None

    async def _check(self) -> None:
        """Load everything anew if the engine has not what was created there."""
        problem = await self.engine.open()
        if problem is not None:
            done = await self._store.projections.reset(self.name, self._owner, problem)
            if done is None:
                raise Lost
            generation, was_loaded = done
            if was_loaded:
                logger.warning("%s: %s; everything is loaded anew", self.engine.name, problem)
            self._well = False
            self._use(generation)
            self._empty, self._seen = await self.engine.create(), 0
            self._begun.clear()
        self._check_at = monotonic() + CHECK_S

    @property
    def owner(self) -> str:
        """The name under which this process feeds the engine."""
        return self._owner

    @property
    def is_feeding(self) -> bool:
        """Return True if this process feeds the engine."""
        return self._seen is not None

    async def problem(self) -> str | None:
        """Return what is missing or was changed in the engine, or None. Before it has any memory, nothing is."""
        if self._seen is None:
            self._use(await self._store.projections.generation(self.name))
        if not self._generation or (problem := await self.engine.open()) is None:
            return None
        return problem if await self._store.projections.has_memories(self.name) else None

    async def open(self) -> None:
        """Connect to read; raise `EngineError` if something is missing or was changed."""
        if (problem := await self.problem()) is not None:
            raise EngineError(f"{self.engine.name}: {problem}")

    def _use(self, generation: int) -> None:
        if generation != self._generation:
            self._tidy_at = monotonic() + (GRACE_S if self._generation else 0.0)
        self._generation = generation
        self.engine.use(generation)

    async def finish(self, progress: Progress | None = None) -> None:
        """Bring every user up to date, waiting for another process that is at it."""
        while not await self.step(progress):  # noqa: ASYNC110 - the other process cannot set an event here
            await asyncio.sleep(POLL_S)

    async def _claim(self) -> bool:
        """Take or renew the lease; without it nothing is written."""
        now = utc_now()
        if self._seen is not None and now < self._renew_at:
            return True
        until = now + timedelta(seconds=LEASE_S)
        self._seen, alone, generation = await self._store.projections.claim(self.name, self._owner, now, until)
        if generation != self._generation:  # another process has loaded everything anew
            self._use(generation)
            self._well = False
        self._empty &= alone  # else another process may have written
        self._renew_at = now + timedelta(seconds=RENEW_S)
        return self._seen is not None

    async def _load_new(self, users: Sequence[str], progress: Progress | None) -> list[str]:
        """Load users with few memories whom the engine has never had, several at once; return the others."""
        rest: list[str] = []
        done = 0
        for some in chunks(users):
            sizes = await self._store.projections.new_users(self.name, some)
            rest += [user for user in some if not 0 < sizes.get(user, 0) <= engine_memories.PAGE]
            for group in _groups({user: sizes[user] for user in some if user in sizes and user not in rest}):
                await self._load_group(group)
                done += len(group)
                if progress is not None:
                    progress(f"loading {self.engine.name}", done, len(users))
        return rest

    async def _load_group(self, users: Sequence[str]) -> None:
        """Load users anew. Changes since then are applied in the next step."""
        if not await self._claim():
            raise Lost
        tips = await self._store.projections.tips(users)
        if not self._empty or not self._begun.isdisjoint(users):
            await self.engine.delete_keys(list(map(user_key, users)))
        self._begun.update(users)
        documents = await self._store.projected.of_users(users, self.model, self.engine.parts)
        await self.engine.load(documents)
        await self.engine.refresh()
        numbers = Counter(memory.user_id for memory in memories_in(documents))
        states = [
            EngineUser(user_id=user, engine=self.name, applied=tips.get(user, 0), memories=numbers[user])
            for user in users
        ]
        lost = await self._store.projections.begin(self._owner, states)
        self._begun.difference_update(users)
        for user_id in lost:
            await self._lost(user_id)

    async def _sync(self, user_id: str) -> None:
        """Bring one user up to date."""
        while True:
            if not await self._claim():
                raise Lost
            state = (await self._store.projections.user(user_id)).get(self.name)
            if state is None:
                before, state = None, EngineUser(user_id=user_id, engine=self.name)
            else:
                before = state
            if state.erase:
                after, more = await self._erase(state)
            elif state.applied is None:
                after, more = await self._load(state, before)
            else:
                after, more = await self._apply(state, state.applied)
            if after != before and not await self._store.projections.advance(self._owner, before, after):
                await self._lost(user_id)
            elif not more:
                return

    async def _lost(self, user_id: str) -> None:
        """Have the user loaded anew: what was just written may be older than what another process has written."""
        if await self._store.projections.generation(self.name) == self._generation:  # else it was written elsewhere
            await self._store.projections.reload(self.name, user_id)
        self._empty = False
        self.look_again()

    async def _erase(self, state: EngineUser) -> tuple[EngineUser | None, bool]:
        """Remove a user; one who has come back since is then loaded."""
        await self.engine.delete_keys([user_key(state.user_id)])
        back = await self._store.projections.tip(state.user_id)
        return (replace(state, erase=False), True) if back else (None, False)

    async def _load(self, state: EngineUser, before: EngineUser | None) -> tuple[EngineUser, bool]:
        """Write the next page of a user's memories. Changes since the first page are applied after the last one."""
        if state.loaded_id is None:
            if before is not None or not self._empty or state.user_id in self._begun:
                await self.engine.delete_keys([user_key(state.user_id)])
            self._begun.add(state.user_id)
            state = replace(state, load_from=await self._store.projections.tip(state.user_id), loaded_id="")
        page = await self._store.projected.page(state.user_id, state.loaded_id or "", self.model, self.engine.parts)
        if page:
            await self.engine.load(page)
            return replace(state, loaded_id=page[-1].id), True
        await self.engine.refresh()
        return replace(state, applied=state.load_from, loaded_id=None), True

    async def _apply(self, state: EngineUser, applied: int) -> tuple[EngineUser, bool]:
        """Write the current state of what changed."""
        changes = await self.changes(state.user_id, applied)
        if not changes:
            return state, False
        documents, deleted = await self.current(state.user_id, changes)
        await self.engine.write(state.user_id, documents, deleted)
        await self.engine.refresh()
        return replace(state, applied=changes[-1][0]), len(changes) == BATCH

    async def changes(self, user_id: str, applied: int) -> list[tuple[int, str]]:
        """Return the next changes of a user: their numbers, and the memories and units that this engine has."""
        sources = "messages" in self.engine.parts
        return await self._store.projections.changes(user_id, applied, BATCH, sources=sources)

    async def current(self, user_id: str, changes: Sequence[tuple[int, str]]) -> tuple[list[Projected], list[str]]:
        """Return what is to be written of memories and units that changed, with those that have parts of them, and
        what is to be deleted."""
        ids = list(dict.fromkeys(one for _, one in changes if one))
        documents = await self.get(user_id, ids)
        there = {document.id for document in documents}
        deleted = [one for one in ids if one not in there]
        memories = memories_in(documents)
        changed = [*deleted, *(memory.id for memory in memories if memory.version > 1)]
        more = [*(await self.engine.siblings(user_id, changed) if changed else ())]
        if UNITS in self.engine.parts:
            more += [message.unit_id for memory in memories for message in memory.messages if message.unit_id]
        documents += await self.get(user_id, [one for one in more if one not in there])
        return documents, deleted

    async def get(self, user_id: str, ids: Sequence[str]) -> list[Projected]:
        """Return memories and units as they are now."""
        return await self._store.projected.get(user_id, ids, self.model, self.engine.parts) if ids else []


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, JiyiError) else f"unexpected {type(error).__name__}: {error}"


def _groups(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Split users, by their numbers of memories, into groups of about a page."""
    group: list[str] = []
    number = 0
    for user, size in sizes.items():
        if group and number + size > engine_memories.PAGE:
            yield group
            group, number = [], 0
        group.append(user)
        number += size
    if group:
        yield group
