"""The HTTP protocol of every server: headers must arrive in time, and idle connections make room for new ones."""

import asyncio
from collections import OrderedDict
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_IDLE = 400  # connections without a request; then the one that has waited longest is closed


class HeaderTimeoutProtocol(H11Protocol):
    """Closes connections whose headers do not arrive in time (slowloris)."""

    header_timeout_s = 20.0
    idle: OrderedDict[H11Protocol, None] = OrderedDict()  # noqa: RUF012 - shared by all connections of the process
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        self.access_log = False  # uvicorn's own line has the query in it
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._start_timer()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_request()
        if self.conn.trailing_data[0]:  # the next request has begun
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.idle.pop(self, None)
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        active = self.cycle is not None and not self.cycle.response_complete
        if active:
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
