"""The tables. Primary keys start with the user, which keeps the rows of a user together and apart from others'."""

from datetime import datetime
from typing import Any, Final

from numpy.typing import NDArray
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    ColumnClause,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
)
from sqlalchemy.sql.expression import Grouping, and_, case

from .types import COUNTS, HASHES, WEIGHTS, Array, Base, Instant, key, optional, required, short_text, vector

NAME = 256  # user, session, agent and group ids are opaque strings up to this length
ID = 26  # ours are ULIDs
SHARED: Final = ""  # user id of rows that all users share; no user can have it


class MessageRow(Base):
    """A message, verbatim. Never changes."""

    __tablename__ = "messages"
    __table_args__ = (
        Index("uq_messages_dedupe", "user_id", "dedupe_hash", unique=True),
        Index("ix_messages_session", "user_id", "session_id", "id"),
    )

    user_id: ColumnClause[str] = key(short_text(NAME))
    id: ColumnClause[str] = key(short_text(ID))
    external_id: ColumnClause[str | None] = optional(short_text(NAME))
    session_id: ColumnClause[str | None] = optional(short_text(NAME))
    agent_id: ColumnClause[str | None] = optional(short_text(NAME))
    group_id: ColumnClause[str | None] = optional(short_text(NAME))
    role: ColumnClause[str] = required(short_text(64))
    speaker: ColumnClause[str | None] = optional(short_text(NAME))
    text: ColumnClause[str] = required(Text)
    sent_at: ColumnClause[datetime] = required(Instant)
    dedupe_hash: ColumnClause[str | None] = optional(short_text(32))
    created_at: ColumnClause[datetime] = required(Instant)


class UnitRow(Base):
    """A stretch of conversation about one topic (MemUnit)."""

    __tablename__ = "units"
    __table_args__ = (Index("ix_units_session", "user_id", "session_id", "id"),)

    user_id: ColumnClause[str] = key(short_text(NAME))
    id: ColumnClause[str] = key(short_text(ID))
    session_id: ColumnClause[str | None] = optional(short_text(NAME))
    group_id: ColumnClause[str | None] = optional(short_text(NAME))
    subject: ColumnClause[str | None] = optional(Text)
    summary: ColumnClause[str] = required(Text)
    narrative: ColumnClause[str] = required(Text)
    participants: ColumnClause[list[str]] = required(JSON)
    started_at: ColumnClause[datetime] = required(Instant)
    ended_at: ColumnClause[datetime] = required(Instant)
    created_at: ColumnClause[datetime] = required(Instant)


class UnitMessageRow(Base):
    """The unit of a message."""

    __tablename__ = "unit_messages"
    __table_args__ = (
        ForeignKeyConstraint(["user_id", "unit_id"], ["units.user_id", "units.id"], ondelete="CASCADE"),
        ForeignKeyConstraint(["user_id", "message_id"], ["messages.user_id", "messages.id"], ondelete="CASCADE"),
        Index("ix_unit_messages_unit", "user_id", "unit_id"),
        {"sqlite_with_rowid": False},
    )

    user_id: ColumnClause[str] = key(short_text(NAME))
    message_id: ColumnClause[str] = key(short_text(ID))
    unit_id: ColumnClause[str] = required(short_text(ID))


