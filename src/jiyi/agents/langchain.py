"""Jiyi's tools as LangChain tools, also under LangMem's names.

from jiyi.agents.langchain import langchain_tools

agent = create_agent(model, tools=langchain_tools(memory, user_id="mei"))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import sync
from ..errors import MissingExtra
from ..memory import Memory
from .tools import LANGMEM_TOOLS, MemoryTools, Tool, ToolLanguage, ToolResult

try:
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
except ImportError as error:
    raise MissingExtra("langchain", "langchain-core") from error

LANGMEM_NAMES = tuple(tool.name for tool in LANGMEM_TOOLS)


def langchain_tools(
    memory: Memory | sync.Memory,
    *,
    user_id: str,
    agent_id: str | None = None,
    session_id: str | None = None,
    group_id: str | None = None,
    private: bool = False,
    language: ToolLanguage = "en",
    only: Sequence[str] | None = None,
) -> list[BaseTool]:
    """The tools for an agent; `only=LANGMEM_NAMES` gives `manage_memory` and `search_memory` instead.

    With a `jiyi.sync.Memory` they can be invoked from synchronous and asynchronous programs, with a `jiyi.Memory` from
    asynchronous ones. A message's artifact is the answer as data.
    """
    tools = MemoryTools(
        memory,
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        group_id=group_id,
        private=private,
        language=language,
        only=only,
    )
    return [_structured(tools, tool) for tool in tools.definitions]


def _structured(tools: MemoryTools, tool: Tool) -> BaseTool:
    async def later(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return _told(await tools.call(tool.name, arguments))

    def now(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return _told(tools.call_sync(tool.name, arguments))

    return StructuredTool(
        name=tool.name,
        description=tool.description[tools.language],
        args_schema=tool.schema(tools.language),  # as JSON schema: Jiyi reads the arguments itself, and tells more
        func=now,
        coroutine=later,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _told(result: ToolResult) -> tuple[str, dict[str, Any]]:
    if result.is_error:
        raise ToolException(result.text)  # LangChain marks the message as an error by this
    return result.text, dict(result.data)
