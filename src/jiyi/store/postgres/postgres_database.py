"""A PostgreSQL database with pgvector."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Index,
    MetaData,
    Select,
    String,
    Table,
    bindparam,
    cast,
    event,
    func,
    select,
)
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateIndex, DropIndex

from ...errors import NotAStore, StoreError, VectorSearchError
from ...settings import Settings
from ..database import Database, SchemaWork, Work, open_session
from ..migrations import postgres as ddl
from ..schema import migrate as schema
from ..schema.columns import METADATA, from_wire, to_wire
from ..schema.tables import IS_SUPERSEDED, SHARED, SUPERSEDED, ChangeRow
from ..write_set import CLOSED, Advance, StoreInfo
from .postgres_address import Address
from .postgres_errors import NO_PGVECTOR, translated
from .row_counts import RowCounts

SUPERSEDED.dialect_options["postgresql"]["where"] = IS_SUPERSEDED

OLDEST = 15  # of PostgreSQL
CONNECT_S = 10.0
RECYCLE_S = 1800  # a connection that is older is replaced: firewalls forget quiet ones
ABANDONED_S = 60  # a transaction whose client has vanished ends and releases its locks

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Columns of the server's own tables.
_catalog = MetaData()
_extensions = Table("pg_extension", _catalog, *(Column(name, String) for name in ("extname", "extversion")))
_roles = Table(
    "pg_roles", _catalog, Column("rolname", String), Column("rolsuper", Boolean), Column("rolbypassrls", Boolean)
)
_held_locks = Table(
    "pg_locks",
    _catalog,
    *(Column(name, String) for name in ("locktype", "virtualtransaction")),
    *(Column(name, BigInteger) for name in ("database", "classid", "objid", "objsubid")),
    Column("granted", Boolean),
)
_databases = Table("pg_database", _catalog, Column("oid", BigInteger), Column("datname", String))
_types = Table("pg_type", _catalog, Column("oid"), Column("typnamespace"))
_namespaces = Table("pg_namespace", _catalog, Column("oid"), Column("nspname", String))


def _setting(name: str) -> Any:
    """Set a parameter for this transaction only."""
    return func.set_config(name, bindparam(name.replace(".", "_")), True)


# Built once: every session starts with one of them.
_READ = select(_setting("jiyi.user_id"), _setting("jiyi.everybody"))
_WRITE = select(
    *(
        _setting(name)
        for name in ("jiyi.user_id", "jiyi.everybody", "lock_timeout", "idle_in_transaction_session_timeout")
    )
)


class PostgresDatabase(Database):
    """A PostgreSQL database with pgvector."""

    has_pgvector = True

    def __init__(self, url: str, settings: Settings) -> None:
        super().__init__()
        self._allowed = schema.Allowed(settings.auto_migrate is not False, settings.auto_migrate is True)
        self._address = Address.of(url)
        self._settings = settings.postgres
        self._busy_timeout_s = settings.busy_timeout_s
        self._engine: AsyncEngine | None = None
        self._counts = RowCounts(USERS_TABLES)

    async def start(self) -> None:
        self.owner.take()
        with self._translated():
            preparing = _engine(self._address, poolclass=NullPool)
            try:
                vector_schema = await self._prepare(preparing)
            finally:
                await preparing.dispose()
        self._engine = _engine(
            self._address,
            vector_schema,
            command_timeout=self._settings.statement_timeout_s,
            pool_size=self._settings.pool_size,
            max_overflow=0,
            pool_timeout=self._settings.pool_timeout_s,
            pool_recycle=RECYCLE_S,
            pool_use_lifo=True,
        )

    async def close(self) -> None:
        await super().close()
        if self._engine is not None:
            await self._engine.dispose()
            self._engine = None

    async def _prepare(self, engine: AsyncEngine) -> str:
        """Create or migrate the schema, several processes at once; return the schema of pgvector."""
        found = await self.on_schema(schema.version, changes=False)
        if schema.is_due(found, self._address.shown, self._allowed):
            await self.on_schema(partial(schema.prepare, allowed=self._allowed), changes=True)
        async with engine.connect() as connection:
            vector_schema = await connection.scalar(_VECTOR_SCHEMA)
            await connection.run_sync(self._warn_of_power)
        if vector_schema is None:
            raise VectorSearchError(f"{self._address.shown}: {NO_PGVECTOR}")
        return str(vector_schema)

    async def on_schema(self, work: SchemaWork[T], *, changes: bool) -> T:
        engine = _engine(self._address, poolclass=NullPool)
        try:
            with self._translated():
                async with engine.begin() as connection:
                    await connection.run_sync(_check_server, self._address.shown)
                    if changes:
                        await connection.execute(_WRITE, self._write_settings(None))
                        schema_lock = func.pg_advisory_xact_lock(_lock_key("schema"))
                        await connection.execute(select(schema_lock, *_locks([SHARED])))  # nobody writes meanwhile
                        return await connection.run_sync(self._change_schema, work)
                    return await connection.run_sync(work, self._address.shown)
        finally:
            await engine.dispose()

    def _change_schema(self, connection: Connection, work: SchemaWork[T]) -> T:
        """Run a function, with pgvector before it, and afterwards what PostgreSQL has beyond the tables. A schema that
        another process made meanwhile has it, and locking its tables could make both wait for each other."""
        where = self._address.shown
        before = schema.version(connection, where)
        if connection.scalar(_PGVECTOR) is None:
            try:
                ddl.create_extension(connection)
            except DBAPIError as error:
                raise VectorSearchError(f"{where}: {NO_PGVECTOR}") from error
        done = work(connection, where)
        if before != schema.HEAD and schema.version(connection, where) == schema.HEAD:
            ddl.finish(connection, USERS_TABLES)
        return done

    def _warn_of_power(self, connection: Connection) -> None:
        if connection.scalar(_BYPASSES):
            logger.warning(
                "%s: this role is a superuser or may bypass row-level security, so the database's own wall between"
                " users is off; connect as an ordinary role: docs/postgres.md says how",
                self._address.shown,
            )

    async def info(self) -> StoreInfo:
        def look(session: Session) -> StoreInfo:
            walls = "off: this role bypasses it" if session.scalar(_BYPASSES) else "on"
            return StoreInfo(
                url=self._address.shown,
                schema=schema.HEAD,
                size_bytes=session.scalar(select(func.pg_database_size(func.current_database()))) or 0,
                details={
                    "PostgreSQL": str(session.scalar(select(func.current_setting("server_version")))),
                    "pgvector": str(session.scalar(_PGVECTOR)),
                    "row-level security": walls,
                },
            )

        return await self.read(None, look)

    async def scrub(self, *, everything: bool) -> list[str]:
        """Return a note: the bytes of deleted rows stay until their table is rewritten."""
        return ["PostgreSQL keeps the bytes of deleted rows until `jiyi vacuum` (docs/deleting.md)"]

    async def backup(self, path: Path, advance: Advance) -> None:
        """Copy all tables from one snapshot into a SQLite file, which is a store of its own."""
        from ..sqlite import SqliteDatabase
        from ..upkeep.row_copies import copy

        target = SqliteDatabase(path, busy_timeout_s=self._busy_timeout_s)
        try:
            await target.start()
            await copy(self, target, advance)
        finally:
            await target.close()

    async def vacuum(self) -> list[str]:
        engine = _engine(self._address, poolclass=NullPool).execution_options(isolation_level="AUTOCOMMIT")
        try:
            with self._translated():
                async with engine.connect() as connection:
                    return await connection.run_sync(ddl.vacuum, [table.name for table in METADATA.sorted_tables])
        finally:
            await engine.dispose()

    async def count_rows(self, added: int) -> None:
        if self._engine is not None:
            await self._counts.add(added, self._engine)

    async def pgvector_version(self) -> tuple[int, ...]:
        version = await self.read(None, lambda session: session.scalar(_PGVECTOR)) or ""
        return tuple(int(part) for part in version.split(".")[:2])

    async def change_indexes(self, user_id: str, *, drop: Sequence[Index] = (), create: Sequence[Index] = ()) -> None:
        """Create and drop indexes while others read and write, one process at a time. A failure only makes searches
        slower."""
        if not drop and not create:
            return
        engine = _engine(self._address, poolclass=NullPool).execution_options(isolation_level="AUTOCOMMIT")
        try:
            async with engine.connect() as connection:
                if await connection.scalar(select(func.pg_try_advisory_lock(_lock_key(f"index:{user_id}")))):
                    for index in drop:
                        await connection.execute(DropIndex(index, if_exists=True))
                    for index in create:
                        await connection.execute(CreateIndex(index, if_not_exists=True))
        except DBAPIError as error:
            logger.warning("an index of one user's vectors could not be made or dropped: %s", error.orig)
        finally:
            await engine.dispose()

    def writers(self, session: Session) -> frozenset[str]:
        """Return the transactions that hold the lock of `_locks`: numbers are in the order of commits only per user."""
        return frozenset(session.scalars(_WRITERS))

    async def finish_copy(self) -> None:
        """Advance the sequence past the numbers that came with copied rows."""
        sequence = func.pg_get_serial_sequence(ChangeRow.__tablename__, ChangeRow.seq.name)
        last = select(func.max(ChangeRow.seq)).scalar_subquery()
        await self.write([], lambda session: session.scalar(select(func.setval(sequence, func.coalesce(last, 1)))))

    def _read(self, user_id: str | None, work: Work[T]) -> Awaitable[T]:
        return asyncio.shield(self._begin(self._run_reading(user_id, work)))

    def _write(self, users: Sequence[str], work: Work[T]) -> Awaitable[T]:
        return asyncio.shield(self._begin(self._run_writing(users, work)))

    async def _run_reading(self, user_id: str | None, work: Work[T]) -> T:
        async with self._connected(_READ, _scope(user_id)) as connection:
            return await connection.run_sync(_run, work)

    async def _run_writing(self, users: Sequence[str], work: Work[T]) -> T:
        async with self._transaction(users) as connection:
            return await connection.run_sync(_run, work)

    @asynccontextmanager
    async def _transaction(self, users: Sequence[str]) -> AsyncIterator[AsyncConnection]:
        """Open a transaction that holds the write lock of these users and commits at the end."""
        scope = self._write_settings(users[0] if len(users) == 1 and users[0] else None)
        async with self._connected(_WRITE, scope) as connection:
            if users:
                await connection.execute(select(*_locks(users)))
            schema.require_current(await connection.scalar(schema.VERSION), self._address.shown)
            yield connection
            await connection.commit()

    async def pages(self, user_id: str | None, work: Work[Iterator[T]]) -> AsyncGenerator[T, None]:
        engine = self._started().execution_options(isolation_level="REPEATABLE READ")
        async with self._connected(_READ, _scope(user_id), engine) as connection:
            pages = await connection.run_sync(lambda bind: work(open_session(bind)))
            while page := await connection.run_sync(lambda _: list(islice(pages, 1))):
                yield page[0]

    @asynccontextmanager
    async def _connected(
        self, statement: Select[Any], scope: dict[str, str], engine: AsyncEngine | None = None
    ) -> AsyncIterator[AsyncConnection]:
        """Open a connection with a transaction; what was not committed is undone at the end."""
        with self._translated():
            # A driver that is cancelled while it connects leaves a connection behind. So neither this nor giving a
            # connection back is cancelled, only what happens in between.
            opening = self._begin(self._open(statement, scope, engine))
            try:
                connection = await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(self._abandon)
                raise
            try:
                yield connection
            finally:
                await asyncio.shield(self._begin(connection.close()))

    async def _open(
        self, statement: Select[Any], scope: dict[str, str], engine: AsyncEngine | None = None
    ) -> AsyncConnection:
        """Open a connection with a transaction. A dead one is replaced once."""
        engine = engine or self._started()
        for once_more in (True, False):
            connection = await engine.connect()
            try:
                await connection.execute(statement, scope)
                break
            except BaseException as error:
                await connection.close()
                if not (once_more and isinstance(error, DBAPIError) and error.connection_invalidated):
                    raise
        return connection

    def _write_settings(self, user_id: str | None) -> dict[str, str]:
        wait, abandoned = f"{self._busy_timeout_s:.3f}s", f"{ABANDONED_S}s"
        return {**_scope(user_id), "lock_timeout": wait, "idle_in_transaction_session_timeout": abandoned}

    def _abandon(self, opening: asyncio.Future[AsyncConnection]) -> None:
        if not opening.cancelled() and opening.exception() is None:
            self._begin(opening.result().close())

    def _translated(self) -> AbstractContextManager[None]:
        return translated(self._address.shown, wait_s=self._settings.pool_timeout_s)

    def _started(self) -> AsyncEngine:
        if self._engine is None:
            raise StoreError(CLOSED)
        self.owner.check()
        return self._engine


USERS_TABLES = [table.name for table in METADATA.sorted_tables if "user_id" in table.columns]

_PGVECTOR = select(_extensions.c.extversion).where(_extensions.c.extname == "vector")
_BYPASSES = select(_roles.c.rolsuper | _roles.c.rolbypassrls).where(_roles.c.rolname == func.current_user())
_VECTOR_SCHEMA = (
    select(_namespaces.c.nspname)
    .join(_types, _types.c.typnamespace == _namespaces.c.oid)
    .where(_types.c.oid == func.to_regtype("halfvec"))
)


def _run(connection: Connection, work: Work[T]) -> T:
    with open_session(connection) as session:
        done = work(session)
        session.commit()  # sends what it holds; the connection's own transaction goes on
        return done


def _scope(user_id: str | None) -> dict[str, str]:
    """Return the settings that limit a transaction to one user's rows."""
    return {"jiyi_user_id": user_id or "", "jiyi_everybody": "on" if user_id is None else ""}


