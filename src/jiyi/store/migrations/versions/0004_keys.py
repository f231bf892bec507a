"""Keys to the server say outright whether they are for all users; an audit log of what was done with them."""

import sqlalchemy as sa
from alembic import op

from jiyi.store.types import Instant, short_text

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_table("api_keys")  # nothing has ever written to it
    op.create_table("api_keys", *_keys(sa.Column("all_users", sa.Boolean(), nullable=False)))
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


def downgrade() -> None:
    op.drop_table("audit")
    op.drop_table("api_keys")
    op.create_table("api_keys", *_keys())


def _keys(*more: sa.Column[bool]) -> list[sa.schema.SchemaItem]:
    return [
        sa.Column("id", short_text(26), nullable=False),
        sa.Column("name", short_text(256), nullable=False),
        sa.Column("key_hash", short_text(64), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        *more,
        sa.Column("user_ids", sa.JSON(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_api_keys_key_hash")),
    ]
