"""Serve MCP over stdio, or over HTTP with checks of host, origin and key."""

from collections.abc import Callable, Sequence
from hmac import compare_digest
from math import ceil
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from ...errors import InvalidInput
from ...http_server import (
    AsgiApp,
    AsgiScope,
    HostOriginGuard,
    Receive,
    Send,
    bind_socket,
    header,
    host_names,
    is_loopback,
    refuse,
    url_host,
)

PATH = "/mcp"
MIN_KEY_LENGTH = 16


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes stdin. Nothing else may write to stdout."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def serve_http(
    server: Server[Any],
    *,
    host: str,
    port: int,
    key: str | None,
    shutdown_timeout_s: float,
    allowed_hosts: Sequence[str] = (),
    ready: Callable[[str], None],
) -> None:
    """Serve until stopped; other machines need a key. `ready` is called with the URL once clients can connect."""
    import uvicorn

    from ...http_protocol import GuardedProtocol, ReturningServer

    app = http_app(server, host=host, key=key, allowed_hosts=allowed_hosts)
    with bind_socket(host, port) as sock:
        ready(f"http://{url_host(host)}:{sock.getsockname()[1]}{PATH}")
        # The default log_config writes to stdout.
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            http=GuardedProtocol,
            ws="none",
            timeout_graceful_shutdown=ceil(shutdown_timeout_s),
        )
        await ReturningServer(config).serve(sockets=[sock])


def http_app(server: Server[Any], *, host: str, key: str | None, allowed_hosts: Sequence[str] = ()) -> AsgiApp:
    if key is None and not is_loopback(host):
        raise InvalidInput(
            "--host", f"{host} can be reached from other machines: set a key first (JIYI_MCP__KEY, see docs)"
        )
    if key is not None and len(key) < MIN_KEY_LENGTH:
        raise InvalidInput("mcp.key", f"has {len(key)} characters; it needs at least {MIN_KEY_LENGTH}")
    app: AsgiApp = server.streamable_http_app(
        streamable_http_path=PATH,
        # HostOriginGuard checks names, for REST and MCP alike.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        host=host,
    )
    guarded = app if key is None else KeyRequired(app, key)
    return HostOriginGuard(guarded, host_names(host, allowed_hosts), same_origin=False)


class KeyRequired:
    """Requires the header `Authorization: Bearer KEY`."""

    def __init__(self, app: AsgiApp, key: str) -> None:
        self._app = app
        self._expected = f"Bearer {key}".encode()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            shown = (header(scope, b"authorization") or "").encode("latin-1")
            if not compare_digest(shown, self._expected):
                asked = [(b"www-authenticate", b"Bearer")]
                await refuse(send, 401, "key_needed", "a key is needed: Authorization: Bearer KEY", asked)
                return
        await self._app(scope, receive, send)
