"""Add the packed search indexes of large users."""

import sqlalchemy as sa
from alembic import op

from jiyi.store.migrations import postgres

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "packed_indexes",
        sa.Column("user_id", _short_text(256), nullable=False),
        sa.Column("name", _short_text(64), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "name", name="pk_packed_indexes"),
    )
    if op.get_bind().dialect.name == "postgresql":
        postgres.guard(op.get_bind(), ["packed_indexes"])


def downgrade() -> None:
    op.drop_table("packed_indexes")  # derived from the memories


def _short_text(length: int) -> sa.types.TypeEngine[str]:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")
