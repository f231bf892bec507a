"""An AutoGen model context with a memory. Recalled memories are rendered on each `get_messages`, at the end of the last
user message, and are never stored among the messages, so they do not pile up. A placeholder with their keys replaces
results of memory tools from earlier turns."""

import logging
import re
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, Unpack
from weakref import WeakKeyDictionary

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

from ...engine import runtime
from ...errors import JiyiError
from ...memory import Memory
from ...models import Message
from ...read.accesses import asked_by
from ...text.fence import quoted, strip_context
from ..chat import Chat, Turn
from ..recall import Recalled
from ..recall_agent import MemRecallAgent
from ..tools import ToolLanguage, ToolUsage, key_of, notes
from .binding import Binding, ScopeOptions, Source, bind, for_config, source_of, tools_of

logger = logging.getLogger(__name__)

_PLACEHOLDERS: dict[ToolLanguage, str] = {
    "en": "(Result of a memory tool in an earlier turn, removed: {keys}. get_memory_detail returns one again.)",
    "zh": "（较早一轮的记忆工具结果，已省略：{keys}。可用 get_memory_detail 重新获取。）",
}
_OFFLOADED: dict[ToolLanguage, str] = {
    "en": "(A long result, stored as memory [{key}]; get_memory_detail returns all of it. It begins: {summary})",
    "zh": "（结果较长，已存入记忆 [{key}]；用 get_memory_detail 获取全文。开头：{summary}）",
}
_HEADINGS: dict[ToolLanguage, str] = {
    "en": "Memories for the user's last message (summaries; get_memory_detail returns the full text):",
    "zh": "与用户最后一条消息有关的记忆（摘要；用 get_memory_detail 获取全文）：",
}
_PERSON = re.compile(r"(?:user|human|person|customer|用户)(?:$|[_\W\d]|proxy)", re.IGNORECASE)
_REPEATED_WITHIN_S = 600.0
_MAX_TOKENS = 8_000  # of the lines, of which summaries are shown
_KEY = re.compile(r"^- \[([^\]\n]+)\]", re.MULTILINE)


