"""Middleware for LangChain agents.

from jiyi.agents.langchain_middleware import JiyiMiddleware

agent = create_agent(model, middleware=[JiyiMiddleware(memory, user_id="mei")])
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from .. import sync
from ..areas.recalls import MAX_TOKENS
from ..errors import InvalidInput, MissingExtra
from ..memory import Memory
from ..models import Message
from .chat import with_text
from .langchain import structured_tools
from .recall import await_in
from .tools import MemoryTools

try:
    from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
except ImportError as error:
    raise MissingExtra("langchain", "langchain") from error


class JiyiMiddleware(AgentMiddleware[Any, Any, Any]):
    """Recalls before each model call, offers the memory tools (`tools=False`: none), and stores the turn when the agent
    has answered (`observe=False`: not). A `jiyi.sync.Memory` serves `invoke` and `ainvoke`, a `jiyi.Memory` `ainvoke`.
    Further options are those of `MemoryTools`, such as `session_id`."""

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
        super().__init__()
        self._memory = memory
        self._observe = observe
        self._max_tokens = max_tokens
        self._tools = MemoryTools(memory, user_id=user_id, **options)
        self._conversation = self._tools.conversation
        self.tools = structured_tools(self._tools) if tools else []
        self._kept: dict[tuple[str, int | None], str] = {}

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(self._with_memories(request, await await_in(self._memory, self._block(request.messages))))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(self._with_memories(request, self._sync._run(self._block(request.messages))))

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        if self._observe:
            await await_in(self._memory, self._conversation.observe(_turn(state["messages"])))

    def after_agent(self, state: Any, runtime: Any) -> None:
        if self._observe:
            self._sync._run(self._conversation.observe(_turn(state["messages"])))

    @property
    def _sync(self) -> sync.Memory:
        if not isinstance(self._memory, sync.Memory):
            raise InvalidInput("memory", "is an asynchronous one: await ainvoke, or open a jiyi.sync.Memory")
        return self._memory

    async def _block(self, messages: Sequence[AnyMessage]) -> str:
        at = _last_of_user(messages)
        words = "" if at is None else messages[at].text
        self._tools.listen(words)
        if at is None or (words, at) not in self._kept:
            found = await self._conversation.recall(words, max_tokens=self._max_tokens)
            self._kept = {(words, at): found.block}
        return self._kept[words, at]  # model calls with results of tools keep the block of their turn

    def _with_memories(self, request: ModelRequest[Any], block: str) -> ModelRequest[Any]:
        """Add the guide to the system message and the block to the user's last message, of this model call only."""
        if self.tools:
            own = request.system_message.content if request.system_message else None
            request = request.override(system_message=SystemMessage(with_text(own, self._tools.system_prompt)))
        at = _last_of_user(request.messages)
        if at is None or not block:
            return request
        last = request.messages[at]
        told = last.model_copy(update={"content": with_text(last.content, block)})
        return request.override(messages=[*request.messages[:at], told, *request.messages[at + 1 :]])


def _last_of_user(messages: Sequence[AnyMessage]) -> int | None:
    said = (at for at in reversed(range(len(messages))) if isinstance(messages[at], HumanMessage) and messages[at].text)
    return next(said, None)


def _turn(messages: Sequence[AnyMessage]) -> list[Message]:
    """Return the user's last message and the answer to it, without tool calls and their results."""
    last = max((at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
    turn = [] if last is None else messages[last:]
    return [
        Message(role="user" if isinstance(message, HumanMessage) else "assistant", text=message.text)
        for message in turn
        if isinstance(message, (HumanMessage, AIMessage)) and message.text.strip()
    ]
