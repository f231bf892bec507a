"""A circuit breaker: searches do without an engine that fails, and try it again now and then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

from ..errors import EngineError
from ..metrics import Meter

FIRST_PAUSE_S = 2.0
MAX_PAUSE_S = 30.0

logger = logging.getLogger(__name__)


class Breaker:
    """Refuses requests to an engine after a failure. When the pause is over, one request is let through; each further
    failure doubles the pause."""

    def __init__(self, name: str, timeout_s: float, meter: Meter) -> None:
        self._name = name
        self._timeout_s = timeout_s
        self._meter = meter
        self._pause_s = FIRST_PAUSE_S
        self._next_at = 0.0
        self.problem: str | None = None  # the last failure, until a request succeeds

    @property
    def is_open(self) -> bool:
        """Return True if requests are refused now."""
        return self.problem is not None and monotonic() < self._next_at

    def try_again(self) -> None:
        """Let the next request through: what failed has been replaced."""
        self._next_at = 0.0

    @asynccontextmanager
    async def request(self) -> AsyncIterator[None]:
        """Limit the time of a request, and learn from it. Raises `EngineError`."""
        if self.problem is not None:
            if self.is_open:
                raise EngineError(self.problem)
            self._next_at = monotonic() + self._pause_s  # others wait for the outcome
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError:
            error = EngineError(f"{self._name}: no answer in {self._timeout_s:g} seconds")
            self._failed(str(error))
            raise error from None
        except EngineError as error:
            self._failed(str(error))
            raise
        if self.problem is not None:
            logger.warning("%s answers searches again", self._name)
            self.problem, self._pause_s = None, FIRST_PAUSE_S

    def _failed(self, problem: str) -> None:
        self._meter.count("engine_failures_total", self._name)
        if self.problem is None:
            logger.warning("searches do without %s: %s", self._name, problem)
        else:
            self._pause_s = min(2 * self._pause_s, MAX_PAUSE_S)
        self.problem = problem
        self._next_at = monotonic() + self._pause_s
