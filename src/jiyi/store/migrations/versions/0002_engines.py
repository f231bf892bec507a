"""Tables for the state of external engines."""

from alembic import op

from jiyi.store.tables import EngineRow, EngineUserRow

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for row in (EngineRow, EngineUserRow):
        row.metadata.tables[row.__tablename__].create(op.get_bind())
