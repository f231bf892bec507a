"""A memory store for Strands Agents.

from jiyi.agents.strands import JiyiMemoryStore

agent = Agent(model=model, memory_manager=MemoryManager(stores=[JiyiMemoryStore(memory, user_id="mei")]))
"""

from collections.abc import Sequence
from typing import Any

from .. import sync
from ..areas.recalls import MAX_TOKENS
from ..errors import MissingExtra
from ..memory import Memory
from ..models import Message
from .recall import Conversation, await_in, engine_of

try:
    from strands.memory import ExtractionConfig, InvocationTrigger, MemoryEntry, MemoryStore
except ImportError as error:
    raise MissingExtra("strands", "strands-agents") from error


class JiyiMemoryStore(MemoryStore):
    """Memories of a user. Strands searches it before each model call and for its tool `search_memory`, writes into it
    with `add_memory`, and hands over the messages of each run to be stored (`observe=False`: not). Calling an agent
    needs a `jiyi.sync.Memory`; `invoke_async` takes either kind."""

    def __init__(
        self,
        memory: Memory | sync.Memory,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        private: bool = False,
        observe: bool = True,
        writable: bool = True,
        name: str = "jiyi",
        description: str | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> None:
        self._memory = memory
        self._conversation = Conversation(
            memory=engine_of(memory),
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            private=private,
        )
        self.name = name
        self.description = description
        self.max_search_results = 1
        self._max_tokens = max_tokens
        self.writable = writable
        self.extraction = ExtractionConfig(trigger=InvocationTrigger()) if writable and observe else None

    async def search(self, query: str, options: Any = None) -> list[MemoryEntry]:
        """Return what is recalled for the query as one entry: Strands cuts off all after the fifth, and the limits of a
        user must not be lost."""
        found = await await_in(self._memory, self._conversation.recall(query, max_tokens=self._max_tokens))
        return [MemoryEntry(content=found.block, metadata={"ids": found.ids})] if found.block else []

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> None:
        """Save a memory that the model chose."""
        work = self._conversation.memory.add(content, metadata=metadata, **self._conversation.scope)
        await await_in(self._memory, work)

    async def add_messages(self, messages: Sequence[Any], context: Any = None) -> None:
        """Queue the messages of a run to be stored."""
        said = [Message(role=one["role"], text=text) for one in messages if (text := _text(one))]
        await await_in(self._memory, self._conversation.observe(said))


def _text(message: Any) -> str:
    return "\n".join(block["text"] for block in message["content"] if block.get("text")).strip()
