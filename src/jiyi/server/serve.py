"""Run the server with uvicorn, from start to graceful shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

import uvicorn

from ..engine import runtime
from ..errors import InvalidInput
from ..http_protocol import GuardedProtocol, ReturningServer
from ..http_server import AsgiApp, bind_socket, is_loopback, url_host
from ..memory import Memory
from ..settings import ServerSettings
from ..warm import warm_up
from .app import make_app
from .auth import AppState


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return the constructor of uvloop's event loop; None, for the default one, on systems without uvloop."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


IDLE_S = 30


async def serve(
    memory: Memory, *, host: str, port: int, allowed_hosts: Sequence[str] = (), ready: Callable[[str, bool], None]
) -> None:
    """Serve until stopped. `ready` is called with the address, and whether a key is needed, once it listens."""
    needs_key = await key_needed(memory, host)
    await warm_up(memory)
    server = server_over(memory, host=host, allowed_hosts=allowed_hosts)
    with bind_socket(host, port) as sock:
        ready(f"http://{url_host(host)}:{sock.getsockname()[1]}", needs_key)
        await server.serve(sockets=[sock])


async def key_needed(memory: Memory, host: str) -> bool:
    """Return True if requests need a key; refuse to serve other machines without one."""
    needs_key = await memory.keys.exist()
    if not needs_key and not is_loopback(host):
        raise InvalidInput(
            "--host", f"{host} can be reached from other machines: create a key first (`jiyi keys create --help`)"
        )
    return needs_key


def server_over(memory: Memory, *, host: str, allowed_hosts: Sequence[str] = ()) -> Server:
    app, shared = make_app(memory, host=host, keyless=is_loopback(host), allowed_hosts=allowed_hosts)
    return Server(server_config(app, runtime(memory).settings.server), shared)


def server_config(app: AsgiApp, settings: ServerSettings) -> uvicorn.Config:
    class Protocol(GuardedProtocol):
        header_timeout_s = settings.receive_timeout_s

    return uvicorn.Config(
        app,
        log_config=None,  # its default writes to stdout
        access_log=False,
        lifespan="off",
        http=Protocol,
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=ceil(settings.shutdown_timeout_s),
    )


class Server(ReturningServer):
    """Ends event streams on shutdown."""

    def __init__(self, config: uvicorn.Config, shared: AppState) -> None:
        super().__init__(config)
        self._shared = shared
        self.metrics = shared.metrics

    async def serve(self, sockets: Any = None) -> None:
        await self._shared.uploads.start()
        try:
            await super().serve(sockets)
        finally:
            await self._shared.uploads.close()

    async def shutdown(self, sockets: Any = None) -> None:
        self._shared.streams.stopping.set()
        await super().shutdown(sockets)
