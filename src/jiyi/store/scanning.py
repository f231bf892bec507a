"""A store whose searches scan a copy of the user's memory in RAM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from ..index.query import Candidates, Question
from ..index.ram import HotUsers, Outside
from ..scope import Lifetimes
from .base import Store
from .contract import Outset
from .erasing import Erasure


class ScanningStore(Store):
    def __init__(self, *, cache_mb: int, outside: Outside | None = None) -> None:
        super().__init__()
        self._hot = HotUsers(self._reading, budget=cache_mb << 20, outside=outside)

    async def people(self, user_id: str, model: str) -> frozenset[str]:
        return await self._hot.people(user_id, model)

    async def gather(self, question: Question) -> Candidates:
        return await self._hot.gather(question)

    async def outset(self, user_id: str, words: Sequence[str]) -> Outset:
        outset = await super().outset(user_id, words)
        self._hot.expect(user_id, 0 if outset.tip is None else outset.tip.seq)
        return outset

    async def next_end(self, user_id: str, now: datetime, lifetimes: Lifetimes = ()) -> datetime | None:
        known, end = self._hot.next_end(user_id, now, lifetimes)
        return end if known else await super().next_end(user_id, now, lifetimes)

    async def erase_all(self, user_id: str) -> Erasure:
        done = await super().erase_all(user_id)
        self._hot.forget(user_id)
        return done

    def touch(self, user_id: str, accessed: Mapping[str, datetime]) -> None:
        self._hot.touch(user_id, accessed)
