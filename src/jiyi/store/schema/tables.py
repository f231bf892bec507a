"""The tables. Primary keys start with the user, which keeps the rows of a user together and apart from others'."""

from datetime import datetime
from typing import Any, Final

from numpy.typing import NDArray
from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Double,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    Text,
)
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.sql.expression import Grouping, and_, case

from .columns import COUNTS, HASHES, WEIGHTS, Array, Base, Instant, short_text, vector

NAME = 256  # user, session, agent and group ids are opaque strings up to this length
ID = 26  # ours are ULIDs
SHARED: Final = ""  # user id of rows that all users share; no user can have it
SOURCES: Final = "sources"  # action of a change of the messages of a unit, or of those that a memory came from


class MessageRow(Base):
    """A message, verbatim. Never changes."""

    __tablename__ = "messages"
    __table_args__ = (
        Index("uq_messages_dedupe", "user_id", "dedupe_hash", unique=True),
        Index("ix_messages_session", "user_id", "session_id", "id"),
    )

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    external_id: Mapped[str | None] = mapped_column(short_text(NAME))
    session_id: Mapped[str | None] = mapped_column(short_text(NAME))
    agent_id: Mapped[str | None] = mapped_column(short_text(NAME))
    group_id: Mapped[str | None] = mapped_column(short_text(NAME))
    role: Mapped[str] = mapped_column(short_text(64))
    speaker: Mapped[str | None] = mapped_column(short_text(NAME))
    text: Mapped[str] = mapped_column(Text)
    sent_at: Mapped[datetime] = mapped_column(Instant)
    dedupe_hash: Mapped[str | None] = mapped_column(short_text(32))
    created_at: Mapped[datetime] = mapped_column(Instant)


class UnitRow(Base):
    """A stretch of conversation about one topic (MemUnit)."""

    __tablename__ = "units"
    __table_args__ = (Index("ix_units_session", "user_id", "session_id", "id"),)

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    session_id: Mapped[str | None] = mapped_column(short_text(NAME))
    group_id: Mapped[str | None] = mapped_column(short_text(NAME))
    subject: Mapped[str | None] = mapped_column(Text)
    summary: Mapped[str] = mapped_column(Text)
    narrative: Mapped[str] = mapped_column(Text)
    participants: Mapped[list[str]] = mapped_column(JSON)
    started_at: Mapped[datetime] = mapped_column(Instant)
    ended_at: Mapped[datetime] = mapped_column(Instant)
    created_at: Mapped[datetime] = mapped_column(Instant)


class UnitMessageRow(Base):
    """The unit of a message."""

    __tablename__ = "unit_messages"
    __table_args__ = (
        ForeignKeyConstraint(["user_id", "unit_id"], ["units.user_id", "units.id"], ondelete="CASCADE"),
        ForeignKeyConstraint(["user_id", "message_id"], ["messages.user_id", "messages.id"], ondelete="CASCADE"),
        Index("ix_unit_messages_unit", "user_id", "unit_id"),
        {"sqlite_with_rowid": False},
    )

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    message_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    unit_id: Mapped[str] = mapped_column(short_text(ID))


