"""Records of recalled memories: collected in RAM and written in batches by a background task. A crash can lose the last
records, but never a memory."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Self

from ..errors import StoreError
from ..ids import new_id
from ..index.search_index import SearchIndex
from ..models import Recall, utc_now
from ..scope import Scope
from ..store.store import Store

MOST_NOTED = 20  # best hits of one search
MOST_PENDING = 10_000  # recalls; while the database cannot be written, the oldest are dropped
BATCH = 500
USERS_AT_ONCE = 20
PAUSE_S = 1.0  # after a search, so that further searches join the batch
DRIFT = 1000  # a result lives for less than this part of the half-life, in which no freshness moves by 0.1 %

logger = logging.getLogger(__name__)
_ASKER: ContextVar[tuple[str | None, str | None]] = ContextVar("asker", default=(None, None))


@contextmanager
def asked_by(session_id: str | None, agent_id: str | None) -> Iterator[None]:
    """Record the searches inside with the session and the agent that they are for."""
    token = _ASKER.set((session_id, agent_id))
    try:
        yield
    finally:
        _ASKER.reset(token)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Time in intervals of so many seconds. Accesses count in scores when a new one begins."""

    seconds: float

    @classmethod
    def of(cls, seconds: float, half_life_days: float) -> Self:
        return cls(seconds=max(min(seconds, half_life_days * 86_400 / DRIFT), 0.001))

    def number(self, at: datetime) -> int:
        return int(at.timestamp() // self.seconds)

    def left(self, at: datetime) -> float:
        return self.seconds - at.timestamp() % self.seconds


class Accesses:
    """Collects accesses. They count in scores from the next period on (by default of ten minutes), so that equal
    searches within a period have equal results and do not invalidate their own cached results."""

    def __init__(self, store: Store, index: SearchIndex, *, on: bool, keep: int) -> None:
        self._store = store
        self._index = index
        self._on = on
        self._keep = keep
        self._pending: deque[Recall] = deque()
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._period = 0
        self._fresh: dict[str, dict[str, datetime]] = {}  # of this period, by user and memory

    def settle(self, period: int) -> None:
        """Let accesses of earlier periods count in scores; called before a search."""
        if period != self._period:
            fresh, self._fresh, self._period = self._fresh, {}, period
            for user_id, accessed in fresh.items():
                self._index.touch(user_id, accessed)

    def note(self, scope: Scope, query: str, memory_ids: Sequence[str]) -> None:
        """Record the hits of a search."""
        if not self._on or not memory_ids:
            return
        now, user_id = utc_now(), scope.user_id
        session_id, agent_id = _ASKER.get()
        best = tuple(memory_ids[:MOST_NOTED])
        if len(self._pending) >= MOST_PENDING:
            self._pending.popleft()
        recall = Recall(
            id=new_id(),
            user_id=user_id,
            query=query,
            memory_ids=best,
            recalled_at=now,
            session_id=scope.session_id or session_id,
            agent_id=scope.agent_id or agent_id,
        )
        self._pending.append(recall)
        self._fresh.setdefault(user_id, {}).update(dict.fromkeys(best, now))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_soon())

    async def flush(self) -> None:
        """Write pending recalls."""
        async with self._writing:  # keeps the order of batches
            while self._pending:
                batch = self._next_batch()
                try:
                    await self._store.recalls.add(batch, self._keep)
                except StoreError as error:
                    if type(error) is StoreError:  # not the database but a value in it is the problem
                        await self._add_by_user(batch)
                        continue
                    self._pending.extendleft(reversed(batch))
                    raise

    async def _add_by_user(self, batch: Sequence[Recall]) -> None:
        """Write the recalls of each user alone, and drop those that cannot be written."""
        for user_id in {recall.user_id for recall in batch}:
            try:
                await self._store.recalls.add([one for one in batch if one.user_id == user_id], self._keep)
            except StoreError:
                logger.exception("recalls of user %r cannot be written and are dropped", user_id)

    async def before_delete(self, user_id: str) -> None:
        """Write pending recalls, so that the deletion finds them; drop a user's if that fails."""
        try:
            await self.flush()
        except StoreError:
            self._pending = deque(recall for recall in self._pending if recall.user_id != user_id)

    def _next_batch(self) -> list[Recall]:
        """Take the oldest recalls, of a few users only: a write locks the users it concerns."""
        batch: list[Recall] = []
        users: set[str] = set()
        while self._pending and len(batch) < BATCH and len(users | {self._pending[0].user_id}) <= USERS_AT_ONCE:
            users.add(self._pending[0].user_id)
            batch.append(self._pending.popleft())
        return batch

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._try_to_flush()

    async def _write_soon(self) -> None:
        await asyncio.sleep(PAUSE_S)
        await self._try_to_flush()

    async def _try_to_flush(self) -> None:
        """Log a failure instead of raising it; the next batch tries again."""
        try:
            await self.flush()
        except StoreError as error:
            logger.warning("%d recalls wait to be written: %s", len(self._pending), error)
