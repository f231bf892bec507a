"""Over which wire a server is reached: stdin and stdout, or HTTP with the checks that a server on a port needs."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..errors import InvalidInput

PATH = "/mcp"
SHORTEST_KEY = 16
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


async def serve_stdio(server: Server[Any]) -> None:
    """Until the client closes stdin. Nothing else may write to stdout meanwhile: it is the wire."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def serve_http(
    server: Server[Any],
    *,
    host: str,
    port: int,
    key: str | None,
    allowed_hosts: Sequence[str] = (),
    ready: Callable[[str], None],
) -> None:
    """Until it is stopped. On anything but this machine itself it is reached only with a key. `ready` is told the
    address once clients can connect."""
    import uvicorn

    app = http_app(server, host=host, key=key, allowed_hosts=allowed_hosts)
    with listening(host, port) as sock:
        ready(f"http://{in_url(host)}:{port}{PATH}")
        # Without a log_config of its own: its default writes to stdout.
        await uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).serve(sockets=[sock])


def listening(host: str, port: int) -> socket.socket:
    """The socket, made here because uvicorn ends the process if it cannot have it."""
    bare = host.strip("[]")
    try:
        return socket.create_server((bare, port), family=socket.AF_INET6 if ":" in bare else socket.AF_INET)
    except OSError as error:
        raise InvalidInput("--port", f"cannot listen on {in_url(host)}:{port}: {error.strerror or error}") from None


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def http_app(server: Server[Any], *, host: str, key: str | None, allowed_hosts: Sequence[str] = ()) -> ASGIApp:
    if key is None and not is_loopback(host):
        raise InvalidInput(
            "--host", f"{host} can be reached from other machines: set a key first (JIYI_MCP__KEY, see docs)"
        )
    if key is not None and len(key) < SHORTEST_KEY:
        raise InvalidInput("mcp.key", f"has {len(key)} characters; it needs at least {SHORTEST_KEY}")
    app: ASGIApp = server.streamable_http_app(
        streamable_http_path=PATH, transport_security=security(host, allowed_hosts), host=host
    )
    return app if key is None else KeyRequired(app, key)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def security(host: str, allowed_hosts: Sequence[str]) -> TransportSecuritySettings:
    """Which Host and Origin headers are taken. A web page that lets its name point to this machine (DNS rebinding)
    sends its own name in both."""
    named = [*LOOPBACK, *allowed_hosts]
    if host not in ("0.0.0.0", "::"):  # noqa: S104 - that is every address, and no name
        named.append(in_url(host))
    hosts = [entry for name in dict.fromkeys(named) for entry in (name, f"{name}:*")]
    origins = [f"{scheme}://{entry}" for scheme in ("http", "https") for entry in hosts]
    return TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)


class KeyRequired:
    """Lets in only those who show the key, as `Authorization: Bearer KEY`."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            shown = Headers(scope=scope).get("authorization", "").encode("utf-8", "surrogateescape")
            if not compare_digest(shown, self._expected):
                refusal = PlainTextResponse(
                    "a key is needed: Authorization: Bearer KEY", 401, {"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)
