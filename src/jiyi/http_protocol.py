"""The HTTP protocol of every server: headers must be short and arrive in time, and idle connections make room for new
ones. And its end: after a signal a server finishes its requests, and its process ends in time."""

import asyncio
import logging
import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from time import sleep
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

logger = logging.getLogger("jiyi.server")

SIGNALS = (signal.SIGINT, signal.SIGTERM)
CLOSE_S = 1.5  # to close the database after the last request
MAX_IDLE = 400  # connections without a request; then the one that has waited longest is closed
MAX_HEAD_BYTES = 64 * 1024  # of the request line, the headers and the trailers of a request


class HeadTooLong(Exception):
    """Raised within the parser, which stops."""


class GuardedProtocol(HttpToolsProtocol):
    """Closes connections whose headers are too long or do not arrive in time (slowloris)."""

    header_timeout_s = 20.0
    idle: OrderedDict[HttpToolsProtocol, None] = OrderedDict()  # noqa: RUF012 - shared by all connections of the process
    _timer: asyncio.TimerHandle | None = None
    _in_head = False
    _head_bytes = 0
    _unparsed_bytes = 0  # since the parser found anything complete

    def connection_made(self, transport: Any) -> None:
        self.access_log = False  # uvicorn's own line has the query in it
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("Invalid HTTP request received.")
        self._start_timer()

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = self._unparsed_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        if self._in_head:  # trailers are dropped: a proxy before this server may not have checked them
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._is_active():
            self._wait_for_request()
            if self._in_head:  # the next request has begun
                self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def _count(self, size: int) -> None:
        self._unparsed_bytes = 0
        self._head_bytes += size
        if self._head_bytes > MAX_HEAD_BYTES:
            raise HeadTooLong

    def _is_active(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _start_timer(self) -> None:
        if self._is_active():
            self._stop_timer()
            self.idle.pop(self, None)
        elif self._timer is None:
            self._timer = self.loop.call_later(self.header_timeout_s, self._close)
            self._wait_for_request()

    def _wait_for_request(self) -> None:
        if self.transport.is_closing():
            return
        self.idle.setdefault(self)
        while len(self.idle) > MAX_IDLE:
            oldest, _ = self.idle.popitem(last=False)
            oldest.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self.transport.close()


class ReturningServer(uvicorn.Server):
    """Returns to its caller, who has a database to close. After a signal, open requests get the time of
    `timeout_graceful_shutdown`, and the database `CLOSE_S`. Then the process ends, whatever still runs: everything that
    was acknowledged has been committed."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            seconds = (self.config.timeout_graceful_shutdown or 0) + CLOSE_S
            threading.Thread(target=_end_process, args=(seconds,), daemon=True).start()
        super().handle_exit(sig, frame)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals without raising them again at the end, as uvicorn does: that would kill the process."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _end_process(after_s: float) -> None:
    sleep(after_s)
    logger.error("the server did not end in time: unfinished work is given up")
    os._exit(1)
