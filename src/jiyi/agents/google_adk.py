"""A memory service for Google's Agent Development Kit.

from jiyi.agents.google_adk import JiyiMemoryService

runner = Runner(agent=agent, app_name="app", session_service=sessions, memory_service=JiyiMemoryService(memory))
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from .. import sync
from ..errors import MissingExtra
from ..memory import Memory
from ..models import Hit, MemoryItem, Message
from ..text.fence import harmless
from .recall import Conversation, await_in, engine_of, observe

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.genai import types
except ImportError as error:
    raise MissingExtra("google-adk", "google-adk") from error


class JiyiMemoryService(BaseMemoryService):
    """Memories of all users of an app. ADK's tools `load_memory` and `preload_memory` search it; `app_name` marks what
    is stored. A session may be added again: events that are stored already are left out."""

    def __init__(self, memory: Memory | sync.Memory, *, limit: int | None = None) -> None:
        self._memory = memory
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        said = [message for event in events if (message := _message(event)) is not None]
        await observe(self._memory, said, user_id=user_id, session_id=session_id, agent_id=app_name)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        texts = [text for entry in memories if (text := _text(entry.content))]
        if texts:
            engine = engine_of(self._memory)
            await await_in(self._memory, engine.add(texts, user_id=user_id, agent_id=app_name))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        conversation = Conversation(memory=engine_of(self._memory), user_id=user_id)
        found = await await_in(self._memory, conversation.recall(query, limit=self._limit))
        return SearchMemoryResponse(memories=[*map(_entry, found.standing), *map(_entry, found.hits)])


def _message(event: Event) -> Message | None:
    """Return the message of an event, with its id, so that it is stored once."""
    text = _text(event.content)
    if not text or event.partial:
        return None
    sent_at = datetime.fromtimestamp(event.timestamp, UTC)
    return Message(text=text, role="user" if event.author == "user" else "assistant", sent_at=sent_at, id=event.id)


def _text(content: types.Content | None) -> str:
    parts: list[Any] = list(content.parts or ()) if content else []
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def _entry(found: Hit | MemoryItem) -> MemoryEntry:
    speaker = found.speaker if isinstance(found, Hit) else None
    if isinstance(found, Hit):
        text = found.summary if found.summary.endswith(found.content) else found.content  # a short one has its dates
    else:
        text = found.dated_text
    return MemoryEntry(
        id=found.id,
        content=types.Content(role="user", parts=[types.Part(text=harmless(text))]),
        author=speaker or "user",
        timestamp=found.occurred_at.isoformat(),
    )
