"""Caches of search results: in this process, or in Redis for all processes.

A cache holds small opaque values and may lose any of them at any time. What makes a value right or wrong is in its
key; see `read/search.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..settings import Settings


class Cache(Protocol):
    """None of these raises: a cache that does not work finds nothing, and says so in `problem`."""

    name: str
    problem: str | None  # why it does not work at the moment

    async def get(self, user_id: str, key: str) -> bytes | None: ...

    async def put(self, user_id: str, key: str, value: bytes, seconds: float) -> None: ...

    async def forget(self, user_id: str) -> int:
        """Drop everything of this user. → how many values"""

    async def close(self) -> None: ...


def resolve(settings: Settings) -> list[Cache]:
    """The caches that the settings name, the nearest first."""
    from .local import LocalCache

    caches: list[Cache] = [LocalCache(settings.cache.max_searches)] if settings.cache.max_searches else []
    if settings.cache.redis_url is not None:
        from .redis import RedisCache

        caches.append(RedisCache(settings.cache.redis_url.get_secret_value()))
    return caches
