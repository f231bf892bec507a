"""Texts for models: the guide, and the results of the tools as data and as text. In the text, recalled text is quoted
and fenced as data; a model may see the data as JSON, so tags and control tokens are escaped in it."""

import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Literal, Self

from pydantic import JsonValue

from ...models import RELEVANT, Hit, MemoryItem, Value
from ...models.shown_dates import with_dates
from ...text.fence import NOTICES, Fence, harmless, named, one_line, quoted
from .inputs import ToolLanguage

Outcome = Literal["saved", "known", "updated", "archived", "erased"]
SUMMARY = 500  # most characters of a summary
DETAIL = 8_000  # characters of one part of a long memory

Phrases = dict[str, str]  # messages to a model in one language
_FOLDER = files(__package__)
_LANGUAGES: tuple[ToolLanguage, ...] = ("en", "zh")
_TEXTS = tomllib.loads(_FOLDER.joinpath("phrases.toml").read_text("utf-8"))
TOOL_TEXTS: dict[str, dict[Literal["title", "description"], dict[ToolLanguage, str]]] = _TEXTS["tools"]
PHRASES: dict[ToolLanguage, Phrases] = {language: _TEXTS[language] for language in _LANGUAGES}
MEMORY_TOOLS_SYSTEM_PROMPTS: dict[ToolLanguage, str] = {
    language: _FOLDER.joinpath(f"guide.{language}.md").read_text("utf-8").format(relevant=RELEVANT)
    for language in _LANGUAGES
}
MEMORY_TOOLS_SYSTEM_PROMPT = MEMORY_TOOLS_SYSTEM_PROMPTS["zh"]


_OTHER_NAMES = {
    "search_memory": ("search_memories",),
    "manage_memory": ("save_memory", "update_memory", "forget_memory"),
}


def guide(language: ToolLanguage, offered: Collection[str]) -> str:
    """Return the guide with the names of the offered tools, without the lines about others."""
    text = MEMORY_TOOLS_SYSTEM_PROMPTS[language]
    for name, replaced in _OTHER_NAMES.items():
        for other in replaced if name in offered else ():
            text = text.replace(f"`{other}`", f"`{name}`")
    lines = [(line, set(re.findall(r"`(\w+)`", line))) for line in text.splitlines(keepends=True)]
    return "".join(line for line, names in lines if not names or names & set(offered))


class ToolOutput(Value):
    """The result of a tool. Its texts are as they are stored."""

    def text(self, phrases: Phrases, fence: Fence) -> str:
        """Render for a model."""
        raise NotImplementedError

    def data(self) -> dict[str, JsonValue]:
        """Return the same as JSON, with tags and control tokens escaped."""
        return harmless_json(self.model_dump(mode="json"))


class MemoryAnswer(ToolOutput):
    """An answer from memories; null if it is not known from them."""

    answer: str | None
    memory_ids: list[str]
    degraded: list[str]

    def text(self, phrases: Phrases, fence: Fence) -> str:
        if self.answer is None:
            return phrases["not_answered"]
        return fenced([f"- {quoted(self.answer)} ({', '.join(self.memory_ids)})"], phrases, fence)


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
    def of(cls, hit: Hit) -> Self:
        return cls(
            memory_key=key_of(hit),
            summary=one_line(hit.summary[:SUMMARY]),
            content_preview=one_line(hit.content_preview),
            memory_type=hit.memory_type,
            relevance_score=round(hit.relevance_score, 4),
            weak=hit.relevance_score < RELEVANT,
            created_at=hit.created_at,
            keywords=list(hit.keywords),
            metadata=hit.metadata,
        )


class ListedMemory(Value):
    memory_key: str
    summary: str
    memory_type: str
    created_at: datetime
    tags: list[str]

    @classmethod
    def of(cls, memory: MemoryItem) -> Self:
        return cls(
            memory_key=key_of(memory),
            summary=one_line(with_dates(memory.summary, memory.data)[:SUMMARY]),
            memory_type=memory.memory_type,
            created_at=memory.created_at,
            tags=list(memory.tags),
        )


class SearchMemoriesOutput(ToolOutput):
    total_found: int
    results: list[MemorySearchResult]
    standing: list[ListedMemory]
    search_strategy_used: str
    expanded_keywords: list[str] | None
    degraded: list[str]
    nothing_stored: bool
    private: bool = False  # only memories of the agent and group were searched
    types_without_memories: tuple[str, ...] = ()  # the filter that was dropped because of that

    def text(self, phrases: Phrases, fence: Fence) -> str:
        parts = []
        if self.types_without_memories and self.results:
            parts.append(phrases["other_types"].format(types=", ".join(map(named, self.types_without_memories))))
        if self.results or self.standing:
            always = (_standing_line(memory, phrases) for memory in self.standing)
            lines = (*always, *(_result_line(result, phrases) for result in self.results))
            parts.append(fenced(lines, phrases, fence))
        if self.results:
            parts.append(phrases["found"].format(shown=len(self.results), total=self.total_found))
            if phrases["details"] and any("…" in (one.summary[:1], one.summary[-1:]) for one in self.results):
                parts.append(phrases["details"])
        else:
            stored_nothing = phrases["nothing_stored_private" if self.private else "nothing_stored"]
            parts.append(stored_nothing if self.nothing_stored else phrases["nothing_matched"])
        if self.degraded:
            parts.append(phrases["degraded"].format(problems="; ".join(map(harmless, self.degraded))))
        return "\n".join(parts)


