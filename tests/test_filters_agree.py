"""A filter is written down twice: as SQL in `store.filters` and in numpy in `UserIndex`. They must say the same."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from jiyi import Memory
from jiyi.index.query import IndexQuery
from jiyi.languages.words import normalise
from jiyi.scope import Filter
from jiyi.store.repositories.memories import conditions
from jiyi.store.schema.tables import MemoryRow
from jiyi.testing import WordEmbedder

START = datetime(2024, 1, 1, tzinfo=UTC)
times = st.integers(0, 6).map(lambda day: START + timedelta(days=day))
names = st.sampled_from(["a", "A", "a ", "b", "é", "e\u0301", "%"])
types = st.sampled_from(["fact", "task", "skill", "Fact", "自定义"])
LONGEST = "ﷺ" * 14  # each becomes 18 characters when it is normalised, 252 in all
# Among them: tags that differ only in form, that look like patterns, and one that grows when it is normalised.
tags = st.sampled_from(["red", "Red", "ＲＥＤ", "re", "藍", "蓝", "%", "_", "a b", LONGEST, "x" * 256])


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def candidates(draw: st.DrawFn) -> dict[str, Any]:
    start, end = draw(times), draw(maybe(times))
    return {
        "type": draw(types),
        "tags": draw(st.lists(tags, max_size=3)),
        "occurred_at": draw(times),
        "valid_from": start,
        "valid_to": end if end is not None and end > start else None,
        "expires_at": draw(maybe(times)),
        "trust": draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])),
    }


calls = st.fixed_dictionaries(
    {
        "session_id": maybe(names),
        "agent_id": maybe(names),
        "group_id": maybe(names),
        "memories": st.lists(candidates(), min_size=1, max_size=5),
    }
)

filters = st.fixed_dictionaries(
    {
        "session_id": maybe(names),
        "agent_id": maybe(names),
        "group_id": maybe(names),
        "memory_types": maybe(st.lists(types, max_size=3).map(tuple)),
        "layers": maybe(st.lists(st.sampled_from(["episodic", "semantic", "procedural"]), max_size=2).map(tuple)),
        "tags": maybe(st.lists(tags.map(normalise), max_size=3).map(tuple)),
        "occurred_from": maybe(times),
        "occurred_to": maybe(times),
        "as_of": maybe(times),
        "min_trust": st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]),
        "now": times,
    }
)
# Most filters leave most things open; else hardly any memory would pass.
open_filters = filters.flatmap(
    lambda full: st.sets(st.sampled_from([name for name in full if name != "now"]), max_size=3).map(
        lambda kept: {name: value for name, value in full.items() if name == "now" or name in kept}
    )
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def shared(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    memory = Memory.open(tmp_path_factory.mktemp("agree") / "memory.db", embedder=WordEmbedder())
    runner.run(memory.__aenter__())
    yield memory
    runner.run(memory.close())


new_user = count()


PLAIN = {"type": "fact", "tags": [], "occurred_at": START, "valid_from": START, "valid_to": None, "expires_at": None}
NOWHERE = {"session_id": None, "agent_id": None, "group_id": None}


@settings(max_examples=30)
@example(given_calls=[NOWHERE | {"memories": [PLAIN]}], asked=[{"now": START, "memory_types": ()}])
@example(given_calls=[NOWHERE | {"memories": [PLAIN]}], asked=[{"now": START, "layers": ()}])
@example(given_calls=[NOWHERE | {"memories": [PLAIN]}], asked=[{"now": START, "tags": ()}])
@example(
    given_calls=[NOWHERE | {"memories": [PLAIN | {"tags": [LONGEST]}]}],
    asked=[{"now": START, "tags": (normalise(LONGEST),)}],
)
@given(given_calls=st.lists(calls, min_size=1, max_size=3), asked=st.lists(open_filters, min_size=5, max_size=15))
def test_sql_and_numpy_agree_on_every_filter(
    shared: Memory, runner: asyncio.Runner, given_calls: list[dict[str, Any]], asked: list[dict[str, Any]]
) -> None:
    async def compare() -> None:
        user_id = f"user {next(new_user)}"
        for number, call in enumerate(given_calls):
            where = {name: call[name] for name in ("session_id", "agent_id", "group_id")}
            texts = [{"text": f"memory {number} {at}", **one} for at, one in enumerate(call["memories"])]
            await shared.add(texts, user_id=user_id, **where)
        for one in asked:
            where = Filter(user_id=user_id, **one)
            statement = select(MemoryRow.id).where(*conditions(where))
            by_sql = await shared._engine.store.database.read(user_id, lambda session: session.scalars(statement).all())  # noqa: B023
            by_numpy = await shared._engine.index.gather(IndexQuery(filter=where, model="testing:words@64"))
            assert sorted(by_numpy.ids) == sorted(by_sql), one

    runner.run(compare())