class MemoryRow(Base):
    """One memory."""

    __tablename__ = "memories"

    user_id: ColumnClause[str] = key(short_text(NAME))
    id: ColumnClause[str] = key(short_text(ID))
    memory_key: ColumnClause[str] = required(short_text(NAME))
    agent_id: ColumnClause[str | None] = optional(short_text(NAME))
    group_id: ColumnClause[str | None] = optional(short_text(NAME))
    session_id: ColumnClause[str | None] = optional(short_text(NAME))
    memory_type: ColumnClause[str] = required(short_text(64))
    layer: ColumnClause[str] = required(short_text(16))
    content: ColumnClause[str] = required(Text)
    summary: ColumnClause[str] = required(Text)
    data: ColumnClause[dict[str, Any]] = required(JSON)
    metadata: ColumnClause[dict[str, Any]] = required(JSON)
    importance: ColumnClause[float] = required(Double)
    confidence: ColumnClause[float] = required(Double)
    tags: ColumnClause[list[str]] = required(JSON)
    dedupe_hash: ColumnClause[str | None] = optional(short_text(64))
    near_hash: ColumnClause[int] = required(BigInteger)
    status: ColumnClause[str] = required(short_text(16))
    version: ColumnClause[int] = required(Integer)
    occurred_at: ColumnClause[datetime] = required(Instant)
    valid_from: ColumnClause[datetime] = required(Instant)
    valid_to: ColumnClause[datetime | None] = optional(Instant)
    superseded_by: ColumnClause[str | None] = optional(short_text(ID))
    expires_at: ColumnClause[datetime | None] = optional(Instant)
    access_count: ColumnClause[int] = required(Integer)
    last_accessed_at: ColumnClause[datetime | None] = optional(Instant)
    source: ColumnClause[str] = required(short_text(64))
    trust: ColumnClause[float] = required(Double)
    created_at: ColumnClause[datetime] = required(Instant)
    updated_at: ColumnClause[datetime] = required(Instant)
    slot: ColumnClause[str | None] = optional(short_text(32))  # hash of subject and attribute

    __table_args__ = (
        Index("uq_memories_key", "user_id", "memory_key", unique=True),
        Index("ix_memories_session", "user_id", "session_id"),
        Index("ix_memories_slot", "user_id", "slot"),
    )


# One current memory per text and type: a second writer of the same text fails instead of making a duplicate. All others
# are in the index too, each with its id, so that any hash is found without reading all of a user's memories.
Index(
    "uq_memories_dedupe",
    MemoryRow.user_id,
    MemoryRow.dedupe_hash,
    Grouping(case((and_(MemoryRow.status == "active", MemoryRow.valid_to.is_(None)), ""), else_=MemoryRow.id)),
    unique=True,
)
# `postgres.py` adds the condition for PostgreSQL: naming it here would import that dialect in every process.
IS_SUPERSEDED = MemoryRow.superseded_by.is_not(None)
SUPERSEDED = Index("ix_memories_superseded", MemoryRow.user_id, MemoryRow.superseded_by, sqlite_where=IS_SUPERSEDED)
# The first search of a user reads them. In PostgreSQL every recall would write into all indexes because of it.
_at = MemoryRow.last_accessed_at
Index("ix_memories_recalled", MemoryRow.user_id, _at, sqlite_where=_at.is_not(None)).ddl_if(dialect="sqlite")


def _of_memory() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(["user_id", "memory_id"], ["memories.user_id", "memories.id"], ondelete="CASCADE")


class MemorySourceRow(Base):
    """A source message of a memory, and the span of its text."""

    __tablename__ = "memory_sources"
    __table_args__ = (
        _of_memory(),
        ForeignKeyConstraint(["user_id", "message_id"], ["messages.user_id", "messages.id"], ondelete="CASCADE"),
        Index("ix_memory_sources_message", "user_id", "message_id"),
        {"sqlite_with_rowid": False},
    )

    user_id: ColumnClause[str] = key(short_text(NAME))
    memory_id: ColumnClause[str] = key(short_text(ID))
    message_id: ColumnClause[str] = key(short_text(ID))
    span_start: ColumnClause[int | None] = optional(Integer)
    span_end: ColumnClause[int | None] = optional(Integer)


class EmbeddingRow(Base):
    """A vector of a memory, or of one part of it."""

    __tablename__ = "embeddings"
    __table_args__ = (_of_memory(),)

    user_id: ColumnClause[str] = key(short_text(NAME))
    memory_id: ColumnClause[str] = key(short_text(ID))
    part: ColumnClause[int] = key(SmallInteger)
    model: ColumnClause[str] = required(short_text(128))
    dimension: ColumnClause[int] = required(Integer)
    vector: ColumnClause[NDArray[Any]] = required(vector())


