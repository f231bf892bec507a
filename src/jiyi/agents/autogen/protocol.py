"""AutoGen's `Memory` protocol over Jiyi, for an agent's `memory=[…]`."""

from __future__ import annotations

import json
from typing import Any, Self

from autogen_core import CancellationToken, Component
from autogen_core.memory import Memory as AutoGenMemory
from autogen_core.memory import MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import LLMMessage, SystemMessage, UserMessage
from pydantic import BaseModel, TypeAdapter

from ...errors import InvalidInput
from ...memory import Memory
from ...models import Hit
from ...text.fence import is_context, strip_context
from ..tools import ToolLanguage, notes
from .binding import Binding, Source, bound_to, source_of, to_write_down
from .context import MemoryContext, text_of

_MESSAGES: TypeAdapter[list[LLMMessage]] = TypeAdapter(list[LLMMessage])


class JiyiMemoryConfig(BaseModel):
    binding: Binding
    limit: int
    min_relevance_score: float


class JiyiMemory(AutoGenMemory, Component[JiyiMemoryConfig]):
    """A user's memories for AutoGen.

    `update_context` keeps at most one system message in the context, in front, and renews it: nothing piles up.
    """

    component_config_schema = JiyiMemoryConfig
    component_provider_override = "jiyi.agents.autogen.JiyiMemory"

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
        limit: int | None = None,
        min_relevance_score: float | None = None,
    ) -> None:
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
        settings = self._source.memory.settings.tools
        self._limit = settings.max_results_per_search if limit is None else limit
        self._at_least = settings.relevance_floor if min_relevance_score is None else min_relevance_score

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Keep a text or a JSON object. `memory_type`, `importance` and `tags` in the metadata are taken as such."""
        metadata = dict(content.metadata or {})
        memory = await self._source.get()
        await memory.add(
            {
                "text": _text(content),
                "type": metadata.pop("memory_type", None),
                "importance": metadata.pop("importance", None),
                "tags": tuple(metadata.pop("tags", ())),
                "metadata": metadata,
            },
            user_id=self._binding.user_id,
            agent_id=self._binding.agent_id,
            session_id=self._binding.session_id,
            group_id=self._binding.group_id,
        )

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """Memories that fit, best first; further arguments are those of `Memory.search`."""
        hits = await self._find(_text(query) if isinstance(query, MemoryContent) else query, **kwargs)
        memory = await self._source.get()
        contents = {
            found.id: found.content
            for found in await memory.get_many([hit.id for hit in hits], user_id=self._binding.user_id)
        }
        return MemoryQueryResult(results=[_content(hit, contents[hit.id]) for hit in hits if hit.id in contents])

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Put what fits the last message of the user in front of the context, in place of what was there before."""
        messages = _MESSAGES.validate_python((await model_context.save_state())["messages"])
        said = next((message for message in reversed(messages) if isinstance(message, UserMessage)), None)
        hits = await self._find(text_of(said)) if said and text_of(said).strip() else []
        if not isinstance(model_context, MemoryContext):  # which recalls by itself
            await self._place(model_context, [message for message in messages if not _is_ours(message)], hits)
        return UpdateContextResult(
            memories=MemoryQueryResult(results=[_content(hit, hit.content_preview) for hit in hits])
        )

    async def clear(self) -> None:
        """Remove everything of this user. This cannot be undone."""
        await (await self._source.get()).delete_all(self._binding.user_id)

    async def close(self) -> None:
        """Close the memory, if it was opened here."""
        await self._source.close()

    async def _find(self, query: str, **wanted: Any) -> list[Hit]:
        memory = await self._source.get()
        own = {"agent_id": self._binding.agent_id, "group_id": self._binding.group_id} if self._binding.private else {}
        found = await memory.search(
            query,
            **{
                "limit": self._limit,
                "min_relevance_score": self._at_least,
                **wanted,
                **own,
                "user_id": self._binding.user_id,
            },
        )
        return list(found.hits)

    async def _place(self, context: ChatCompletionContext, rest: list[LLMMessage], hits: list[Hit]) -> None:
        state = dict(await context.save_state())
        if not hits:
            await context.load_state({**state, "messages": rest})
            return
        ours = SystemMessage(content=notes(hits, self._binding.language))
        last = max((at for at, message in enumerate(rest) if isinstance(message, UserMessage)), default=len(rest))
        for at in (0, last):  # in front; but a context that is cut there would lose it
            await context.load_state({**state, "messages": _MESSAGES.dump_python([*rest[:at], ours, *rest[at:]])})
            if any(_is_ours(message) for message in await context.get_messages()):
                return

    def _to_config(self) -> JiyiMemoryConfig:
        return JiyiMemoryConfig(
            binding=to_write_down(self._binding), limit=self._limit, min_relevance_score=self._at_least
        )

    @classmethod
    def _from_config(cls, config: JiyiMemoryConfig) -> Self:
        return cls(
            source_of(config.binding.where),
            **config.binding.model_dump(exclude={"where"}),
            limit=config.limit,
            min_relevance_score=config.min_relevance_score,
        )


def _is_ours(message: LLMMessage) -> bool:
    """Whether a message is nothing but a block of recalled memories."""
    if not isinstance(message, SystemMessage):
        return False
    return is_context(message.content) and not strip_context(message.content).strip()


def _text(content: MemoryContent) -> str:
    if isinstance(content.content, str):
        return content.content
    if isinstance(content.content, dict):
        return json.dumps(content.content, ensure_ascii=False)
    raise InvalidInput("content", f"must be text or a JSON object; {content.mime_type} cannot be remembered")


def _content(hit: Hit, text: str) -> MemoryContent:
    metadata = {
        **hit.metadata,
        "memory_key": hit.memory_key,
        "memory_type": hit.memory_type,
        "relevance_score": hit.relevance_score,
        "created_at": hit.created_at.isoformat(),
        "tags": list(hit.tags),
    }
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=metadata)
