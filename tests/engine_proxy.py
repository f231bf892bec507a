"""A TCP proxy before a server, which can be dead, hung or slow."""

from __future__ import annotations

import asyncio
import contextlib
from ssl import SSLContext
from typing import Self
from urllib.parse import urlsplit

SLOW_S = 1.0  # for each packet


class Proxy:
    """Forwards connections, encrypted if it has certificates. `set` takes a state: open, dead (it refuses connections),
    hung (no answers), slow, or unauthorized (401)."""

    def __init__(self, url: str, certificates: SSLContext | None = None) -> None:
        self._certificates = certificates
        parts = urlsplit(url)
        self._to = parts.hostname, parts.port
        self._state = "open"
        self._is_open = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0
        self._url = parts

    @property
    def url(self) -> str:
        scheme = self._url.scheme.replace("http", "http" if self._certificates is None else "https")
        return self._url._replace(scheme=scheme, netloc=f"127.0.0.1:{self._port}").geturl()

    async def __aenter__(self) -> Self:
        await self.set("open")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.set("dead")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def set(self, state: str) -> None:
        self._state = state
        (self._is_open.clear if state == "hung" else self._is_open.set)()
        if state in ("dead", "unauthorized"):
            for link in list(self._links):
                link.transport.abort()
        if state == "dead":
            if self._server is not None:
                self._server.close()
                self._server = None
        elif self._server is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port, ssl=self._certificates)
            self._port = self._server.sockets[0].getsockname()[1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._state == "unauthorized":
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
            writer.close()
            return
        there, back = await asyncio.open_connection(*self._to)
        for source, target in ((reader, back), (there, writer)):
            self._links.add(target)
            task = asyncio.create_task(self._forward(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _forward(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                await self._is_open.wait()
                if self._state == "slow":
                    await asyncio.sleep(SLOW_S)
                target.write(data)
                await target.drain()
        self._links.discard(target)
        target.close()
