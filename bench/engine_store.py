"""Fill a store for `bench.engines speed`: some memories are added as always, and their rows are copied in SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jiyi import Memory
from jiyi.store.schema.columns import METADATA

from .texts import candidates

LARGE = "large"
EACH = 200  # memories of each other user
TEMPLATE = 50_000  # memories of the large user that are added; the others are copies with noise in their vectors
TEMPLATES = 50  # other users that are added
CHUNK = 1000
AT_ONCE = 5000
NOISE = 0.02
COPIED = ("memories", "embeddings", "terms", "keywords", "changes")


def user_of(number: int) -> str:
    return f"user-{number}"


async def fill(memory: Memory, path: Path, memories: int, users: int) -> None:
    """Add what is missing. A new id begins with the number of the copy, so at most 98 copies are possible."""
    wanted = {LARGE: min(memories, TEMPLATE)} | {user_of(at): EACH for at in range(min(users, TEMPLATES))}
    for user, number in wanted.items():
        done = await memory.count(user_id=user)
        made = list(candidates(f"{user}:{done}", max(number - done, 0)))
        for start in range(0, len(made), CHUNK):
            await memory.add(made[start : start + CHUNK], user_id=user)
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA synchronous = OFF")
    _copy_memories(database, memories)
    _copy_users(database, users)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def _copy_memories(database: sqlite3.Connection, memories: int) -> None:
    """Copy the memories of the large user, with other ids, slightly other texts and other vectors."""
    rng = np.random.default_rng(0)
    count = "SELECT count(*) FROM memories WHERE user_id = ?"
    first = f"SELECT id FROM memories WHERE user_id = ? AND id LIKE '01%' ORDER BY id LIMIT {TEMPLATE}"
    ids = [str(one) for (one,) in database.execute(first, (LARGE,))]
    there = int(database.execute(count, (LARGE,)).fetchone()[0])
    copy = 1 + there // max(len(ids), 1)
    while there < memories:
        for start in range(0, len(ids), AT_ONCE):
            some = ids[start : start + min(AT_ONCE, memories - there)]
            if some:
                _copy(database, some, copy, rng)
                there += len(some)
        copy += 1


def _copy(database: sqlite3.Connection, ids: Sequence[str], copy: int, rng: np.random.Generator) -> None:
    new = {"user_id": "user_id", "seq": "NULL"}
    renamed = f"'{copy:02}' || substr({{}}, 3)"
    new |= {name: renamed.format(name) for name in ("id", "memory_id", "memory_key")}
    new |= {"dedupe_hash": f"dedupe_hash || '-{copy}'", "content": f"content || ' ({copy})'"}
    new |= {"summary": new["content"].replace("content", "summary")}
    place = (LARGE, ids[0], ids[-1])
    database.execute("BEGIN")
    for table in COPIED:
        key = "id" if table == "memories" else "memory_id"
        where = f"user_id = ? AND {key} BETWEEN ? AND ?"
        if table == "embeddings":
            _copy_vectors(database, where, place, copy, rng)
            continue
        names = _columns(table)
        database.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(new.get(one, one) for one in names)}"
            f" FROM {table} WHERE {where}",
            place,
        )
    database.execute("COMMIT")


def _copy_vectors(
    database: sqlite3.Connection, where: str, place: Sequence[str], copy: int, rng: np.random.Generator
) -> None:
    names = ("memory_id", "part", "model", "dimension", "half_vector")
    rows = database.execute(f"SELECT {', '.join(names)} FROM embeddings WHERE {where}", place).fetchall()
    vectors = np.frombuffer(b"".join(row[-1] for row in rows), "<f2").reshape(len(rows), -1)
    vectors = vectors.astype(np.float32) + rng.standard_normal(vectors.shape, np.float32) * np.float32(NOISE)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    database.executemany(
        f"INSERT INTO embeddings (user_id, {', '.join(names)}) VALUES (?, ?, ?, ?, ?, ?)",
        (
            (LARGE, f"{copy:02}{row[0][2:]}", *row[1:-1], vector.astype("<f2").tobytes())
            for row, vector in zip(rows, vectors, strict=True)
        ),
    )


def _copy_users(database: sqlite3.Connection, users: int) -> None:
    """Copy the rows of other users under new names."""
    known = {str(one) for (one,) in database.execute("SELECT DISTINCT user_id FROM memories")}
    database.execute("BEGIN")
    for at in range(TEMPLATES, users):
        if user_of(at) in known:
            continue
        for table in COPIED:
            listed = ", ".join(name for name in _columns(table) if name not in ("user_id", "seq"))
            database.execute(
                f"INSERT INTO {table} (user_id, {listed}) SELECT ?, {listed} FROM {table} WHERE user_id = ?",
                (user_of(at), user_of(at % TEMPLATES)),
            )
        if not at % 50:
            database.execute("COMMIT")
            database.execute("BEGIN")
    database.execute("COMMIT")


def _columns(table: str) -> list[str]:
    return [column.name for column in METADATA.tables[table].columns]
