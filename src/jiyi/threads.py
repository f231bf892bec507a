"""Work on long texts in threads.

The event loop answers everybody, so it reads short texts only. Threads share the interpreter with it: a step of their
work must be short too, and a few of them at once are enough. Work that may take long has a budget of CPU time and calls
`check` between its steps.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from time import thread_time
from typing import ParamSpec, Self, TypeVar
from weakref import WeakKeyDictionary

SHORT = 1_000  # characters; for less, changing to another thread and back takes longer than the work
READING = SHORT + 1  # size of what a reader reads: however short, it takes long
LONG = 10_000  # more has to wait for its turn, so that threads are left for everybody else
AT_ONCE = 2

P = ParamSpec("P")
T = TypeVar("T")


class OutOfTime(Exception):
    """The CPU time is used up, or nobody waits for the result any more."""


class Budget:
    """CPU time in seconds for all work that is started within `with`."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def __enter__(self) -> Self:
        self._token = _budget.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        _budget.reset(self._token)


@dataclass(slots=True)
class _Work:
    """Work in one thread."""

    budget: Budget | None
    began: float
    abandoned: bool = False

    def is_over(self) -> bool:
        return self.abandoned or (self.budget is not None and self.used() > self.budget.left)

    def used(self) -> float:
        return thread_time() - self.began


_budget: ContextVar[Budget | None] = ContextVar("jiyi_budget", default=None)
_work: ContextVar[_Work | None] = ContextVar("jiyi_work", default=None)
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def is_over() -> bool:
    """Return True if the work of this thread has to end."""
    work = _work.get()
    return work is not None and work.is_over()


def check() -> None:
    """Raise `OutOfTime` if the work of this thread has to end."""
    if is_over():
        raise OutOfTime


async def run(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run work on texts of so many characters: at once if they are short, else in a thread, within the budget."""
    if size <= SHORT:
        return work(*args, **kwargs)
    own = _Work(_budget.get(), 0.0)

    def measured() -> T:
        own.began = thread_time()
        _work.set(own)
        try:
            return work(*args, **kwargs)
        finally:
            if own.budget is not None:
                own.budget.left -= own.used()

    try:
        async with _turn() if size > LONG else nullcontext():
            return await asyncio.to_thread(measured)
    except asyncio.CancelledError:
        own.abandoned = True  # the thread goes on to its next check
        raise


def _turn() -> asyncio.Semaphore:
    return _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE))


def batches(texts: Sequence[T], size: Callable[[T], int], *, most: int, most_size: int) -> Iterator[Sequence[T]]:
    """Divide texts into batches of at most so many and, unless it is one text, of at most so much size."""
    start = total = 0
    for at, text in enumerate(texts):
        total += size(text)
        if at > start and (at - start == most or total > most_size):
            yield texts[start:at]
            start, total = at, size(text)
    if texts:
        yield texts[start:]
