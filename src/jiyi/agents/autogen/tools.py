"""The memory tools as AutoGen tools that can be dumped and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, cast

from autogen_core import CancellationToken, Component
from autogen_core.tools import BaseTool, ParametersSchema, ToolSchema
from pydantic import BaseModel, ConfigDict

from ...memory import Memory
from ..tools import MemoryTools, Tool, ToolLanguage, ToolResult
from .binding import Binding, Source, bind, for_config, source_of, tools_of


class RawArguments(BaseModel):
    """Arguments as the model wrote them; `MemoryTools` validates them."""

    model_config = ConfigDict(extra="allow")


class MemoryToolConfig(BaseModel):
    name: str
    binding: Binding
    strict: bool = False


class MemoryToolError(Exception):
    """A tool error, as text for the model."""


class MemoryTool(BaseTool[RawArguments, ToolResult], Component[MemoryToolConfig]):
    """A memory tool."""

    component_config_schema = MemoryToolConfig
    component_provider_override = "jiyi.agents.autogen.MemoryTool"

    def __init__(
        self, tool: Tool, source: Source, tools: MemoryTools, binding: Binding, *, strict: bool = False
    ) -> None:
        super().__init__(RawArguments, ToolResult, tool.name, tool.description[tools.language], strict)
        self._tool = tool
        self._source = source
        self._binding = binding
        self.tools = tools

    @property
    def schema(self) -> ToolSchema:
        parameters = self._tool.schema(self.tools.language, strict=self._strict)
        return ToolSchema(
            name=self.name,
            description=self.description,
            parameters=cast(ParametersSchema, parameters),
            strict=self._strict,
        )

    def args_type(self) -> type[BaseModel]:
        return self._tool.input_model

    async def run(self, args: RawArguments, cancellation_token: CancellationToken) -> ToolResult:
        await self._source.get()
        result = await self.tools.call(self.name, args.model_dump())
        if result.is_error:
            raise MemoryToolError(result.text)  # AutoGen marks the result as an error
        return result

    def return_value_as_string(self, value: Any) -> str:
        return value.text if isinstance(value, ToolResult) else str(value)

    async def close(self) -> None:
        """Close the memory if this tool opened it."""
        await self._source.close()

    def _to_config(self) -> MemoryToolConfig:
        return MemoryToolConfig(name=self.name, binding=for_config(self._binding), strict=self._strict)

    @classmethod
    def _from_config(cls, config: MemoryToolConfig) -> Self:
        source = source_of(config.binding.where)
        tools = tools_of(source, config.binding)
        [tool] = [tool for tool in tools.definitions if tool.name == config.name]
        return cls(tool, source, tools, config.binding, strict=config.strict)


def memory_tools(
    memory: Memory | Source | str | None,
    *,
    user_id: str,
    agent_id: str | None = None,
    session_id: str | None = None,
    group_id: str | None = None,
    private: bool = False,
    language: ToolLanguage = "en",
    only: Sequence[str] | None = None,
    strict: bool = False,
) -> list[BaseTool[Any, Any]]:
    """Return the tools for an agent's `tools=`; `memory` is an open memory, or an address to open when needed."""
    source = source_of(memory)
    binding = bind(
        source,
        user_id=user_id,
        agent_id=agent_id,
        session_id=session_id,
        group_id=group_id,
        private=private,
        language=language,
    )
    tools = tools_of(source, binding)
    return [
        MemoryTool(tool, source, tools, binding, strict=strict)
        for tool in tools.definitions
        if only is None or tool.name in only
    ]
