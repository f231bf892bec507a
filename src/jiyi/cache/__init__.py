"""Caches of search results: in this process, or in Redis for all processes. A cache holds small opaque values and may
lose any of them at any time. Keys contain everything that a value depends on; see `read/search.py`."""

import time
from collections import OrderedDict
from typing import Generic, Protocol, TypeVar

from ..settings import Settings

V = TypeVar("V")


class Cache(Protocol):
    """Methods never raise: a failing cache finds nothing and reports its `problem`."""

    name: str
    problem: str | None

    async def get(self, user_id: str, key: str) -> bytes | None: ...

    async def put(self, user_id: str, key: str, value: bytes, seconds: float) -> None: ...

    async def forget(self, user_id: str) -> int:
        """Remove the values of a user and return their number."""

    async def close(self) -> None: ...


class LocalCache(Generic[V]):
    """Values in the RAM of this process; the least recently used is dropped first."""

    name = "process"
    problem: str | None = None

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[tuple[str, str], tuple[V, float]] = OrderedDict()

    async def get(self, user_id: str, key: str) -> V | None:
        found = self._values.get((user_id, key))
        if found is None:
            return None
        value, until = found
        if time.monotonic() >= until:
            del self._values[user_id, key]
            return None
        self._values.move_to_end((user_id, key))
        return value

    async def put(self, user_id: str, key: str, value: V, seconds: float) -> None:
        self._values[user_id, key] = value, time.monotonic() + seconds
        self._values.move_to_end((user_id, key))
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    async def forget(self, user_id: str) -> int:
        mine = [entry for entry in self._values if entry[0] == user_id]
        for entry in mine:
            del self._values[entry]
        return len(mine)

    async def close(self) -> None:
        self._values.clear()


def resolve(settings: Settings) -> list[Cache]:
    """Make the caches that the settings name, nearest first."""
    caches: list[Cache] = [LocalCache[bytes](settings.cache.max_searches)] if settings.cache.max_searches else []
    if settings.cache.redis_url is not None:
        from .redis import RedisCache

        caches.append(RedisCache(settings.cache.redis_url.get_secret_value()))
    return caches
