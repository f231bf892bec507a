"""Creating and migrating the schema. A newer schema is refused."""

from pathlib import Path

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select

from ...errors import NotAStore, SchemaTooNew
from .. import secrets
from .columns import METADATA

HEAD = "0007"  # the newest file in migrations/versions; a test holds the two together

# Alembic's own table, spelled out so that a fresh database can be stamped without loading Alembic.
version_table = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


OURS = {version_table.name, "memories"}


def version(connection: Connection, where: object) -> str | None:
    """Return the schema version of a database, None for an empty one."""
    inspector = inspect(connection)
    tables = inspector.get_table_names(schema=inspector.default_schema_name)  # not others on the search path
    if not tables:
        return None
    found = connection.scalar(select(version_table.c.version_num)) if set(tables) >= OURS else None
    if found is None:
        raise NotAStore(f"{where} was not made by Jiyi: it has tables of its own ({', '.join(tables[:3])}, …)")
    return str(found)


def prepare(connection: Connection, where: object) -> None:
    """Create or migrate the schema in a transaction that excludes other writers: processes may start at once."""
    found = version(connection, where)
    if found is None:
        METADATA.create_all(connection, checkfirst=False)
        secrets.renew(connection)
        version_table.create(connection, checkfirst=False)
        connection.execute(insert(version_table), {"version_num": HEAD})
    elif found != HEAD:
        _migrate(connection, found, where)


def _migrate(connection: Connection, found: str, where: object) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found not in known:
        raise SchemaTooNew(f"{where} has schema {found}, this version of Jiyi knows schemas up to {HEAD}: upgrade jiyi")
    command.upgrade(config, "head")
