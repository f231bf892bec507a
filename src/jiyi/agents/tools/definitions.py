"""The tools, each defined once; adapters render them. A tool calls one verb of `Memory` for the bound conversation."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self, get_type_hints

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from ... import validation
from ...engine import runtime
from ...models import MemoryItem
from ...text.fence import named, strip_context
from ..recall import Conversation, Recalled
from .inputs import (
    MAX_HITS,
    AskMemoryInput,
    ForgetMemoryInput,
    GetMemoryDetailInput,
    Key,
    Limit,
    ListMemoriesInput,
    Names,
    SaveMemoryInput,
    SearchMemoriesInput,
    ToolInput,
    ToolLanguage,
    UpdateMemoryInput,
    Whole,
    field,
    json_schema,
)
from .outputs import (
    TOOL_TEXTS,
    GetMemoryDetailOutput,
    ListedMemory,
    ListMemoriesOutput,
    MemoryAnswer,
    MemorySearchResult,
    SearchMemoriesOutput,
    ToolOutput,
    WrittenMemory,
)

Run = Callable[[Conversation, Any], Awaitable[Any]]
Texts = dict[ToolLanguage, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: its texts for models, its input and output, and the function that runs it."""

    name: str
    title: Texts
    description: Texts
    input_model: type[ToolInput]
    output_model: type[ToolOutput]
    run: Run
    read_only: bool
    destructive: bool
    idempotent: bool = True

    def schema(self, language: ToolLanguage = "en", *, strict: bool = False) -> dict[str, Any]:
        """Return the JSON schema of the input."""
        return json_schema(self.input_model, language, strict=strict)


def tool(*, read_only: bool = False, destructive: bool = False) -> Callable[[Run], Tool]:
    """Make a tool of a function, with its name and the types of its annotations; its texts are in phrases.toml."""

    def define(run: Run) -> Tool:
        types, texts = get_type_hints(run), TOOL_TEXTS[run.__name__]
        return Tool(
            name=run.__name__,
            title=texts["title"],
            description=texts["description"],
            input_model=types["given"],
            output_model=types["return"],
            run=run,
            read_only=read_only,
            destructive=destructive,
        )

    return define


class Refused(Exception):
    """A call that cannot be run; `phrase` names the message for the model."""

    def __init__(self, phrase: str, **values: object) -> None:
        self.phrase = phrase
        self.values = values
        super().__init__(phrase)


@tool(read_only=True)
async def search_memories(conversation: Conversation, given: SearchMemoriesInput) -> SearchMemoriesOutput:
    most = runtime(conversation.memory).settings.tools.max_results_per_search
    times = (*(given.time_range or ()), given.time_range_days)
    filters = (given.memory_types, *times, given.min_relevance_score, given.metadata, given.keywords)
    if not any(filters) and given.search_mode is None:
        return await _recalled(conversation, given.query, given.limit, most)
    found = await conversation.search(
        given.query,
        search_mode=given.search_mode,
        keywords=given.keywords,
        memory_types=given.memory_types,
        metadata=given.metadata,
        time_range=given.time_range,
        time_range_days=given.time_range_days,
        min_relevance_score=given.min_relevance_score or 0.0,
        limit=given.limit or most,
    )
    if given.memory_types and not found.searched:  # models invent types, which would hide every memory
        output: SearchMemoriesOutput = await search_memories.run(
            conversation, given.model_copy(update={"memory_types": None})
        )
        return output.model_copy(update={"types_without_memories": tuple(given.memory_types)})
    return SearchMemoriesOutput(
        total_found=found.total_found,
        results=[MemorySearchResult.of(hit) for hit in found.hits],
        search_strategy_used=found.search_strategy_used,
        standing=[],
        expanded_keywords=list(found.expanded_keywords) or None,
        degraded=list(found.degraded),
        # A filter that matches nothing also searches 0 memories.
        nothing_stored=not found.searched and not await _has_any(conversation),
        private=conversation.private,
    )


async def _recalled(conversation: Conversation, query: str, limit: int | None, most: int) -> SearchMemoriesOutput:
    """Recall for a query without filters: few memories, and the wishes and limits that bear on it."""
    report = await conversation.find(query, limit)
    recalled = Recalled.of(report, query)
    nothing = not report.used and not await _has_any(conversation)
    return SearchMemoriesOutput(
        total_found=report.total_found,
        results=[MemorySearchResult.of(hit) for hit in recalled.hits[: limit or most]],
        search_strategy_used=runtime(conversation.memory).settings.search.default_mode,
        standing=[ListedMemory.of(one) for one in recalled.standing],
        expanded_keywords=None,
        degraded=list(report.problems),
        nothing_stored=nothing,
        private=conversation.private,
    )


async def _has_any(conversation: Conversation) -> bool:
    """Return True if the conversation can reach a memory or a message."""
    for types in (None, ["message"]):
        if await conversation.memory.count(user_id=conversation.user_id, memory_types=types, **conversation.filters):
            return True
    return False


@tool(read_only=True)
async def get_memory_detail(conversation: Conversation, given: GetMemoryDetailInput) -> GetMemoryDetailOutput:
    memory = await _active(conversation, given.memory_key)
    return GetMemoryDetailOutput.of(memory, given.offset)


@tool()
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


