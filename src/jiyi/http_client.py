"""For HTTP clients: a response hook that limits the size of replies, and addresses without passwords."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import Any

Failure = Callable[[str], Exception]


def limit_response(size: int, failure: Failure) -> Callable[[Any], Awaitable[None]]:
    """Return a hook that fails after `size` bytes and on compressed replies, which could expand to gigabytes."""

    async def limit(response: Any) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise failure(f"the reply is compressed ({encoding}), which was not requested")
        # The client package chooses the HTTP library (httpx or a fork of it), so the base class is found by its name.
        streams = next(kind for kind in type(response.stream).__mro__ if kind.__name__ == "AsyncByteStream")
        response.stream = _limited_stream(streams)(response.stream, size, failure)

    return limit


def without_password(url: str) -> str:
    """Return an address without the name and password in it.

    >>> without_password("https://mei:secret@models.example.org/v1")
    'https://models.example.org/v1'
    """
    scheme, slashes, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}"


@cache
def _limited_stream(streams: type) -> type:
    class LimitedStream(streams):  # type: ignore[misc]
        def __init__(self, stream: Any, limit: int, failure: Failure) -> None:
            self._stream, self._limit, self._failure = stream, limit, failure

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > self._limit:
                    raise self._failure(f"the reply is longer than {self._limit:,} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    return LimitedStream
