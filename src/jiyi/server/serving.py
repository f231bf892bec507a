"""A server on a port, from its start to its end in good order."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import InvalidInput
from ..http_guards import in_url, is_loopback, listening
from ..memory import Memory
from .app import make_app
from .callers import House
from .guards import LARGEST_HEADERS

IDLE_S = 30
SIGNALS = (signal.SIGINT, signal.SIGTERM)


async def serve(
    memory: Memory, *, host: str, port: int, allowed_hosts: Sequence[str] = (), ready: Callable[[str, bool], None]
) -> None:
    """Until it is stopped. `ready` is told the address, and whether a key is needed, once clients can connect."""
    needs_key = await memory.keys.exist()
    if not needs_key and not is_loopback(host):
        raise InvalidInput(
            "--host", f"{host} can be reached from other machines: make a key first (`jiyi keys create --help`)"
        )
    server = server_over(memory, host=host, allowed_hosts=allowed_hosts)
    with listening(host, port) as sock:
        ready(f"http://{in_url(host)}:{sock.getsockname()[1]}", needs_key)
        await server.serve(sockets=[sock])


def server_over(memory: Memory, *, host: str, allowed_hosts: Sequence[str] = ()) -> OrderlyServer:
    app, house = make_app(memory, host=host, keyless=is_loopback(host), allowed_hosts=allowed_hosts)
    settings = memory.settings.server

    class Patient(PatientProtocol):
        headers_in_s = settings.receive_timeout_s

    config = uvicorn.Config(
        app,
        log_config=None,  # its default writes to stdout
        access_log=False,
        lifespan="off",
        http=Patient,
        ws="none",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=ceil(settings.shutdown_timeout_s),
        h11_max_incomplete_event_size=LARGEST_HEADERS,
    )
    return OrderlyServer(config, house)


class PatientProtocol(H11Protocol):
    """Closes connections whose request does not arrive: whoever sends a header a minute would hold them for ever."""

    headers_in_s = 20.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self.access_log = False  # uvicorn's own line has the query in it
        super().connection_made(transport)
        self._wait_for_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait_for_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.trailing_data[0]:  # the next request has begun
            self._wait_for_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_headers(self) -> None:
        at_work = self.cycle is not None and not self.cycle.response_complete
        if at_work:
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.headers_in_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self.transport.close()


class OrderlyServer(uvicorn.Server):
    """Ends streams when it stops, and leaves what comes afterwards to its caller, who has a database to close."""

    def __init__(self, config: uvicorn.Config, house: House) -> None:
        super().__init__(config)
        self._house = house

    async def serve(self, sockets: Any = None) -> None:
        await self._house.spool.start()
        try:
            await super().serve(sockets)
        finally:
            await self._house.spool.close()

    async def shutdown(self, sockets: Any = None) -> None:
        self._house.streams.stopping.set()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn's own raises the signal again when all is over, which would end the process at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