# Texts that agents of this process observed lately, by user, with the context and the time.
_observed: WeakKeyDictionary[Memory, OrderedDict[tuple[str, str], tuple[int, float]]] = WeakKeyDictionary()


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
    """A context that recalls, answers calls of memory tools, and stores the conversation.

    - `enable_proactive_search`: recall for the user's last message; default: the setting of this name.
    - `proactive_search_threshold`: leave out recalled memories below this relevance; default: the setting of this name.
    - `memory_model_client`: a model that plans the searches of a recall.
    - `guide`: add the guide to the memory tools.
    - `observe`: store the conversation at the end of each turn; a failure is logged, not raised.
    - `offload_over`: store results of other tools with more characters than this, with a summary in their place.
    - `buffer_size`: number of last messages to give to the model.
    """

    component_config_schema = MemoryContextConfig
    component_provider_override = "jiyi.agents.autogen.MemoryContext"

    def __init__(
        self,
        memory: Memory | Source | str | None = None,
        *,
        memory_model_client: ChatCompletionClient | None = None,
        enable_proactive_search: bool | None = None,
        proactive_search_threshold: float | None = None,
        guide: bool = True,
        observe: bool = True,
        offload_over: int | None = None,
        buffer_size: int | None = None,
        initial_messages: list[LLMMessage] | None = None,
        **scope: Unpack[ScopeOptions],
    ) -> None:
        super().__init__(initial_messages)
        self._source = source_of(memory)
        self._binding = bind(self._source, **scope)
        self.tools = tools_of(self._source, self._binding)
        settings = runtime(self._source.memory).settings.tools
        enabled, threshold = enable_proactive_search, proactive_search_threshold
        self._proactive = settings.enable_proactive_search if enabled is None else enabled
        self._threshold = settings.proactive_search_threshold if threshold is None else threshold
        self._model_client = memory_model_client
        self._guide = guide
        self._observe = observe
        self._observed = 0  # messages that are stored
        self._offload_over = offload_over
        self._buffer_size = buffer_size
        self._recalled: Recalled | None = None  # None until this turn has recalled

    async def add_message(self, message: LLMMessage) -> None:
        """Add a message. The answer to the user ends a turn and stores it."""
        if isinstance(message, FunctionExecutionResultMessage) and self._offload_over is not None:
            message = await self._offloaded(message, self._offload_over)
        await super().add_message(message)
        if isinstance(message, UserMessage):
            self.tools.turn()
            self._recalled = None
        elif isinstance(message, AssistantMessage) and isinstance(message.content, str):
            self.tools.answered(message.content)
            await self._store_turn()

    async def get_messages(self) -> list[LLMMessage]:
        """Answer open calls of memory tools, and return the messages with the guide in front and recalled memories in
        the last user message."""
        await self._source.get()
        await self._answer_open_calls()
        block = await self._block()
        window = self._window()
        at = max((at for at, message in enumerate(window) if isinstance(message, UserMessage)), default=None)
        if block and at is not None:
            window[at] = _with_block(window[at], block)
        elif block:
            window.append(SystemMessage(content=block))
        return [*([SystemMessage(content=self.tools.system_prompt)] if self._guide else []), *window]

    async def clear(self) -> None:
        """Store the last turn and remove all messages; the memory keeps its memories."""
        await self._store_turn()
        self._observed = 0
        self._recalled = None
        await super().clear()

    async def save_state(self) -> Mapping[str, Any]:
        return MemoryContextState(messages=self._messages, observed=self._observed).model_dump()

    async def load_state(self, state: Mapping[str, Any]) -> None:
        loaded = MemoryContextState.model_validate(state)
        self._messages = loaded.messages
        self._recalled = None
        self._observed = loaded.observed

    async def close(self) -> None:
        """Store the last turn; close the memory if this context opened it."""
        await self._store_turn()
        await self._source.close()

    def usage(self) -> ToolUsage:
        """Return the counters of the agent; see `MemoryTools.usage`."""
        return self.tools.usage()

    async def _block(self) -> str:
        last = last_of_user(self._messages)
        self.tools.listen(text_of(last) if last else "")
        if not self._proactive:
            return ""
        if self._recalled is None:
            self._recalled = await self._recall()
            self.tools.recalled([*map(key_of, self._recalled.standing), *map(key_of, self._recalled.hits)])
        else:
            self._recalled = await self._current(self._recalled)
        return await self._recalled_text(self._recalled)

    async def _recall(self) -> Recalled:
        last = last_of_user(self._messages)
        said = strip_context(text_of(last) if last else "").strip()
        skip = self._buffer_size is None
        conversation = self.tools.conversation
        recalled = await conversation.recall(
            said, min_relevance_score=self._threshold, skip_session=skip, max_tokens=_MAX_TOKENS
        )
        if self._model_client is None or not said or recalled.problems:
            return recalled
        agent = MemRecallAgent(
            conversation.memory,
            user_id=conversation.user_id,
            **conversation.filters,
            chat=chat_of(self._model_client),
        )
        try:
            with asked_by(conversation.session_id, conversation.agent_id):
                planned = await agent.recall(said, min_relevance_score=self._threshold)
        except JiyiError as error:
            logger.warning("the planned searches failed: %s", error)
            return recalled
        known = {*recalled.ids}
        more = [hit for hit in planned.hits if hit.id not in known and not (skip and conversation.said_here(hit))]
        hits = sorted([*recalled.hits, *more], key=lambda hit: -hit.relevance_score)
        return replace(recalled, hits=tuple(hits))

    async def _current(self, recalled: Recalled) -> Recalled:
        """Return the memories with their present summaries: one may change or be forgotten within a turn."""
        present = {memory.id: memory for memory in await self.tools.conversation.current(recalled.ids)}
        hits = (hit for hit in recalled.hits if hit.id in present)
        return replace(
            recalled,
            standing=tuple(present[memory.id] for memory in recalled.standing if memory.id in present),
            hits=tuple(hit.model_copy(update={"summary": present[hit.id].summary}) for hit in hits),
        )

    async def _recalled_text(self, recalled: Recalled) -> str:
        if not recalled.ids:
            return ""
        fence = await self.tools.conversation.fence()
        lines = notes(recalled.hits, self.tools.language, fence, recalled.standing)
        return f"{_HEADINGS[self.tools.language]}\n{lines}"

    async def _store_turn(self) -> None:
        """Queue the messages that are new since the last turn."""
        if not self._observe:
            return
        await self._source.get()
        new = [said for message in self._messages[self._observed :] if (said := _said(message)) is not None]
        others = _observed.setdefault(self._source.memory, OrderedDict())
        await self.tools.conversation.observe([said for said in new if self._is_first(said, others)])
        self._observed = len(self._messages)

    def _is_first(self, said: Message, others: OrderedDict[tuple[str, str], tuple[int, float]]) -> bool:
        """Return True unless another agent of a team has observed the same message of this user a moment ago."""
        key, now = (self._binding.user_id, said.text), time.monotonic()
        while others and next(iter(others.values()))[1] < now - _REPEATED_WITHIN_S:
            others.popitem(last=False)
        by, _ = others.get(key, (id(self), now))
        if by == id(self):
            others[key] = id(self), now
            others.move_to_end(key)
        return by == id(self)

    def _window(self) -> list[LLMMessage]:
        messages = self._messages if self._buffer_size is None else self._messages[-self._buffer_size :]
        while messages and isinstance(messages[0], FunctionExecutionResultMessage):
            messages = messages[1:]  # its call is outside the window
        turn = max((at for at, message in enumerate(messages) if isinstance(message, UserMessage)), default=0)
        return [*map(self._without_results, messages[:turn]), *messages[turn:]]

    def _without_results(self, message: LLMMessage) -> LLMMessage:
        if not isinstance(message, FunctionExecutionResultMessage):
            return message
        placeholder = _PLACEHOLDERS[self.tools.language]
        results = [
            result.model_copy(
                update={"content": placeholder.format(keys=", ".join(_KEY.findall(result.content)) or "-")}
            )
            if self.tools.has(result.name) and not result.is_error
            else result
            for result in message.content
        ]
        return FunctionExecutionResultMessage(content=results)

    async def _answer_open_calls(self) -> None:
        """Answer calls of memory tools that an agent without the tools left open."""
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
        """Store long results of other tools as memories, with a summary in their place."""
        results = []
        for result in message.content:
            is_long = len(result.content) > over and not self.tools.has(result.name)
            results.append(await self._offload(result) if is_long else result)
        return FunctionExecutionResultMessage(content=results)

    async def _offload(self, result: FunctionExecutionResult) -> FunctionExecutionResult:
        conversation = self.tools.conversation
        try:
            receipt = await (await self._source.get()).add(
                {"content": result.content, "memory_type": "command_output", "tags": [result.name]},
                **conversation.scope,
                actor=conversation.actor,
            )
        except JiyiError as error:
            logger.warning("a long result stays in the conversation because it could not be stored: %s", error)
            return result
        if not receipt.memories:
            return result
        saved = receipt.memories[0]
        text = _OFFLOADED[self.tools.language].format(key=key_of(saved), summary=quoted(saved.summary))
        return result.model_copy(update={"content": text})

    def _to_config(self) -> MemoryContextConfig:
        return MemoryContextConfig(
            binding=for_config(self._binding),
            enable_proactive_search=self._proactive,
            proactive_search_threshold=self._threshold,
            guide=self._guide,
            observe=self._observe,
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
            initial_messages=config.initial_messages,
            **config.model_dump(exclude={"binding", "memory_model_client", "initial_messages"}),
        )