class MemoryRow(Base):
    """One memory."""

    __tablename__ = "memories"

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    memory_key: Mapped[str] = mapped_column(short_text(NAME))
    agent_id: Mapped[str | None] = mapped_column(short_text(NAME))
    group_id: Mapped[str | None] = mapped_column(short_text(NAME))
    session_id: Mapped[str | None] = mapped_column(short_text(NAME))
    memory_type: Mapped[str] = mapped_column(short_text(64))
    layer: Mapped[str] = mapped_column(short_text(16))
    content: Mapped[str] = mapped_column(Text)
    summary: Mapped[str] = mapped_column(Text)
    data: Mapped[dict[str, Any]] = mapped_column(JSON)
    metadata_: Mapped[dict[str, Any]] = mapped_column("metadata", JSON)
    importance: Mapped[float] = mapped_column(Double)
    confidence: Mapped[float] = mapped_column(Double)
    tags: Mapped[list[str]] = mapped_column(JSON)
    dedupe_hash: Mapped[str | None] = mapped_column(short_text(64))
    near_hash: Mapped[int] = mapped_column(BigInteger)
    status: Mapped[str] = mapped_column(short_text(16))
    version: Mapped[int] = mapped_column(Integer)
    occurred_at: Mapped[datetime] = mapped_column(Instant)
    valid_from: Mapped[datetime] = mapped_column(Instant)
    valid_to: Mapped[datetime | None] = mapped_column(Instant)
    superseded_by: Mapped[str | None] = mapped_column(short_text(ID))
    expires_at: Mapped[datetime | None] = mapped_column(Instant)
    access_count: Mapped[int] = mapped_column(Integer)
    last_accessed_at: Mapped[datetime | None] = mapped_column(Instant)
    source: Mapped[str] = mapped_column(short_text(64))
    trust: Mapped[float] = mapped_column(Double)
    created_at: Mapped[datetime] = mapped_column(Instant)
    updated_at: Mapped[datetime] = mapped_column(Instant)
    slot: Mapped[str | None] = mapped_column(short_text(32))  # hash of subject and attribute

    __table_args__ = (
        Index("uq_memories_key", "user_id", "memory_key", unique=True),
        Index("ix_memories_session", "user_id", "session_id"),
        Index("ix_memories_slot", "user_id", "slot"),
    )


# One current memory per text and type: a second writer of the same text fails instead of making a duplicate. All others
# are in the index too, each with its id, so that any hash is found without reading all of a user's memories.
_memory = MemoryRow.__table__.c
Index(
    "uq_memories_dedupe",
    _memory.user_id,
    _memory.dedupe_hash,
    Grouping(case((and_(_memory.status == "active", _memory.valid_to.is_(None)), ""), else_=_memory.id)),
    unique=True,
)
# `postgres.py` adds the condition for PostgreSQL: naming it here would import that dialect in every process.
IS_SUPERSEDED = _memory.superseded_by.is_not(None)
SUPERSEDED = Index("ix_memories_superseded", _memory.user_id, _memory.superseded_by, sqlite_where=IS_SUPERSEDED)
# The first search of a user reads them. In PostgreSQL every recall would write into all indexes because of it.
_at = _memory.last_accessed_at
Index("ix_memories_recalled", _memory.user_id, _at, sqlite_where=_at.is_not(None)).ddl_if(dialect="sqlite")


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

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    message_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    span_start: Mapped[int | None] = mapped_column(Integer)
    span_end: Mapped[int | None] = mapped_column(Integer)


class EmbeddingRow(Base):
    """A vector of a memory, or of one part of it."""

    __tablename__ = "embeddings"
    __table_args__ = (_of_memory(),)

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    part: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    model: Mapped[str] = mapped_column(short_text(128))
    dimension: Mapped[int] = mapped_column(Integer)
    vector: Mapped[NDArray[Any]] = mapped_column("half_vector", vector(), key="vector")


class TermsRow(Base):
    """The index entry of a memory, packed for loading: hashed terms with counts (for BM25), and hashed keywords with
    weights."""

    __tablename__ = "terms"
    __table_args__ = (_of_memory(),)

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    length: Mapped[int] = mapped_column(Integer)
    asks: Mapped[float] = mapped_column(Double)  # share of sentences that are questions
    kind: Mapped[str] = mapped_column(short_text(32), server_default="")  # of sentence: fact, question, smalltalk, …
    salience: Mapped[float] = mapped_column(Double, server_default="1")  # 0..1
    hashes: Mapped[NDArray[Any]] = mapped_column(Array(HASHES))
    counts: Mapped[NDArray[Any]] = mapped_column(Array(COUNTS))
    keyword_hashes: Mapped[NDArray[Any]] = mapped_column(Array(HASHES))
    keyword_weights: Mapped[NDArray[Any]] = mapped_column(Array(WEIGHTS))
    words_version: Mapped[int] = mapped_column(SmallInteger, server_default="0")  # WORDS_VERSION of the terms


