"""Users with very many memories: their vectors stay in PostgreSQL, in an index of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import product
from typing import Any

import asyncpg
import numpy as np
import pytest

from jiyi import Memory
from jiyi.index.query import IndexQuery
from jiyi.scope import Filter
from jiyi.settings import load_settings
from postgres_server import Databases
from support import LONG

ABOVE = 1000 if LONG else 500
TOLD, TIMES = 300, 100 if LONG else 5  # so many are told, and copied past Jiyi until there are so many times as many
TYPES = ("fact", "preference", "task", "skill", "pattern")
WORDS = ("tea", "coffee", "rain", "snow", "茶", "咖啡", "雨", "雪", "piano", "river", "钢琴", "河", "rice", "米饭")
# Each copy gets an id, a key, a hash and a vector of its own.
COPIES = """
    INSERT INTO memories ({columns}) SELECT {memory} FROM memories, generate_series(1, {times}) AS n;
    INSERT INTO terms ({terms}) SELECT {term} FROM terms, generate_series(1, {times}) AS n;
    INSERT INTO keywords ({keywords}) SELECT {keyword} FROM keywords, generate_series(1, {times}) AS n;
    INSERT INTO embeddings (user_id, memory_id, part, model, dimension, half_vector)
    SELECT user_id, left(memory_id, 22) || to_char(n, 'FM0000'), part, model, dimension,
        (SELECT l2_normalize(array_agg(element + (random() - 0.5) * 0.6)::halfvec)
         FROM unnest(half_vector::real[]) AS element WHERE n > 0)
    FROM embeddings, generate_series(1, {times}) AS n;
