"""Forked processes. A fork copies memory, sockets and locks, but only the thread that forks: what other threads would
do or release never happens there."""

import os
import threading

from .errors import StoreError

FORKED = (
    "the memory was opened before this process was forked: open it after the fork, such as in gunicorn's `post_fork` or"
    " Celery's `worker_process_init`, and not before"
)


class Owner:
    """The process that has opened something."""

    def __init__(self) -> None:
        self._process: int | None = None

    def take(self) -> None:
        self._process = os.getpid()

    @property
    def is_forked(self) -> bool:
        """True in a process that was forked from the owner."""
        return self._process not in (None, os.getpid())

    def check(self) -> None:
        if self.is_forked:
            raise StoreError(FORKED)


def new_lock() -> threading.Lock:
    """Return a lock that nobody holds while this process forks, so that it is free in the new one. A lock lives as long
    as the process."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
