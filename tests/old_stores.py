"""Stores of earlier schemas: their tables as they were, with the rows that a store of schema 0007 had."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import Connection

from jiyi.store.migrations import postgres as ddl
from jiyi.store.postgres.postgres_database import USERS_TABLES
from jiyi.store.schema import migrate as schema
from support import Place, ask

FOLDER = Path(__file__).parent / "schema"
REVISIONS = sorted(file.name[:4] for file in FOLDER.glob("*.sqlite.sql"))
SECRET = b"the secret of the marks around r"
VERSION_TABLE = (
    "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL,"
    " CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
)
DIMENSION = 16  # of the vectors
PARENTS = ("messages", "units", "memories", "jobs")
JSON_COLUMNS = {"data", "metadata", "tags", "before", "memory_ids", "problems", "payload", "participants"}


def make(place: Place, revision: str) -> None:
    """Fill an empty place with the tables and rows of a schema."""
    if isinstance(place, Path):
        _make_sqlite(place, revision)
    else:
        asyncio.run(_make_postgres(place, revision))


def _make_sqlite(path: Path, revision: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((FOLDER / f"{revision}.sqlite.sql").read_text("utf-8"))
        connection.execute(VERSION_TABLE)
        connection.execute("INSERT INTO alembic_version VALUES (?)", (revision,))
        for statement in _inserts(revision, "X'{}'", lambda vector: f"X'{vector.hex()}'"):
            connection.execute(statement)
        connection.commit()


async def _make_postgres(url: str, revision: str) -> None:
    """The tables of 0003 come from a file, later ones from the migrations since, which do not change any more."""
    from sqlalchemy.ext.asyncio import create_async_engine

    def run(connection: Connection) -> None:
        ddl.create_extension(connection)
        for statement in (FOLDER / "0003.postgresql.sql").read_text("utf-8").split(";\n"):
            connection.exec_driver_sql(statement)
        ddl.guard(connection, [table for table in USERS_TABLES if table != "packed_indexes"])
        connection.exec_driver_sql(ddl.INDEX)
        connection.exec_driver_sql(
            "ALTER TABLE embeddings ADD CONSTRAINT ck_embeddings_dimension CHECK (vector_dims(vector) = dimension)"
        )
        schema.version_table.create(connection)
        connection.execute(schema.version_table.insert(), {"version_num": "0003"})
        connection.exec_driver_sql("SET jiyi.everybody = 'on'")
        if revision != "0003":
            schema._to(connection, "0003", revision)
        connection.exec_driver_sql("DELETE FROM secrets" if revision >= "0007" else "SELECT 1")
        for statement in _inserts(revision, "'\\x{}'", lambda vector: f"'{np.frombuffer(vector, '<f4').tolist()}'"):
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("SELECT setval(pg_get_serial_sequence('changes', 'seq'), 1000)")

    engine = create_async_engine(url.replace("postgresql", "postgresql+asyncpg", 1))
    async with engine.begin() as connection:
        await connection.run_sync(run)
    await engine.dispose()


def fixture() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((FOLDER / "rows.json").read_text("utf-8"))
    return found


def _inserts(revision: str, blob: str, vector: Callable[[bytes], str]) -> Iterator[str]:
    """Yield the rows as statements, referenced tables first."""
    tables = fixture()
    for table in (*PARENTS, *(name for name in tables if name not in PARENTS)):
        columns = tables[table]["columns"]
        for row in tables[table]["rows"]:
            values = [
                "NULL" if value is None
                else vector(bytes.fromhex(value["hex"])) if name == "vector"
                else blob.format(value["hex"]) if isinstance(value, dict)
                else "'" + value.replace("'", "''") + "'" if isinstance(value, str)
                else repr(value)
                for name, value in zip(columns, row, strict=True)
            ]  # fmt: skip
            yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(values)})"
    if revision >= "0007":
        yield f"INSERT INTO secrets (name, value) VALUES ('fence', {blob.format(SECRET.hex())})"


def expected() -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the fixture, as `rows` returns them."""
    return {
        table: _sorted(
            held["columns"],
            (
                [bytes.fromhex(value["hex"]) if isinstance(value, dict) else value for value in row]
                for row in held["rows"]
            ),
        )
        for table, held in fixture().items()
    }


def rows(place: Place) -> dict[str, list[tuple[Any, ...]]]:
    """The rows in the tables of the fixture, in one form for both databases and all schemas."""
    found = {}
    for table, held in fixture().items():
        there = {name for (name,) in ask(place, _columns(place, table))}
        wanted = [name if name in there else f"half_{name}" for name in held["columns"]]
        if not isinstance(place, Path):
            wanted = [f"{name}::text" if name in JSON_COLUMNS or "vector" in name else name for name in wanted]
        found[table] = _sorted(held["columns"], ask(place, f"SELECT {', '.join(wanted)} FROM {table}"))
    return found


def _columns(place: Place, table: str) -> str:
    if isinstance(place, Path):
        return f"SELECT name FROM pragma_table_info('{table}')"
    return f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'"


def _sorted(columns: list[str], found: Iterable[Iterable[Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(map(_plain, columns, row)) for row in found), key=repr)


def _plain(column: str, value: Any) -> Any:
    """Vectors are compared as float16: more is not kept."""
    if column != "vector":
        return value
    if isinstance(value, str):
        vector = np.array(json.loads(value))
    else:
        vector = np.frombuffer(value, "<f4" if len(value) == 4 * DIMENSION else "<f2")
    return vector.astype(np.float16).tobytes()


# -- the shape of a schema ---------------------------------------------------------------------------------------------

POSTGRES_SHAPE = {
    "columns": """SELECT table_name, column_name, udt_name, character_maximum_length, collation_name, is_nullable,
        column_default FROM information_schema.columns WHERE table_schema = 'public'""",
    "indexes": "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraints": """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace""",
    "policies": "SELECT tablename, policyname, cmd, qual, with_check FROM pg_policies",
    "guarded": "SELECT relname, relforcerowsecurity FROM pg_class WHERE relrowsecurity",
}


def shape(place: Place) -> dict[str, Any]:
    """Everything that makes up a schema, but the spelling of its SQL."""
    if not isinstance(place, Path):
        return {name: set(ask(place, statement)) for name, statement in POSTGRES_SHAPE.items()}
    with closing(sqlite3.connect(place)) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        ]
        described = {}
        for table in tables:
            indexes = {row[1]: row[2:] for row in connection.execute(f"PRAGMA index_list('{table}')")}
            described[table] = {
                "columns": list(connection.execute(f"PRAGMA table_xinfo('{table}')")),
                "foreign keys": sorted(row[2:] for row in connection.execute(f"PRAGMA foreign_key_list('{table}')")),
                "indexes": {
                    name: (how, [row[1:] for row in connection.execute(f"PRAGMA index_xinfo('{name}')")])
                    for name, how in indexes.items()
                },
                "without rowid": list(connection.execute(f"SELECT wr FROM pragma_table_list('{table}')")),
            }
        statements = {
            # In which order constraints stand is no matter, nor whether a column was added behind them.
            name: sorted(part.rstrip(")") for part in re.sub(r"\s+", "", statement).lower().split(","))
            for name, statement in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        }
    return {"tables": described, "sql": statements}
