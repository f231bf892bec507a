"""A learning store for Agno.

from jiyi.agents.agno import JiyiLearningStore

learning = LearningMachine(custom_stores={"jiyi": JiyiLearningStore(memory)})
agent = Agent(model=model, db=db, learning=learning)
agent.run("Book a table for us", user_id="mei", session_id="monday")
"""

from collections.abc import Callable, Sequence
from typing import Any

from .. import sync
from ..areas.recalls import MAX_TOKENS
from ..errors import InvalidInput, MissingExtra
from ..memory import Memory
from ..models import Message
from .recall import await_in
from .tools import MemoryTools

try:
    from agno.models.message import Message as AgnoMessage
    from agno.tools.function import Function
except ImportError as error:
    raise MissingExtra("agno", "agno") from error


class JiyiLearningStore:
    """Recalls before each run of an agent, offers the memory tools (`tools=False`: none), and stores what the user
    said (`observe=False`: not). The user and the session are those of the run. A `jiyi.sync.Memory` serves `run` and
    `arun`, a `jiyi.Memory` `arun`. Further options are those of `MemoryTools`."""

    learning_type = "jiyi"
    schema = None
    was_updated = False

    def __init__(
        self,
        memory: Memory | sync.Memory,
        *,
        tools: bool = True,
        observe: bool = True,
        max_tokens: int = MAX_TOKENS,
        **options: Any,
    ) -> None:
        self._memory = memory
        self._offers_tools = tools
        self._observe = observe
        self._max_tokens = max_tokens
        self._options = options

    def instructions(self) -> str:
        return ""  # the guide is part of the context, because it is in the language of the message

    def build_context(self, data: str | None) -> str:
        return data or ""

    def recall(self, **run: Any) -> str:
        return self._sync._run(self._recall(**run))

    async def arecall(self, **run: Any) -> str:
        return await await_in(self._memory, self._recall(**run))

    def process(self, messages: Sequence[AgnoMessage], **run: Any) -> None:
        self._sync._run(self._store(messages, **run))

    async def aprocess(self, messages: Sequence[AgnoMessage], **run: Any) -> None:
        await await_in(self._memory, self._store(messages, **run))

    def get_tools(self, **run: Any) -> list[Function]:
        def call(tools: MemoryTools, name: str) -> Callable[..., Any]:
            return lambda **arguments: tools.call_sync(name, arguments).text

        return self._functions(call, **run)

    async def aget_tools(self, **run: Any) -> list[Function]:
        def call(tools: MemoryTools, name: str) -> Callable[..., Any]:
            async def answer(**arguments: Any) -> str:
                return (await tools.call(name, arguments)).text

            return answer

        return self._functions(call, **run)

    @property
    def _sync(self) -> sync.Memory:
        if not isinstance(self._memory, sync.Memory):
            raise InvalidInput("memory", "is an asynchronous one: await arun, or open a jiyi.sync.Memory")
        return self._memory

    def _tools(self, user_id: str, session_id: str | None = None) -> MemoryTools:
        return MemoryTools(self._memory, user_id=user_id, session_id=session_id, **self._options)

    async def _recall(
        self, message: str | None = None, user_id: str | None = None, session_id: str | None = None, **_: Any
    ) -> str:
        if not user_id:
            return ""
        tools = self._tools(user_id, session_id)
        tools.listen(message or "")
        guide = tools.system_prompt if self._offers_tools else ""
        found = await tools.conversation.recall(message or "", max_tokens=self._max_tokens)
        return "\n\n".join(filter(None, (guide, found.block)))

    async def _store(
        self, messages: Sequence[AgnoMessage], user_id: str | None = None, session_id: str | None = None, **_: Any
    ) -> None:
        """Queue the user's messages of this run; Agno calls this beside the model, before there is an answer."""
        if self._observe and user_id:
            own = [one for one in messages if one.role == "user" and not one.from_history]
            said = [Message(role="user", text=text) for one in own if (text := one.get_content_string()).strip()]
            await self._tools(user_id, session_id).conversation.observe(said)

    def _functions(
        self,
        call: Callable[[MemoryTools, str], Callable[..., Any]],
        user_id: str | None = None,
        session_id: str | None = None,
        **_: Any,
    ) -> list[Function]:
        if not self._offers_tools or not user_id:
            return []
        tools = self._tools(user_id, session_id)
        return [
            Function(
                name=shape["name"],
                description=shape["description"],
                parameters=shape["parameters"],
                entrypoint=call(tools, shape["name"]),
                skip_entrypoint_processing=True,
            )
            for shape in tools.openai_responses()
        ]
