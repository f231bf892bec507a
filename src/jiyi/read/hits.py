"""Hits: memories as a search shows them, cut to the query and as they were at an earlier time."""

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from .. import threads
from ..languages.terms import tokens
from ..languages.words import width
from ..models import RELEVANT, Explanation, Hit, MemoryItem, SearchResult
from ..models.shown_dates import with_dates
from ..text.passages import COMPRESSED, passages, summarise

PREVIEW = 200
BEGINNING = 2_000  # characters of a memory in which words of the query are looked for once it was found
MOST = 450  # width of one memory in a prompt; a Chinese character counts as three

_DAY = re.compile(r"(\d{4}-\d{2}-\d{2}): ")


def hit(
    memory: MemoryItem,
    query: str,
    relevance_score: float,
    explanation: Explanation | None = None,
    *,
    outdated: bool = False,
) -> Hit:
    speaker = memory.data.get("speaker") or memory.data.get("role")
    return Hit(
        id=memory.id,
        memory_key=memory.memory_key,
        content=memory.content,
        summary=with_dates(memory.summary, memory.data),
        speaker=speaker if isinstance(speaker, str) else None,
        content_preview=with_dates(to_the_point(memory, query, PREVIEW).content, memory.data)[:PREVIEW],
        memory_type=memory.memory_type,
        layer=memory.layer,
        relevance_score=relevance_score,
        relevant=relevance_score >= RELEVANT,
        outdated=outdated,
        importance=memory.importance,
        created_at=memory.created_at,
        occurred_at=memory.occurred_at,
        keywords=memory.keywords,
        tags=memory.tags,
        metadata=memory.metadata,
        session_id=memory.session_id,
        agent_id=memory.agent_id,
        group_id=memory.group_id,
        source_ids=memory.source_ids,
        explanation=explanation,
    )


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result for further callers. Each may change the metadata of their own, all else is frozen."""

    result: SearchResult
    metadata: list[dict[str, Any]]  # of the hits

    @classmethod
    def of(cls, result: SearchResult) -> Self:
        return cls(result, [deepcopy(one.metadata) if one.metadata else {} for one in result.hits])

    def restored(self) -> SearchResult:
        pairs = zip(self.result.hits, self.metadata, strict=True)
        hits = tuple([one.model_copy(update={"metadata": deepcopy(own) if own else {}}) for one, own in pairs])
        return self.result.model_copy(update={"hits": hits})


def matched_terms(memory: MemoryItem, terms: tuple[str, ...]) -> tuple[str, ...]:
    """Return the query's terms that occur in the memory, or in the beginning of a long one."""
    threads.check()
    speaker = memory.data.get("speaker")
    texts = memory.content[:BEGINNING], memory.summary[:BEGINNING], str(speaker or ""), *memory.tags
    present = set(tokens(" ".join(texts)))
    return tuple(term for term in dict.fromkeys(terms) if term in present)


def to_the_point(memory: MemoryItem, query: str, most: int = MOST) -> MemoryItem:
    """Cut a long compressed memory to the passages that share most words with the query, newest first among equals.
    Their order is kept. Other memories are returned unchanged."""
    if COMPRESSED not in memory.data or width(memory.content) <= most:
        return memory
    dated = _dated_passages(memory)
    if not dated:
        return memory
    asked = set(tokens(query))
    shared = [len(asked.intersection(tokens(passage))) for passage in dated]
    chosen: list[int] = []
    room = most
    for at in sorted(range(len(dated)), key=lambda at: (-shared[at], -at)):
        if chosen and width(dated[at]) > room:
            break
        chosen.append(at)
        room -= width(dated[at])
    return memory.model_copy(update={"content": "\n".join(dated[at] for at in sorted(chosen))})


def _dated_passages(memory: MemoryItem) -> list[str]:
    """Return the passages, each beginning with its day."""
    dated: list[str] = []
    day = ""
    for passage in passages(memory.content, memory.data):
        found = _DAY.match(passage)
        dated.append(passage if found else day + passage)
        day = found.group() if found else day
    return dated


def as_they_were(memories: Iterable[MemoryItem], as_of: datetime | None) -> list[MemoryItem]:
    """Return the memories as they were at `as_of`: compressed ones, which grow day by day, are cut to that day."""
    if as_of is None:
        return list(memories)
    cut = (_until(memory, as_of) if COMPRESSED in memory.data else memory for memory in memories)
    return [memory for memory in cut if memory is not None]


def _until(memory: MemoryItem, as_of: datetime) -> MemoryItem | None:
    """Keep the lines of that day and earlier ones. Text of a language model names no days and is kept whole."""
    if as_of >= memory.occurred_at:
        return memory
    last = as_of.astimezone(UTC).date().isoformat()
    lines = memory.content.splitlines()
    kept = [line for line in lines if (day := _DAY.match(line)) is None or day.group(1) <= last]
    if not kept or len(kept) == len(lines):
        return memory if kept else None
    content = "\n".join(kept)
    return memory.model_copy(update={"content": content, "summary": summarise(content)})
