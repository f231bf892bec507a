"""Which version of the functions a memory's words were worked out by. Of those that are there it is not known, so they
are indexed anew in the background."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("terms", sa.Column("words_version", sa.SmallInteger(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("terms", "words_version")
