"""What the tools do: each is one verb of `Memory`, for the user and the scope that the host has bound."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ...errors import NotFound
from ...memory import Memory
from ...models import MemoryItem
from ...text.fence import harmless, strip_context
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """For whom the tools work. `private` tools see and change only what belongs to their agent and group."""

    memory: Memory
    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    group_id: str | None = None
    private: bool = False

    @property
    def actor(self) -> str:
        return self.agent_id or "agent"

    async def own(self, key: str) -> MemoryItem:
        """The memory with this key, if these tools may use it; a foreign one looks as if it were not there."""
        memory = await self.memory.get(key, user_id=self.user_id)
        if self.private and (
            (self.agent_id is not None and memory.agent_id != self.agent_id)
            or (self.group_id is not None and memory.group_id != self.group_id)
        ):
            raise NotFound(f"no memory {key!r}")
        return memory

    @property
    def seen_agent(self) -> str | None:
        """The agent to whose memories reading is limited, if it is."""
        return self.agent_id if self.private else None

    @property
    def seen_group(self) -> str | None:
        return self.group_id if self.private else None


class Refused(Exception):
    """The tool says no, in the words of the phrase."""

    def __init__(self, phrase: str, **values: object) -> None:
        self.phrase = phrase
        self.values = values
        super().__init__(phrase)


async def search_memories(bound: Bound, given: SearchMemoriesInput) -> SearchMemoriesOutput:
    settings = bound.memory.settings.tools
    asked = settings.min_relevance_score if given.min_relevance_score is None else given.min_relevance_score
    at_least = max(asked, settings.relevance_floor)
    search = partial(
        bound.memory.search,
        given.query,
        user_id=bound.user_id,
        agent_id=bound.seen_agent,
        group_id=bound.seen_group,
        search_mode=given.search_mode,
        keywords=given.keywords,
        memory_types=given.memory_types,
        time_range=given.time_range,
        time_range_days=given.time_range_days,
    )
    limit = given.limit or settings.max_results_per_search
    found = await search(min_relevance_score=at_least, limit=limit)
    best_left_out = None
    if not found.hits and found.searched and at_least > settings.relevance_floor:
        weaker = await search(min_relevance_score=settings.relevance_floor, limit=1)
        best_left_out = weaker.hits[0].relevance_score if weaker.hits else None
    return SearchMemoriesOutput(
        total_found=found.total_found,
        results=[MemorySearchResult.of(hit) for hit in found.hits],
        search_strategy_used=found.search_strategy_used,
        expanded_keywords=list(map(harmless, found.expanded_keywords)) or None,
        searched=found.searched,
        degraded=list(map(harmless, found.degraded)),
        best_left_out=best_left_out,
    )


async def get_memory_detail(bound: Bound, given: GetMemoryDetailInput) -> GetMemoryDetailOutput:
    memory = await _in_use(bound, given.memory_key)
    return GetMemoryDetailOutput.of(memory, given.offset)


async def save_memory(bound: Bound, given: SaveMemoryInput) -> WrittenMemory:
    content = strip_context(given.content).strip()
    if not content:
        raise Refused("only_recalled")
    receipt = await bound.memory.add(
        content,
        user_id=bound.user_id,
        agent_id=bound.agent_id,
        session_id=bound.session_id,
        group_id=bound.group_id,
        memory_type=given.memory_type,
        importance=given.importance,
        tags=given.tags,
        occurred_at=given.occurred_at,
        actor=bound.actor,
    )
    if not receipt.memories:
        raise Refused("failed", problem="; ".join(receipt.problems) or receipt.state)
    return WrittenMemory.of(receipt.memories[0], "saved" if receipt.created else "known")


async def update_memory(bound: Bound, given: UpdateMemoryInput) -> WrittenMemory:
    memory = await _in_use(bound, given.memory_key)
    changes = given.model_dump(include={"content", "memory_type", "importance", "tags"}, exclude_none=True)
    if not changes:
        raise Refused("nothing_to_change")
    changed = await bound.memory.update(
        memory.id,
        user_id=bound.user_id,
        version=memory.version,
        actor=bound.actor,
        reason=given.reason,
        **changes,
    )
    return WrittenMemory.of(changed, "updated")


async def forget_memory(bound: Bound, given: ForgetMemoryInput) -> WrittenMemory:
    memory = await bound.own(given.memory_key)
    if given.permanently:
        await bound.memory.delete(memory.id, user_id=bound.user_id)
    elif memory.status == "active":
        await bound.memory.update(
            memory.id, user_id=bound.user_id, status="archived", actor=bound.actor, reason=given.reason
        )
    return WrittenMemory.of(memory, "erased" if given.permanently else "archived")


async def _in_use(bound: Bound, key: str) -> MemoryItem:
    memory = await bound.own(key)
    if memory.status != "active":
        raise Refused("forgotten", key=harmless(key))
    return memory


async def list_memories(bound: Bound, given: ListMemoriesInput) -> ListMemoriesOutput:
    page = await bound.memory.list(
        user_id=bound.user_id,
        memory_types=given.memory_types,
        tags=given.tags,
        limit=given.limit or bound.memory.settings.tools.max_results_per_search,
        cursor=given.cursor,
        agent_id=bound.seen_agent,
        group_id=bound.seen_group,
    )
    return ListMemoriesOutput(memories=[ListedMemory.of(memory) for memory in page.items], next_cursor=page.next_cursor)