@tool()
async def update_memory(conversation: Conversation, given: UpdateMemoryInput) -> WrittenMemory:
    memory = await _active(conversation, given.memory_key)
    changes = given.model_dump(include={"content", "memory_type", "importance", "tags"}, exclude_none=True)
    if not changes:
        raise Refused("nothing_to_change")
    changed = await conversation.memory.update(
        memory.id,
        user_id=conversation.user_id,
        expected_version=memory.version,
        actor=conversation.actor,
        reason=given.reason,
        **changes,
    )
    return WrittenMemory.of(changed, "updated")


@tool(destructive=True)
async def forget_memory(conversation: Conversation, given: ForgetMemoryInput) -> WrittenMemory:
    memory = await conversation.get(given.memory_key)
    notes: Sequence[str] = ()
    if given.permanently:
        notes = (await conversation.memory.delete(memory.id, user_id=conversation.user_id)).notes
    elif memory.status == "active":
        await conversation.memory.update(
            memory.id,
            user_id=conversation.user_id,
            status="archived",
            actor=conversation.actor,
            reason=given.reason,
        )
    return WrittenMemory.of(memory, "erased" if given.permanently else "archived", notes)


@tool(read_only=True)
async def list_memories(conversation: Conversation, given: ListMemoriesInput) -> ListMemoriesOutput:
    page = await conversation.memory.list(
        user_id=conversation.user_id,
        memory_types=given.memory_types,
        tags=given.tags,
        metadata=given.metadata,
        limit=given.limit or runtime(conversation.memory).settings.tools.max_results_per_search,
        cursor=given.cursor,
        **conversation.filters,
    )
    return ListMemoriesOutput(
        memories=[ListedMemory.of(memory) for memory in page.items],
        next_cursor=page.next_cursor,
        nothing_stored=not page.items and not await _has_any(conversation),
        private=conversation.private,
    )


async def _active(conversation: Conversation, key: str) -> MemoryItem:
    memory = await conversation.get(key)
    if memory.status != "active":
        raise Refused("forgotten", key=named(key))
    return memory


TOOLS: tuple[Tool, ...] = (
    search_memories,
    get_memory_detail,
    save_memory,
    update_memory,
    forget_memory,
    list_memories,
)


class ManageMemoryInput(ToolInput):
    aliases: ClassVar = {"memory_id": "id", "memory_key": "id", "text": "content"}

    content: Annotated[str, Field(max_length=validation.MAX_TEXT)] | None = field(
        "The text of the memory, for create and update.", "记忆的内容，用于 create 和 update。", default=None
    )
    action: Literal["create", "update", "delete"] = field(
        "What to do: create, update or delete.", "操作：create、update 或 delete。", default="create"
    )
    id: Key | None = field(
        "The memory's id, for update and delete.", "记忆的 id，用于 update 和 delete。", default=None
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.action != "delete" and self.content is None:
            raise PydanticCustomError("content", "content is needed to create or update")
        if self.action != "create" and self.id is None:
            raise PydanticCustomError("id", "id is needed to update or delete")
        return self


def _types(value: Any) -> Any:
    """Read memory types from LangMem's filter object."""
    if not isinstance(value, dict):
        return value
    if set(value) - {"memory_type", "memory_types", "type"}:
        raise PydanticCustomError("filter", "may name memory_type only")
    return next(iter(value.values()))


class SearchMemoryInput(ToolInput):
    aliases: ClassVar = {"q": "query", "text": "query", "top_k": "limit"}

    query: str = field("What to look for.", "要查找的内容。", max_length=validation.MAX_QUERY)
    limit: Limit | None = field("How many at most, 1 to 20.", "最多几条，1 到 20。", default=None)
    offset: Whole = field("How many of the best to skip.", "跳过前几条。", default=0)
    filter: Annotated[Names, BeforeValidator(_types)] | None = field(
        "Only these memory types.", "只查这些记忆类型。", default=None
    )


@tool(destructive=True)
async def manage_memory(conversation: Conversation, given: ManageMemoryInput) -> WrittenMemory:
    if given.action == "create" and given.id is not None:
        raise Refused("failed", problem="create takes no id")
    written: WrittenMemory
    if given.action == "create":
        written = await save_memory.run(conversation, SaveMemoryInput(content=given.content or ""))
    elif given.action == "update":
        changed = UpdateMemoryInput(memory_key=given.id or "", content=given.content)
        written = await update_memory.run(conversation, changed)
    else:
        written = await forget_memory.run(conversation, ForgetMemoryInput(memory_key=given.id or ""))
    return written


@tool(read_only=True)
async def search_memory(conversation: Conversation, given: SearchMemoryInput) -> SearchMemoriesOutput:
    limit = given.limit or runtime(conversation.memory).settings.tools.max_results_per_search
    wanted = SearchMemoriesInput(
        query=given.query, memory_types=given.filter, limit=min(limit + given.offset, MAX_HITS)
    )
    found: SearchMemoriesOutput = await search_memories.run(conversation, wanted)
    return found.model_copy(update={"results": found.results[given.offset :]})


@tool(read_only=True)
async def ask_memory(conversation: Conversation, given: AskMemoryInput) -> MemoryAnswer:
    told = await conversation.memory.answer(given.question, user_id=conversation.user_id, **conversation.filters)
    return MemoryAnswer(answer=told.text, memory_ids=list(told.memory_ids), degraded=list(told.degraded))


MODEL_TOOLS: tuple[Tool, ...] = (ask_memory,)  # for memories with a language model
LANGMEM_TOOLS: tuple[Tool, ...] = (manage_memory, search_memory)
