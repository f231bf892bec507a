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

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(_with_text(request, await await_in(self._memory, self._text(request.messages))))

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        return handler(_with_text(request, self._sync._run(self._text(request.messages))))

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

    async def _text(self, messages: Sequence[AnyMessage]) -> str:
        said = [message.text for message in messages if isinstance(message, HumanMessage) and message.text.strip()]
        words = said[-1] if said else ""
        found = await self._conversation.recall(words, max_tokens=self._max_tokens)
        if not self.tools:
            return found.block
        self._tools.listen(words)
        return "\n\n".join(filter(None, (self._tools.system_prompt, found.block)))


def _with_text(request: ModelRequest[Any], text: str) -> ModelRequest[Any]:
    """Append to the system message of one model call; the state of the agent stays as it is."""
    if not text:
        return request
    own = request.system_message.text if request.system_message else ""
    return request.override(system_message=SystemMessage(content="\n\n".join(filter(None, (own, text)))))


def _turn(messages: Sequence[AnyMessage]) -> list[Message]:
    """Return the user's last message and the answer to it, without tool calls and their results."""
    last = max((at for at, message in enumerate(messages) if isinstance(message, HumanMessage)), default=None)
    turn = [] if last is None else messages[last:]
    return [
        Message(role="user" if isinstance(message, HumanMessage) else "assistant", text=message.text)
        for message in turn
        if isinstance(message, (HumanMessage, AIMessage)) and message.text.strip()
    ]
