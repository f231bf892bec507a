"""What a store does for those who keep memories in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from . import aged, rounds, saves, undo
from .aged import Aged, Held
from .contract import ChangedMemory
from .sessions import Sessions
from .tables import SHARED
from .undo import Touched, Undoing


class Keeping(Sessions):
    async def aged(self, wanted: Aged, *, after: str, limit: int) -> list[Held]:
        async with self._reading(wanted.user_id) as session:
            return await aged.aged(session, wanted, after=after, limit=limit)

    async def held(self, user_id: str, ids: Sequence[str], model: str) -> list[Held]:
        """Active memories, as those see them that keep memories in order."""
        async with self._reading(user_id) as session:
            return await aged.held(session, user_id, ids, model)

    async def run_out(
        self, user_id: str, *, now: datetime, lifetimes: Mapping[str, timedelta], limit: int
    ) -> list[tuple[str, int, str]]:
        async with self._reading(user_id) as session:
            return await aged.run_out(session, user_id, now=now, lifetimes=lifetimes, limit=limit)

    async def begin_round(self, owner: str, now: datetime, until: datetime, *, forced: bool) -> str | None:
        """Take over upkeep. → after which place it goes on; None if it is not this process's turn"""
        return await self._write([SHARED], lambda session: rounds.begin(session, owner, now, until, forced=forced))

    async def continue_round(self, owner: str, now: datetime, until: datetime, after: str) -> None:
        await self._write([SHARED], lambda session: rounds.go_on(session, owner, now, until, after))

    async def finish_round(self, owner: str, now: datetime, due: datetime) -> None:
        await self._write([SHARED], lambda session: rounds.finish(session, owner, now, due))

    async def change_all(self, user_id: str, wanted: Sequence[ChangedMemory]) -> list[tuple[str, str]]:
        return await self._write([user_id], lambda session: saves.change_all(session, user_id, wanted))

    async def touched(self, what: Undoing) -> list[Touched]:
        async with self._reading(what.user_id) as session:
            return await undo.touched(session, what)
