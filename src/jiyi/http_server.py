"""Host, origin and socket checks shared by the REST and MCP servers; plain ASGI, without a framework. A page that
resolves its own name to this machine (DNS rebinding) sends that name as Host; a page of another site sends its own
Origin. Both are rejected before the request is parsed."""

import ipaddress
import json
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
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
