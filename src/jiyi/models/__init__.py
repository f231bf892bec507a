"""Values of the public API. All are frozen; times are aware and in UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from ..memory_types import Layer
from .given import (
    CANDIDATE_ALIASES,
    IMAGE_TEXTS,
    SENT_AT_ALIASES,
    UNSET,
    CandidateMemory,
    Given,
    Message,
    Share,
    Status,
    Time,
    Unset,
    Value,
    in_utc,
    invalid_input,
    with_new_name,
    with_new_names,
)
from .shown_dates import with_dates

__all__ = [  # of what is defined beside
    "CANDIDATE_ALIASES",
    "IMAGE_TEXTS",
    "SENT_AT_ALIASES",
    "UNSET",
    "CandidateMemory",
    "Given",
    "Message",
    "Share",
    "Status",
    "Time",
    "Unset",
    "Value",
    "in_utc",
    "invalid_input",
    "with_new_name",
    "with_new_names",
]

SearchMode = Literal["hybrid", "keyword", "semantic"]

# Memories from this relevance on can be used; those below it are weak matches and are marked as such.
RELEVANT = 0.6
# Memories with a confidence or trust below it need a look: see `usage.review`.
UNSURE = 0.6
MOST_FOR_ANSWER = 16  # memories that `answer` shows to the language model


class MemoryItem(Value):
    """A stored memory."""

    id: str
    memory_key: str
    user_id: str
    agent_id: str | None
    group_id: str | None
    session_id: str | None
    memory_type: str
    layer: Layer
    content: str
    summary: str
    data: dict[str, JsonValue]
    metadata: dict[str, JsonValue]
    importance: float
    confidence: float
    tags: tuple[str, ...]
    keywords: tuple[str, ...]
    status: Status
    version: int
    occurred_at: datetime
    valid_from: datetime
    valid_to: datetime | None
    superseded_by: str | None
    expires_at: datetime | None
    access_count: int
    last_accessed_at: datetime | None
    source: str
    trust: float
    source_ids: tuple[str, ...]
    created_at: datetime
    updated_at: datetime

    @property
    def dated_text(self) -> str:
        """The content with the dates of its times before it: "(2026-11-20) I fly on Friday"."""
        return with_dates(self.content, self.data)


class ReceiptState(StrEnum):
    ACCEPTED = "accepted"  # the input is stored
    EXTRACTED = "extracted"  # memories are stored, but some have no vector yet
    INDEXED = "indexed"  # all memories can be searched
    FAILED = "failed"  # the input is stored, extraction failed: see `problems`


OnConflict = Literal["error", "skip", "update"]
RowOutcome = Literal["created", "known", "updated", "unchanged", "skipped"]


class RowResult(Value):
    """Outcome of one candidate of an `add`."""

    position: int
    memory_id: str
    outcome: RowOutcome


class Receipt(Value):
    """Result of an `add`."""

    id: str
    user_id: str
    state: ReceiptState
    memories: tuple[MemoryItem, ...]
    created: int = Field(description="number of new memories; the others existed before")
    ended: tuple[MemoryItem, ...] = Field(default=(), description="older memories that the new ones ended")
    problems: tuple[str, ...] = Field(default=(), description="what was skipped or is unfinished, and why")
    rows: tuple[RowResult, ...] = Field(default=(), description="what became of candidates with keys")


class Job(Value):
    """Background job of an `add`."""

    id: str = Field(description="same as the receipt's")
    user_id: str
    session_id: str | None
    kind: str
    state: ReceiptState
    attempts: int
    problems: tuple[str, ...]
    next_attempt_at: datetime | None = Field(description="none: the job is finished")
    leased_until: datetime | None = Field(description="time until which a worker holds it")
    created_at: datetime
    updated_at: datetime


class JobCounts(Value):
    """Job counts over all users."""

    by_state: dict[str, int]
    waiting_since: datetime | None = Field(description="due time of the oldest job that no worker has taken")
    failed_at: datetime | None = Field(description="time of the last failure")


class Check(Value):
    """Result of one health check."""

    name: str
    ok: bool
    problem: str | None = Field(default=None, description="none if it is ok")
    error: str | None = Field(default=None, description="class of the error, if one was raised")
    required: bool = Field(default=True, description="without it nothing works; without the others less does")
    detail: str | None = Field(default=None, description="what is used, and where texts go")


class Health(Value):
    """Result of all health checks."""

    ready: bool = Field(description="all required checks are ok, so that this process can serve")
    checks: tuple[Check, ...]


class Observed(Value):
    """Counts of observed turns."""

    accepted: int
    failed: int
    waiting: int


class ScorePart(Value):
    """One term of a score: value, weight and contribution."""

    name: str
    value: float
    weight: float
    contribution: float


class Explanation(Value):
    """Explanation of a score.

    The sum of the `parts` selects the candidates. The score is the probability, estimated by one fitted model,
    that the memory answers the query. `evidence` lists its inputs, each with what it adds to the logit.

    The plain formulas (`search.preset`) have no evidence: their score is the sum of the parts, times the contributions
    of the `factors`.
    """

    parts: tuple[ScorePart, ...]
    evidence: tuple[ScorePart, ...] = ()
    factors: tuple[ScorePart, ...] = ()
    matched_terms: tuple[str, ...]
    score: float


class Hit(Value):
    """A search result."""

    id: str
    memory_key: str
    content: str
    summary: str
    speaker: str | None = Field(default=None, description="the person or role that said it, if known")
    content_preview: str = Field(description="the first 200 characters")
    memory_type: str
    layer: Layer
    relevance_score: float
    relevant: bool = Field(default=False, description="its score is 0.6 or more, from which a memory should be used")
    outdated: bool = Field(default=False, description="it has ended, and the query is about the present")
    importance: float
    created_at: datetime
    occurred_at: datetime
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    metadata: dict[str, JsonValue]
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    source_ids: tuple[str, ...] = Field(description="ids of its source messages, as given by the caller")
    explanation: Explanation | None = None


class SearchResult(Value):
    """Result of a search. `searched == 0`: nothing is stored in this scope. `searched > 0` without hits: nothing
    matched. `degraded`: parts of the search that failed, and why. `engines`: external engines that answered it; none:
    the memories in this process."""

    query: str
    hits: tuple[Hit, ...]
    total_found: int
    searched: int
    search_strategy_used: SearchMode
    expanded_keywords: tuple[str, ...]
    degraded: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Hit]:  # type: ignore[override]
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


class Answer(Value):
    """Answer of a language model to a question, from memories. Without a `text` it is not known from them. `degraded`:
    parts of the search that failed, and why."""

    question: str
    text: str | None = Field(default=None, description="null: not known")
    memory_ids: tuple[str, ...] = Field(default=(), description="the memories that it rests on")
    degraded: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return self.text is not None


class Recall(Value):
    """Record of a search that found something; `memory_ids` are ordered, best first."""

    id: str
    user_id: str
    query: str
    memory_ids: tuple[str, ...]
    recalled_at: datetime
    session_id: str | None = Field(default=None, description="of the conversation that it was for, if known")
    agent_id: str | None = None


class Page(Value):
    """A page of a list; pass `next_cursor` to get the next one."""

    items: tuple[MemoryItem, ...]
    next_cursor: str | None

    def __iter__(self) -> Iterator[MemoryItem]:  # type: ignore[override]
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Revision(Value):
    """A change of a memory."""

    memory_id: str
    version: int
    action: Literal["add", "update", "archive", "restore", "merge", "supersede"]
    actor: str
    reason: str | None
    changed_at: datetime
    before: dict[str, JsonValue] | None
    after: dict[str, JsonValue]


RelationType = Literal["supports", "contradicts", "refines"]


class Relation(Value):
    """A relation between two memories."""

    memory_id: str
    relation_type: RelationType
    target_id: str
    strength: float
    created_at: datetime


class SourceMessage(Value):
    """A source message of a memory, verbatim."""

    id: str
    external_id: str | None = Field(description="the caller's id")
    session_id: str | None
    role: str
    speaker: str | None
    text: str
    sent_at: datetime
    span: tuple[int, int] | None = Field(description="start and end of the part it came from; none: all of it")


class MessagePage(Value):
    """A page of messages; pass `next_cursor` to get the next one."""

    items: tuple[SourceMessage, ...]
    next_cursor: str | None

    def __iter__(self) -> Iterator[SourceMessage]:  # type: ignore[override]
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Deletion(Value):
    """Result of a delete."""

    memories: int
    messages: int
    removed: dict[str, int] = Field(default_factory=dict, description="deleted rows by kind")
    derived: tuple[str, ...] = Field(default=(), description="derived memories deleted with their only source")
    rewritten: tuple[str, ...] = Field(default=(), description="memories that lost the part derived from it")
    restored: tuple[str, ...] = Field(default=(), description="archived memories that became active again")
    notes: tuple[str, ...] = Field(default=(), description="remaining traces, and how to remove them")


class ImportedFile(Value):
    """The part of a file that went to one user."""

    file: str
    user_id: str
    named: str | None = Field(default=None, description="user that the file names for it")
    conversations: int = 0
    messages: int = 0
    memories: int = 0


class ImportReport(Value):
    """Result of an import of chats."""

    files: int
    conversations: int
    messages: int = Field(description="messages read, without those left out")
    new: int = Field(description="messages that were not stored before")
    memories: int = Field(default=0, description="memories in an export of chats: what the assistant remembered")
    new_memories: int = Field(default=0, description="memories that were not stored before")
    left_out: dict[str, int] = Field(default_factory=dict, description="number of messages left out, by reason")
    by_file: tuple[ImportedFile, ...] = Field(default=(), description="what went where")
    notes: tuple[str, ...] = Field(default=(), description="further remarks")


class Coverage(Value):
    """Counts of active memories by what they are indexed by."""

    memories: int
    embedded: int
    models: dict[str, int]
    with_keywords: int = Field(description="memories with at least one keyword")
    outdated: int = Field(default=0, description="memories, archived or not, that maintenance has yet to reindex")


class Migration(Value):
    """Result of `migrate_store`; rows and checksums of both stores are equal."""

    rows: dict[str, int] = Field(description="by table")
    checksums: dict[str, str] = Field(description="by table, independent of row order")
    copied: int = Field(description="rows copied in this run")


class CacheUse(Value):
    """Cache hits since the memory was opened."""

    caches: tuple[str, ...] = Field(description="names of the caches; empty if caching is off")
    asked: int
    answered: int
    problems: tuple[str, ...] = Field(default=(), description="caches that fail, and why")


class Stats(Value):
    """Contents of a store, for one user or all."""

    users: int
    memories: int
    by_type: dict[str, int]
    coverage: Coverage
    embedder: str
    reader: str | None = None  # None: hits are ranked without reading them
    store: str
    schema_version: str
    size_bytes: int
    cache: CacheUse | None = None


def utc_now() -> datetime:
    return datetime.now(UTC)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(0, 0, micros)
