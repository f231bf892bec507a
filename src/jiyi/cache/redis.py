"""A cache in Redis, shared by all processes that use the same server. If Redis is down, slow or full, searches become
slower but neither fail nor return wrong results: timeouts are short, a server that failed is skipped for a while, and
its replies are validated by the reader."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TypeVar

from ..errors import MissingExtra, SettingsError

TIMEOUT_S = 0.25  # for one call; a search takes less
PAUSE_S = 5.0  # for which a server that failed is skipped
LIFE_S = 3600  # of a user's values after the last write
MOST = 200  # values of a user; beyond that, all are removed
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
        self._refused = exceptions.ResponseError  # the server works but refuses: full, no permission, …
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
        found = await self._call(lambda: self._client.hget(_of(user_id), key))
        return found if isinstance(found, bytes) else None

    async def put(self, user_id: str, key: str, value: bytes, seconds: float) -> None:
        """Store a value with the user's other ones, which are removed and expire together. A value that expires earlier
        contains its own time."""
        mine = _of(user_id)

        async def put() -> None:
            async with self._client.pipeline(transaction=False) as pipe:
                pipe.hset(mine, key, value)
                pipe.expire(mine, LIFE_S)
                pipe.hlen(mine)
                *_, number = await pipe.execute()
            if number > MOST:
                await self._client.delete(mine)

        await self._call(put)

    async def forget(self, user_id: str) -> int:
        async def forget() -> int:
            async with self._client.pipeline(transaction=True) as pipe:
                pipe.hlen(_of(user_id))
                pipe.delete(_of(user_id))
                number, _ = await pipe.execute()
            return int(number)

        return await self._call(forget) or 0

    async def ping(self) -> str | None:
        """Return the current problem, or None."""
        self._not_before = 0.0
        await self._call(self._client.ping)
        return self.problem

    async def close(self) -> None:
        await self._client.aclose()

    async def _call(self, work: Callable[[], Awaitable[T]]) -> T | None:
        if time.monotonic() < self._not_before:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_S):
                result = await work()
        except self._refused as error:
            self.problem = f"Redis refuses: {error}"
            return None
        except self._failures as error:
            self.problem = f"Redis does not answer: {type(error).__name__} {error}".rstrip()
            self._not_before = time.monotonic() + PAUSE_S
            return None
        self.problem = None
        return result


def _of(user_id: str) -> str:
    """Return the key of a user's values, which does not reveal the user."""
    return f"jiyi:answers:{sha256(user_id.encode()).hexdigest()}"
