"""AutoGen's model context with a memory behind it.

What is recalled is put together anew each time the messages are asked for, in one system message in front of all
others; it is never stored among the messages, so nothing piles up. Results of memory tools from earlier turns shrink to
a placeholder with their keys; `get_memory_detail` brings them back.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, Self

from autogen_core import Component, ComponentModel, FunctionCall
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from pydantic import BaseModel, Field

from ...errors import JiyiError
from ...memory import Memory
from ...text.fence import harmless
from ..tools import ToolLanguage, ToolUsage, key_of
from .binding import Binding, Source, bound_to, desk_of, source_of, to_write_down
from .observing import Observer
from .recalling import Recalled, recall_for

logger = logging.getLogger(__name__)

_PLACEHOLDERS: dict[ToolLanguage, str] = {
    "en": "(Answer of a memory tool in an earlier turn, put away: {keys}. get_memory_detail gives one again.)",
    "zh": "（较早一轮的记忆工具结果，已收起：{keys}。可用 get_memory_detail 重新获取。）",
}
_OFFLOADED: dict[ToolLanguage, str] = {
    "en": "(A long result, kept in memory as [{key}]; get_memory_detail gives all of it. It begins: {summary})",
    "zh": "（结果较长，已存入记忆 [{key}]；用 get_memory_detail 获取全文。开头：{summary}）",
}
_KEY = re.compile(r"^- \[([^\]\n]+)\]", re.MULTILINE)


class MemoryContextConfig(BaseModel):
    binding: Binding
    enable_proactive_search: bool
    proactive_search_threshold: float
    guide: bool = True
    observe: bool = True
    offload_over: int | None = None
    buffer_size: int | None = None
    memory_model_client: ComponentModel | None = None
    initial_messages: list[LLMMessage] | None = None


class MemoryContextState(BaseModel):
    messages: list[LLMMessage] = Field(default_factory=list)
    observed: int = 0


class MemoryContext(ChatCompletionContext, Component[MemoryContextConfig]):
    """A context that recalls, answers calls of memory tools, and keeps what is said.

    - `enable_proactive_search`, `proactive_search_threshold`: recall for the user's last message without being asked,
      from this relevance on; by default as the settings `tools.*` say. A `memory_model_client` plans the searches.
    - `guide`: tell the model how to use the memory tools.
    - `observe`: take the conversation into the memory at the end of each turn; a failure is logged, not raised.
    - `offload_over`: results of other tools with more characters are kept in the memory, with a summary in their place.
    - `buffer_size`: give the model only so many of the last messages.
    """

    component_config_schema = MemoryContextConfig
    component_provider_override = "jiyi.agents.autogen.MemoryContext"

    def __init__(
        self,
        memory: Memory | Source | str | None = None,
        *,
        user_id: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        group_id: str | None = None,
        private: bool = False,
        language: ToolLanguage = "en",
        memory_model_client: ChatCompletionClient | None = None,
        enable_proactive_search: bool | None = None,
        proactive_search_threshold: float | None = None,
        guide: bool = True,
        observe: bool = True,
        offload_over: int | None = None,
        buffer_size: int | None = None,
        initial_messages: list[LLMMessage] | None = None,
    ) -> None:
        super().__init__(initial_messages)
        self._source = source_of(memory)
        self._binding = bound_to(
            self._source,
            user_id=user_id,
            agent_id=agent_id,
            session_id=session_id,
            group_id=group_id,
            private=private,
            language=language,
        )
        self.tools = desk_of(self._source, self._binding)
        settings = self._source.memory.settings.tools
        asked, threshold = enable_proactive_search, proactive_search_threshold
        self._proactive = settings.enable_proactive_search if asked is None else asked
        self._threshold = settings.proactive_search_threshold if threshold is None else threshold
        self._model_client = memory_model_client
        self._guide = guide
        self._observer = Observer(self._source, self.tools.bound) if observe else None
        self._offload_over = offload_over
        self._buffer_size = buffer_size
        self._recalled: Recalled | None = None

    # -- AutoGen's face -----------------------------------------------------------------------------------------------

    async def add_message(self, message: LLMMessage) -> None:
        """Add a message. The answer to the user ends a turn: then the turn is taken into the memory."""
        if isinstance(message, FunctionExecutionResultMessage) and self._offload_over is not None:
            message = await self._offloaded(message, self._offload_over)
        await super().add_message(message)
        if isinstance(message, UserMessage):
            self.tools.turn()
            self._recalled = None
        elif isinstance(message, AssistantMessage) and isinstance(message.content, str):
            self.tools.answered(message.content)
            if self._observer:
                await self._observer.take(self._messages)

    async def get_messages(self) -> list[LLMMessage]:
        """The messages for the model: open calls of memory tools answered, and what is known in front."""
        await self._source.get()
        await self._answer_open_calls()
        front = await self._front()
        return [*([SystemMessage(content=front)] if front else []), *self._told()]

    async def clear(self) -> None:
        """Start the conversation anew; the memory keeps what it has."""
        if self._observer:
            await self._observer.take(self._messages)
            self._observer.observed = 0
        self._recalled = None
        await super().clear()

    async def save_state(self) -> Mapping[str, Any]:
        observed = self._observer.observed if self._observer else 0
        return MemoryContextState(messages=self._messages, observed=observed).model_dump()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        loaded = MemoryContextState.model_validate(state)
        self._messages = loaded.messages
        self._recalled = None
        if self._observer:
            self._observer.observed = loaded.observed

    async def close(self) -> None:
        """Take in what is left of the last turn; close the memory if this context was loaded and has opened it."""
        if self._observer:
            await self._observer.take(self._messages)
        await self._source.close()

    def usage(self) -> ToolUsage:
        """How the agent has used its memory; see `MemoryTools.usage`."""
        return self.tools.usage()

    # -- what the model is given --------------------------------------------------------------------------------------

    async def _front(self) -> str:
        parts = [self.tools.system_prompt] if self._guide else []
        said = self._last_said()
        if self._proactive and said:
            if self._recalled is None:
                self._recalled = await recall_for(
                    said, self.tools.bound, self._threshold, self._model_client, skip_session=self._buffer_size is None
                )
                self.tools.recalled(self._recalled.keys)
            parts.append(await self._recalled.render(self.tools.bound, self.tools.language))
        return "\n".join(filter(None, parts))

    def _last_said(self) -> str:
        said = next((message for message in reversed(self._messages) if isinstance(message, UserMessage)), None)
        return text_of(said) if said else ""

    def _told(self) -> list[LLMMessage]:
        messages = self._messages if self._buffer_size is None else self._messages[-self._buffer_size :]
        while messages and isinstance(messages[0], FunctionExecutionResultMessage):
            messages = messages[1:]  # its call is no longer there
        turn = max((at for at, message in enumerate(messages) if isinstance(message, UserMessage)), default=0)
        return [
            self._put_away(message) if at < turn and isinstance(message, FunctionExecutionResultMessage) else message
            for at, message in enumerate(messages)
        ]

    def _put_away(self, message: FunctionExecutionResultMessage) -> FunctionExecutionResultMessage:
        results = [
            result.model_copy(
                update={
                    "content": _PLACEHOLDERS[self.tools.language].format(
                        keys=", ".join(_KEY.findall(result.content)) or "-"
                    )
                }
            )
            if self.tools.has(result.name) and not result.is_error
            else result
            for result in message.content
        ]
        return FunctionExecutionResultMessage(content=results)

    # -- tool calls ---------------------------------------------------------------------------------------------------

    async def _answer_open_calls(self) -> None:
        """An agent without the tools leaves their calls open; they are answered here."""
        last = self._messages[-1] if self._messages else None
        if isinstance(last, AssistantMessage) and isinstance(last.content, list):
            results = await self._handle_tool_calls(last.content)
            if results:
                await super().add_message(FunctionExecutionResultMessage(content=results))

    async def _handle_tool_calls(self, tool_calls: Sequence[FunctionCall]) -> list[FunctionExecutionResult]:
        results = []
        for call in tool_calls:
            if self.tools.has(call.name):
                result = await self.tools.call(call.name, call.arguments)
                results.append(
                    FunctionExecutionResult(
                        content=result.text, name=call.name, call_id=call.id, is_error=result.is_error
                    )
                )
        return results

    async def _offloaded(self, message: FunctionExecutionResultMessage, over: int) -> FunctionExecutionResultMessage:
        """Long results of other tools, kept in the memory, with a summary in their place."""
        results = []
        for result in message.content:
            kept = result
            if len(result.content) > over and not self.tools.has(result.name):
                kept = await self._kept_elsewhere(result)
            results.append(kept)
        return FunctionExecutionResultMessage(content=results)

    async def _kept_elsewhere(self, result: FunctionExecutionResult) -> FunctionExecutionResult:
        bound = self.tools.bound
        try:
            receipt = await (await self._source.get()).add(
                {"text": result.content, "type": "command_output", "tags": [result.name]},
                user_id=bound.user_id,
                agent_id=bound.agent_id,
                session_id=bound.session_id,
                group_id=bound.group_id,
                actor=bound.actor,
            )
        except JiyiError as error:
            logger.warning("a long result stays in the conversation, as it could not be kept: %s", error)
            return result
        if not receipt.memories:
            return result
        saved = receipt.memories[0]
        told = _OFFLOADED[self.tools.language].format(key=key_of(saved), summary=harmless(saved.summary))
        return result.model_copy(update={"content": told})

    # -- configuration ------------------------------------------------------------------------------------------------

    def _to_config(self) -> MemoryContextConfig:
        return MemoryContextConfig(
            binding=to_write_down(self._binding),
            enable_proactive_search=self._proactive,
            proactive_search_threshold=self._threshold,
            guide=self._guide,
            observe=self._observer is not None,
            offload_over=self._offload_over,
            buffer_size=self._buffer_size,
            memory_model_client=self._model_client.dump_component() if self._model_client else None,
            initial_messages=self._initial_messages,
        )

    @classmethod
    def _from_config(cls, config: MemoryContextConfig) -> Self:
        client = config.memory_model_client
        return cls(
            source_of(config.binding.where),
            **config.binding.model_dump(exclude={"where"}),
            memory_model_client=ChatCompletionClient.load_component(client) if client else None,
            enable_proactive_search=config.enable_proactive_search,
            proactive_search_threshold=config.proactive_search_threshold,
            guide=config.guide,
            observe=config.observe,
            offload_over=config.offload_over,
            buffer_size=config.buffer_size,
            initial_messages=config.initial_messages,
        )


def text_of(message: UserMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))
