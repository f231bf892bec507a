"""Creating and migrating the schema. A newer schema is refused."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Column, Connection, MetaData, PrimaryKeyConstraint, String, Table, insert, inspect, select

from ...errors import InvalidInput, NotAStore, SchemaTooNew, SchemaTooOld, StoreUnavailable
from .. import secrets
from .columns import METADATA

HEAD = "0008"  # the newest file in migrations/versions; a test holds the two together

# Alembic's own table, spelled out so that a fresh database can be stamped without loading Alembic.
version_table = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
VERSION = select(version_table.c.version_num)
OURS = {version_table.name, "memories"}


class Allowed(NamedTuple):
    """Changes that may be made to the schema when a store is opened."""

    create: bool = True  # in an empty database
    migrate: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One migration, up or down."""

    revision: str
    what: str  # it does on the way up
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SchemaPlan:
    """The migrations between the schema of a database and another one, in the order in which they run."""

    store: str
    found: str | None  # None: the database is empty
    target: str
    steps: tuple[Step, ...] = ()

    @property
    def is_done(self) -> bool:
        return self.found == self.target

    @property
    def goes_down(self) -> bool:
        return self.found is not None and self.target < self.found

    @cached_property
    def lost(self) -> tuple[str, ...]:
        """Data that these migrations cannot keep."""
        return tuple(loss for step in self.steps for loss in step.lost)


def version(connection: Connection, where: object) -> str | None:
    """Return the schema version of a database, None for an empty one."""
    inspector = inspect(connection)
    tables = inspector.get_table_names(schema=inspector.default_schema_name)  # not others on the search path
    if not tables:
        return None
    found = connection.scalar(VERSION) if set(tables) >= OURS else None
    if found is None:
        raise NotAStore(f"{where} was not made by Jiyi: it has tables of its own ({', '.join(tables[:3])}, …)")
    return str(found)


def require_current(found: object, where: object) -> None:
    """Raise unless this is the schema of this version. Revisions are numbers of four digits."""
    if found is None:
        raise SchemaTooOld(f"{where} is empty: run `jiyi migrate` to create its tables")
    if str(found) > HEAD:
        raise SchemaTooNew(f"{where} has schema {found}, this version of Jiyi knows schemas up to {HEAD}: upgrade jiyi")
    if str(found) < HEAD:
        raise SchemaTooOld(f"{where} has schema {found}, this version of Jiyi needs {HEAD}: run `jiyi migrate`")


def check(connection: Connection, where: object) -> None:
    """Raise unless a database has the schema of this version."""
    require_current(version(connection, where), where)


def is_due(found: str | None, where: object, allowed: Allowed) -> bool:
    """Return True if the schema has to be created or migrated; raise if that is not allowed."""
    if allowed.create if found is None else allowed.migrate and found < HEAD:
        return True
    require_current(found, where)
    return False


def prepare(connection: Connection, where: object, allowed: Allowed) -> None:
    """Create the schema of an empty database, or migrate an older one, in a transaction that excludes other writers:
    processes may start at once."""
    found = version(connection, where)
    if is_due(found, where, allowed):
        _to(connection, found, HEAD)


def plan(connection: Connection, where: object, to: str | None = None) -> SchemaPlan:
    """Return the migrations that lead to a revision, by default to the one of this version."""
    found, target = version(connection, where), to or HEAD
    steps = {script.revision: _step(script) for script in _scripts(connection)}
    if target not in steps:
        raise InvalidInput("--to", f"{target!r} is no revision: there are {', '.join(sorted(steps))}")
    if found is None and target != HEAD:
        raise InvalidInput("--to", f"{where} is empty, and an empty database gets the newest schema")
    if found is not None and found not in steps:
        require_current(found, where)
    up = [step for name, step in sorted(steps.items()) if found is not None and found < name <= target]
    down = [step for name, step in sorted(steps.items(), reverse=True) if found is not None and target < name <= found]
    return SchemaPlan(
        store=str(where),
        found=found,
        target=target,
        steps=(*(Step(revision=step.revision, what=step.what) for step in up), *down),
    )


def migrate(connection: Connection, where: object, wanted: SchemaPlan) -> None:
    """Carry out a plan, in a transaction that excludes other writers."""
    found = version(connection, where)
    if found != wanted.found:
        raise StoreUnavailable(f"{where} was migrated to schema {found} meanwhile: nothing was done, look again")
    _to(connection, found, wanted.target)


def _to(connection: Connection, found: str | None, target: str) -> None:
    """Create the newest schema in an empty database, or run migrations."""
    if found is None:
        METADATA.create_all(connection, checkfirst=False)
        secrets.renew(connection)
        version_table.create(connection, checkfirst=False)
        connection.execute(insert(version_table), {"version_num": HEAD})
        return
    from alembic import command

    (command.downgrade if target < found else command.upgrade)(_config(connection), target)


def _config(connection: Connection) -> Any:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.attributes["connection"] = connection
    return config


def _scripts(connection: Connection) -> list[Any]:
    from alembic.script import ScriptDirectory

    return list(ScriptDirectory.from_config(_config(connection)).walk_revisions())


def _step(script: Any) -> Step:
    what = " ".join(script.longdoc.split()).partition(": ")[0].rstrip(".")
    return Step(revision=script.revision, what=what, lost=getattr(script.module, "lost_on_downgrade", ()))
