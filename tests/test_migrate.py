"""Migrations, up and down: stores of every earlier schema, two roles, and processes of another version."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sqlalchemy.dialects import sqlite
from typer.testing import CliRunner, Result

import old_stores
from jiyi import Memory, SchemaTooNew, SchemaTooOld, StoreError
from jiyi.cli.app import app
from jiyi.settings import load_settings
from jiyi.store.schema import migrate as schema
from jiyi.store.schema.columns import HalfVector
from jiyi.testing import WordEmbedder
from jiyi.transfer.schema_change import migrate_schema, plan_schema
from old_stores import REVISIONS, expected, rows, shape
from postgres_server import PASSWORD, ROLE, Databases
from support import Place, ask, contents, dump

DIALECT = sqlite.dialect()


@pytest.fixture
def bare(databases: Databases) -> Iterator[str]:
    """A database with pgvector and nothing else."""
    name = asyncio.run(databases.new("bare"))
    yield databases.url(name)
    asyncio.run(databases.drop(name))


@pytest.fixture
def nothing(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    """The place of a store that is not there yet."""
    found: Place = tmp_path / "old.db" if backend == "sqlite" else request.getfixturevalue("bare")
    return found


def open_at(place: Place, **options: Any) -> Memory:
    return Memory.open(place, embedder=WordEmbedder(old_stores.DIMENSION), settings=load_settings(**options))


async def migrate(place: Place, to: str | None = None) -> schema.SchemaPlan:
    plan = await plan_schema(place, to, load_settings())
    await migrate_schema(place, plan, load_settings())
    return plan


def jiyi(*words: object, code: int = 0, **options: Any) -> Result:
    done = CliRunner().invoke(app, [str(word) for word in words], **options)
    assert done.exit_code == code, (done.output, done.exception)
    return done


def stamp(place: Place) -> str:
    return str(ask(place, "SELECT version_num FROM alembic_version")[0][0])


# -- stores of earlier schemas -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_store_of_each_earlier_schema_goes_up_and_down_and_up(nothing: Place, place: Place, revision: str) -> None:
    old_stores.make(nothing, revision)
    before = shape(nothing)
    assert rows(nothing) == expected()

    plan = asyncio.run(migrate(nothing))
    assert (plan.found, plan.target, plan.lost) == (revision, schema.HEAD, ())
    assert shape(nothing) == shape(place), "as a fresh one"
    assert rows(nothing) == expected()

    down = asyncio.run(migrate(nothing, revision))
    assert [step.revision for step in down.steps] == [step.revision for step in reversed(plan.steps)]
    assert shape(nothing) == before
    assert rows(nothing) == expected()

    asyncio.run(migrate(nothing))
    assert shape(nothing) == shape(place)
    assert rows(nothing) == expected()


@pytest.mark.parametrize("revision", [REVISIONS[0], REVISIONS[-1]])
async def test_a_migrated_store_is_searched_and_written(nothing: Place, revision: str) -> None:
    await asyncio.to_thread(old_stores.make, nothing, revision)
    async with open_at(nothing, auto_migrate=True) as memory:
        hits = contents(await memory.search("who is Anna?", user_id="bo"))
        assert sorted(hits) == ["Anna sings in a choir.", "My sister Anna works as a nurse."]
        await memory.add("Anna plays chess.", user_id="bo")
        assert "Anna plays chess." in contents(await memory.search("who plays chess?", user_id="bo"))
        # Words that only this version finds are all that may differ until maintenance has found them, and then nothing.
        assert set((await memory.maintenance.verify(vectors=True)).drift) <= {"keywords"}
        await memory.maintenance.run()
        assert (await memory.maintenance.verify(vectors=True)).sound


def test_vectors_lose_nothing_that_matters(nothing: Place) -> None:
    """Two bytes for a number; the similarity of two vectors of length one changes by less than 0.001."""
    old_stores.make(nothing, REVISIONS[-1])
    asyncio.run(migrate(nothing))
    if isinstance(nothing, Path):
        assert set(ask(nothing, "SELECT length(half_vector) / dimension FROM embeddings")) == {(2,)}
    rng = np.random.default_rng(7)
    vectors = rng.normal(size=(500, 512)) * rng.gamma(1, 3, size=(500, 512))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    stored = HalfVector()
    kept = [stored.process_result_value(stored.process_bind_param(one, DIALECT), DIALECT) for one in vectors]
    assert np.abs(np.stack(kept) @ vectors.T - vectors @ vectors.T).max() < 0.001


def test_indexes_of_very_large_users_are_dropped_on_both_ways(bare: str) -> None:
    """They are of one type of vector; maintenance makes them anew."""
    name = f"ix_embeddings_near_{'a' * 20}_{'b' * 8}_{old_stores.DIMENSION}"
    near = f"SELECT count(*) FROM pg_indexes WHERE indexname = '{name}'"
    old_stores.make(bare, REVISIONS[-1])
    for column, kind, to in (("vector", "vector", None), ("half_vector", "halfvec", REVISIONS[-1])):
        size = old_stores.DIMENSION
        ask(bare, f"CREATE INDEX {name} ON embeddings USING hnsw (({column}::{kind}({size})) {kind}_cosine_ops)")
        assert ask(bare, near) == [(1,)]
        asyncio.run(migrate(bare, to))
        assert ask(bare, near) == [(0,)]
        assert rows(bare) == expected()


def test_a_damaged_vector_does_not_stop_a_migration(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old_stores.make(path, REVISIONS[-1])
    for number, damage in enumerate((b"", b"abc", np.full(16, np.inf, np.float32).tobytes(), b"\xff" * 64)):
        blob = f"X'{damage.hex()}'"
        _write_file(path, f"UPDATE embeddings SET vector = {blob} WHERE rowid = {number + 1}")
    asyncio.run(migrate(path))
    asyncio.run(migrate(path, REVISIONS[-1]))
    assert len(rows(path)["memories"]) == len(expected()["memories"])


# -- the command -------------------------------------------------------------------------------------------------------


def test_check_shows_the_steps_and_changes_nothing(nothing: Place) -> None:
    old_stores.make(nothing, "0005")
    shown = " ".join(jiyi("migrate", "--check", "--store", nothing, code=1).stdout.split())  # lines may be wrapped
    assert f"schema 0005 → {schema.HEAD}" in shown and "0006 up: Index recalled memories in SQLite" in shown
    found = json.loads(jiyi("migrate", "--check", "--json", "--store", nothing, code=1).stdout)
    assert (found["found"], found["target"], found["done"]) == ("0005", schema.HEAD, False)
    assert stamp(nothing) == "0005"
    assert jiyi("migrate", "--store", nothing).stdout.split()[-2:] == ["schema", schema.HEAD]
    for words in (["--check"], []):
        assert json.loads(jiyi("migrate", *words, "--json", "--store", nothing).stdout)["steps"] == []


def test_losses_are_named_before_going_down_and_need_consent(place: Place) -> None:
    refused = jiyi("migrate", "--to", "0006", "--store", place, code=2)
    assert "lost: the secret of the marks" in refused.stderr and "--yes" in refused.stderr
    assert stamp(place) == schema.HEAD
    done = json.loads(jiyi("migrate", "--to", "0006", "--yes", "--json", "--store", place).stdout)
    assert done["done"] and "the secret of the marks" in done["lost"][0]
    assert stamp(place) == "0006"


@pytest.mark.parametrize(("answer", "code", "after"), [("n", 1, schema.HEAD), ("", 1, schema.HEAD), ("y", 0, "0006")])
def test_a_terminal_is_asked(path: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, after: str) -> None:
    monkeypatch.setattr("jiyi.cli.maintenance.ask", lambda question: answer)
    monkeypatch.setattr("jiyi.cli.maintenance.sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    shown = jiyi("migrate", "--to", "0006", "--store", path, code=code)
    assert "lost: the secret of the marks" in shown.stderr
    assert stamp(path) == after


@pytest.mark.parametrize("wrong", ["0002", "9999", "head", "-1", ""])
def test_an_unknown_revision_is_refused(path: Path, wrong: str) -> None:
    if wrong:
        assert "there are 0003, 0004" in jiyi("migrate", "--to", wrong, "--store", path, code=2).stderr
    assert stamp(path) == schema.HEAD


def test_an_empty_database_gets_the_newest_schema(bare: str, database: str) -> None:
    assert "is empty" in jiyi("migrate", "--to", "0005", "--store", bare, code=2).stderr
    jiyi("migrate", "--store", bare)
    assert shape(bare) == shape(database)


def test_a_missing_file_is_not_created(tmp_path: Path) -> None:
    jiyi("migrate", "--store", tmp_path / "no.db", code=3)
    assert not (tmp_path / "no.db").exists()


def test_a_failed_migration_leaves_everything_as_it_was(nothing: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    old_stores.make(nothing, REVISIONS[0])
    before = dump(nothing), shape(nothing)
    original = schema._to

    def fail(*args: Any) -> None:
        original(*args)
        raise StoreError("a power cut")

    monkeypatch.setattr(schema, "_to", fail)
    assert "a power cut" in jiyi("migrate", "--store", nothing, code=1).stderr
    assert (dump(nothing), shape(nothing)) == before


# -- opening -----------------------------------------------------------------------------------------------------------

READING = {
    "stats": [],
    "list": ["--user", "bo"],
    "export": ["out.jsonl"],
    "backup": ["out.db"],
    "verify": [],
    "maintain": ["--dry-run"],
    "doctor": [],
}


@pytest.mark.parametrize("command", READING)
def test_commands_that_only_read_do_not_migrate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    monkeypatch.chdir(tmp_path)
    old_stores.make(tmp_path / "old.db", "0006")
    refused = jiyi(command, *READING[command], "--store", tmp_path / "old.db", code=1)
    assert f"has schema 0006, this version of Jiyi needs {schema.HEAD}: run `jiyi migrate`" in " ".join(
        refused.output.split()
    )
    assert stamp(tmp_path / "old.db") == "0006"


@pytest.mark.parametrize("command", ["add", "search"])  # a search notes what it recalled
def test_a_file_is_migrated_by_a_command_that_writes(tmp_path: Path, command: str) -> None:
    old_stores.make(tmp_path / "old.db", "0006")
    jiyi(command, "Anna plays chess.", "--user", "bo", "--store", tmp_path / "old.db")
    assert stamp(tmp_path / "old.db") == schema.HEAD


async def test_a_file_is_not_migrated_if_the_setting_says_so(tmp_path: Path) -> None:
    await asyncio.to_thread(old_stores.make, tmp_path / "old.db", "0006")
    with pytest.raises(SchemaTooOld, match="run `jiyi migrate`"):
        async with open_at(tmp_path / "old.db", auto_migrate=False):
            pass
    with pytest.raises(SchemaTooOld, match="is empty: run `jiyi migrate`"):
        async with open_at(tmp_path / "new.db", auto_migrate=False):
            pass


async def test_postgres_is_migrated_only_if_the_setting_says_so(bare: str) -> None:
    await asyncio.to_thread(old_stores.make, bare, "0006")
    with pytest.raises(SchemaTooOld, match="run `jiyi migrate`"):
        async with open_at(bare):
            pass
    assert stamp(bare) == "0006"
    async with open_at(bare, auto_migrate=True) as memory:
        assert await memory.count(user_id="bo") == 2
    assert stamp(bare) == schema.HEAD


# -- processes of another version --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("other", "error"), [("9999", SchemaTooNew), ("0003", SchemaTooOld)])
async def test_an_open_store_is_not_written_after_another_version_migrated_it(
    place: Place, other: str, error: type[StoreError]
) -> None:
    """The next write sees it, whichever way the schema went; what is readable stays readable."""
    async with open_at(place) as memory:
        made = (await memory.add("likes tea", user_id="mei")).memories[0]
        await asyncio.to_thread(write, place, f"UPDATE alembic_version SET version_num = '{other}'")
        before = await asyncio.to_thread(dump, place)
        for verb in (
            lambda: memory.add("likes coffee", user_id="mei"),
            lambda: memory.update(made.id, user_id="mei", importance=0.9),
            lambda: memory.delete(made.id, user_id="mei"),
            lambda: memory.delete_all("mei"),
        ):
            with pytest.raises(error, match=f"has schema {other}"):
                await verb()
        assert (await memory.get(made.id, user_id="mei")).content == "likes tea"
        assert await asyncio.to_thread(dump, place) == before
        await asyncio.to_thread(write, place, f"UPDATE alembic_version SET version_num = '{schema.HEAD}'")
        await memory.add("likes coffee", user_id="mei")


async def test_a_read_that_a_newer_schema_breaks_says_so(place: Place) -> None:
    async with open_at(place) as memory:
        made = (await memory.add("likes tea", user_id="mei")).memories[0]
        await asyncio.to_thread(write, place, "UPDATE alembic_version SET version_num = '9999'")
        await asyncio.to_thread(write, place, "ALTER TABLE memories RENAME COLUMN summary TO gist")
        with pytest.raises(StoreError, match=r"has schema 9999|has another version migrated it"):
            await memory.get(made.id, user_id="mei")


def write(place: Place, statement: str) -> None:
    ask(place, statement) if not isinstance(place, Path) else _write_file(place, statement)


def _write_file(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


async def test_a_migration_waits_for_a_writer_and_the_next_one_is_refused(place: Place) -> None:
    """A transaction that has begun commits before the migration, one that waits for it sees the new schema."""
    async with open_at(place) as memory:
        database = memory._engine.store.database
        await memory.add("likes tea", user_id="mei")
        adding = [asyncio.create_task(memory.add(f"fact {number}", user_id="mei")) for number in range(8)]
        await asyncio.sleep(0)
        plan = await database.on_schema(partial(schema.plan, to="0006"), changes=False)
        await database.on_schema(partial(schema.migrate, wanted=plan), changes=True)
        done = await asyncio.gather(*adding, return_exceptions=True)
        assert all(not isinstance(one, BaseException) or isinstance(one, SchemaTooOld) for one in done), done
        added = sum(not isinstance(one, BaseException) for one in done)
        with pytest.raises(SchemaTooOld):
            await memory.add("later", user_id="mei")
    await migrate(place)
    async with open_at(place) as memory:
        assert await memory.count(user_id="mei") == 1 + added


# -- two roles ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def serving(databases: Databases, bare: str) -> Iterator[str]:
    """The address of a database for a role that owns nothing: it may read and write rows, and no more."""
    name = bare.rpartition("/")[2]
    role = f"{name}_serving"
    page = (Path(__file__).parent.parent / "docs/postgres.md").read_text("utf-8")
    _, statements, _ = page.partition("## Two roles")[2].split("```", 2)  # the operator's own
    for word, meant in {"sql": "", "jiyi_serve": role, "ROLE jiyi ": f"ROLE {ROLE} ", "…": PASSWORD}.items():
        statements = statements.replace(word, meant)
    asyncio.run(databases._admin(*filter(str.strip, statements.split(";")), database=name))
    yield bare.replace(f"//{ROLE}:", f"//{role}:")
    asyncio.run(databases.drop(name))
    asyncio.run(databases._admin(f"DROP ROLE {role}"))


async def test_a_role_without_rights_to_change_tables_serves(bare: str, serving: str) -> None:
    with pytest.raises(StoreError, match="lacks a right"):  # nothing is there yet, and it may not create it
        async with open_at(serving):
            pass
    await asyncio.to_thread(old_stores.make, bare, "0006")
    with pytest.raises(SchemaTooOld, match="run `jiyi migrate`"):
        async with open_at(serving):
            pass
    with pytest.raises(StoreError, match="lacks a right"):
        await migrate(serving)
    await migrate(bare)
    async with open_at(serving) as memory:
        made = (await memory.add("Anna plays chess.", user_id="bo")).memories[0]
        assert "Anna plays chess." in contents(await memory.search("who plays chess?", user_id="bo"))
        await memory.update(made.id, user_id="bo", importance=0.9)
        await memory.synonyms.add([("chess", "xiangqi")], user_id="bo")
        await memory.jobs.work(until_idle=True)
        await memory.maintenance.run()
        assert len((await memory.list(user_id="bo")).items) == 3
        assert (await memory.stats()).users == 2
        await memory.delete(made.id, user_id="bo")
        await memory.delete_all("bo")
        assert any("not the owner" in left for left in await memory.maintenance.vacuum())
        assert await memory.count(user_id="bo") == 0 and await memory.count(user_id="mei") > 0
