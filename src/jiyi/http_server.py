"""Parts that servers and the worker share, without a framework: logs; checks of host, origin and socket; health and
metrics of a worker. A page that resolves its own name to this machine (DNS rebinding) sends that name as Host; a page
of another site sends its own Origin. Both are rejected before the request is parsed."""

import asyncio
import ipaddress
import json
import logging
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from .errors import InvalidInput

Message = MutableMapping[str, Any]
AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
WILDCARD_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - wildcards are not names that a client can send


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def url_host(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a listening socket here, because uvicorn exits the process if it cannot."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets whose protocol is given; without it every response waits 40 ms for the
    # client to acknowledge its headers.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((bare, port))
        sock.listen()
        return sock
    except OSError as error:
        sock.close()
        raise InvalidInput("--port", f"cannot listen on {url_host(host)}:{port}: {error.strerror or error}") from None


def host_names(host: str, more: Iterable[str] = ()) -> frozenset[str]:
    """Return the host names, without ports, that requests to this address may use."""
    own = () if host in WILDCARD_ADDRESSES else (url_host(host),)
    return frozenset(name.lower() for name in (*LOOPBACK, *own, *more))


def without_port(authority: str) -> str:
    """Strip the port from `name:port`.

    >>> without_port("[::1]:8766"), without_port("localhost:1"), without_port("localhost")
    ('[::1]', 'localhost', 'localhost')
    """
    name, colon, port = authority.lower().rpartition(":")
    return name if colon and port.isdecimal() and port.isascii() else authority.lower()


def header(scope: AsgiScope, name: bytes) -> str | None:
    """Return a header's value, None if it is missing, or "" if it is repeated."""
    found = [value for key, value in scope["headers"] if key == name]
    if not found:
        return None
    return found[0].decode("latin-1") if len(found) == 1 else ""


class HostOriginGuard:
    """Reject requests for other hosts or from pages of other sites. With `same_origin` the page must come from this
    server; otherwise any port of the allowed hosts will do."""

    def __init__(self, app: AsgiApp, names: frozenset[str], *, same_origin: bool) -> None:
        self._app = app
        self._names = names
        self._same_origin = same_origin

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = header(scope, b"host") or ""
            if without_port(host) not in self._names:
                await refuse(send, 421, "host_refused", "unknown host name: see --allow-host")
                return
            origin = header(scope, b"origin")
            if origin is not None and not self._allowed(origin, host):
                await refuse(send, 403, "origin_refused", "requests from pages of other sites are not allowed")
                return
        await self._app(scope, receive, send)

    def _allowed(self, origin: str, host: str) -> bool:
        try:
            page = urlsplit(origin)
        except ValueError:
            return False
        if page.scheme not in ("http", "https"):
            return False
        if self._same_origin:
            return page.netloc.lower() == host.lower()
        return without_port(page.netloc) in self._names


async def refuse(send: Send, status: int, code: str, detail: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """Send an RFC 9457 problem response."""
    body = json.dumps(problem(status, code, detail), ensure_ascii=False).encode()
    own = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


def problem(status: int, code: str, detail: str) -> dict[str, Any]:
    title = code.replace("_", " ")
    return {"type": f"urn:jiyi:problem:{code}", "title": title, "status": status, "detail": detail, "code": code}


# -- logs --------------------------------------------------------------------------------------------------------------

FIELDS = ("request_id", "method", "route", "status", "ms", "key_id", "client")
SECRETS = (
    (re.compile(r"jiyi_([0-9a-z]{26})_[A-Za-z0-9_-]{20,}"), r"jiyi_\1_***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[^\s\"',]+"), r"\1 ***"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"), "sk-***"),
    (re.compile(r"(\b\w+://[^\s/:@]*):[^\s/@]+@"), r"\1:***@"),
    (re.compile(r"(?i)\b(password|passwd|secret|token|api[_-]?key)(\"?\s*[=:]\s*\"?)[^\s\"',&]+"), r"\1\2***"),
    (re.compile(r"""\b(user) (["'])(?:\\.|(?!\2).)*\2"""), r"\1 ***"),  # as errors name users
)
LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


def redacted(text: str) -> str:
    """Replace what looks like a secret or names a user.

    >>> redacted("postgresql://mei:hunter2@db/jiyi: user 'mei' has no memory")
    'postgresql://mei:***@db/jiyi: user *** has no memory'
    """
    for pattern, instead in SECRETS:
        text = pattern.sub(instead, text)
    return text


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": redacted(record.getMessage()),
        }
        entry |= {name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None}
        if record.exc_info:
            entry["trace"] = redacted(self.formatException(record.exc_info))
        return json.dumps(entry, ensure_ascii=False, default=str)


def start_logging(*, level: str = "warning", lines: str = "json") -> None:
    """Write logs of this process to stderr, unless the program has configured logging. The level is that of Jiyi's own
    loggers, all below `jiyi`; others log warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines() if lines == "json" else TextLines("%(asctime)s %(levelname)s %(name)s %(message)s")
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("jiyi").setLevel(level.upper())
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


# -- a worker ----------------------------------------------------------------------------------------------------------

MAX_STATUS_HEAD = 8192  # bytes
STATUS_TIMEOUT_S = 10.0


@asynccontextmanager
async def serving_status(memory: Any, host: str, port: int) -> AsyncIterator[str]:
    """Serve /livez, /readyz and /metrics of a process without a REST server; yield the address. On other addresses than
    those of this machine, /metrics needs a key for all users."""
    keyless = is_loopback(host)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(STATUS_TIMEOUT_S):
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                status, kind, body = await _status(memory, head, keyless=keyless)
                told = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
                writer.write(f"{told}Connection: close\r\n\r\n".encode() + body)
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # the caller is gone, or sends no request
        finally:
            writer.close()

    sock = bind_socket(host, port)
    server = await asyncio.start_server(answer, sock=sock, limit=MAX_STATUS_HEAD)
    async with server:
        yield f"http://{url_host(host)}:{sock.getsockname()[1]}"


async def _status(memory: Any, head: str, *, keyless: bool) -> tuple[str, str, bytes]:
    first, *rest = head.split("\r\n")
    method, _, target = first.partition(" ")
    path = target.partition(" ")[0].partition("?")[0]
    if method != "GET":
        return "405 Method Not Allowed", "text/plain", b""
    if path == "/livez":
        return "200 OK", "application/json", b'{"status":"ok"}'
    if path == "/readyz":
        health = await memory.health()
        body = json.dumps({"ready": health.ready, "failing": [one.name for one in health.checks if not one.ok]})
        return "200 OK" if health.ready else "503 Service Unavailable", "application/json", body.encode()
    if path == "/metrics":
        if not await _may_read(memory, rest, keyless=keyless):
            return "401 Unauthorized", "text/plain", b"a key for all users with the scope read is needed\n"
        return "200 OK", "text/plain; version=0.0.4", (await memory.usage.prometheus()).encode()
    return "404 Not Found", "text/plain", b""


async def _may_read(memory: Any, headers: list[str], *, keyless: bool) -> bool:
    if keyless and not await memory.keys.exist():
        return True
    given = (
        value.strip() for name, _, value in (one.partition(":") for one in headers) if name.lower() == "authorization"
    )
    kind, _, secret = next(given, "").partition(" ")
    key = await memory.keys.check(secret) if kind.lower() == "bearer" else None
    return key is not None and key.all_users and "read" in key.scopes
