"""Feeds an engine from the change feed: finds users with changes, writes their current memories, and then stores how
far it has come. Every write can be repeated, so a process may be killed at any point."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from ..errors import EngineError, JiyiError
from ..ids import new_id
from ..models import utc_now
from ..store.projections import EngineUser, users_in
from ..store.store import Store
from .base import Engine

LEASE_S = 30.0  # longer than any request to an engine may take
RENEW_S = 10.0
BATCH = 500  # changes
POLL_S = 1.0
LONGEST_WAIT_S = 30.0

Progress = Callable[[str, int, int], None]
logger = logging.getLogger(__name__)


class Lost(Exception):
    """Another process feeds the engine now, or the user was erased meanwhile."""


class Outbox:
    """Feeds one engine. Of several processes, one does it at a time."""

    def __init__(self, store: Store, engine: Engine, model: str) -> None:
        self._store = store
        self.engine = engine
        self.model = model
        self._owner = f"{socket.gethostname()[:24]}:{os.getpid()}:{new_id()[-8:]}"
        self._renew_at = utc_now()
        self._seen: int | None = None
        self._wake = asyncio.Event()
        self._registered = False
        self._well = False  # until the first success

    def wake(self) -> None:
        """Look for changes now."""
        self._wake.set()

    async def run(self) -> None:
        """Follow the change feed until cancelled."""
        failures = 0
        while True:
            self._wake.clear()
            pause = POLL_S
            try:
                await self.step()
                failures = 0
            except (JiyiError, Lost) as error:
                failures += 1
                pause = min(POLL_S * 2.0 ** min(failures - 1, 10), LONGEST_WAIT_S)
                logger.warning("%s is fed again in %.0f s: %s", self.engine.name, pause, error)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)

    async def close(self) -> None:
        """Let another process feed the engine, and disconnect."""
        if self._registered:
            self._seen = None
            with contextlib.suppress(JiyiError):
                await self._store.projections.release(self.engine.name, self._owner)
        with contextlib.suppress(JiyiError):
            await self.engine.close()

    async def step(self, progress: Progress | None = None) -> bool:
        """Bring every user up to date; return False if another process is at it."""
        name = self.engine.name
        if not self._registered:
            await self._store.projections.register(name, self.engine.identity)
            self._registered = True
        if not await self._claim():
            return False
        try:
            if await self.engine.open() and not self._well and self._seen:  # its documents were lost
                await self._store.projections.reset(name)
                self._seen = 0
            for user_id in await self._store.projections.unfinished(name):
                await self._sync(user_id)
            seen = self._seen or 0
            tip, changed = await self._store.changes.users_since(seen)
            users = users_in(changed)
            for at, user_id in enumerate(users):
                await self._sync(user_id)
                if progress is not None:
                    progress(f"loading {name}", at + 1, len(users))
            if not self._well:
                await self.engine.loaded()
            if tip != seen or not self._well:
                await self._store.projections.note(name, self._owner, seen=tip)
                self._seen, self._well = tip, True
        except EngineError as error:
            self._well = False
            await self._store.projections.note(name, self._owner, problem=str(error))
            raise
        return True

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
        self._seen = await self._store.projections.claim(self.engine.name, self._owner, now, until)
        self._renew_at = now + timedelta(seconds=RENEW_S)
        return self._seen is not None

    async def _sync(self, user_id: str) -> None:
        """Bring one user up to date."""
        while True:
            if not await self._claim():
                raise Lost(f"another process feeds {self.engine.name}")
            state = (await self._store.projections.user(user_id)).get(self.engine.name)
            if state is None:
                before, state = None, EngineUser(user_id=user_id, engine=self.engine.name)
            else:
                before = state
            if state.erase:
                after, more = await self._erase(state)
            elif state.applied is None:
                after, more = await self._load(state)
            else:
                after, more = await self._apply(state, state.applied)
            if after != before and not await self._store.projections.advance(self._owner, before, after):
                await self._lost(user_id)
            elif not more:
                return

    async def _lost(self, user_id: str) -> None:
        """Have the user loaded anew: what was just written may be older than what another process has written."""
        await self._store.projections.reload(self.engine.name, user_id)
        self._seen = None  # the lease is looked up again

    async def _erase(self, state: EngineUser) -> tuple[EngineUser | None, bool]:
        """Remove a user; one who has come back since is then loaded."""
        await self.engine.delete_user(state.user_id)
        back = await self._store.projections.tip(state.user_id)
        return (replace(state, erase=False), True) if back else (None, False)

    async def _load(self, state: EngineUser) -> tuple[EngineUser, bool]:
        """Write the next page of a user's memories. Changes since the first page are applied after the last one."""
        if state.loaded_id is None:
            await self.engine.delete_user(state.user_id)
            state = replace(state, load_from=await self._store.projections.tip(state.user_id), loaded_id="")
        page = await self._store.projected.page(state.user_id, state.loaded_id or "", self.model)
        if page:
            await self.engine.write(state.user_id, page, ())
            return replace(state, loaded_id=page[-1].id), True
        await self.engine.refresh()
        return replace(state, applied=state.load_from, loaded_id=None), True

    async def _apply(self, state: EngineUser, applied: int) -> tuple[EngineUser, bool]:
        """Write the current state of the memories that changed."""
        changes = await self._store.projections.changes(state.user_id, applied, BATCH)
        if not changes:
            return state, False
        ids = list(dict.fromkeys(memory_id for _, memory_id in changes if memory_id))
        memories = await self._store.projected.get(state.user_id, ids, self.model)
        there = {memory.id for memory in memories}
        await self.engine.write(state.user_id, memories, [one for one in ids if one not in there])
        await self.engine.refresh()
        return replace(state, applied=changes[-1][0]), len(changes) == BATCH
