"""`jiyi mcp`: the MCP server."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from ..errors import InvalidInput
from . import options as opt
from .session import call

Http = Annotated[bool, typer.Option("--http", help="Serve streamable HTTP instead of stdin and stdout.")]
Host = Annotated[str, typer.Option("--host", metavar="ADDRESS", help="With --http: the address to listen on.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=1, max=65535, help="With --http: the port.")]
ALLOW_HOST = "With --http: a further name under which clients reach it; repeatable."
AllowHost = Annotated[list[str] | None, typer.Option("--allow-host", metavar="NAME", help=ALLOW_HOST)]
READ_ONLY = "Offer only the tools that change nothing."
ReadOnly = Annotated[bool, typer.Option("--read-only", help=READ_ONLY)]
Lang = Annotated[str, typer.Option("--lang", metavar="en|zh", help="The language of tools and answers.")]
ChatGPT = Annotated[bool, typer.Option("--chatgpt", help="Offer search and fetch too, for ChatGPT connectors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log more, on stderr.")]
Agent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Mark what is saved as this agent's.")]


def mcp(
    http: Http = False,
    host: Host = "127.0.0.1",
    port: Port = 8765,
    allow_host: AllowHost = None,
    read_only: ReadOnly = False,
    chatgpt: ChatGPT = False,
    lang: Lang = "en",
    verbose: Verbose = False,
    agent_id: Agent = None,
    user: opt.User = None,
    store: opt.Store = None,
) -> None:
    """Serve the memory to MCP clients: Claude, Cursor, VS Code, Codex, ChatGPT, …

    Examples:
    $ jiyi mcp
    $ jiyi mcp --user mei --store ./memory.db
    $ jiyi mcp --http --port 8765
    $ jiyi mcp --lang zh --user 林梅

    A client starts it by itself and speaks to it through stdin and stdout;
    with --http it waits at http://HOST:PORT/mcp. The user is fixed here: no
    client can name another one. Several may use one store at once.
    """
    if lang not in ("en", "zh"):
        raise InvalidInput("--lang", f"must be en or zh, not {lang!r}")
    # stdout is the wire.
    logging.basicConfig(stream=sys.stderr, level=logging.INFO if verbose else logging.WARNING)
    from ..agents.mcp.server import make_server
    from ..agents.mcp.transport import serve_http, serve_stdio

    async def serve(memory: Any, user_id: str) -> None:
        language: Any = lang
        server = make_server(
            memory, user_id=user_id, agent_id=agent_id, language=language, read_only=read_only, chatgpt=chatgpt
        )
        if not http:
            await serve_stdio(server)
            return
        key = memory.settings.mcp.key
        secret = None if key is None else key.get_secret_value()

        def ready(url: str) -> None:
            typer.echo(f"serving {url} for user {user_id!r}", err=True)

        await serve_http(server, host=host, port=port, key=secret, allowed_hosts=allow_host or (), ready=ready)

    call(serve, store=store, user=user)
