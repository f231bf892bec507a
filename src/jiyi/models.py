"""The values that go in and come out. All are frozen; times are aware and in UTC."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, model_validator

Layer = Literal["episodic", "semantic", "procedural"]
SearchMode = Literal["hybrid", "keyword", "semantic"]
Status = Literal["active", "archived"]

# Memories from this relevance on can be used; those below it are weak matches and are marked as such.
RELEVANT = 0.6


def in_utc(at: datetime) -> datetime:
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range in UTC") from None


Time = Annotated[AwareDatetime, AfterValidator(in_utc)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]

# The set of types is open; a type that is not listed belongs to the semantic layer.
LAYERS: dict[str, Layer] = {
    "message": "episodic",
    "episode": "episodic",
    "event": "episodic",
    "task": "episodic",
    "command_output": "episodic",
    "file": "episodic",
    "preference": "semantic",
    "fact": "semantic",
    "pattern": "semantic",
    "profile": "semantic",
    "skill": "procedural",
    "lesson": "procedural",
    "error_handling": "procedural",
}


def layer_of(memory_type: str) -> Layer:
    return LAYERS.get(memory_type, "semantic")


class Unset(Enum):
    """Says "leave it as it is" where None means "take it away"."""

    UNSET = "unset"


UNSET: Final = Unset.UNSET


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


# What the time of a message is called elsewhere; one that is not known would be taken for now, and silently.
TIMES_OF_MESSAGES = ("timestamp", "created_at", "create_time")


class Message(Value):
    """One thing somebody said. OpenAI's shape (`content`, `name`) is taken as it is."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    role: str = Field(default="user", max_length=64)
    speaker: str | None = Field(default=None, max_length=256)
    sent_at: Time | None = None
    id: str | None = Field(default=None, max_length=256, description="the caller's own id, by which hits name sources")

    @model_validator(mode="before")
    @classmethod
    def _take_openai_names(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        names = {"content": "text", "name": "speaker"}
        taken = {names.get(key, key): value for key, value in data.items() if value is not None or key not in names}
        if taken.get("sent_at") is None:
            taken["sent_at"] = next((data[name] for name in TIMES_OF_MESSAGES if data.get(name) is not None), None)
        if isinstance(taken.get("text"), list):
            taken["text"] = "\n".join(_text_of_part(part) for part in taken["text"])
        return taken


def _text_of_part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict):
        text = part.get("text", part.get("refusal"))
        if isinstance(text, str):
            return text
        return f"[{part.get('type', 'attachment')}]"
    raise ValueError("a part of the content is neither text nor an object")


class CandidateMemory(Value):
    """A memory that the caller has already worked out."""

    text: str
    type: str | None = Field(default=None, max_length=64)
    summary: str | None = None
    memory_key: str | None = Field(default=None, max_length=256)
    importance: Share | None = None
    confidence: Share | None = None
    trust: Share | None = Field(default=None, description="how far its source is trusted; `min_trust` leaves it out")
    tags: tuple[str, ...] = ()
    data: dict[str, JsonValue] | None = None
    metadata: dict[str, JsonValue] | None = None
    status: Status = Field(default="active", description="archived: kept, but out of every search from the start")
    occurred_at: Time | None = None
    valid_from: Time | None = None
    valid_to: Time | None = None
    expires_at: Time | None = None


class MemoryItem(Value):
    """One memory as it is stored."""

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


class ReceiptState(StrEnum):
    ACCEPTED = "accepted"  # the input is durable
    EXTRACTED = "extracted"  # memories were made, but not all of them can be found by meaning yet
    INDEXED = "indexed"  # everything can be found
    FAILED = "failed"  # the input is kept, but nothing was made of it; `problems` says why


class Receipt(Value):
    """What became of one `add`."""

    id: str
    user_id: str
    state: ReceiptState
    memories: tuple[MemoryItem, ...]
    created: int = Field(description="how many of the memories are new; the others were known already")
    problems: tuple[str, ...] = Field(default=(), description="what was left out or is not finished, and why")


class Job(Value):
    """What is left to do for one `add`, or how it ended."""

    id: str = Field(description="also the receipt's")
    user_id: str
    session_id: str | None
    kind: str
    state: ReceiptState
    attempts: int
    problems: tuple[str, ...]
    next_attempt_at: datetime | None = Field(description="none: there is nothing left to do")
    leased_until: datetime | None = Field(description="a worker has it until then")
    created_at: datetime
    updated_at: datetime


class JobCounts(Value):
    """How the jobs of all users stand."""

    by_state: dict[str, int]
    waiting_since: datetime | None = Field(description="since when a job is due that nobody has taken")
    failed_at: datetime | None = Field(description="when a job failed last")


class Check(Value):
    """One thing that has to work."""

    name: str
    ok: bool
    problem: str | None = None


class Health(Value):
    """Whether a memory can do all that it should."""

    ready: bool
    checks: tuple[Check, ...]