class TermsRow(Base):
    """The index entry of a memory, packed for loading: hashed terms with counts (for BM25), and hashed keywords with
    weights."""

    __tablename__ = "terms"
    __table_args__ = (_of_memory(),)

    user_id: ColumnClause[str] = key(short_text(NAME))
    memory_id: ColumnClause[str] = key(short_text(ID))
    length: ColumnClause[int] = required(Integer)
    asks: ColumnClause[float] = required(Double)  # share of sentences that are questions
    kind: ColumnClause[str] = required(short_text(32), server_default="")  # of sentence: fact, question, smalltalk, …
    salience: ColumnClause[float] = required(Double, server_default="1")  # 0..1
    hashes: ColumnClause[NDArray[Any]] = required(Array(HASHES))
    counts: ColumnClause[NDArray[Any]] = required(Array(COUNTS))
    keyword_hashes: ColumnClause[NDArray[Any]] = required(Array(HASHES))
    keyword_weights: ColumnClause[NDArray[Any]] = required(Array(WEIGHTS))
    words_version: ColumnClause[int] = required(SmallInteger, server_default="0")  # WORDS_VERSION of the terms


class KeywordRow(Base):
    """A weighted keyword of a memory, and its source (rule, user_tag, llm)."""

    __tablename__ = "keywords"
    __table_args__ = (
        _of_memory(),
        Index("ix_keywords_keyword", "user_id", "keyword"),
        {"sqlite_with_rowid": False},
    )

    user_id: ColumnClause[str] = key(short_text(NAME))
    memory_id: ColumnClause[str] = key(short_text(ID))
    keyword: ColumnClause[str] = key(short_text(NAME))
    weight: ColumnClause[float] = required(Double)
    source: ColumnClause[str] = required(short_text(16))


class SynonymRow(Base):
    """Two words with the same meaning; the empty user means all users."""

    __tablename__ = "synonyms"

    user_id: ColumnClause[str] = key(short_text(NAME))
    keyword: ColumnClause[str] = key(short_text(NAME))
    synonym: ColumnClause[str] = key(short_text(NAME))
    similarity: ColumnClause[float] = required(Double)


class RelationRow(Base):
    """One memory supports, contradicts or refines another."""

    __tablename__ = "relations"
    __table_args__ = (
        _of_memory(),
        ForeignKeyConstraint(
            ["user_id", "target_id"],
            ["memories.user_id", "memories.id"],
            name="fk_relations_target",
            ondelete="CASCADE",
        ),
        Index("ix_relations_target", "user_id", "target_id"),
    )

    user_id: ColumnClause[str] = key(short_text(NAME))
    memory_id: ColumnClause[str] = key(short_text(ID))
    target_id: ColumnClause[str] = key(short_text(ID))
    relation_type: ColumnClause[str] = key(short_text(16))
    strength: ColumnClause[float] = required(Double)
    created_at: ColumnClause[datetime] = required(Instant)


class RevisionRow(Base):
    """One change of a memory, with the values before it. The values after it are in the next one, or in the memory."""

    __tablename__ = "revisions"
    __table_args__ = (_of_memory(),)

    user_id: ColumnClause[str] = key(short_text(NAME))
    memory_id: ColumnClause[str] = key(short_text(ID))
    version: ColumnClause[int] = key(Integer)
    action: ColumnClause[str] = required(short_text(16))
    actor: ColumnClause[str] = required(short_text(NAME))
    reason: ColumnClause[str | None] = optional(Text)
    before: ColumnClause[dict[str, Any] | None] = optional(JSON(none_as_null=True))
    changed_at: ColumnClause[datetime] = required(Instant)


