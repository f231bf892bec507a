"""A capability and a toolset for Pydantic AI.

from jiyi.agents.pydantic_ai import JiyiMemory

agent = Agent(model, capabilities=[JiyiMemory(memory, user_id="mei")])
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .. import sync
from ..areas.recalls import MAX_TOKENS
from ..errors import MissingExtra
from ..memory import Memory
from ..models import Message
from .recall import observe, recall
from .tools import MemoryTools

try:
    from pydantic_ai import AgentRunResult, FunctionToolset, RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
    from pydantic_ai.models import ModelRequestContext
except ImportError as error:
    raise MissingExtra("pydantic-ai", "pydantic-ai-slim") from error


class JiyiMemory(AbstractCapability[Any]):
    """Recalls for each run, offers the memory tools (`tools=False`: none), and stores the turn after it
    (`observe=False`: not). Further options are those of `MemoryTools`."""

    def __init__(
        self,
        memory: Memory | sync.Memory,
        *,
        user_id: str,
        tools: bool = True,
        observe: bool = True,
        max_tokens: int = MAX_TOKENS,
        **options: Any,
    ) -> None:
        self._memory = memory
        self._tools = MemoryTools(memory, user_id=user_id, **options)
        self._offers_tools = tools
        self._observe = observe
        self._max_tokens = max_tokens
        self._kept: dict[tuple[str | None, str], str] = {}

    def get_instructions(self) -> Any:
        def guide(context: RunContext[Any]) -> str:
            self._tools.listen(_words(context.prompt) or _last_words(context.messages))
            return self._tools.system_prompt if self._offers_tools else ""

        return guide

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add the block to the user's last prompt, in this request only."""
        said = _words(ctx.prompt) or _last_words(ctx.messages)
        if (ctx.run_id, said) not in self._kept:
            conversation = self._tools.conversation
            found = await recall(
                self._memory, said, **conversation.scope, private=conversation.private, max_tokens=self._max_tokens
            )
            self._kept = {(ctx.run_id, said): found.block}
        block = self._kept[ctx.run_id, said]  # requests with results of tools keep the block of their run
        if not block:
            return request_context
        return replace(request_context, messages=_with_block(request_context.messages, block))

    def get_toolset(self) -> FunctionToolset[Any] | None:
        return memory_toolset(self._tools) if self._offers_tools else None

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        if self._observe:
            turn = [("user", _words(ctx.prompt)), ("assistant", str(result.output))]
            said = [Message(role=role, text=text) for role, text in turn if text.strip()]
            await observe(self._memory, said, **self._tools.conversation.scope)
        return result


def memory_toolset(tools: MemoryTools) -> FunctionToolset[Any]:
    """Return the memory tools as a toolset; a model cannot choose the user."""
    return FunctionToolset([_tool(tools, shape) for shape in tools.openai_responses()])


def _tool(tools: MemoryTools, shape: dict[str, Any]) -> Tool[Any]:
    async def call(**arguments: Any) -> str:
        return (await tools.call(shape["name"], arguments)).text

    return Tool.from_schema(call, shape["name"], shape["description"], shape["parameters"])


def _words(prompt: str | Sequence[Any] | None) -> str:
    if prompt is None or isinstance(prompt, str):
        return prompt or ""
    return "\n".join(part for part in prompt if isinstance(part, str))


def _last_words(messages: Sequence[ModelMessage]) -> str:
    for message in reversed(messages):
        parts = message.parts if isinstance(message, ModelRequest) else ()
        said = [_words(part.content) for part in parts if isinstance(part, UserPromptPart)]
        if said:
            return said[-1]
    return ""


def _with_block(messages: Sequence[ModelMessage], block: str) -> list[ModelMessage]:
    told = list(messages)
    for at in reversed(range(len(told))):
        message = told[at]
        parts = list(message.parts) if isinstance(message, ModelRequest) else []
        for place in reversed(range(len(parts))):
            prompt = parts[place]
            if isinstance(prompt, UserPromptPart):
                words = prompt.content
                content = f"{words}\n\n{block}" if isinstance(words, str) else [*words, block]
                parts[place] = replace(prompt, content=content)
                told[at] = replace(message, parts=parts)
                return told
    return told
