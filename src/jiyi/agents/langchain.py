"""The memory tools as LangChain tools, also under LangMem's names.

from jiyi.agents.langchain import langchain_tools

agent = create_agent(model, tools=langchain_tools(memory, user_id="mei"))
"""

from typing import Any

from .. import sync
from ..errors import MissingExtra
from ..memory import Memory
from .tools import LANGMEM_TOOLS, MemoryTools, Tool, ToolResult

try:
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
except ImportError as error:
    raise MissingExtra("langchain", "langchain-core") from error

LANGMEM_NAMES = tuple(tool.name for tool in LANGMEM_TOOLS)


def langchain_tools(memory: Memory | sync.Memory, *, user_id: str, **options: Any) -> list[BaseTool]:
    """Return the tools for an agent; `options` are those of `MemoryTools`. `only=LANGMEM_NAMES` returns `manage_memory`
    and `search_memory`. A `jiyi.sync.Memory` serves `invoke` and `ainvoke`, a `jiyi.Memory` serves `ainvoke`. The
    artifact of a tool message is the result as data."""
    return structured_tools(MemoryTools(memory, user_id=user_id, **options))


def structured_tools(tools: MemoryTools) -> list[BaseTool]:
    return [_structured(tools, tool) for tool in tools.definitions]


def _structured(tools: MemoryTools, tool: Tool) -> BaseTool:
    async def call(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return _unpack(await tools.call(tool.name, arguments))

    def call_sync(**arguments: Any) -> tuple[str, dict[str, Any]]:
        return _unpack(tools.call_sync(tool.name, arguments))

    return StructuredTool(
        name=tool.name,
        description=tool.description[tools.language],
        args_schema=tool.schema(tools.language),  # JSON schema: MemoryTools validates the arguments itself
        func=call_sync,
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )


def _unpack(result: ToolResult) -> tuple[str, dict[str, Any]]:
    if result.is_error:
        raise ToolException(result.text)  # LangChain marks the message as an error
    return result.text, dict(result.data)