class RecallRow(Base):
    """A search and the memories it returned."""

    __tablename__ = "recalls"

    user_id: ColumnClause[str] = key(short_text(NAME))
    id: ColumnClause[str] = key(short_text(ID))
    query: ColumnClause[str] = required(Text)
    memory_ids: ColumnClause[list[str]] = required(JSON)
    recalled_at: ColumnClause[datetime] = required(Instant)
    session_id: ColumnClause[str | None] = optional(short_text(NAME))
    agent_id: ColumnClause[str | None] = optional(short_text(NAME))


class JobRow(Base):
    """One accepted `add` and its progress."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("uq_jobs_idempotency", "user_id", "idempotency_key", unique=True),
        Index("ix_jobs_due", "not_before"),
    )

    user_id: ColumnClause[str] = key(short_text(NAME))
    id: ColumnClause[str] = key(short_text(ID))
    kind: ColumnClause[str] = required(short_text(32))
    state: ColumnClause[str] = required(short_text(16))
    idempotency_key: ColumnClause[str | None] = optional(short_text(NAME))
    request_hash: ColumnClause[str | None] = optional(short_text(32))  # with an idempotency key only
    created: ColumnClause[int] = required(Integer)
    problems: ColumnClause[list[str]] = required(JSON)
    attempts: ColumnClause[int] = required(Integer)
    leased_until: ColumnClause[datetime | None] = optional(Instant)
    created_at: ColumnClause[datetime] = required(Instant)
    updated_at: ColumnClause[datetime] = required(Instant)
    session_id: ColumnClause[str | None] = optional(short_text(NAME))
    payload: ColumnClause[dict[str, Any] | None] = optional(JSON(none_as_null=True))  # the work left
    not_before: ColumnClause[datetime | None] = optional(
        Instant
    )  # a worker may claim it from then on; None: nothing is left
    leased_by: ColumnClause[str | None] = optional(short_text(64))


class JobMemoryRow(Base):
    """A memory that an `add` created or met."""

    __tablename__ = "job_memories"
    __table_args__ = (
        _of_memory(),
        ForeignKeyConstraint(["user_id", "job_id"], ["jobs.user_id", "jobs.id"], ondelete="CASCADE"),
        Index("ix_job_memories_memory", "user_id", "memory_id"),
        {"sqlite_with_rowid": False},
    )

    user_id: ColumnClause[str] = key(short_text(NAME))
    job_id: ColumnClause[str] = key(short_text(ID))
    position: ColumnClause[int] = key(Integer)
    memory_id: ColumnClause[str] = required(short_text(ID))


class LlmUsageRow(Base):
    """Calls and tokens of language models of a user in one hour."""

    __tablename__ = "llm_usage"

    user_id: ColumnClause[str] = key(short_text(NAME))
    hour: ColumnClause[datetime] = key(Instant)
    calls: ColumnClause[int] = required(Integer)
    input_tokens: ColumnClause[int] = required(BigInteger)
    output_tokens: ColumnClause[int] = required(BigInteger)


class ChangeRow(Base):
    """The change feed, in order of commit."""

    __tablename__ = "changes"
    __table_args__ = (Index("ix_changes_user", "user_id", "seq"), {"sqlite_autoincrement": True})

    seq: ColumnClause[int] = key(BigInteger().with_variant(Integer, "sqlite"))
    user_id: ColumnClause[str] = required(short_text(NAME))
    memory_id: ColumnClause[str] = required(short_text(ID))
    action: ColumnClause[str] = required(short_text(16))
    changed_at: ColumnClause[datetime] = required(Instant)


class PackedIndexRow(Base):
    """A column of a large user's search index, as it was at one position of the change feed: loading it is much
    faster than reading the memories. It is derived, so it is not copied, and any deletion drops it."""

    __tablename__ = "packed_indexes"

    user_id: ColumnClause[str] = key(short_text(NAME))
    name: ColumnClause[str] = key(short_text(64))
    seen: ColumnClause[int] = required(BigInteger)  # newest change in it
    data: ColumnClause[bytes] = required(LargeBinary)


class EngineRow(Base):
    """An external engine that follows the change feed, and the process that feeds it."""

    __tablename__ = "engines"

    name: ColumnClause[str] = key(short_text(32))
    model: ColumnClause[str] = required(short_text(128))  # hash of its address, its prefix and the embedding model
    seen: ColumnClause[int] = required(BigInteger)  # users with a later change may be behind
    owner: ColumnClause[str | None] = optional(short_text(64))
    leased_until: ColumnClause[datetime | None] = optional(Instant)
    problem: ColumnClause[str | None] = optional(Text)  # of the last attempt


class EngineUserRow(Base):
    """The state of one user's memories in an external engine."""

    __tablename__ = "engine_users"
    __table_args__ = (Index("ix_engine_users_engine", "engine", "erase"),)

    user_id: ColumnClause[str] = key(short_text(NAME))
    engine: ColumnClause[str] = key(short_text(32))
    applied: ColumnClause[int | None] = optional(BigInteger)  # newest change in the engine; None while it is loaded
    load_from: ColumnClause[int] = required(BigInteger)  # newest change when loading began
    loaded_id: ColumnClause[str | None] = optional(short_text(ID))  # last memory that was loaded
    memories: ColumnClause[int] = required(Integer)  # counted up to a limit
    erase: ColumnClause[bool] = required(Boolean)  # everything of the user has to be removed first


