"""Values in Redis, shared by all processes that name the same server.

Redis down, slow, full or full of other people's values makes searches slower, and neither wrong nor an error: waiting
is short, after a failure Redis is left alone for a while, and what it answers is checked by whoever reads it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TypeVar

from ..errors import MissingExtra, SettingsError

TIMEOUT_S = 0.25  # for one question; a search takes less
PAUSE_S = 5.0  # in which a server that failed is not asked
LIFE_S = 3600  # of what is kept of a user, counted from the last time that something was
MOST = 200  # answers of a user; then all of them make room
SCHEMES = ("redis://", "rediss://", "unix://")

T = TypeVar("T")


class RedisCache:
    name = "redis"

    def __init__(self, url: str) -> None:
        try:
            from redis import asyncio as redis
            from redis import exceptions
            from redis.asyncio.retry import Retry
            from redis.backoff import NoBackoff
        except ImportError as error:
            raise MissingExtra("redis", "redis") from error
        if not url.startswith(SCHEMES):
            raise SettingsError(f"cache.redis_url: must begin with one of {', '.join(SCHEMES)}")
        self.problem: str | None = None
        self._not_before = 0.0
        self._refused = exceptions.ResponseError  # the server lives, and does not want this: full, no rights, …
        self._failures = (exceptions.RedisError, OSError, ValueError)  # TimeoutError is an OSError
        try:
            self._client = redis.Redis.from_url(
                url,
                socket_timeout=TIMEOUT_S,
                socket_connect_timeout=TIMEOUT_S,
                retry=Retry(NoBackoff(), 0),
                protocol=2,
            )
        except ValueError as error:
            raise SettingsError(f"cache.redis_url: {error}") from None

    async def get(self, user_id: str, key: str) -> bytes | None:
        found = await self._tried(lambda: self._client.hget(_of(user_id), key))
        return found if isinstance(found, bytes) else None

    async def put(self, user_id: str, key: str, value: bytes, seconds: float) -> None:
        """Values of one user lie together, so that they are dropped together. Redis ends them together, too; if one of
        them ends before, that is written in it."""
        mine = _of(user_id)

        async def put() -> None:
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.hset(mine, key, value)
                pipe.expire(mine, LIFE_S)
                pipe.hlen(mine)
                *_, number = await pipe.execute()
            if number > MOST:
                await self._client.delete(mine)

        await self._tried(put)

    async def forget(self, user_id: str) -> int:
        async def forget() -> int:
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hlen(_of(user_id))
                pipe.delete(_of(user_id))
                number, _ = await pipe.execute()
            return int(number)

        return await self._tried(forget) or 0

    async def ping(self) -> str | None:
        """Why it does not work, or None if it does."""
        self._not_before = 0.0
        await self._tried(self._client.ping)
        return self.problem

    async def close(self) -> None:
        await self._client.aclose()

    async def _tried(self, work: Callable[[], Awaitable[T]]) -> T | None:
        if time.monotonic() < self._not_before:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                answer = await work()
        except self._refused as error:
            self.problem = f"Redis refuses: {error}"
            return None
        except self._failures as error:
            self.problem = f"Redis does not answer: {type(error).__name__} {error}".rstrip()
            self._not_before = time.monotonic() + PAUSE_S
            return None
        self.problem = None
        return answer


def _of(user_id: str) -> str:
    """The name under which a user's answers lie: it does not tell who that is."""
    return f"jiyi:answers:{sha256(user_id.encode()).hexdigest()}"