class Observed(Value):
    """What became of the turns that were observed."""

    accepted: int
    failed: int
    waiting: int


class ScorePart(Value):
    """One part of a score: its value, its weight, and what it contributes."""

    name: str
    value: float
    weight: float
    contribution: float


class Explanation(Value):
    """How a score came about.

    `parts` decide the order: the hit with the largest sum of contributions comes first. What the score is, is decided
    by the `evidence` that the first hit answers the query, and by how far another one is `behind` it:

        score = 1 / (1 + exp(-x)),  x = min(sum of evidence, 3) + behind

    The simple formulas that can be chosen by a setting have no evidence: their score is the sum of the parts, times
    the contributions of the `factors`.
    """

    parts: tuple[ScorePart, ...]
    evidence: tuple[ScorePart, ...] = ()
    behind: ScorePart | None = None
    factors: tuple[ScorePart, ...] = ()
    matched_terms: tuple[str, ...]
    score: float


class Hit(Value):
    """One found memory."""

    id: str
    memory_key: str
    summary: str
    content_preview: str = Field(description="the first 200 characters")
    memory_type: str
    layer: Layer
    relevance_score: float
    importance: float
    created_at: datetime
    occurred_at: datetime
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    metadata: dict[str, JsonValue]
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    source_ids: tuple[str, ...] = Field(description="the messages it came from, by the caller's ids where given")
    explanation: Explanation | None = None


class SearchResult(Value):
    """The answer to one search.

    `searched == 0`: nothing is stored in this scope. `searched > 0` without hits: nothing matched.
    `degraded`: a part of the search could not run, and why.
    """

    query: str
    hits: tuple[Hit, ...]
    total_found: int
    searched: int
    search_strategy_used: SearchMode
    expanded_keywords: tuple[str, ...]
    degraded: tuple[str, ...] = ()


class Recall(Value):
    """One search that found something: what was asked, which memories came back (the best first), and when."""

    id: str
    user_id: str
    query: str
    memory_ids: tuple[str, ...]
    recalled_at: datetime


class Page(Value):
    """A part of a list; hand `next_cursor` back for the following part."""

    items: tuple[MemoryItem, ...]
    next_cursor: str | None


class Revision(Value):
    """One change of a memory."""

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
    """What one memory does to another."""

    memory_id: str
    relation_type: RelationType
    target_id: str
    strength: float
    created_at: datetime


class SourceMessage(Value):
    """A message that a memory came from, word for word."""

    id: str
    external_id: str | None = Field(description="the caller's own id")
    session_id: str | None
    role: str
    speaker: str | None
    text: str
    sent_at: datetime
    span: tuple[int, int] | None = Field(description="which characters of the text, if not all of it")


class MessagePage(Value):
    """A part of a list of messages; hand `next_cursor` back for the following part."""

    items: tuple[SourceMessage, ...]
    next_cursor: str | None


class Deletion(Value):
    """What a delete removed."""

    memories: int
    messages: int
    removed: dict[str, int] = Field(default_factory=dict, description="how many of each kind, those two among them")
    derived: tuple[str, ...] = Field(
        default=(), description="other memories that went along: nothing else supported them"
    )
    rewritten: tuple[str, ...] = Field(
        default=(), description="memories that lost the part that came from what was deleted"
    )
    restored: tuple[str, ...] = Field(default=(), description="archived memories that speak for themselves again")
    notes: tuple[str, ...] = Field(default=(), description="what is left, and what would end it")


class ImportReport(Value):
    """What became of an import of past chats."""

    files: int
    conversations: int
    messages: int = Field(description="how many can be kept; those left out are not among them")
    new: int = Field(description="how many of the messages were not known already")
    left_out: dict[str, int] = Field(default_factory=dict, description="why messages were left out, and how many")
    notes: tuple[str, ...] = Field(default=(), description="what else a reader should know")


class Coverage(Value):
    """How many active memories there are, how many of them the present embedder can see, and how many have keywords."""

    memories: int
    embedded: int
    models: dict[str, int]
    with_keywords: int = Field(description="how many carry at least one keyword")
    outdated: int = Field(default=0, description="how many, archived ones too, upkeep has yet to index anew")


class Migration(Value):
    """What `migrate_store` copied; the rows and checksums of both stores are equal."""

    rows: dict[str, int] = Field(description="by table")
    checksums: dict[str, str] = Field(description="by table: of all its rows, whatever their order")
    copied: int = Field(description="rows copied this time; the others were there already")


class CacheUse(Value):
    """How often a search was answered from a cache, since this memory was opened."""

    caches: tuple[str, ...] = Field(description="where answers are kept; none if caching is off")
    asked: int
    answered: int
    problems: tuple[str, ...] = Field(default=(), description="what does not work, and why")


class Stats(Value):
    """What a store holds; of one user, or of all."""

    users: int
    memories: int
    by_type: dict[str, int]
    coverage: Coverage
    embedder: str
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
    return EPOCH + timedelta(microseconds=micros)