class ApiKeyRow(Base):
    """A hashed key of the server, and what it permits."""

    __tablename__ = "api_keys"

    id: ColumnClause[str] = key(short_text(ID))
    name: ColumnClause[str] = required(short_text(NAME))
    key_hash: ColumnClause[str] = required(short_text(64), unique=True)
    scopes: ColumnClause[list[str]] = required(JSON)
    all_users: ColumnClause[bool] = required(Boolean)  # explicit, because an empty list of users permits nothing
    user_ids: ColumnClause[list[str]] = required(JSON)
    created_at: ColumnClause[datetime] = required(Instant)
    expires_at: ColumnClause[datetime | None] = optional(Instant)
    revoked_at: ColumnClause[datetime | None] = optional(Instant)


class AuditRow(Base):
    """Use of a key for irreversible actions, changes of keys, and refusals. No user ids and no contents."""

    __tablename__ = "audit"

    id: ColumnClause[str] = key(short_text(ID))
    at: ColumnClause[datetime] = required(Instant)
    key_id: ColumnClause[str | None] = optional(short_text(ID))
    action: ColumnClause[str] = required(short_text(32))
    target: ColumnClause[str | None] = optional(short_text(NAME))
    detail: ColumnClause[str | None] = optional(Text)


class FileRow(Base):
    """A workspace file at the last sync."""

    __tablename__ = "files"

    user_id: ColumnClause[str] = key(short_text(NAME))
    path: ColumnClause[str] = key(short_text(1024))
    checksum: ColumnClause[str] = required(short_text(64))
    synced_at: ColumnClause[datetime] = required(Instant)
    seen: ColumnClause[int | None] = optional(BigInteger)  # position in the change feed at that time


class FileEntryRow(Base):
    """A line of a workspace file at the last sync. It outlives the memory, so that a line whose memory was deleted does
    not count as new."""

    __tablename__ = "file_entries"

    user_id: ColumnClause[str] = key(short_text(NAME))
    workspace: ColumnClause[str] = key(short_text(ID))
    memory_id: ColumnClause[str] = key(short_text(ID))
    path: ColumnClause[str] = required(short_text(1024))
    version: ColumnClause[int] = required(Integer)
    digests: ColumnClause[dict[str, Any]] = required(JSON)  # of each field, shortened; no text
