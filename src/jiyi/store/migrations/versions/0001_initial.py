"""The schema of 0.1.0."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.schema import SchemaItem

from jiyi.store.types import Array, Instant, short_text, vector

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _user_table(name: str, key: list[str], *parts: SchemaItem, **options: Any) -> None:
    """Create a table whose primary key is the user and `key`."""
    user_id = sa.Column("user_id", short_text(256), nullable=False)
    primary_key = sa.PrimaryKeyConstraint("user_id", *key, name=op.f(f"pk_{name}"))
    op.create_table(name, user_id, *parts, primary_key, **options)


def _reference(column: str, table: str, name: str) -> sa.ForeignKeyConstraint:
    columns = [f"{table}.user_id", f"{table}.id"]
    return sa.ForeignKeyConstraint(["user_id", column], columns, name=op.f(name), ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "api_keys",
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("name", short_text(256), nullable=False),
        sa.Column("key_hash", short_text(64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("all_users", sa.Boolean(), nullable=False),
        sa.Column("user_ids", sa.JSON(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
    )
    op.create_table(
        "audit",
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("at", Instant(), nullable=False),
        sa.Column("key_id", short_text(26), nullable=True),
        sa.Column("action", short_text(32), nullable=False),
        sa.Column("target", short_text(256), nullable=True),
        sa.Column("detail", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_table(
        "changes",
        sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", short_text(256), nullable=False),
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("action", short_text(16), nullable=False),
        sa.Column("changed_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_changes")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_changes_user", "changes", ["user_id", "seq"])
    _user_table(
        "file_entries",
        ["workspace", "memory_id"],
        sa.Column("workspace", short_text(26), nullable=False),
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("path", short_text(1024), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digests", sa.JSON(), nullable=False),
    )
    _user_table(
        "files",
        ["path"],
        sa.Column("path", short_text(1024), nullable=False),
        sa.Column("checksum", short_text(64), nullable=False),
        sa.Column("synced_at", Instant(), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=True),
    )
    _user_table(
        "jobs",
        ["id"],
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("kind", short_text(32), nullable=False),
        sa.Column("state", short_text(16), nullable=False),
        sa.Column("idempotency_key", short_text(256), nullable=True),
        sa.Column("request_hash", short_text(32), nullable=True),
        sa.Column("created", sa.Integer(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("leased_until", Instant(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("session_id", short_text(256), nullable=True),
        sa.Column("payload", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("not_before", Instant(), nullable=True),
        sa.Column("leased_by", short_text(64), nullable=True),
    )
    op.create_index("ix_jobs_due", "jobs", ["not_before"])
    op.create_index("uq_jobs_idempotency", "jobs", ["user_id", "idempotency_key"], unique=True)
    _user_table(
        "llm_usage",
        ["hour"],
        sa.Column("hour", Instant(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
    )
    _user_table(
        "memories",
        ["id"],
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("memory_key", short_text(256), nullable=False),
        sa.Column("agent_id", short_text(256), nullable=True),
        sa.Column("group_id", short_text(256), nullable=True),
        sa.Column("session_id", short_text(256), nullable=True),
        sa.Column("memory_type", short_text(64), nullable=False),
        sa.Column("layer", short_text(16), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.Column("metadata", sa.JSON(), nullable=False),
        sa.Column("importance", sa.Double(), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("dedupe_hash", short_text(64), nullable=True),
        sa.Column("near_hash", sa.BigInteger(), nullable=False),
        sa.Column("status", short_text(16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("occurred_at", Instant(), nullable=False),
        sa.Column("valid_from", Instant(), nullable=False),
        sa.Column("valid_to", Instant(), nullable=True),
        sa.Column("superseded_by", short_text(26), nullable=True),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("access_count", sa.Integer(), nullable=False),
        sa.Column("last_accessed_at", Instant(), nullable=True),
        sa.Column("source", short_text(64), nullable=False),
        sa.Column("trust", sa.Double(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("slot", short_text(32), nullable=True),
    )
    op.create_index("ix_memories_session", "memories", ["user_id", "session_id"])
    op.create_index("ix_memories_slot", "memories", ["user_id", "slot"])
    op.create_index(
        "uq_memories_dedupe",
        "memories",
        ["user_id", "dedupe_hash"],
        unique=True,
        sqlite_where=sa.text("status = 'active' AND valid_to IS NULL"),
        postgresql_where=sa.text("status = 'active' AND valid_to IS NULL"),
    )
    op.create_index("uq_memories_key", "memories", ["user_id", "memory_key"], unique=True)
    _user_table(
        "messages",
        ["id"],
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("external_id", short_text(256), nullable=True),
        sa.Column("session_id", short_text(256), nullable=True),
        sa.Column("agent_id", short_text(256), nullable=True),
        sa.Column("group_id", short_text(256), nullable=True),
        sa.Column("role", short_text(64), nullable=False),
        sa.Column("speaker", short_text(256), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("sent_at", Instant(), nullable=False),
        sa.Column("dedupe_hash", short_text(32), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
    )
    op.create_index("ix_messages_session", "messages", ["user_id", "session_id", "id"])
    op.create_index("uq_messages_dedupe", "messages", ["user_id", "dedupe_hash"], unique=True)
    _user_table(
        "recalls",
        ["id"],
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("query", sa.Text(), nullable=False),
        sa.Column("memory_ids", sa.JSON(), nullable=False),
        sa.Column("recalled_at", Instant(), nullable=False),
    )
    _user_table(
        "synonyms",
        ["keyword", "synonym"],
        sa.Column("keyword", short_text(256), nullable=False),
        sa.Column("synonym", short_text(256), nullable=False),
        sa.Column("similarity", sa.Double(), nullable=False),
    )
    _user_table(
        "units",
        ["id"],
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("session_id", short_text(256), nullable=True),
        sa.Column("group_id", short_text(256), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("narrative", sa.Text(), nullable=False),
        sa.Column("participants", sa.JSON(), nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("ended_at", Instant(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
    )
    op.create_index("ix_units_session", "units", ["user_id", "session_id", "id"])
    _user_table(
        "embeddings",
        ["memory_id", "part"],
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        sa.Column("model", short_text(128), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("vector", vector(), nullable=False),
        _reference("memory_id", "memories", "fk_embeddings_memories"),
    )
    _user_table(
        "job_memories",
        ["job_id", "position"],
        sa.Column("job_id", short_text(26), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("memory_id", short_text(26), nullable=False),
        _reference("job_id", "jobs", "fk_job_memories_jobs"),
        _reference("memory_id", "memories", "fk_job_memories_memories"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_job_memories_memory", "job_memories", ["user_id", "memory_id"])
    _user_table(
        "keywords",
        ["memory_id", "keyword"],
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("keyword", short_text(256), nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sa.Column("source", short_text(16), nullable=False),
        _reference("memory_id", "memories", "fk_keywords_memories"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_keywords_keyword", "keywords", ["user_id", "keyword"])
    _user_table(
        "memory_sources",
        ["memory_id", "message_id"],
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("message_id", short_text(26), nullable=False),
        sa.Column("span_start", sa.Integer(), nullable=True),
        sa.Column("span_end", sa.Integer(), nullable=True),
        _reference("memory_id", "memories", "fk_memory_sources_memories"),
        _reference("message_id", "messages", "fk_memory_sources_messages"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_memory_sources_message", "memory_sources", ["user_id", "message_id"])
    _user_table(
        "relations",
        ["memory_id", "target_id", "relation_type"],
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("target_id", short_text(26), nullable=False),
        sa.Column("relation_type", short_text(16), nullable=False),
        sa.Column("strength", sa.Double(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        _reference("memory_id", "memories", "fk_relations_memories"),
        _reference("target_id", "memories", "fk_relations_target"),
    )
    op.create_index("ix_relations_target", "relations", ["user_id", "target_id"])
    _user_table(
        "revisions",
        ["memory_id", "version"],
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("action", short_text(16), nullable=False),
        sa.Column("actor", short_text(256), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("changed_at", Instant(), nullable=False),
        _reference("memory_id", "memories", "fk_revisions_memories"),
    )
    _user_table(
        "terms",
        ["memory_id"],
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("asks", sa.Double(), nullable=False),
        sa.Column("kind", short_text(32), server_default="", nullable=False),
        sa.Column("salience", sa.Double(), server_default="1", nullable=False),
        sa.Column("hashes", Array("<i8"), nullable=False),
        sa.Column("counts", Array("<u2"), nullable=False),
        sa.Column("keyword_hashes", Array("<i8"), nullable=False),
        sa.Column("keyword_weights", Array("<f4"), nullable=False),
        sa.Column("words_version", sa.SmallInteger(), server_default="0", nullable=False),
        _reference("memory_id", "memories", "fk_terms_memories"),
    )
    _user_table(
        "unit_messages",
        ["message_id"],
        sa.Column("message_id", short_text(26), nullable=False),
        sa.Column("unit_id", short_text(26), nullable=False),
        _reference("message_id", "messages", "fk_unit_messages_messages"),
        _reference("unit_id", "units", "fk_unit_messages_units"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_unit_messages_unit", "unit_messages", ["user_id", "unit_id"])