"""


class Spread:
    """Vectors without any order, which are the hardest to find the nearest of."""

    id = "spread"

    async def embed_documents(self, texts: Any) -> Any:
        return np.stack([self._vector(text) for text in texts])

    async def embed_query(self, text: str) -> Any:
        return self._vector(text)

    @staticmethod
    def _vector(text: str) -> Any:
        seed = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
        vector = np.random.default_rng(seed).standard_normal(48).astype(np.float32)
        return vector / np.linalg.norm(vector)


def open_at(url: str, **options: Any) -> Memory:
    settings = load_settings(
        postgres={"vector_index_above": ABOVE}, extraction={"enabled": False}, recalls={"enabled": False}, **options
    )
    return Memory.open(url, settings=settings, embedder=Spread())


async def fill(url: str, admin: str) -> None:
    rng = np.random.default_rng(3)
    told = [
        {
            "content": " ".join(rng.choice(WORDS, 6)) + f" {at}",
            "memory_type": TYPES[at % len(TYPES)],
            "tags": ["rare"] if at % 50 == 0 else [],
        }
        for at in range(TOLD)
    ]
    async with open_at(url) as memory:
        await memory.add(told, user_id="mei")
    connection = await asyncpg.connect(admin)
    try:
        names = {
            table: [
                row[0]
                for row in await connection.fetch(
                    "SELECT column_name FROM information_schema.columns WHERE table_name = $1", table
                )
            ]
            for table in ("memories", "terms", "keywords")
        }
        other = {
            "id": "left(id, 22) || to_char(n, 'FM0000')",
            "memory_id": "left(memory_id, 22) || to_char(n, 'FM0000')",
            "memory_key": "memory_key || '-' || n",
            "dedupe_hash": "NULL",
        }
        await connection.execute(
            "SELECT setseed(0.5);"
            + COPIES.format(
                times=TIMES,
                columns=", ".join(names["memories"]),
                memory=", ".join(other.get(name, name) for name in names["memories"]),
                terms=", ".join(names["terms"]),
                term=", ".join(other.get(name, name) for name in names["terms"]),
                keywords=", ".join(names["keywords"]),
                keyword=", ".join(other.get(name, name) for name in names["keywords"]),
            )
        )
        await connection.execute("ANALYZE")
    finally:
        await connection.close()
    async with open_at(url) as memory:
        await memory.maintenance.run(user_id="mei")


@pytest.fixture(scope="module")
def filled(databases: Databases) -> Iterator[str]:
    """A database in which one user has many memories, and upkeep has made an index."""
    name = asyncio.run(databases.new())
    asyncio.run(fill(databases.url(name), databases.url(name, ordinary=False)))
    yield databases.url(name)
    asyncio.run(databases.drop(name))


@pytest.fixture
def copied(databases: Databases, filled: str) -> Iterator[str]:
    """A copy of it, for a test that changes it."""
    name = f"{filled.rpartition('/')[2]}_copy"
    asyncio.run(databases.create(name, filled.rpartition("/")[2]))
    yield databases.url(name)
    asyncio.run(databases.drop(name))


@asynccontextmanager
async def past_jiyi(databases: Databases, url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(databases.url(url.rpartition("/")[2], ordinary=False))
    try:
        yield connection
    finally:
        await connection.close()


async def indexes(admin: asyncpg.Connection) -> dict[str, asyncpg.Record]:
    rows = await admin.fetch(
        "SELECT indexrelname AS name, idx_scan AS scans, pg_get_indexdef(indexrelid) AS definition, indisvalid AS valid"
        " FROM pg_stat_user_indexes JOIN pg_index USING (indexrelid) WHERE indexrelname LIKE 'ix_embeddings_near%'"
    )
    return {row["name"]: row for row in rows}


EVERYTHING = Filter(user_id="mei", now=datetime.now(UTC))
SCOPES = (
    (EVERYTHING, "true"),
    (replace(EVERYTHING, memory_types=("fact", "task")), "m.memory_type IN ('fact', 'task')"),
    (replace(EVERYTHING, tags=("rare",)), "m.tags::text LIKE '%rare%'"),
)


async def test_the_index_finds_the_nearest(databases: Databases, filled: str) -> None:
    """At least 99 of 100 of the ten nearest by brute force, whatever filters there are, and only what they let pass."""
    found = asked = 0
    async with open_at(filled) as memory, past_jiyi(databases, filled) as admin:
        for where, condition in SCOPES:
            rows = await admin.fetch(
                "SELECT m.id, e.half_vector::real[] AS vector FROM memories m JOIN embeddings e"
                f" ON e.user_id = m.user_id AND e.memory_id = m.id WHERE m.user_id = 'mei' AND {condition}"
            )
            ids = np.array([row["id"] for row in rows])
            vectors = np.array([row["vector"] for row in rows], np.float32)
            for number in range(20):
                vector = await Spread().embed_query(f"question {number}")
                candidates = await memory._engine.index.gather(IndexQuery(filter=where, vector=vector, model="spread"))
                assert set(candidates.ids) == set(ids)
                order = np.argsort(-candidates.semantic)[:10]
                similarity = dict(zip(ids, vectors @ vector, strict=True))
                nearest = sorted(similarity, key=lambda one: -similarity[one])[:10]
                found += len({*candidates.ids[order]} & {*nearest})
                asked += 10
                exact = [similarity[one] for one in candidates.ids[order]]
                assert candidates.semantic[order] == pytest.approx(exact, abs=1e-5)
        assert memory._engine.index._users["mei"].external  # their vectors are not in RAM
        assert found / asked >= 0.99
        for _ in range(600):
            (index,) = (await indexes(admin)).values()
            if index["scans"] >= 40:  # but not for the few memories with a tag
                break
            await asyncio.sleep(0.1)  # the server counts with a delay
        assert index["scans"] >= 40


async def test_a_search_answers_as_without_the_index(filled: str) -> None:
    """By words and meaning together, by meaning alone, and in a dialogue."""
    asked = [f"{first} and {second}" for first, second in product(WORDS[:4], WORDS[10:])]  # of many, one may differ
    asked.append("user: 你喜欢茶吗？\nassistant: coffee\nuser: 钢琴 in the rain")
    same = total = 0
    async with open_at(filled) as memory, open_at(filled) as exact:
        exact._engine.index._external = None
        for query in asked:
            for mode in ("hybrid", "semantic"):
                one = await memory.search(query, user_id="mei", search_mode=mode, limit=3)
                other = await exact.search(query, user_id="mei", search_mode=mode, limit=3)
                same += len({hit.id for hit in one.hits} & {hit.id for hit in other.hits})
                total += len(other.hits)
                assert one.degraded == other.degraded == ()
    assert same / total >= 0.99


async def test_what_changes_is_seen_and_others_see_nothing(copied: str) -> None:
    async with open_at(copied) as memory:
        await memory.search("warm up", user_id="mei")
        receipt = await memory.add("the password of the cellar is 蓝色月亮", user_id="mei")
        (new,) = (one.id for one in receipt.memories)
        query = "the password of the cellar is 蓝色月亮"
        found = await memory.search(query, user_id="mei", search_mode="semantic", limit=1)
        assert [hit.id for hit in found.hits] == [new]
        await memory.add("bob likes tea", user_id="bob")
        others = await memory.search(query, user_id="bob", search_mode="semantic", limit=50)
        assert [hit.summary for hit in others.hits if "cellar" in hit.summary] == []
        await memory.delete(new, user_id="mei")
        found = await memory.search(query, user_id="mei", search_mode="semantic", limit=10)
        assert new not in [hit.id for hit in found.hits]


async def test_an_erased_user_leaves_no_index_and_no_name(databases: Databases, copied: str) -> None:
    async with open_at(copied) as memory, past_jiyi(databases, copied) as admin:
        (index,) = (await indexes(admin)).values()
        assert "mei" not in index["definition"]
        await memory.delete_all("mei")
        assert await indexes(admin) == {}


async def test_upkeep_makes_the_index_whole_and_drops_what_is_not_wanted(databases: Databases, copied: str) -> None:
    """One whose making was broken off is not used, and made again; one of a user who has become small is dropped."""
    async with past_jiyi(databases, copied) as admin:
        await admin.execute(
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid::regclass::text LIKE 'ix_embeddings_near%'"
        )
        async with open_at(copied) as memory:
            await memory.search("tea", user_id="mei")
            assert not memory._engine.index._users["mei"].external
            await memory.maintenance.run(user_id="mei")
        assert [index["valid"] for index in (await indexes(admin)).values()] == [True]
        await admin.execute("DELETE FROM memories WHERE id NOT IN (SELECT id FROM memories LIMIT 100)")
        async with open_at(copied) as memory:
            await memory.maintenance.run(user_id="mei")
        assert await indexes(admin) == {}