def _locks(users: Sequence[str]) -> list[Any]:
    """Return the locks of a transaction: one writer at a time for each user, so that its checks still hold when it
    inserts and the change feed is in the order of commits. Shared rows are written while nobody else writes. Locks are
    taken in one order, so that two transactions cannot wait for each other."""
    if SHARED in users:
        return [func.pg_advisory_xact_lock(_lock_key("everybody"))]
    keys = sorted(_lock_key(f"user:{user_id}") for user_id in users)
    return [
        func.pg_advisory_xact_lock_shared(_lock_key("everybody")),
        *(func.pg_advisory_xact_lock(key) for key in keys),
    ]


def _lock_key(what: str) -> int:
    """PostgreSQL's advisory locks have numbers for names."""
    return int.from_bytes(sha256(f"jiyi:{what}".encode()).digest()[:8], "big", signed=True)


_EVERYBODY = _lock_key("everybody")
# A lock's number is split into two halves of 32 bits without a sign.
_WRITERS = select(_held_locks.c.virtualtransaction).where(
    _held_locks.c.locktype == "advisory",
    _held_locks.c.granted,
    cast(_held_locks.c.classid, BigInteger) == (_EVERYBODY >> 32) % 2**32,
    cast(_held_locks.c.objid, BigInteger) == _EVERYBODY % 2**32,
    _held_locks.c.objsubid == 1,
    _held_locks.c.database
    == select(_databases.c.oid).where(_databases.c.datname == func.current_database()).scalar_subquery(),
)


