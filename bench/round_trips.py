"""A proxy before a database that counts what a client sends: each message that it waits for is a round trip."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit

HOST = "127.0.0.1"


class RoundTrips:
    def __init__(self) -> None:
        self.count = 0

    @asynccontextmanager
    async def counted(self, url: str) -> AsyncIterator[str]:
        """Yield the address of the proxy in place of the database's."""
        parts = urlsplit(url)
        to = parts.hostname or HOST, parts.port or 5432

        async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            replies, requests = await asyncio.open_connection(*to)
            await asyncio.gather(self._pass(reader, requests, counts=True), self._pass(replies, writer, counts=False))

        proxy = await asyncio.start_server(connect, HOST, 0)
        port = proxy.sockets[0].getsockname()[1]
        who, at, _ = parts.netloc.rpartition("@")
        try:
            yield urlunsplit((parts.scheme, f"{who}{at}{HOST}:{port}", *parts[2:]))
        finally:
            proxy.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counts: bool) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                self.count += counts
                writer.write(data)
                await writer.drain()
        writer.close()