class KeywordRow(Base):
    """A weighted keyword of a memory, and its source (rule, user_tag, llm, type)."""

    __tablename__ = "keywords"
    __table_args__ = (
        _of_memory(),
        Index("ix_keywords_keyword", "user_id", "keyword"),
        {"sqlite_with_rowid": False},
    )

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    keyword: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    weight: Mapped[float] = mapped_column(Double)
    source: Mapped[str] = mapped_column(short_text(16))


class SynonymRow(Base):
    """Two words with the same meaning; the empty user means all users."""

    __tablename__ = "synonyms"

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    keyword: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    synonym: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    similarity: Mapped[float] = mapped_column(Double)


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

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    target_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    relation_type: Mapped[str] = mapped_column(short_text(16), primary_key=True)
    strength: Mapped[float] = mapped_column(Double)
    created_at: Mapped[datetime] = mapped_column(Instant)


class RevisionRow(Base):
    """One change of a memory, with the values before it. The values after it are in the next one, or in the memory."""

    __tablename__ = "revisions"
    __table_args__ = (_of_memory(),)

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True)
    action: Mapped[str] = mapped_column(short_text(16))
    actor: Mapped[str] = mapped_column(short_text(NAME))
    reason: Mapped[str | None] = mapped_column(Text)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    changed_at: Mapped[datetime] = mapped_column(Instant)


class RecallRow(Base):
    """A search and the memories it returned."""

    __tablename__ = "recalls"

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    query: Mapped[str] = mapped_column(Text)
    memory_ids: Mapped[list[str]] = mapped_column(JSON)
    recalled_at: Mapped[datetime] = mapped_column(Instant)
    session_id: Mapped[str | None] = mapped_column(short_text(NAME))
    agent_id: Mapped[str | None] = mapped_column(short_text(NAME))


class JobRow(Base):
    """One accepted `add` and its progress."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index("uq_jobs_idempotency", "user_id", "idempotency_key", unique=True),
        Index("ix_jobs_due", "not_before"),
    )

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    kind: Mapped[str] = mapped_column(short_text(32))
    state: Mapped[str] = mapped_column(short_text(16))
    idempotency_key: Mapped[str | None] = mapped_column(short_text(NAME))
    request_hash: Mapped[str | None] = mapped_column(short_text(32))  # with an idempotency key only
    created: Mapped[int] = mapped_column(Integer)
    problems: Mapped[list[str]] = mapped_column(JSON)
    attempts: Mapped[int] = mapped_column(Integer)
    leased_until: Mapped[datetime | None] = mapped_column(Instant)
    created_at: Mapped[datetime] = mapped_column(Instant)
    updated_at: Mapped[datetime] = mapped_column(Instant)
    session_id: Mapped[str | None] = mapped_column(short_text(NAME))
    payload: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))  # the work left
    # A worker may claim it from then on; None: nothing is left.
    not_before: Mapped[datetime | None] = mapped_column(Instant)
    leased_by: Mapped[str | None] = mapped_column(short_text(64))


class JobMemoryRow(Base):
    """A memory that an `add` created or met."""

    __tablename__ = "job_memories"
    __table_args__ = (
        _of_memory(),
        ForeignKeyConstraint(["user_id", "job_id"], ["jobs.user_id", "jobs.id"], ondelete="CASCADE"),
        Index("ix_job_memories_memory", "user_id", "memory_id"),
        {"sqlite_with_rowid": False},
    )

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    job_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    position: Mapped[int] = mapped_column(Integer, primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID))


class LlmUsageRow(Base):
    """Calls and tokens of language models of a user in one hour."""

    __tablename__ = "llm_usage"

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    hour: Mapped[datetime] = mapped_column(Instant, primary_key=True)
    calls: Mapped[int] = mapped_column(Integer)
    input_tokens: Mapped[int] = mapped_column(BigInteger)
    output_tokens: Mapped[int] = mapped_column(BigInteger)


class ChangeRow(Base):
    """The change feed, in order of commit. With the action `sources` the id may be that of a unit of conversation."""

    __tablename__ = "changes"
    __table_args__ = (Index("ix_changes_user", "user_id", "seq"), {"sqlite_autoincrement": True})

    seq: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    user_id: Mapped[str] = mapped_column(short_text(NAME))
    memory_id: Mapped[str] = mapped_column(short_text(ID))
    action: Mapped[str] = mapped_column(short_text(16))
    changed_at: Mapped[datetime] = mapped_column(Instant)


class PackedIndexRow(Base):
    """A column of a large user's search index, as it was at one position of the change feed: loading it is much
    faster than reading the memories. It is derived, so it is not copied, and any deletion drops it."""

    __tablename__ = "packed_indexes"

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    name: Mapped[str] = mapped_column(short_text(64), primary_key=True)
    seen: Mapped[int] = mapped_column(BigInteger)  # newest change in it
    data: Mapped[bytes] = mapped_column(LargeBinary)


class EngineRow(Base):
    """An external engine that follows the change feed, and the process that feeds it."""

    __tablename__ = "engines"

    name: Mapped[str] = mapped_column(short_text(32), primary_key=True)
    model: Mapped[str] = mapped_column(short_text(128))  # hash of its address, its prefix and the embedding model
    seen: Mapped[int] = mapped_column(BigInteger)  # users with a later change may be behind
    owner: Mapped[str | None] = mapped_column(short_text(64))
    leased_until: Mapped[datetime | None] = mapped_column(Instant)
    problem: Mapped[str | None] = mapped_column(Text)  # of the last attempt


class EngineUserRow(Base):
    """The state of one user's memories in an external engine."""

    __tablename__ = "engine_users"
    __table_args__ = (Index("ix_engine_users_engine", "engine", "erase"),)

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    engine: Mapped[str] = mapped_column(short_text(32), primary_key=True)
    applied: Mapped[int | None] = mapped_column(BigInteger)  # newest change in the engine; None while it is loaded
    load_from: Mapped[int] = mapped_column(BigInteger)  # newest change when loading began
    loaded_id: Mapped[str | None] = mapped_column(short_text(ID))  # last memory that was loaded
    memories: Mapped[int] = mapped_column(Integer)  # counted up to a limit
    erase: Mapped[bool] = mapped_column(Boolean)  # everything of the user has to be removed first


