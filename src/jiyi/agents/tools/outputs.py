"""Results of the tools as data. A model may see them as JSON, so the text of memories is escaped in them too."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from ...models import RELEVANT, Hit, MemoryItem, Value
from ...text.fence import harmless

Outcome = Literal["saved", "known", "updated", "archived", "erased"]
SUMMARY = 500  # most characters of a summary
DETAIL = 8_000  # characters of one part of a long memory


class MemorySearchResult(Value):
    """A found memory: its summary; `get_memory_detail` returns the content."""

    memory_key: str
    summary: str
    content_preview: str
    memory_type: str | None
    relevance_score: float
    weak: bool
    created_at: datetime
    keywords: list[str]
    metadata: dict[str, JsonValue]

    @classmethod
    def of(cls, hit: Hit) -> MemorySearchResult:
        return cls(
            memory_key=key_of(hit),
            summary=harmless(hit.summary[:SUMMARY]),
            content_preview=harmless(hit.content_preview),
            memory_type=harmless(hit.memory_type),
            relevance_score=round(hit.relevance_score, 4),
            weak=hit.relevance_score < RELEVANT,
            created_at=hit.created_at,
            keywords=[harmless(word) for word in hit.keywords],
            metadata=harmless_json(hit.metadata),
        )


class SearchMemoriesOutput(Value):
    total_found: int
    results: list[MemorySearchResult]
    search_strategy_used: str
    expanded_keywords: list[str] | None
    degraded: list[str]
    nothing_stored: bool


class ListedMemory(Value):
    memory_key: str
    summary: str
    memory_type: str
    created_at: datetime
    tags: list[str]

    @classmethod
    def of(cls, memory: MemoryItem) -> ListedMemory:
        return cls(
            memory_key=key_of(memory),
            summary=harmless(memory.summary),
            memory_type=harmless(memory.memory_type),
            created_at=memory.created_at,
            tags=[harmless(tag) for tag in memory.tags],
        )


class ListMemoriesOutput(Value):
    memories: list[ListedMemory]
    next_cursor: str | None


class GetMemoryDetailOutput(Value):
    memory_key: str
    memory_type: str
    summary: str
    content: str
    offset: int
    total_characters: int
    next_offset: int | None
    importance: float
    keywords: list[str]
    tags: list[str]
    metadata: dict[str, JsonValue]
    version: int
    occurred_at: datetime
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, memory: MemoryItem, offset: int) -> GetMemoryDetailOutput:
        part = memory.content[offset : offset + DETAIL]
        end = offset + len(part)
        return cls(
            memory_key=key_of(memory),
            memory_type=harmless(memory.memory_type),
            summary=harmless(memory.summary),
            content=harmless_lines(part),
            offset=offset,
            total_characters=len(memory.content),
            next_offset=end if end < len(memory.content) else None,
            importance=memory.importance,
            keywords=[harmless(word) for word in memory.keywords],
            tags=[harmless(tag) for tag in memory.tags],
            metadata=harmless_json(memory.metadata),
            version=memory.version,
            occurred_at=memory.occurred_at,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
        )


class WrittenMemory(Value):
    """A memory that was saved, changed or forgotten."""

    memory_key: str
    outcome: Outcome
    summary: str
    version: int

    @classmethod
    def of(cls, memory: MemoryItem, outcome: Outcome) -> WrittenMemory:
        return cls(memory_key=key_of(memory), outcome=outcome, summary=harmless(memory.summary), version=memory.version)


def key_of(memory: Hit | MemoryItem) -> str:
    """Return the key to show to a model: the memory key, or the id if the key could be mistaken for markup."""
    key = memory.memory_key
    return key if harmless(key) == key and not set(key) & set("[]()") else memory.id


def harmless_lines(text: str) -> str:
    """Escape each line of a text."""
    return "\n".join(map(harmless, text.splitlines()))


def harmless_json(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {harmless(name): _harmless(inner) for name, inner in value.items()}


def _harmless(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, list):
        return [_harmless(inner) for inner in value]
    return harmless_json(value) if isinstance(value, dict) else value
