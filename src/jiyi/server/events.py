"""Server-sent events: a value whenever it changes, until it is final."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import TypeVar

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from ..errors import JiyiError
from .errors import HttpError

V = TypeVar("V", bound=BaseModel)

POLL_S = 0.25
KEEPALIVE_S = 15.0  # proxies close idle connections
MAX_STREAM_S = 3600.0
MAX_STREAMS = 100
NOT_BUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Streams:
    """The open streams, which end when the server stops."""

    def __init__(self) -> None:
        self.stopping = asyncio.Event()
        self.open = 0

    async def pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            pass


async def follow(
    name: str, look: Callable[[], Awaitable[V]], is_final: Callable[[V], bool], streams: Streams
) -> AsyncIterator[bytes]:
    """Yield an event whenever the result of `look` changes, until `is_final` is true of it."""
    streams.open += 1
    try:
        began = sent_at = monotonic()
        last: V | None = None
        while not streams.stopping.is_set() and monotonic() - began < MAX_STREAM_S:
            try:
                now = await look()
            except JiyiError:  # deleted or unavailable: the client gets the error with its next request
                return
            if now != last:
                yield _event("end" if is_final(now) else name, now)
                last, sent_at = now, monotonic()
                if is_final(now):
                    return
            elif monotonic() - sent_at > KEEPALIVE_S:
                yield b": still here\n\n"
                sent_at = monotonic()
            await streams.pause(POLL_S)
    finally:
        streams.open -= 1


def _event(name: str, value: BaseModel) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + value.__pydantic_serializer__.to_json(value) + b"\n\n"


def stream(events: AsyncIterator[bytes], streams: Streams) -> StreamingResponse:
    if streams.open >= MAX_STREAMS:
        raise HttpError(503, "unavailable", f"{MAX_STREAMS} streams are open already: poll the state instead")
    return StreamingResponse(events, media_type="text/event-stream", headers=NOT_BUFFERED)
