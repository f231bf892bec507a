"""What lines of a workspace's files and the index last agreed on."""

import sqlalchemy as sa
from alembic import op

from jiyi.store.types import short_text

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("files", sa.Column("seen", sa.BigInteger(), nullable=True))
    op.create_table(
        "file_entries",
        sa.Column("user_id", short_text(256), nullable=False),
        sa.Column("workspace", short_text(26), nullable=False),
        sa.Column("memory_id", short_text(26), nullable=False),
        sa.Column("path", short_text(1024), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("digests", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "workspace", "memory_id", name=op.f("pk_file_entries")),
    )


def downgrade() -> None:
    op.drop_table("file_entries")
    op.drop_column("files", "seen")
