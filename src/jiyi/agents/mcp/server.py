"""A server for one user: which requests it answers, and with what."""

from __future__ import annotations

from typing import Any

from ... import __version__
from ...errors import MissingExtra
from ...memory import Memory
from ..tools import MEMORY_TOOLS_SYSTEM_PROMPTS, MemoryTools, ToolLanguage

try:
    import mcp_types as types
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
except ImportError as error:
    raise MissingExtra("mcp", "mcp") from error

from . import offers, reading

Context = ServerRequestContext[Any]
CONNECTOR = {"search": offers.search, "fetch": offers.fetch}


def make_server(
    memory: Memory, *, user_id: str, agent_id: str | None = None, language: ToolLanguage = "en", read_only: bool = False
) -> Server[Any]:
    """A server over an open memory. The user is bound here: no request can name another one."""
    only = offers.names(read_only=read_only)

    def tools() -> MemoryTools:
        """Anew for each request: one connection may serve many conversations, so that a repeated search is no loop.
        The limit of calls holds all the same."""
        return MemoryTools(memory, user_id=user_id, agent_id=agent_id, language=language, only=only)

    tools()  # a wrong user or agent is refused before anybody connects

    async def list_tools(_: Context, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        own = [offers.offer(tool, language) for tool in tools().definitions]
        return types.ListToolsResult(tools=[*own, *offers.connector_offers(language)])

    async def call_tool(_: Context, call: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = call.arguments or {}
        if call.name in CONNECTOR:
            return await CONNECTOR[call.name](tools(), arguments)
        return offers.answer(await tools().call(call.name, arguments))

    async def list_resources(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=reading.resources(language))

    async def list_templates(_: Context, __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=reading.templates(language))

    async def read_resource(_: Context, wanted: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        return await reading.read(str(wanted.uri), tools())

    async def list_prompts(_: Context, __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=reading.prompts(language))

    async def get_prompt(_: Context, wanted: types.GetPromptRequestParams) -> types.GetPromptResult:
        return reading.prompt(wanted.name, wanted.arguments, language)

    return Server(
        "jiyi",
        title="Jiyi · 记忆",
        version=__version__,
        instructions=MEMORY_TOOLS_SYSTEM_PROMPTS[language],
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
