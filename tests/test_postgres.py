"""PostgreSQL's own side: the wall between users, errors that name the next step, and the schema."""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, event, literal_column, select
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import Session

import workers
from jiyi import (
    ConnectionLost,
    Memory,
    NotAStore,
    SchemaTooNew,
    SettingsError,
    StoreError,
    StoreUnavailable,
    VectorSearchError,
)
from jiyi.ids import erased
from jiyi.settings import load_settings
from jiyi.store.database import open_session
from jiyi.store.migrations import postgres as ddl
from jiyi.store.postgres.postgres_database import USERS_TABLES, Address, PostgresDatabase
from jiyi.store.repositories.change_feed import tell
from jiyi.store.schema import migrate as schema
from jiyi.store.schema.columns import METADATA
from jiyi.store.schema.tables import MemoryRow
from jiyi.testing import WordEmbedder
from old_stores import POSTGRES_SHAPE, shape
from postgres_server import PASSWORD, ROLE, Databases
from support import ask, contents, dump, unused_port
from workers import crew


def open_at(url: str, **options: Any) -> Memory:
    return Memory.open(url, embedder=WordEmbedder(), settings=load_settings(**options))


@asynccontextmanager
async def raw(url: str) -> AsyncIterator[Any]:
    """A connection past Jiyi."""
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
def admin(databases: Databases, database: str) -> str:
    """The same database for a superuser."""
    return databases.url(database.rpartition("/")[2], ordinary=False)


@pytest.fixture
def bare(databases: Databases) -> Iterator[str]:
    """A database with pgvector and nothing else."""
    name = asyncio.run(databases.new("bare"))
    yield databases.url(name)
    asyncio.run(databases.drop(name))


# -- the wall -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def two_users(database: str) -> str:
    async with open_at(database) as memory:
        for user_id in ("mei", "bo"):
            said = [{"role": "user", "content": f"{user_id} likes tea", "name": user_id}]
            receipt = await memory.add(said, user_id=user_id, session_id="s", tags=["drink"])
            await memory.update(receipt.memories[0].id, user_id=user_id, importance=0.9)
            await memory.synonyms.add([("tea", f"tea of {user_id}")], user_id=user_id)
        await memory.synonyms.add([("tea", "shared tea")])
    return database


async def owners(connection: Any, table: str) -> set[str]:
    return {row[0] for row in await connection.fetch(f"SELECT DISTINCT user_id FROM {table}")}


async def test_without_a_user_no_table_shows_anything(two_users: str) -> None:
    async with raw(two_users) as connection:
        for table in USERS_TABLES:
            assert await owners(connection, table) <= {""}, table  # what is shared by all belongs to nobody


async def test_a_query_without_a_predicate_sees_the_transactions_user_only(two_users: str) -> None:
    async with raw(two_users) as connection:
        for user_id in ("mei", "bo", "nobody", "m%"):
            async with connection.transaction():
                await connection.execute("SELECT set_config('jiyi.user_id', $1, true)", user_id)
                seen = {table: await owners(connection, table) - {""} for table in USERS_TABLES}
            assert set().union(*seen.values()) <= {user_id}
            assert (seen["memories"] == {user_id}) is (user_id in ("mei", "bo"))
        assert await owners(connection, "memories") == set(), "the setting ends with its transaction"


@pytest.mark.parametrize("table", ["messages", "memories", "keywords", "terms", "embeddings", "revisions", "jobs"])
async def test_what_belongs_to_others_cannot_be_changed_without_a_predicate(two_users: str, table: str) -> None:
    before = dump(two_users)
    async with raw(two_users) as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("SELECT set_config('jiyi.user_id', 'mei', true)")
        mine = await connection.fetchval(f"SELECT count(*) FROM {table}")
        assert mine and await connection.execute(f"UPDATE {table} SET user_id = user_id") == f"UPDATE {mine}"
        await transaction.rollback()
        async with connection.transaction():
            await connection.execute("SELECT set_config('jiyi.user_id', 'nobody', true)")
            assert await connection.execute(f"DELETE FROM {table}") == "DELETE 0"
    assert dump(two_users) == before


