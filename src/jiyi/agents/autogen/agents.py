"""AutoGen agents with memory, an assistant and an agent that recalls, and the memory tools as AutoGen tools."""

from collections.abc import Sequence
from typing import Any, Self, Unpack, cast

from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_core import CancellationToken, Component, ComponentModel
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, ParametersSchema, ToolSchema
from pydantic import BaseModel, ConfigDict

from ...ids import new_id
from ...memory import Memory
from .. import recall_agent
from ..tools import MemoryTools, Tool, ToolLanguage, ToolResult
from .binding import Binding, ScopeOptions, Source, bind, for_config, source_of, tools_of
from .context import MemoryContext, chat_of


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
    only: Sequence[str] | None = None,
    strict: bool = False,
    **scope: Unpack[ScopeOptions],
) -> list[BaseTool[Any, Any]]:
    """Return the tools for an agent's `tools=`; `memory` is an open memory, or an address to open when needed."""
    source = source_of(memory)
    binding = bind(source, **scope)
    tools = tools_of(source, binding)
    return [
        MemoryTool(tool, source, tools, binding, strict=strict)
        for tool in tools.definitions
        if only is None or tool.name in only
    ]


def build_agent(
    name: str,
    model_client: ChatCompletionClient,
    memory: Memory | str | None,
    *,
    user_id: str,
    session_id: str | None = None,
    group_id: str | None = None,
    private: bool = False,
    language: ToolLanguage | None = None,
    tools: Sequence[Any] = (),
    only: Sequence[str] | None = None,
    memory_model_client: ChatCompletionClient | None = None,
    enable_proactive_search: bool | None = None,
    proactive_search_threshold: float | None = None,
    observe: bool = True,
    offload_over: int | None = None,
    buffer_size: int | None = None,
    max_tool_iterations: int = 5,
    **more: Any,
) -> AssistantAgent:
    """Make an `AssistantAgent` with the memory tools and a `MemoryContext`, in a new session unless one is named.
    `only` names the memory tools to offer, `tools` are further ones, `more` goes to `AssistantAgent`. Structured output
    (`output_content_type`) needs strict tools, so they are strict then."""
    source = source_of(memory)
    scope: ScopeOptions = {
        "user_id": user_id,
        "agent_id": name,
        "session_id": session_id or new_id(),
        "group_id": group_id,
        "private": private,
        "language": language,
    }
    context = MemoryContext(
        source,
        **scope,
        memory_model_client=memory_model_client,
        enable_proactive_search=enable_proactive_search,
        proactive_search_threshold=proactive_search_threshold,
        observe=observe,
        offload_over=offload_over,
        buffer_size=buffer_size,
    )
    return AssistantAgent(
        name,
        model_client,
        tools=[*memory_tools(source, **scope, only=only, strict="output_content_type" in more), *tools],
        model_context=context,
        max_tool_iterations=max_tool_iterations,
        **more,
    )


class MemRecallAgentConfig(BaseModel):
    name: str
    description: str
    binding: Binding
    limit: int
    model_client: ComponentModel | None = None


class MemRecallAgent(BaseChatAgent, Component[MemRecallAgentConfig]):
    """Answers a message with the memories for it, and names the parts for which there are none."""

    component_config_schema = MemRecallAgentConfig
    component_provider_override = "jiyi.agents.autogen.MemRecallAgent"

    def __init__(
        self,
        name: str,
        memory: Memory | Source | str | None = None,
        *,
        user_id: str,
        agent_id: str | None = None,
        group_id: str | None = None,
        private: bool = False,
        model_client: ChatCompletionClient | None = None,
        limit: int = 8,
        description: str = "Recalls memories about the user: plans searches and merges the results.",
    ) -> None:
        super().__init__(name, description)
        self._source = source_of(memory)
        self._binding = bind(self._source, user_id=user_id, agent_id=agent_id, group_id=group_id, private=private)
        self._model_client = model_client
        self._limit = limit

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[BaseChatMessage], cancellation_token: CancellationToken) -> Response:
        """Recall for the last message."""
        binding = self._binding
        agent = recall_agent.MemRecallAgent(
            await self._source.get(),
            user_id=binding.user_id,
            agent_id=binding.agent_id if binding.private else None,
            group_id=binding.group_id if binding.private else None,
            chat=chat_of(self._model_client) if self._model_client else None,
        )
        found = await agent.recall(messages[-1].to_model_text() if messages else "", limit=self._limit)
        return Response(chat_message=TextMessage(content=found.text(), source=self.name))

    async def on_reset(self, cancellation_token: CancellationToken) -> None:
        """Do nothing: the agent keeps no state, and its searches are short."""

    on_pause = on_resume = on_reset

    async def close(self) -> None:
        """Close the memory if it was opened here."""
        await self._source.close()

    def _to_config(self) -> MemRecallAgentConfig:
        return MemRecallAgentConfig(
            name=self.name,
            description=self.description,
            binding=for_config(self._binding),
            limit=self._limit,
            model_client=self._model_client.dump_component() if self._model_client else None,
        )

    @classmethod
    def _from_config(cls, config: MemRecallAgentConfig) -> Self:
        client = config.model_client
        return cls(
            config.name,
            source_of(config.binding.where),
            **config.binding.model_dump(include={"user_id", "agent_id", "group_id", "private"}),
            model_client=ChatCompletionClient.load_component(client) if client else None,
            limit=config.limit,
            description=config.description,
        )