class ApiKeyRow(Base):
    """A hashed key of the server, and what it permits."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    name: Mapped[str] = mapped_column(short_text(NAME))
    key_hash: Mapped[str] = mapped_column(short_text(64), unique=True)
    scopes: Mapped[list[str]] = mapped_column(JSON)
    all_users: Mapped[bool] = mapped_column(Boolean)  # explicit, because an empty list of users permits nothing
    user_ids: Mapped[list[str]] = mapped_column(JSON)
    created_at: Mapped[datetime] = mapped_column(Instant)
    expires_at: Mapped[datetime | None] = mapped_column(Instant)
    revoked_at: Mapped[datetime | None] = mapped_column(Instant)


class AuditRow(Base):
    """Use of a key for irreversible actions, changes of keys, and refusals. No user ids and no contents."""

    __tablename__ = "audit"

    id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    at: Mapped[datetime] = mapped_column(Instant)
    key_id: Mapped[str | None] = mapped_column(short_text(ID))
    action: Mapped[str] = mapped_column(short_text(32))
    target: Mapped[str | None] = mapped_column(short_text(NAME))
    detail: Mapped[str | None] = mapped_column(Text)


class FileRow(Base):
    """A workspace file at the last sync."""

    __tablename__ = "files"

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    path: Mapped[str] = mapped_column(short_text(1024), primary_key=True)
    checksum: Mapped[str] = mapped_column(short_text(64))
    synced_at: Mapped[datetime] = mapped_column(Instant)
    seen: Mapped[int | None] = mapped_column(BigInteger)  # position in the change feed at that time


class FileEntryRow(Base):
    """A line of a workspace file at the last sync. It outlives the memory, so that a line whose memory was deleted does
    not count as new."""

    __tablename__ = "file_entries"

    user_id: Mapped[str] = mapped_column(short_text(NAME), primary_key=True)
    workspace: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    memory_id: Mapped[str] = mapped_column(short_text(ID), primary_key=True)
    path: Mapped[str] = mapped_column(short_text(1024))
    version: Mapped[int] = mapped_column(Integer)
    digests: Mapped[dict[str, Any]] = mapped_column(JSON)  # of each field, shortened; no text