async def test_nothing_can_be_written_in_anothers_name(two_users: str) -> None:
    import asyncpg

    change = "INSERT INTO changes (user_id, memory_id, action, changed_at) VALUES ($1, '', 'add', 0)"
    async with raw(two_users) as connection:
        for other in ("bo", "", erased("bo")):
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                async with connection.transaction():
                    await connection.execute("SELECT set_config('jiyi.user_id', 'mei', true)")
                    await connection.execute(change, other)
        async with connection.transaction():
            await connection.execute("SELECT set_config('jiyi.user_id', 'mei', true)")
            await connection.execute(change, erased("mei"))


async def test_every_table_of_users_is_guarded_even_from_its_owner(database: str) -> None:
    guarded = ask(database, "SELECT relname FROM pg_class WHERE relrowsecurity AND relforcerowsecurity")
    assert {name for (name,) in guarded} == {table for table in METADATA.tables if table in USERS_TABLES}
    (role,) = ask(database, "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user")
    assert role == (False, False), "the tests run as a role for which the wall stands"


async def test_a_superuser_is_told_that_the_wall_is_off(admin: str, database: str, caplog: Any) -> None:
    async with open_at(database) as memory:
        assert (await memory._engine.store.info()).details["row-level security"] == "on"
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        async with open_at(admin) as memory:
            assert (await memory._engine.store.info()).details["row-level security"].startswith("off")
    assert "bypass row-level security" in caplog.text
    assert PASSWORD not in caplog.text


async def test_a_superuser_can_step_down_in_the_url(admin: str) -> None:
    async with open_at(f"{admin}?role={ROLE}") as memory:
        assert (await memory._engine.store.info()).details["row-level security"] == "on"


# -- errors ---------------------------------------------------------------------------------------------------------


async def refused(url: str, kind: type[StoreError] | type[VectorSearchError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        async with open_at(url):
            pass
    assert type(caught.value) is kind
    assert PASSWORD not in str(caught.value)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))


async def test_a_server_that_is_not_there(database: str) -> None:
    port = unused_port()
    await refused(f"postgresql://{ROLE}:{PASSWORD}@127.0.0.1:{port}/x", StoreUnavailable, "is the server running")


async def test_a_wrong_password(database: str) -> None:
    await refused(database.replace(PASSWORD, "wrong-" + PASSWORD), StoreError, "check both")


async def test_a_database_that_does_not_exist(database: str) -> None:
    await refused(database + "_not", StoreError, "createdb")


async def test_a_server_without_pgvector(databases: Databases) -> None:
    name = f"{databases.name}_plain"
    await databases.create(name, "template0")
    try:
        await refused(databases.url(name), VectorSearchError, "CREATE EXTENSION vector")
    finally:
        await databases.drop(name)


async def test_a_database_of_another_encoding(databases: Databases) -> None:
    name = f"{databases.name}_latin"
    await databases._admin(f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' OWNER {ROLE}")
    try:
        await refused(databases.url(name), NotAStore, "UTF8")
    finally:
        await databases.drop(name)


async def test_another_programs_database(bare: str) -> None:
    async with raw(bare) as connection:
        await connection.execute("CREATE TABLE songs (title text)")
    await refused(bare, NotAStore, "songs")


async def test_a_schema_of_its_own_in_another_programs_database(bare: str) -> None:
    async with raw(bare) as connection:
        await connection.execute("CREATE TABLE songs (title text); CREATE SCHEMA jiyi")
    async with open_at(f"{bare}?search_path=jiyi,public") as memory:
        await memory.add("likes tea", user_id="mei")
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]


async def test_a_newer_schema(database: str) -> None:
    async with raw(database) as connection:
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
    await refused(database, SchemaTooNew, "upgrade jiyi")


async def test_a_role_without_rights(database: str, admin: str) -> None:
    async with raw(admin) as connection:
        await connection.execute("ALTER TABLE memories OWNER TO CURRENT_USER")
    async with open_at(database) as memory:
        with pytest.raises(StoreError, match="lacks a right"):
            await memory.add("likes tea", user_id="mei")


