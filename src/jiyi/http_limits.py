"""A hook for HTTP clients that ends replies which are longer than any answer, before they fill the memory."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import Any

Failure = Callable[[str], Exception]


def at_most(size: int, failure: Failure) -> Callable[[Any], Awaitable[None]]:
    """For the event "response": no more than `size` bytes, and nothing packed, because a few bytes can unpack to
    gigabytes."""

    async def bound(response: Any) -> None:
        packing = response.headers.get("content-encoding", "identity")
        if packing != "identity":
            raise failure(f"the reply is packed ({packing}), which was not asked for")
        # The HTTP library is the client package's choice, and has had two names.
        streams = next(kind for kind in type(response.stream).__mro__ if kind.__name__ == "AsyncByteStream")
        response.stream = _bounded(streams)(response.stream, size, failure)

    return bound


@cache
def _bounded(streams: type) -> type:
    class Bounded(streams):  # type: ignore[misc]
        def __init__(self, stream: Any, most: int, failure: Failure) -> None:
            self._stream, self._most, self._failure = stream, most, failure

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for part in self._stream:
                size += len(part)
                if size > self._most:
                    raise self._failure(f"the reply is longer than {self._most:,} bytes")
                yield part

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Bounded
