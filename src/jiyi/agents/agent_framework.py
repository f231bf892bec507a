"""A context provider for the Microsoft Agent Framework.

from jiyi.agents.agent_framework import JiyiProvider

agent = Agent(client, context_providers=[JiyiProvider(memory, user_id="mei")])
"""

from typing import Any

from .. import sync
from ..areas.recalls import MAX_TOKENS
from ..errors import MissingExtra
from ..memory import Memory
from ..models import Message
from .recall import observe, recall
from .tools import MemoryTools

try:
    from agent_framework import AgentSession, ContextProvider, FunctionTool, SessionContext, SupportsAgentRun
    from agent_framework import Message as ChatMessage
except ImportError as error:
    raise MissingExtra("agent-framework", "agent-framework-core") from error


class JiyiProvider(ContextProvider):
    """Recalls before each run, offers the memory tools (`tools=False`: none), and stores the turn after it
    (`observe=False`: not). The session is that of the agent unless one is named."""

    def __init__(
        self,
        memory: Memory | sync.Memory,
        *,
        user_id: str,
        session_id: str | None = None,
        tools: bool = True,
        observe: bool = True,
        max_tokens: int = MAX_TOKENS,
        source_id: str = "jiyi",
        **options: Any,
    ) -> None:
        """Further `options` are those of `MemoryTools`: agent_id, group_id, private, language, only."""
        super().__init__(source_id)
        self._memory = memory
        self._session_id = session_id
        self._observe = observe
        self._max_tokens = max_tokens
        self._tools = MemoryTools(memory, user_id=user_id, session_id=session_id, **options)
        self._offers_tools = tools

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        said = [message.text for message in context.input_messages if message.role == "user" and message.text]
        scope = {**self._tools.conversation.scope, "session_id": self._session_id or session.session_id}
        private = self._tools.conversation.private
        found = await recall(
            self._memory, said[-1] if said else "", **scope, private=private, max_tokens=self._max_tokens
        )
        if self._offers_tools:
            self._tools.listen(said[-1] if said else "")
            context.extend_instructions(self.source_id, self._tools.system_prompt)
            context.extend_tools(
                self.source_id, [_tool(self._tools, shape) for shape in self._tools.openai_responses()]
            )
        if found.block:
            block = ChatMessage(role="user", contents=[found.block])  # beside the input, after the history
            context.extend_messages(self.source_id, [block])

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        if not self._observe:
            return
        said = [message for message in context.input_messages if message.role == "user"]
        answers = context.response.messages if context.response else []
        turn = [
            Message(role=str(message.role), text=message.text)
            for message in (*said, *(answer for answer in answers if answer.role == "assistant"))
            if message.text.strip()
        ]
        scope = {**self._tools.conversation.scope, "session_id": self._session_id or session.session_id}
        await observe(self._memory, turn, **scope)


def _tool(tools: MemoryTools, shape: dict[str, Any]) -> FunctionTool:
    async def call(**arguments: Any) -> str:
        return (await tools.call(shape["name"], arguments)).text

    return FunctionTool(
        name=shape["name"], description=shape["description"], func=call, input_model=shape["parameters"]
    )
