"""Response bodies, besides the engine's own values."""

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, Literal, Self, TypeVar

from pydantic import BaseModel, Field, JsonValue

from ..keys import Permission
from ..models import ImportReport, MemoryItem, Receipt, Relation, utc_now
from ..transfer.imports import MemoryImportReport

T = TypeVar("T")


class Listing(BaseModel, Generic[T]):
    items: Sequence[T]


class MemoryPage(BaseModel):
    items: tuple[MemoryItem, ...]
    next_cursor: str | None = Field(description="send it back as `cursor`; null on the last page")
    total: int | None = Field(default=None, description="the number of all matches, with `include_total`")


class Related(BaseModel):
    items: list[Relation]
    memories: list[MemoryItem] = Field(description="the related memories")


class Groups(BaseModel):
    groups: dict[str, int]


class ContextReply(BaseModel):
    context: str


class ExpansionReply(BaseModel):
    original: tuple[str, ...]
    synonyms: tuple[str, ...]
    related: tuple[str, ...]
    by_word: dict[str, tuple[str, ...]]


class Changed(BaseModel):
    changed: int


class Removed(BaseModel):
    removed: int


class Users(BaseModel):
    users: list[str]


class EpochReply(BaseModel):
    epoch: str = Field(description="changes when all data of the user is deleted")


ImportState = Literal["running", "done", "failed"]


class Import(BaseModel):
    """The import of an uploaded file of chats or memories."""

    id: str
    user_id: str
    filename: str
    state: ImportState = "running"
    done: int = Field(default=0, description="imported messages or memories")
    total: int | None = Field(default=None, description="their total number; null until the file was read")
    report: ImportReport | None = Field(default=None, description="of chats, when done")
    memories: MemoryImportReport | None = Field(default=None, description="of memories, when done")
    problem: str | None = None
    created_at: datetime = Field(default_factory=utc_now)
    updated_at: datetime = Field(default_factory=utc_now)


class KeyInfo(BaseModel):
    id: str
    name: str
    expires_at: datetime | None


class ServerLimits(BaseModel):
    body_bytes: int
    upload_bytes: int


class WhoAmI(BaseModel):
    """The permissions of a request."""

    key: KeyInfo | None = Field(description="null: the server has no keys and accepts local requests only")
    scopes: tuple[Permission, ...]
    all_users: bool
    user_ids: tuple[str, ...]
    default_user: str | None = Field(description="the user of requests without user_id")
    keys_needed: bool
    version: str
    answers: bool = Field(description="a language model is set, so that `/v1/answer` answers")
    limits: ServerLimits


class Alive(BaseModel):
    status: Literal["ok"] = "ok"


class MemoryModel(BaseModel):
    event_id: str
    user_id: str
    group_id: str | None
    memory_type: str
    subject: str | None
    summary: str
    narrative: str
    participants: list[str]
    keywords: tuple[str, ...]
    timestamp: datetime
    importance_score: float

    @classmethod
    def of(cls, memory: MemoryItem) -> Self:
        subject = memory.data.get("title") or memory.data.get("subject")
        people = memory.data.get("participants")
        return cls(
            event_id=memory.id,
            user_id=memory.user_id,
            group_id=memory.group_id,
            memory_type=memory.memory_type,
            subject=subject if isinstance(subject, str) else None,
            summary=memory.summary,
            narrative=memory.content,
            participants=[name for name in people if isinstance(name, str)] if isinstance(people, list) else [],
            keywords=memory.keywords,
            timestamp=memory.occurred_at,
            importance_score=memory.importance,
        )


class RetrieveMemoryResponse(BaseModel):
    memories: list[MemoryModel]
    scores: list[float]
    importance_scores: list[float]
    original_data: list[dict[str, JsonValue]] = Field(description="the source messages of the memories")
    groups: dict[str, list[str]] = Field(description="the event_ids by group, best first; of none: an empty name")
    total_count: int


class FetchMemoryResponse(BaseModel):
    memories: list[MemoryItem]
    total_count: int
    missing: list[str] = Field(description="ids and keys that this user does not have")


class MemorizeResponse(BaseModel):
    receipts: list[Receipt]