class ListMemoriesOutput(ToolOutput):
    memories: list[ListedMemory]
    next_cursor: str | None
    nothing_stored: bool = False
    private: bool = False  # only memories of the agent and group were listed

    def text(self, phrases: Phrases, fence: Fence) -> str:
        if not self.memories and not self.nothing_stored:
            return phrases["none_match"]
        if not self.memories:
            return phrases["none_listed_private" if self.private else "none_listed"]
        lines = fenced(map(_listed_line, self.memories), phrases, fence)
        parts = [lines, phrases["listed"].format(shown=len(self.memories))]
        if self.next_cursor:
            parts.append(phrases["next_page"].format(cursor=self.next_cursor))
        return "\n".join(parts)


class GetMemoryDetailOutput(ToolOutput):
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
    def of(cls, memory: MemoryItem, offset: int) -> Self:
        part = memory.content[offset : offset + DETAIL]
        end = offset + len(part)
        return cls(
            memory_key=key_of(memory),
            memory_type=memory.memory_type,
            summary=one_line(with_dates(memory.summary, memory.data)[:SUMMARY]),
            content="\n".join(map(one_line, (part if offset else with_dates(part, memory.data)).splitlines())),
            offset=offset,
            total_characters=len(memory.content),
            next_offset=end if end < len(memory.content) else None,
            importance=memory.importance,
            keywords=list(memory.keywords),
            tags=list(memory.tags),
            metadata=memory.metadata,
            version=memory.version,
            occurred_at=memory.occurred_at,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
        )

    def text(self, phrases: Phrases, fence: Fence) -> str:
        label = f"- [{self.memory_key}] ({named(self.memory_type)}, {self.occurred_at.date().isoformat()})"
        text = fenced((label, *(f"> {quoted(line)}" for line in self.content.splitlines())), phrases, fence)
        if self.next_offset is None:
            return text
        part = phrases["part"].format(start=self.offset, end=self.next_offset, total=self.total_characters)
        return f"{text}\n{part}"


class WrittenMemory(ToolOutput):
    """A memory that was saved, changed or forgotten."""

    memory_key: str
    outcome: Outcome
    summary: str
    version: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, memory: MemoryItem, outcome: Outcome, notes: Sequence[str] = ()) -> Self:
        return cls(
            memory_key=key_of(memory),
            outcome=outcome,
            summary=one_line(memory.summary[:SUMMARY]),
            version=memory.version,
            notes=tuple(notes),
        )

    def text(self, phrases: Phrases, fence: Fence) -> str:
        told = [phrases[self.outcome], *(phrases["note"].format(note=note) for note in self.notes)]
        return "\n".join([*told, fenced([f"- [{self.memory_key}] {quoted(self.summary)}"], phrases, fence)])


def key_of(memory: Hit | MemoryItem) -> str:
    """Return the key to show to a model: the memory key, or the id if the key could be mistaken for markup."""
    key = memory.memory_key
    return key if quoted(key) == f'"{key}"' and not set(key) & set("[]()") else memory.id


def harmless_json(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return {harmless(name): _harmless(inner) for name, inner in value.items()}


def _harmless(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return "\n".join(map(harmless, value.split("\n")))
    if isinstance(value, list):
        return [_harmless(inner) for inner in value]
    return harmless_json(value) if isinstance(value, dict) else value


def fenced(lines: Iterable[str], phrases: Phrases, fence: Fence) -> str:
    return fence.block((NOTICES[phrases["language"]], *lines))


def notes(hits: Iterable[Hit], language: ToolLanguage, fence: Fence, standing: Iterable[MemoryItem] = ()) -> str:
    """Render recalled memories as one fenced block of summaries with keys, weak ones and standing ones marked."""
    phrases = PHRASES[language]
    always = (_standing_line(ListedMemory.of(memory), phrases) for memory in standing)
    return fenced((*always, *(_result_line(MemorySearchResult.of(hit), phrases) for hit in hits)), phrases, fence)


def _standing_line(memory: ListedMemory, phrases: Phrases) -> str:
    label = f"({phrases['standing']}, {named(memory.memory_type)})"
    return f"- [{memory.memory_key}] {label} {quoted(memory.summary[:SUMMARY])}"


def _result_line(result: MemorySearchResult, phrases: Phrases) -> str:
    score = f"{result.relevance_score:.2f}{' ' + phrases['weak'] if result.weak else ''}"
    label = f"({score}, {named(result.memory_type or '')}, {result.created_at.date().isoformat()})"
    return f"- [{result.memory_key}] {label} {quoted(result.summary)}"


def _listed_line(memory: ListedMemory) -> str:
    tags = "".join(f" #{named(tag)}" for tag in memory.tags)
    label = f"({named(memory.memory_type)}, {memory.created_at.date().isoformat()})"
    return f"- [{memory.memory_key}] {label}{tags} {quoted(memory.summary)}"
