"""Keep vectors as float16: they were half of a file, and similarities change by less than 0.001. The column has
another name, so that a process of the version before, which is still open, fails instead of misreading it."""

from collections.abc import Callable

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

AT_ONCE = 1000  # rows in RAM
SAME = ("user_id", "memory_id", "part", "model", "dimension")


def upgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        _change_postgres("vector", "half_vector", "halfvec")
    else:
        _rewrite("vector", "half_vector", lambda value: _converted(value, "<f4", "<f2"))


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        _change_postgres("half_vector", "vector", "vector")
    else:
        _rewrite("half_vector", "vector", lambda value: _converted(value, "<f2", "<f4"))


def _converted(value: bytes, before: str, after: str) -> bytes:
    whole = len(value) - len(value) % np.dtype(before).itemsize  # a damaged one stays damaged, and is repaired as such
    with np.errstate(over="ignore"):
        return np.frombuffer(value[:whole], before).astype(after).tobytes()


def _rewrite(before: str, after: str, convert: Callable[[bytes], bytes]) -> None:
    """Copy the table: SQLite cannot change the type of a column."""
    op.rename_table("embeddings", "embeddings_before")
    table = op.create_table(
        "embeddings",
        sa.Column("user_id", sa.String(256), nullable=False),
        sa.Column("memory_id", sa.String(26), nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        sa.Column("model", sa.String(128), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column(after, sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("user_id", "memory_id", "part", name="pk_embeddings"),
        sa.ForeignKeyConstraint(
            ["user_id", "memory_id"],
            ["memories.user_id", "memories.id"],
            name="fk_embeddings_memories",
            ondelete="CASCADE",
        ),
    )
    connection = op.get_bind()
    older = sa.table("embeddings_before", *map(sa.column, SAME), sa.column(before, sa.LargeBinary))
    for rows in connection.execute(sa.select(older)).partitions(AT_ONCE):
        copies = [{**dict(zip(SAME, row, strict=False)), after: convert(row[-1])} for row in rows]
        connection.execute(sa.insert(table), copies)
    op.drop_table("embeddings_before")


def _change_postgres(before: str, after: str, kind: str) -> None:
    """Change the column in place. The indexes of very large users are dropped, and made anew by maintenance."""
    near = (
        "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexname LIKE 'ix_embeddings_near_%'"
    )
    for name in op.get_bind().exec_driver_sql(near).scalars().all():
        op.execute(f'DROP INDEX "{name}"')
    op.execute("ALTER TABLE embeddings DROP CONSTRAINT IF EXISTS ck_embeddings_dimension")
    op.execute(f"ALTER TABLE embeddings ALTER COLUMN {before} DROP NOT NULL")  # PostgreSQL 18 gives that a name
    op.execute(f"ALTER TABLE embeddings RENAME COLUMN {before} TO {after}")
    op.execute(f"ALTER TABLE embeddings ALTER COLUMN {after} TYPE {kind} USING {after}::{kind}")
    op.execute(f"ALTER TABLE embeddings ALTER COLUMN {after} SET NOT NULL")
    op.execute(
        f"ALTER TABLE embeddings ADD CONSTRAINT ck_embeddings_dimension CHECK (vector_dims({after}) = dimension)"
    )
