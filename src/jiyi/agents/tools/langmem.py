"""The tools of LangMem under their own names and arguments, for agents and prompts that know them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from ... import validation
from ...engine import runtime
from ..recall import Conversation
from . import actions, inputs, outputs, texts
from .definitions import Tool
from .inputs import MAX_HITS, Key, Limit, Names, ToolInput, Whole, field


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
    def _complete(self) -> ManageMemoryInput:
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
    offset: Whole = field("How many of the best to pass over.", "跳过前几条。", default=0)
    filter: Annotated[Names, BeforeValidator(_types)] | None = field(
        "Only these memory types.", "只查这些记忆类型。", default=None
    )


async def manage_memory(conversation: Conversation, given: ManageMemoryInput) -> outputs.WrittenMemory:
    if given.action == "create":
        if given.id is not None:
            raise actions.Refused("failed", problem="create takes no id")
        return await actions.save_memory(conversation, inputs.SaveMemoryInput(content=given.content or ""))
    if given.action == "update":
        change = inputs.UpdateMemoryInput(memory_key=given.id or "", content=given.content)
        return await actions.update_memory(conversation, change)
    return await actions.forget_memory(conversation, inputs.ForgetMemoryInput(memory_key=given.id or ""))


async def search_memory(conversation: Conversation, given: SearchMemoryInput) -> outputs.SearchMemoriesOutput:
    limit = given.limit or runtime(conversation.memory).settings.tools.max_results_per_search
    found = await actions.search_memories(
        conversation,
        inputs.SearchMemoriesInput(
            query=given.query, memory_types=given.filter, limit=min(limit + given.offset, MAX_HITS)
        ),
    )
    return found.model_copy(update={"results": found.results[given.offset :]})


LANGMEM_TOOLS: tuple[Tool, ...] = (
    Tool(
        name="manage_memory",
        description={
            "en": "Create, update or delete a memory that should last beyond this conversation: when the user asks you "
            "to remember or forget something, or when a memory is wrong or outdated.",
            "zh": "创建、更新或删除需要长期保留的记忆：用户要求记住或忘记某事时，或记忆有误、过时时。",
        },
        input_model=ManageMemoryInput,
        output_model=outputs.WrittenMemory,
        run=manage_memory,
        text=texts.written_text,
        destructive=True,
    ),
    Tool(
        name="search_memory",
        description={
            "en": "Search your long-term memories of the user.",
            "zh": "在关于用户的长期记忆中搜索。",
        },
        input_model=SearchMemoryInput,
        output_model=outputs.SearchMemoriesOutput,
        run=search_memory,
        text=texts.search_text,
        read_only=True,
    ),
)