@pytest.mark.parametrize("url", ["postgresql://a:s3cret@[::1/x", "postgresql://a:s3cret@h:port/x"])
def test_what_is_no_url_is_not_repeated(url: str) -> None:
    with pytest.raises(SettingsError, match="postgresql://USER@HOST") as caught:
        open_at(url)
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_an_address_is_shown_without_secrets() -> None:
    shown = Address.of("postgres://mei:s3cret@db.example.org:6432/memory?password=s3cret&sslmode=require").shown
    assert shown == "postgresql://mei@db.example.org:6432/memory"
    assert Address.of("postgresql://mei:x@[::1]/m").shown == "postgresql://mei@[::1]/m"


async def test_a_read_only_server_answers_and_says_why_it_does_not_write(database: str, admin: str) -> None:
    async with open_at(database) as memory:
        receipt = await memory.add("likes tea", user_id="mei")
    async with raw(admin) as connection:
        name = database.rpartition("/")[2]
        await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    async with open_at(database, recalls={"enabled": False}) as memory:
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
        assert await memory.count(user_id="mei") == 1
        assert await memory.jobs.status(receipt, user_id="mei") == receipt
        with pytest.raises(StoreUnavailable, match="connect to the primary"):
            await memory.add("likes coffee", user_id="mei")


def transaction(memory: Memory, user_id: str) -> AbstractAsyncContextManager[AsyncConnection]:
    """Hold a connection with the write lock of a user."""
    database = memory._engine.store.database
    assert isinstance(database, PostgresDatabase)
    return database._transaction([user_id])


async def test_a_full_pool_is_named_and_recovers(database: str) -> None:
    async with open_at(database, postgres={"pool_size": 1, "pool_timeout_s": 1.0}) as memory:
        async with transaction(memory, "mei"):
            with pytest.raises(StoreUnavailable, match=r"postgres\.pool_size"):
                await memory.count(user_id="mei")
        assert await memory.count(user_id="mei") == 0


async def test_a_writer_that_waits_too_long_is_told(database: str) -> None:
    async with open_at(database) as one, open_at(database, busy_timeout_s=1.0) as other:
        async with transaction(one, "mei"):
            with pytest.raises(StoreUnavailable, match="locked for too long"):
                await other.add("likes tea", user_id="mei")
            await other.add("likes tea", user_id="bo")  # other users do not wait
        await other.add("likes tea", user_id="mei")


async def test_ended_connections_are_replaced(database: str, admin: str) -> None:
    async with open_at(database) as memory, raw(admin) as connection:
        await memory.add("likes tea", user_id="mei")
        for _ in range(3):
            await connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND datname = current_database()"
            )
            await asyncio.sleep(0.05)
            assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]


async def test_a_connection_that_ends_halfway_is_named(database: str, admin: str) -> None:
    async with open_at(database) as memory, raw(admin) as connection:
        with pytest.raises(ConnectionLost, match="may or may not be kept"):
            async with transaction(memory, "mei") as mine:
                await connection.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction'"
                    " AND datname = current_database()"
                )
                await mine.execute(select(1))
        await memory.add("likes tea", user_id="mei")


async def test_a_plain_read_sees_its_user_only_and_leaves_no_transaction(database: str) -> None:
    names = ["mei", "o'brien\\", "王芳"]
    async with open_at(database, postgres={"pool_size": 1}) as memory:
        for name in names:
            await memory.add(f"tea of {name}", user_id=name)
        store = memory._engine.store.database

        def every(session: Session) -> list[str]:
            return sorted(session.scalars(select(MemoryRow.user_id).distinct()))

        for name in names:
            assert await store.read(name, every) == [name]
            assert await store.snapshot(name, every) == [name]
        assert await store.read(None, every) == sorted(names)
        with pytest.raises(StoreError, match="division by zero"):
            await store.read("mei", lambda session: session.scalar(select(literal_column("1 / 0"))))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                await store.read("mei", lambda session: session.scalar(select(literal_column("pg_sleep(0.3)"))))
        assert await store.read(None, every) == sorted(names)  # the only connection is free again, and has no user


