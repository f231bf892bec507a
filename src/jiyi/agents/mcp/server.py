"""The MCP server of one user."""

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from ... import __version__
from ...engine import runtime
from ...memory import Memory
from ..tools import MODEL_TOOLS, TOOLS, MemoryTools, ToolLanguage
from .resources import prompt, prompts, read_resource, resource_templates, resources
from .tools import connector_tools, fetch, mcp_tool, search, tool_result

Context = ServerRequestContext[Any]
CONNECTOR = {"search": search, "fetch": fetch}


def make_server(
    memory: Memory,
    *,
    user_id: str,
    agent_id: str | None = None,
    group_id: str | None = None,
    private: bool = False,
    language: ToolLanguage = "en",
    read_only: bool = False,
    chatgpt: bool = False,
) -> Server[Any]:
    """Make a server over an open memory for one user; no request can name another user. `private` limits reading to
    the agent and the group. `chatgpt` adds the tools `search` and `fetch`, which ChatGPT connectors need. With a
    language model there is `ask_memory` too."""
    offered = (*TOOLS, *(MODEL_TOOLS if runtime(memory).llm is not None else ()))
    only = tuple(tool.name for tool in offered if tool.read_only or not read_only)
    connector = CONNECTOR if chatgpt else {}

    def tools() -> MemoryTools:
        # New for each request: a connection may serve many conversations, so a repeated search is not a loop.
        scope: Any = {"user_id": user_id, "agent_id": agent_id, "group_id": group_id, "private": private}
        return MemoryTools(memory, **scope, language=language, only=only)

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
        instructions=tools().system_prompt,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
