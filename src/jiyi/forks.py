"""Forked processes. A fork copies memory, sockets and locks, but only the thread that forks: what other threads would
do or release never happens there."""

import asyncio
import os
import threading
from contextlib import ContextDecorator

from .errors import StoreError

FORKED = (
    "the memory was opened before this process was forked: open it after the fork, such as in gunicorn's `post_fork` or"
    " Celery's `worker_process_init`, and not before"
)


OTHER_LOOP = (
    "the memory was opened in another event loop: open one in each event loop, or use `jiyi.sync.Memory`, which threads"
    " can share"
)


class Owner:
    """The process that has opened something, and its event loop."""

    def __init__(self) -> None:
        self._process: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def take(self) -> None:
        self._process = os.getpid()
        self._loop = _running_loop()

    @property
    def is_forked(self) -> bool:
        """True in a process that was forked from the owner."""
        return self._process not in (None, os.getpid())

    def check(self) -> None:
        if self.is_forked:
            raise StoreError(FORKED)
        if self._loop is not None and _running_loop() not in (None, self._loop):
            raise StoreError(OTHER_LOOP)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def new_lock() -> threading.Lock:
    """Return a lock that nobody holds while this process forks, so that it is free in the new one. A lock lives as long
    as the process."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


MAX_WAIT_S = 5.0  # of a fork, for work of other threads


class NoFork(ContextDecorator):
    """Work of any number of threads that a fork waits for, because the library that does it has locks of its own."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._running = 0
        if hasattr(os, "register_at_fork"):  # not on Windows
            os.register_at_fork(
                before=self._stop, after_in_parent=self._changed.release, after_in_child=self._start_anew
            )

    def __enter__(self) -> None:
        with self._changed:
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._running -= 1
            if not self._running:
                self._changed.notify_all()

    def _stop(self) -> None:
        self._changed.acquire()
        self._changed.wait_for(lambda: not self._running, MAX_WAIT_S)

    def _start_anew(self) -> None:
        self._running = 0  # the threads are not here
        self._changed.release()
