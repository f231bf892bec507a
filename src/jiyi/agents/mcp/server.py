"""The MCP server of one user, over stdio, or over HTTP with checks of host, origin and key."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hmac import compare_digest
from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings

from ... import __version__
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
from ...memory import Memory
from ..tools import MEMORY_TOOLS_SYSTEM_PROMPTS, TOOLS, MemoryTools, ToolLanguage
from .tools import (
    connector_tools,
    fetch,
    mcp_tool,
    prompt,
    prompts,
    read_resource,
    resource_templates,
    resources,
    search,
    tool_result,
)

Context = ServerRequestContext[Any]
CONNECTOR = {"search": search, "fetch": fetch}


def make_server(
    memory: Memory,
    *,
    user_id: str,
    agent_id: str | None = None,
    language: ToolLanguage = "en",
    read_only: bool = False,
    chatgpt: bool = False,
) -> Server[Any]:
    """Make a server over an open memory for one user; no request can name another user.

    `chatgpt` adds the tools `search` and `fetch`, which ChatGPT connectors need.
    """
    only = tuple(tool.name for tool in TOOLS if tool.read_only or not read_only)
    connector = CONNECTOR if chatgpt else {}

    def tools() -> MemoryTools:
        # New for each request: a connection may serve many conversations, so a repeated search is not a loop.
        return MemoryTools(memory, user_id=user_id, agent_id=agent_id, language=language, only=only)

    tools()  # validates user and agent before a client connects

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        own = [mcp_tool(tool, language) for tool in tools().definitions]
        return types.ListToolsResult(tools=[*own, *(connector_tools(language) if connector else [])])

    async def call_tool(_: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = call.arguments or {}
        if call.name in connector:
            return await connector[call.name](tools(), arguments)
        return tool_result(await tools().call(call.name, arguments))

    async def list_resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=resources(language))

    async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=resource_templates(language))

    async def read(_: Context, wanted: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await read_resource(str(wanted.uri), tools())

    async def list_prompts(_: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts(language))

    async def get_prompt(_: Context, wanted: types.GetPromptRequestParams) -> types.GetPromptResult:
        return prompt(wanted.name, wanted.arguments, language)

    return Server(
        "jiyi",
        title="Jiyi · 记忆",
        version=__version__,
        instructions=MEMORY_TOOLS_SYSTEM_PROMPTS[language],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
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
    allowed_hosts: Sequence[str] = (),
    ready: Callable[[str], None],
) -> None:
    """Serve until stopped; other machines need a key. `ready` is called with the URL once clients can connect."""
    import uvicorn

    app = http_app(server, host=host, key=key, allowed_hosts=allowed_hosts)
    with bind_socket(host, port) as sock:
        ready(f"http://{url_host(host)}:{sock.getsockname()[1]}{PATH}")
        # The default log_config writes to stdout.
        await uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).serve(sockets=[sock])


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
