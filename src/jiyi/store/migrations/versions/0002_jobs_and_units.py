"""Jobs that a worker can take, units with their messages, and what a memory is about.

Columns are only added: rebuilding a table would cascade into those that refer to it."""

import sqlalchemy as sa
from alembic import op

from jiyi.store.types import Instant, short_text

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("session_id", short_text(256), nullable=True))
    op.add_column("jobs", sa.Column("payload", sa.JSON(), nullable=True))
    op.add_column("jobs", sa.Column("not_before", Instant(), nullable=True))
    op.add_column("jobs", sa.Column("leased_by", short_text(64), nullable=True))
    op.create_index("ix_jobs_due", "jobs", ["not_before"], unique=False)
    op.add_column("memories", sa.Column("slot", short_text(32), nullable=True))
    op.create_index("ix_memories_slot", "memories", ["user_id", "slot"], unique=False)
    op.create_index("ix_units_session", "units", ["user_id", "session_id", "id"], unique=False)
    op.create_table(
        "unit_messages",
        sa.Column("user_id", short_text(256), nullable=False),
        sa.Column("message_id", short_text(26), nullable=False),
        sa.Column("unit_id", short_text(26), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id", "message_id"],
            ["messages.user_id", "messages.id"],
            name=op.f("fk_unit_messages_messages"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["user_id", "unit_id"],
            ["units.user_id", "units.id"],
            name=op.f("fk_unit_messages_units"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", "message_id", name=op.f("pk_unit_messages")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_unit_messages_unit", "unit_messages", ["user_id", "unit_id"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_unit_messages_unit", table_name="unit_messages")
    op.drop_table("unit_messages")
    op.drop_index("ix_units_session", table_name="units")
    op.drop_index("ix_memories_slot", table_name="memories")
    op.drop_column("memories", "slot")
    op.drop_index("ix_jobs_due", table_name="jobs")
    for column in ("leased_by", "not_before", "payload", "session_id"):
        op.drop_column("jobs", column)