def _check_server(connection: Connection, where: str) -> None:
    version = int(connection.scalar(select(func.current_setting("server_version_num"))) or 0) // 10_000
    if version < OLDEST:
        raise StoreError(f"{where} runs PostgreSQL {version}: version {OLDEST} or newer is needed")
    encoding = connection.scalar(select(func.current_setting("server_encoding")))
    if encoding != "UTF8":
        raise NotAStore(f"{where} has the encoding {encoding}: create a database with the encoding UTF8")


def _engine(
    address: Address, vector_schema: str | None = None, *, command_timeout: float | None = None, **options: Any
) -> AsyncEngine:
    async def connect() -> asyncpg.Connection:
        connection = await asyncpg.connect(
            address.url,
            timeout=CONNECT_S,
            command_timeout=command_timeout,
            server_settings={"application_name": "jiyi"},
        )
        if vector_schema is not None:
            await connection.set_type_codec(
                "halfvec", schema=vector_schema, encoder=to_wire, decoder=from_wire, format="binary"
            )
        return connection

    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=connect,
        isolation_level="READ COMMITTED",  # whatever the server's default: after a lock the newest commit must be seen
        hide_parameters=True,
        **options,
    )

    # The driver notices when the server has gone; asking it costs nothing, unlike a question to the server.
    @event.listens_for(engine.sync_engine, "checkout")
    def refuse_dead(connection: Any, *_: Any) -> None:
        if connection.driver_connection.is_closed():
            raise DisconnectionError

    return engine
