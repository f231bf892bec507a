"""The HTTP protocol of every server: headers must be short and arrive in time, and idle connections make room for new
ones."""

import asyncio
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

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
