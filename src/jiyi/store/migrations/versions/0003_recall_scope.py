"""Session and agent of recalls."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    from jiyi.store.tables import RecallRow

    with op.batch_alter_table("recalls") as recalls:
        for column in (RecallRow.__table__.c.session_id, RecallRow.__table__.c.agent_id):
            recalls.add_column(sa.Column(column.name, column.type, nullable=True))
