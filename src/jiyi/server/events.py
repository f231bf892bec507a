"""Progress as server-sent events: a value each time it has changed, and once more when it is at its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from time import monotonic
from typing import TypeVar

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from ..errors import JiyiError
from .problems import Refused

V = TypeVar("V", bound=BaseModel)

LOOK_EVERY_S = 0.25
SIGN_OF_LIFE_S = 15.0  # proxies close what is quiet
LONGEST_S = 3600.0
MOST_STREAMS = 100
NOT_BUFFERED = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Streams:
    """The open streams. When the server stops, they end."""

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
    name: str, look: Callable[[], Awaitable[V]], at_end: Callable[[V], bool], streams: Streams
) -> AsyncIterator[bytes]:
    """What `look` sees, whenever it is something else than before."""
    streams.open += 1
    try:
        began = told_at = monotonic()
        last: V | None = None
        while not streams.stopping.is_set() and monotonic() - began < LONGEST_S:
            try:
                now = await look()
            except JiyiError:  # it was deleted meanwhile, or the store is gone: the client asks again and sees
                return
            if now != last:
                yield _event("end" if at_end(now) else name, now)
                last, told_at = now, monotonic()
                if at_end(now):
                    return
            elif monotonic() - told_at > SIGN_OF_LIFE_S:
                yield b": still here\n\n"
                told_at = monotonic()
            await streams.pause(LOOK_EVERY_S)
    finally:
        streams.open -= 1


def _event(name: str, value: BaseModel) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + value.__pydantic_serializer__.to_json(value) + b"\n\n"


def stream(events: AsyncIterator[bytes], streams: Streams) -> StreamingResponse:
    if streams.open >= MOST_STREAMS:
        raise Refused(503, "unavailable", f"{MOST_STREAMS} streams are open already: ask for the state instead")
    return StreamingResponse(events, media_type="text/event-stream", headers=NOT_BUFFERED)
