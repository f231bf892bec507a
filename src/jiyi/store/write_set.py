"""Values that repositories take and return."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from ..memory_types import Layer
from ..models import ReceiptState, Status

Advance = Callable[[str, int, int], None]  # what is done, how much of it, of how much

CLOSED = "the memory is not open: use it inside `async with Memory.open(…) as memory`"

REQUEST_VERSION = "02"  # begins the hashes of requests; those of another version cannot be compared

# Prefixes of hashes that stay known when the memory is no longer current:
SAID = "said:"  # a message, which is not added again after it was edited or archived
PAST = "past:"  # a statement that had ended when it was added
BY_A_PERSON = ("update", "restore")  # actions of people; extraction uses other names
SCOPE = ("session_id", "agent_id", "group_id")  # of a message, besides its user
EXTRACTED = "extracted"  # source of memories that an extractor found
STATED = "statement"  # source of memories that a caller saved
COMPRESSED = "compressed"  # source of memories that replace others and refine them
REST_OF = "rest_of"  # in the data of what is left of a statement: its id
# Kinds of jobs. `OBSERVED`: of messages that are stored and not yet memories; those of one user run in order.
ADD, OBSERVED = "add", "observe"


class Stale(Exception):
    """Something that this depends on has changed; nothing was saved."""


class LeaseLost(Exception):
    """Another worker took the job, or it was cancelled or deleted; nothing was saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    id: str
    external_id: str | None
    role: str
    speaker: str | None
    text: str
    sent_at: datetime
    dedupe_hash: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage(NewMessage):
    """A stored message, and its unit."""

    unit_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source message of a memory, and the span of its text."""

    message_id: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitPart:
    """Messages that join a unit, which may have some already."""

    id: str
    message_ids: tuple[str, ...]
    subject: str | None
    summary: str
    participants: tuple[str, ...]
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexEntry:
    """The searchable form of a memory: a pure function of its text, speaker, tags and the embedding model."""

    length: int
    asks: float  # share of sentences that are questions
    hashes: NDArray[np.int64]
    counts: NDArray[np.uint16]
    keywords: tuple[tuple[str, float, str], ...]  # keyword, weight, source
    near_hash: int
    vector: NDArray[np.float32] | None
    model: str | None
    passages: tuple[str, ...] = ()  # that have vectors of their own
    of_passages: tuple[NDArray[np.float32], ...] = ()
    kind: str = ""  # of sentence: fact, question, smalltalk, …; empty if unknown
    salience: float = 1.0  # 0..1


NOT_INDEXED = IndexEntry(
    length=0,
    asks=0.0,
    hashes=np.empty(0, np.int64),
    counts=np.empty(0, np.uint16),
    keywords=(),
    near_hash=0,
    vector=None,
    model=None,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A memory to be saved; the index stage adds its index entry."""

    id: str
    memory_key: str
    session_id: str | None = None  # if it comes from another session than its addition
    memory_type: str
    layer: Layer
    content: str
    summary: str
    data: dict[str, JsonValue]
    metadata: dict[str, JsonValue]
    importance: float
    confidence: float = 1.0
    status: Status = "active"
    tags: tuple[str, ...]
    dedupe_hash: str
    occurred_at: datetime
    valid_from: datetime
    valid_to: datetime | None = None
    expires_at: datetime | None
    source: str
    trust: float = 1.0
    sources: tuple[Source, ...] = ()
    slot: str | None = None
    superseded_by: str | None = None
    reason: str | None = None  # for the history
    created_at: datetime | None = None  # None: when it is added
    index: IndexEntry = NOT_INDEXED


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The rows of statements that replace the row of their message."""

    memory_id: str  # row that is archived
    version: int  # if it has another one, nothing is written
    left: tuple[NewMemory, ...]
    reason: str = "a statement of it was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """New values for some fields of a memory; `index` is given when its searchable text changes. `divisions`: of the
    messages that say the same."""

    values: dict[str, Any]
    dedupe_hash: str | None = None
    index: IndexEntry | None = None
    action: str
    actor: str
    reason: str | None
    at: datetime
    divisions: tuple[Division, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMemory:
    """The row of a memory. What maintenance, checks, files and engines read is made of it."""

    user_id: str
    id: str
    memory_key: str
    agent_id: str | None
    group_id: str | None
    session_id: str | None
    memory_type: str
    layer: Layer
    content: str
    summary: str
    data: dict[str, Any]
    metadata: dict[str, Any]
    importance: float
    confidence: float
    tags: tuple[str, ...]
    dedupe_hash: str | None
    near_hash: int
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
    created_at: datetime
    updated_at: datetime
    slot: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotEntry(StoredMemory):
    """An active memory about one attribute of one subject."""

    slot: str
    edited_at: datetime | None  # by a person
    told: tuple[tuple[datetime, Source], ...] = ()  # times and sources of the messages that say it


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedMemory:
    id: str
    change: Change
    version: int | None = None  # if it has another one, nothing is written


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRelation:
    """One memory supports, contradicts or refines another."""

    memory_id: str
    target_id: str
    relation_type: str
    strength: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Changes of stored memories that new ones cause. Void if one of them, or a slot, has changed meanwhile."""

    slots: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # versions of their memories, by id
    versions: Mapping[str, int] = field(default_factory=dict)  # of memories
    changes: tuple[ChangedMemory, ...] = ()
    evidence: Mapping[str, tuple[Source, ...]] = field(default_factory=dict)  # further sources of a memory
    relations: tuple[NewRelation, ...] = ()
    divisions: tuple[Division, ...] = ()  # of the messages of memories that end