def last_of_user(messages: Sequence[LLMMessage]) -> UserMessage | None:
    """Return the last message of the user. In a team, messages of other agents are user messages too; their names tell
    them apart, unless nobody is called user or alike."""
    said = [message for message in messages if isinstance(message, UserMessage)]
    people = [message for message in said if _PERSON.match(message.source)]
    return next(reversed(people or said), None)


def text_of(message: UserMessage) -> str:
    content = message.content
    return content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))


def _with_block(message: LLMMessage, block: str) -> LLMMessage:
    content = message.content
    return message.model_copy(
        update={"content": [*content, block] if isinstance(content, list) else f"{content}\n\n{block}"}
    )


def _said(message: LLMMessage) -> Message | None:
    """Return the message of a person or the assistant; tool calls and their results are not stored."""
    if isinstance(message, UserMessage):
        text, role, speaker = text_of(message), "user", None if message.source == "user" else message.source
    elif isinstance(message, AssistantMessage) and isinstance(message.content, str):
        text, role, speaker = message.content, "assistant", None
    else:
        return None
    return Message(text=text, role=role, speaker=speaker) if text.strip() else None


def chat_of(client: ChatCompletionClient) -> Chat:
    """Return a model client as a chat function."""

    async def chat(turns: list[Turn]) -> str:
        reply = await client.create([UserMessage(content=turn["content"], source=turn["role"]) for turn in turns])
        return reply.content if isinstance(reply.content, str) else ""

    return chat
