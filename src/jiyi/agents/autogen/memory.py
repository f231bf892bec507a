"""AutoGen's `Memory` protocol over Jiyi, for an agent's `memory=[…]`."""

import json
from typing import Any, Self, Unpack

from autogen_core import CancellationToken, Component
from autogen_core.memory import Memory as AutoGenMemory
from autogen_core.memory import MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import LLMMessage, SystemMessage
from pydantic import BaseModel, TypeAdapter

from ...engine import fence_of, runtime
from ...errors import InvalidInput
from ...memory import Memory
from ...models import Hit, MemoryItem
from ...text.fence import is_context, strip_context
from ..recall import Conversation, Recalled
from ..tools import notes
from .binding import Binding, ScopeOptions, Source, bind, for_config, source_of
from .context import MemoryContext, last_of_user, text_of

_NOT_SCOPE = {"where", "language"}
_MESSAGES: TypeAdapter[list[LLMMessage]] = TypeAdapter(list[LLMMessage])


class JiyiMemoryConfig(BaseModel):
    binding: Binding
    limit: int | None = None


class JiyiMemory(AutoGenMemory, Component[JiyiMemoryConfig]):
    """A user's memories for AutoGen. `update_context` replaces its system message in the context instead of appending
    one each turn."""

    component_config_schema = JiyiMemoryConfig
    component_provider_override = "jiyi.agents.autogen.JiyiMemory"

    def __init__(
        self,
        memory: Memory | Source | str | None = None,
        *,
        limit: int | None = None,
        **scope: Unpack[ScopeOptions],
    ) -> None:
        self._source = source_of(memory)
        self._binding = bind(self._source, **scope)
        self._limit = limit
        self._conversation = Conversation(memory=self._source.memory, **self._binding.model_dump(exclude=_NOT_SCOPE))

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Store a text or a JSON object. Its metadata may set `memory_type`, `importance` and `tags`."""
        metadata = dict(content.metadata or {})
        memory = await self._source.get()
        await memory.add(
            {
                "content": _text(content),
                "memory_type": metadata.pop("memory_type", None),
                "importance": metadata.pop("importance", None),
                "tags": tuple(metadata.pop("tags", ())),
                "metadata": metadata,
            },
            **self._conversation.scope,
        )

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """Find memories, best first; further arguments are those of `Memory.search`."""
        memory = await self._source.get()
        most = runtime(memory).settings.tools.max_results_per_search
        wanted = {"limit": self._limit or most, **kwargs}
        found = await self._conversation.search(_text(query) if isinstance(query, MemoryContent) else query, **wanted)
        items = await memory.get_many([hit.id for hit in found.hits], user_id=self._binding.user_id)
        contents = {item.id: item.dated_text for item in items}
        return MemoryQueryResult(results=[_content(hit, contents[hit.id]) for hit in found.hits if hit.id in contents])

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Put memories for the user's last message at the end of the context, and take the earlier ones out."""
        messages = _MESSAGES.validate_python((await model_context.save_state())["messages"])
        said = last_of_user(messages)
        await self._source.get()
        recalled = await self._conversation.recall(text_of(said) if said else "", limit=self._limit)
        if not isinstance(model_context, MemoryContext):  # a MemoryContext recalls itself
            await self._place(model_context, [message for message in messages if not self._is_ours(message)], recalled)
        results = [
            *(_content(memory, memory.dated_text) for memory in recalled.standing),
            *(_content(hit, hit.content_preview) for hit in recalled.hits),
        ]
        return UpdateContextResult(memories=MemoryQueryResult(results=results))

    async def clear(self) -> None:
        """Remove everything of this user. This cannot be undone."""
        await (await self._source.get()).delete_all(self._binding.user_id)

    async def close(self) -> None:
        """Close the memory if it was opened here."""
        await self._source.close()

    async def _place(self, context: ChatCompletionContext, rest: list[LLMMessage], recalled: Recalled) -> None:
        state = dict(await context.save_state())
        if not recalled.ids:
            await context.load_state({**state, "messages": rest})
            return
        fence = await fence_of(await self._source.get())
        block = notes(recalled.hits, self._binding.language or "en", fence, recalled.standing)
        ours = SystemMessage(content=f"{self._heading}\n{block}")
        await context.load_state({**state, "messages": _MESSAGES.dump_python([*rest, ours])})

    @property
    def _heading(self) -> str:
        """First line of the block, by which several memories of an agent tell their blocks apart."""
        binding = self._binding
        scope = "/".join(filter(None, (binding.user_id, binding.agent_id, binding.group_id)))
        return f"{scope} 的记忆：" if binding.language == "zh" else f"Memories of {scope}:"

    def _is_ours(self, message: LLMMessage) -> bool:
        """Return True for a system message that holds only memories recalled here."""
        if not isinstance(message, SystemMessage) or not message.content.startswith(self._heading):
            return False
        rest = message.content.removeprefix(self._heading)
        return is_context(rest) and not strip_context(rest).strip()

    def _to_config(self) -> JiyiMemoryConfig:
        return JiyiMemoryConfig(binding=for_config(self._binding), limit=self._limit)

    @classmethod
    def _from_config(cls, config: JiyiMemoryConfig) -> Self:
        scope = config.binding.model_dump(exclude={"where"})
        return cls(source_of(config.binding.where), limit=config.limit, **scope)


def _text(content: MemoryContent) -> str:
    if isinstance(content.content, str):
        return content.content
    if isinstance(content.content, dict):
        return json.dumps(content.content, ensure_ascii=False)
    raise InvalidInput("content", f"must be text or a JSON object; {content.mime_type} cannot be remembered")


def _content(found: Hit | MemoryItem, text: str) -> MemoryContent:
    metadata = {
        **found.metadata,
        "memory_key": found.memory_key,
        "memory_type": found.memory_type,
        "created_at": found.created_at.isoformat(),
        "tags": list(found.tags),
    }
    if isinstance(found, Hit):
        metadata["relevance_score"] = found.relevance_score
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=metadata)
