"""Add the secrets of the store: the key of the marks around recalled text."""

from secrets import token_bytes

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
lost_on_downgrade = (
    "the secret of the marks around recalled text: a later upgrade makes another one, and with it the marks change",
)


def upgrade() -> None:
    short_text = sa.String(64).with_variant(sa.String(64, collation="C"), "postgresql")
    table = op.create_table(
        "secrets",
        sa.Column("name", short_text, nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_secrets"),
    )
    op.bulk_insert(table, [{"name": "fence", "value": token_bytes(32)}])


def downgrade() -> None:
    op.drop_table("secrets")
