"""Index recalled memories in SQLite: the first search of a user read all memories to find them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        recalled = sa.column("last_accessed_at", sa.BigInteger).is_not(None)
        op.create_index("ix_memories_recalled", "memories", ["user_id", "last_accessed_at"], sqlite_where=recalled)


def downgrade() -> None:
    if op.get_context().dialect.name == "sqlite":
        op.drop_index("ix_memories_recalled", "memories")
