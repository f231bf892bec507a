"""Who may speak to a server on a port: the checks that REST and MCP share. Pure ASGI, no framework.

A web page that lets its own name point to this machine (DNS rebinding) sends that name as Host; a page of another site
sends its own Origin. Both are refused before anything else happens.
"""

from __future__ import annotations

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
EVERY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - they are no names, so no client can mean them


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def listening(host: str, port: int) -> socket.socket:
    """The socket, made here because uvicorn ends the process if it cannot have it."""
    bare = host.strip("[]")
    family = socket.AF_INET6 if ":" in bare else socket.AF_INET
    # The protocol must be named: asyncio sends small packets at once (TCP_NODELAY) only on a socket that says it is
    # TCP. Otherwise every answer waits 40 ms for the client to acknowledge its header.
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
        raise InvalidInput("--port", f"cannot listen on {in_url(host)}:{port}: {error.strerror or error}") from None


def own_names(host: str, more: Iterable[str] = ()) -> frozenset[str]:
    """The names under which a server on this address is reached, without ports."""
    own = () if host in EVERY_ADDRESS else (in_url(host),)
    return frozenset(name.lower() for name in (*LOOPBACK, *own, *more))


def without_port(authority: str) -> str:
    """`name` of `name:port`.

    >>> without_port("[::1]:8766"), without_port("localhost:1"), without_port("localhost")
    ('[::1]', 'localhost', 'localhost')
    """
    name, colon, port = authority.lower().rpartition(":")
    return name if colon and port.isdecimal() and port.isascii() else authority.lower()


def header(scope: AsgiScope, name: bytes) -> str | None:
    """A header that stands there once; twice is as if it were nonsense."""
    found = [value for key, value in scope["headers"] if key == name]
    if not found:
        return None
    return found[0].decode("latin-1") if len(found) == 1 else ""


class HostAndOrigin:
    """Lets in what is addressed to one of these names. With `same_origin`, a browser must have the page from this very
    server; without, from a server of any port under one of the names."""

    def __init__(self, app: AsgiApp, names: frozenset[str], *, same_origin: bool) -> None:
        self._app = app
        self._names = names
        self._same_origin = same_origin

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            host = header(scope, b"host") or ""
            if without_port(host) not in self._names:
                await refuse(send, 421, "host_refused", "this server is not reached under that name: see --allow-host")
                return
            origin = header(scope, b"origin")
            if origin is not None and not self._fits(origin, host):
                await refuse(send, 403, "origin_refused", "a page of another site may not ask this server")
                return
        await self._app(scope, receive, send)

    def _fits(self, origin: str, host: str) -> bool:
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
    """An answer as RFC 9457 has it, from outside of any framework."""
    body = json.dumps(problem(status, code, detail), ensure_ascii=False).encode()
    own = [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*own, *headers]})
    await send({"type": "http.response.body", "body": body})


def problem(status: int, code: str, detail: str) -> dict[str, Any]:
    title = code.replace("_", " ")
    return {"type": f"urn:jiyi:problem:{code}", "title": title, "status": status, "detail": detail, "code": code}
