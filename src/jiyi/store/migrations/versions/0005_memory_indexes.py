"""Index the dedupe hashes of all memories, not only of current ones, and successors: each `add`, and each search after
one, read all memories of the user."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.sql.expression import Grouping

revision = "0005"
down_revision = "0004"

IS_CURRENT = sa.and_(sa.column("status", sa.String) == "active", sa.column("valid_to", sa.BigInteger).is_(None))


def upgrade() -> None:
    own = Grouping(sa.case((IS_CURRENT, ""), else_=sa.column("id", sa.String)))
    op.drop_index("uq_memories_dedupe", "memories")
    op.create_index("uq_memories_dedupe", "memories", ["user_id", "dedupe_hash", own], unique=True)
    superseded = sa.column("superseded_by", sa.String).is_not(None)
    op.create_index(
        "ix_memories_superseded",
        "memories",
        ["user_id", "superseded_by"],
        sqlite_where=superseded,
        postgresql_where=superseded,
    )


def downgrade() -> None:
    op.drop_index("ix_memories_superseded", "memories")
    op.drop_index("uq_memories_dedupe", "memories")
    op.create_index(
        "uq_memories_dedupe",
        "memories",
        ["user_id", "dedupe_hash"],
        unique=True,
        sqlite_where=IS_CURRENT,
        postgresql_where=IS_CURRENT,
    )
