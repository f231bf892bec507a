"""How a store reads and writes: in sessions, and in transactions that are brought to their end."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncSession

T = TypeVar("T")


class Sessions(ABC):
    def __init__(self) -> None:
        self._unfinished: set[asyncio.Future[Any]] = set()
        self.after_write: Callable[[Sequence[str]], None] = lambda users: None  # whoever wants to know of each commit

    @abstractmethod
    def _reading(self, user_id: str | None) -> AbstractAsyncContextManager[AsyncSession]:
        """A session that reads what belongs to one user; without one, to all. Driver errors leave it as Jiyi's."""

    @abstractmethod
    def _snapshot(self, user_id: str | None) -> AbstractAsyncContextManager[AsyncSession]:
        """Like `_reading`, but all that is read in it is as it was at one moment, however long it takes."""

    @abstractmethod
    def _writing(self, users: Sequence[str]) -> AbstractAsyncContextManager[AsyncSession]:
        """A session in a transaction that has the right to write for these users from its start, and commits at its
        end. Without users it may change what is no user's memory, such as the state of jobs."""

    async def _write(self, users: Sequence[str], work: Callable[[AsyncSession], Awaitable[T]]) -> T:
        """One transaction, brought to its end even if the caller is cancelled: half of one would keep the database
        locked."""

        async def transaction() -> T:
            async with self._writing(users) as session:
                return await work(session)

        done = await asyncio.shield(self._begin(transaction()))
        self.after_write(users)
        return done

    def _begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Something that goes on although its caller may be cancelled; closing waits for it."""
        task = asyncio.ensure_future(work)
        self._unfinished.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Future[Any]) -> None:
        self._unfinished.discard(task)
        if not task.cancelled():
            task.exception()  # the caller has seen it, or has left; either way asyncio need not complain