async def test_a_vector_that_is_not_of_its_dimension_is_refused(database: str) -> None:
    import asyncpg

    async with open_at(database) as memory:
        made = (await memory.add("likes tea", user_id="mei")).memories[0]
    async with raw(database) as connection:
        await connection.execute("SET jiyi.everybody = 'on'")
        with pytest.raises(asyncpg.CheckViolationError, match="ck_embeddings_dimension"):
            await connection.execute("UPDATE embeddings SET half_vector = '[1,2]' WHERE memory_id = $1", made.id)


# -- schema ---------------------------------------------------------------------------------------------------------


async def test_short_texts_are_compared_byte_by_byte(database: str) -> None:
    columns = ask(database, POSTGRES_SHAPE["columns"])
    short = {column[:2]: column[4] for column in columns if column[2] == "varchar" and column[0] != "alembic_version"}
    assert set(short.values()) == {"C"}, {column for column, collation in short.items() if collation != "C"}


async def test_finishing_a_schema_again_changes_nothing(database: str) -> None:
    from sqlalchemy.ext.asyncio import create_async_engine

    before = shape(database)
    engine = create_async_engine(database.replace("postgresql", "postgresql+asyncpg", 1))
    async with engine.begin() as connection:
        await connection.run_sync(ddl.finish, USERS_TABLES)
    await engine.dispose()
    assert shape(database) == before


async def test_several_processes_may_start_at_once(bare: str) -> None:
    told = crew([(workers.open_and_add, (bare, f"fact {number}")) for number in range(6)])
    assert told == [None] * 6
    rows = dump(bare)
    assert len(rows["memories"]) == 6
    assert rows["alembic_version"] == [(schema.HEAD,)]


async def test_a_schema_that_another_process_has_made_meanwhile_is_not_locked(database: str) -> None:
    prepare = partial(schema.prepare, allowed=schema.Allowed(True, False))
    async with open_at(database) as memory, raw(database) as reader, reader.transaction(), asyncio.timeout(20):
        await reader.execute("SELECT * FROM memories")
        await memory._engine.store.database.on_schema(prepare, changes=True)


async def test_vectors_come_back_bit_by_bit(database: str) -> None:
    """pgvector's own text form of what was stored is what numpy says of it."""

    class Odd(WordEmbedder):
        def _embed(self, text: str) -> Any:
            return np.random.default_rng(len(text)).normal(size=self.dimension).astype(np.float32)

    async with Memory.open(database, embedder=Odd(64), settings=load_settings()) as memory:
        await memory.add("likes tea", user_id="mei")
        (loaded,) = [row.vector for row in await memory._engine.store.index_rows.page("mei", Odd(64).id)]
    ((told,),) = ask(database, "SELECT half_vector::text FROM embeddings")
    assert np.array_equal(np.frombuffer(loaded, "<f2"), np.array(told.strip("[]").split(","), np.float16))


async def test_a_change_that_commits_late_is_not_skipped(database: str) -> None:
    """Two users write at once, and the one with the lower number in the change feed commits last."""
    async with open_at(database) as memory:
        store = memory._engine.store
        async with transaction(memory, "slow") as connection:
            await connection.run_sync(lambda bind: tell(open_session(bind), "slow", ["M1"], "add"))
            await memory.add("likes tea", user_id="quick")
            seen, users = await store.changes.users_since(0)
            assert users == ["quick"]
        seen, users = await store.changes.users_since(seen)
        assert "slow" in users
        again = await store.changes.users_since(seen)
        assert again == (seen, [])
        await memory.add("likes coffee", user_id="quick")
        assert (await store.changes.users_since(seen))[1] == ["quick"]  # only the new change, once all have ended


async def test_an_add_does_not_join_memories_and_vectors(database: str) -> None:
    """Before PostgreSQL has statistics of a new user, a join compares every row with every row: an add of 1,000
    memories to a user of 3,000 took a minute."""
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    async with open_at(database) as memory:
        await memory.add(["likes tea", "likes jazz"], user_id="mei")
        event.listen(Engine, "before_cursor_execute", note)
        try:
            await memory.add(["likes tea", "likes rain"], user_id="mei")
        finally:
            event.remove(Engine, "before_cursor_execute", note)
    read = [one for one in statements if one.startswith("SELECT") and "embeddings" in one]
    assert read
    assert not any(" JOIN " in one for one in read)