NO_EFFECTS = Effects()


@dataclass(frozen=True, slots=True)
class Follows:
    """The message after which something was derived; void if another one was saved meanwhile."""

    message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """Everything that one `add` writes in one transaction."""

    id: str
    user_id: str
    epoch: str  # erasure epoch of the user when it began
    session_id: str | None
    agent_id: str | None
    group_id: str | None
    idempotency_key: str | None = None
    request_hash: str = ""
    actor: str
    at: datetime
    state: ReceiptState
    problems: tuple[str, ...] = ()
    model: str
    messages: tuple[NewMessage, ...] = ()
    memories: tuple[NewMemory, ...]
    met: tuple[str, ...] = ()  # stored memories that say the same as others that were found
    external_ids: Mapping[str, str] = field(default_factory=dict)  # the caller's ids of stored messages
    follows: Follows | None = None
    units: tuple[UnitPart, ...] = ()
    effects: Effects = NO_EFFECTS
    payload: dict[str, JsonValue] | None = None  # the work left for a worker
    kind: str = ADD
    leased_by: str | None = None  # worker that does the work left at once, and until when it has the right to
    leased_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedEntry:
    """The state in which a line and its memory were last equal."""

    memory_id: str
    path: str
    version: int
    digests: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A change, and the text before it."""

    action: str
    actor: str
    said: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreed:
    """The state in which a user's workspace files and memories were last equal."""

    checksums: Mapping[str, str]  # of the files, by path
    entries: Mapping[str, AgreedEntry]  # by memory
    seen: int | None  # position in the change feed at that time; None: never
    synced_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLook:
    """The memories that a sync of files reads."""

    user_id: str
    workspace: str
    layers: tuple[Layer, ...]
    types: tuple[str, ...]  # of other layers
    ids: tuple[str, ...]  # always included
    ended: bool  # include those that have expired or ended
    seen: int | None  # include those changed after this position; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Filed:
    memories: Mapping[str, StoredMemory]  # by id, of any status
    missing: tuple[str, ...]  # ids that do not exist
    complete: bool  # contains all current memories
    tip: int  # position in the change feed
    erased_at: datetime | None  # when all data of this user was deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWork:
    """Changes of memories that edits in files cause, in one transaction. Void if a memory has changed meanwhile."""

    user_id: str
    epoch: str  # erasure epoch of the user when the sync began
    workspace: str
    at: datetime
    changes: tuple[tuple[ChangedMemory, int], ...] = ()  # with the expected version
    additions: tuple[Addition, ...] = ()  # one for each agent, group and session
    agreed: tuple[AgreedEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to run a job until it expires."""

    user_id: str
    job_id: str
    session_id: str | None
    owner: str
    attempt: int
    payload: dict[str, Any]
    accepted_at: datetime
    epoch: str | None = None  # of the user and the messages of a turn that has just been stored; None: they are read
    messages: tuple[NewMessage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unembedded:
    """A memory without a vector of the model, and the texts to embed: the whole, then its passages."""

    user_id: str
    memory_id: str
    version: int
    texts: tuple[str, ...]


class FeedPosition(NamedTuple):
    """The newest entry of the change feed for a user. Equal positions mean that nothing has changed; the id and the
    time tell copies of a store with equal numbers apart."""

    seq: int
    memory_id: str
    changed_at: datetime


class SearchSnapshot(NamedTuple):
    """The state a search starts from: the newest change of the user, None if there was none, and the synonyms of its
    keywords, with similarities."""

    position: FeedPosition | None
    synonyms: Mapping[str, Sequence[tuple[str, float]]]


@dataclass(frozen=True, slots=True)
class StoreInfo:
    url: str
    schema: str
    size_bytes: int
    details: dict[str, str] = field(default_factory=dict)
