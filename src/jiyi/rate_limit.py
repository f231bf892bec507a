"""Rate limits, and deadlines for calls of what may hang."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import Any, TypeVar

from .errors import StoreError, StoreUnavailable

logger = logging.getLogger(__name__)
T = TypeVar("T")

PROBE_PAUSE_S = 1.0


class TokenBucket:
    """Allows `burst` calls at once and `per_minute` in the long run."""

    def __init__(self, burst: int, per_minute: int) -> None:
        self._burst = burst
        self._per_second = per_minute / 60
        self._left = float(burst)
        self._at: float | None = None

    def take(self, now: float) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        if self._at is not None:
            self._left = min(self._burst, self._left + max(0.0, now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._per_second
        self._left -= 1
        return 0.0


class CircuitBreaker:
    """Ends waiting at a deadline, and waits no more until a probe was answered in time. Calls have a key, such as a
    server or a user: those of one key do not hold up those of another.

    A call that is refused is a probe: it runs in the background, one of a key at a time. So a program waits once for a
    server that hangs, and uses it again one call after it is back. Calls that are late are not cancelled, because what
    they load may make the next one faster.
    """

    def __init__(self, pause_s: float = PROBE_PAUSE_S) -> None:
        self._pause_s = pause_s
        self._refused: dict[str, _Refused] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self.has_run = False  # a call was answered

    def is_open(self, key: str) -> bool:
        """Return True while calls are refused."""
        return key in self._refused

    async def run(
        self, key: str, work: Callable[[], Coroutine[Any, Any, T]], timeout_s: float, *, probe: bool = True
    ) -> T:
        """Await the work, at most so long; raise StoreUnavailable if it takes longer, or if calls are refused.
        Work that is no `probe` is then not done at all."""
        if (refused := self._refused.get(key)) is not None:
            if probe and monotonic() >= refused.probe_at:
                refused.probe_at = inf
                self._keep(asyncio.create_task(self._probe(key, work, timeout_s)))
            raise StoreUnavailable(refused.reason)
        task = asyncio.create_task(work())
        try:
            await asyncio.wait({task}, timeout=timeout_s)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            self._keep(task)
            raise self._refuse(key, f"the memory did not answer within {timeout_s:g} s")
        self.has_run = True
        try:
            return task.result()
        except StoreError as error:
            self._refuse(key, str(error))
            raise

    def _refuse(self, key: str, reason: str) -> StoreUnavailable:
        self._refused[key] = _Refused(reason, probe_at=monotonic())
        return StoreUnavailable(reason)

    async def _probe(self, key: str, work: Callable[[], Coroutine[Any, Any, T]], timeout_s: float) -> None:
        began = monotonic()
        try:
            await work()
            if monotonic() - began <= timeout_s:
                self._refused.pop(key, None)
        finally:
            if (refused := self._refused.get(key)) is not None:
                refused.probe_at = monotonic() + self._pause_s

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._late.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._late.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.info("a late call of the memory failed: %s", error)


@dataclass(slots=True)
class _Refused:
    reason: str
    probe_at: float  # when the next refused call is a probe; infinite while one runs
