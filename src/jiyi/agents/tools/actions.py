"""The functions that run the tools: each calls one verb of `Memory` for the bound conversation."""

from __future__ import annotations

from ...engine import runtime
from ...models import MemoryItem
from ...text.fence import harmless, strip_context
from ..recall import Conversation
from .inputs import (
    ForgetMemoryInput,
    GetMemoryDetailInput,
    ListMemoriesInput,
    SaveMemoryInput,
    SearchMemoriesInput,
    UpdateMemoryInput,
)
from .outputs import (
    GetMemoryDetailOutput,
    ListedMemory,
    ListMemoriesOutput,
    MemorySearchResult,
    SearchMemoriesOutput,
    WrittenMemory,
)


class Refused(Exception):
    """A call that cannot be run; `phrase` names the message for the model."""

    def __init__(self, phrase: str, **values: object) -> None:
        self.phrase = phrase
        self.values = values
        super().__init__(phrase)


async def search_memories(conversation: Conversation, given: SearchMemoriesInput) -> SearchMemoriesOutput:
    memory, user_id = conversation.memory, conversation.user_id
    found = await memory.search(
        given.query,
        user_id=user_id,
        **conversation.filters,
        search_mode=given.search_mode,
        keywords=given.keywords,
        memory_types=given.memory_types,
        time_range=given.time_range,
        time_range_days=given.time_range_days,
        min_relevance_score=given.min_relevance_score or 0.0,
        limit=given.limit or runtime(memory).settings.tools.max_results_per_search,
    )
    return SearchMemoriesOutput(
        total_found=found.total_found,
        results=[MemorySearchResult.of(hit) for hit in found.hits],
        search_strategy_used=found.search_strategy_used,
        expanded_keywords=list(map(harmless, found.expanded_keywords)) or None,
        degraded=list(map(harmless, found.degraded)),
        # A filter that matches nothing also searches 0 memories.
        nothing_stored=not found.searched and not await memory.count(user_id=user_id, **conversation.filters),
    )


async def get_memory_detail(conversation: Conversation, given: GetMemoryDetailInput) -> GetMemoryDetailOutput:
    memory = await _active(conversation, given.memory_key)
    return GetMemoryDetailOutput.of(memory, given.offset)


async def save_memory(conversation: Conversation, given: SaveMemoryInput) -> WrittenMemory:
    content = strip_context(given.content).strip()
    if not content:
        raise Refused("only_recalled")
    receipt = await conversation.memory.add(
        content,
        **conversation.scope,
        memory_type=given.memory_type,
        importance=given.importance,
        tags=given.tags,
        occurred_at=given.occurred_at,
        actor=conversation.actor,
    )
    if not receipt.memories:
        raise Refused("failed", problem="; ".join(receipt.problems) or receipt.state)
    return WrittenMemory.of(receipt.memories[0], "saved" if receipt.created else "known")


async def update_memory(conversation: Conversation, given: UpdateMemoryInput) -> WrittenMemory:
    memory = await _active(conversation, given.memory_key)
    changes = given.model_dump(include={"content", "memory_type", "importance", "tags"}, exclude_none=True)
    if not changes:
        raise Refused("nothing_to_change")
    changed = await conversation.memory.update(
        memory.id,
        user_id=conversation.user_id,
        version=memory.version,
        actor=conversation.actor,
        reason=given.reason,
        **changes,
    )
    return WrittenMemory.of(changed, "updated")


async def forget_memory(conversation: Conversation, given: ForgetMemoryInput) -> WrittenMemory:
    memory = await conversation.get(given.memory_key)
    if given.permanently:
        await conversation.memory.delete(memory.id, user_id=conversation.user_id)
    elif memory.status == "active":
        await conversation.memory.update(
            memory.id,
            user_id=conversation.user_id,
            status="archived",
            actor=conversation.actor,
            reason=given.reason,
        )
    return WrittenMemory.of(memory, "erased" if given.permanently else "archived")


async def list_memories(conversation: Conversation, given: ListMemoriesInput) -> ListMemoriesOutput:
    page = await conversation.memory.list(
        user_id=conversation.user_id,
        memory_types=given.memory_types,
        tags=given.tags,
        limit=given.limit or runtime(conversation.memory).settings.tools.max_results_per_search,
        cursor=given.cursor,
        **conversation.filters,
    )
    return ListMemoriesOutput(memories=[ListedMemory.of(memory) for memory in page.items], next_cursor=page.next_cursor)


async def _active(conversation: Conversation, key: str) -> MemoryItem:
    memory = await conversation.get(key)
    if memory.status != "active":
        raise Refused("forgotten", key=harmless(key))
    return memory
