"""Schema of PostgreSQL beyond the tables: the vector extension, row-level security, and an index. Each step can be
repeated."""

from collections.abc import Iterable

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"

# A row is seen by the transaction that was opened for its user, or for everybody. The settings end with the
# transaction; without them nothing is seen. In brackets they are worked out once for a statement, not for each row.
USER = "(SELECT nullif(current_setting('jiyi.user_id', true), ''))"
EVERYBODY = "(SELECT current_setting('jiyi.everybody', true) = 'on')"
OWN = f"user_id = {USER} OR {EVERYBODY}"
ERASED = f"user_id = (SELECT 'erased:' || encode(sha256(convert_to({USER}, 'UTF8')), 'hex'))"
SHARED = "user_id = ''"

POLICIES = {
    # The marker that a user was erased is read and written in that user's name, and has another.
    "changes": {"jiyi_erased": f"USING ({ERASED})", "jiyi_shared": f"FOR SELECT USING ({SHARED})"},
    "synonyms": {"jiyi_shared": f"FOR SELECT USING ({SHARED})"},
}

CHECKS = (
    "ALTER TABLE embeddings DROP CONSTRAINT IF EXISTS ck_embeddings_dimension",
    "ALTER TABLE embeddings ADD CONSTRAINT ck_embeddings_dimension CHECK (vector_dims(half_vector) = dimension)",
)
INDEX = """CREATE INDEX IF NOT EXISTS ix_memories_search
    ON memories (user_id, memory_type, occurred_at) WHERE status = 'active'"""


def create_extension(connection: Connection) -> None:
    connection.exec_driver_sql(EXTENSION)


def finish(connection: Connection, tables: Iterable[str]) -> None:
    """Add row-level security and what is PostgreSQL's own to the newest schema; these tables have a user_id."""
    guard(connection, tables)
    for statement in (*CHECKS, INDEX):
        connection.exec_driver_sql(statement)


def guard(connection: Connection, tables: Iterable[str]) -> None:
    """Add row-level security to tables with a user_id."""
    for table in tables:
        connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        connection.exec_driver_sql(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")  # for its owner too
        for policy, rule in {"jiyi_own": f"USING ({OWN})", **POLICIES.get(table, {})}.items():
            connection.exec_driver_sql(f"DROP POLICY IF EXISTS {policy} ON {table}")
            connection.exec_driver_sql(f"CREATE POLICY {policy} ON {table} {rule}")


def analyze(connection: Connection, tables: Iterable[str]) -> None:
    for table in tables:
        connection.exec_driver_sql(f"ANALYZE {table}")


# What only a powerful role may do: the planner's samples of columns, and the write-ahead log up to now.
OF_THE_SERVER = {
    "VACUUM (FULL) pg_catalog.pg_statistic": "the planner's samples of old values",
    "SELECT pg_switch_wal()": "the write-ahead log",
    "CHECKPOINT": "the write-ahead log",
}


OWNED = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = '{}'::regclass"


def vacuum(connection: Connection, tables: Iterable[str]) -> list[str]:
    """Rewrite the tables without dead rows, outside a transaction; return what this role may not reach."""
    left = []
    for table in tables:
        if connection.exec_driver_sql(OWNED.format(table)).scalar():
            connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {table}")
        else:  # PostgreSQL would skip it without an error
            left.append("deleted rows: this role is not the owner of the tables, run jiyi vacuum as the owner")
    for statement, what in OF_THE_SERVER.items():
        try:
            connection.exec_driver_sql(statement)
        except DBAPIError as error:
            left.append(f"{what}: {str(error.orig).splitlines()[0]} (docs/deleting.md)")
    return list(dict.fromkeys(left))
