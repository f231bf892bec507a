"""Two databases, one engine: whatever is done, a file and PostgreSQL give the same answers in the same order."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from jiyi import Deletion, JiyiError, Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from postgres_server import Databases
from support import LONG

START = datetime(2024, 5, 1, tzinfo=UTC)
WORDS = ("tea", "teapot", "coffee", "咖啡", "喝茶", "Berlin", "柏林", "user_id", "v2.3", "likes", "Ann", "花生过敏")
USERS = ("mei", "bo")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(" ".join)
users = st.sampled_from(USERS)
days = st.integers(0, 20).map(lambda number: START + timedelta(days=number))
Act = Callable[[Memory], Awaitable[Any]]


def removed(deletion: Deletion) -> tuple[object, ...]:
    """As much was removed and changed. Which ids that has, and what a database itself still keeps, is not the same."""
    others = (deletion.derived, deletion.rewritten, deletion.restored)
    return deletion.memories, deletion.messages, deletion.removed, [len(ids) for ids in others]


class TwoDatabases(RuleBasedStateMachine):
    databases: Databases
    empty_file: Path

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.both: list[Memory] = []
        self.keys: list[tuple[str, str]] = []
        self.number = 0

    @initialize(first=st.lists(st.tuples(users, texts, days, st.booleans()), min_size=4, max_size=10))
    def begin(self, first: list[tuple[str, str, datetime, bool]]) -> None:
        self.database = self.runner.run(self.databases.new())
        file = shutil.copy(self.empty_file, self.folder.name)
        quiet = load_settings(recalls={"enabled": False})
        for where in (Path(file), self.databases.url(self.database)):
            self.both.append(Memory.open(where, embedder=WordEmbedder(), settings=quiet))
            self.runner.run(self.both[-1].__aenter__())
        for user, text, at, keyed in first:
            self.add(user=user, said=[text], at=at, keyed=keyed, session="s", speaker="Ann", tags=["drink"])

    def teardown(self) -> None:
        for memory in self.both:
            self.runner.run(memory.close())
        self.runner.run(self.databases.drop(self.database))
        self.runner.close()
        self.folder.cleanup()

    def same(self, act: Act, view: Callable[[Any], Any]) -> None:
        """Do it on both: the same comes back, or the same error."""

        async def told(memory: Memory) -> Any:
            try:
                return view(await act(memory))
            except JiyiError as error:
                return type(error)

        file, server = (self.runner.run(told(memory)) for memory in self.both)
        assert file == server

    @rule(
        user=users,
        said=st.lists(texts, min_size=1, max_size=3),
        at=days,
        session=st.sampled_from([None, "s", "t"]),
        speaker=st.sampled_from([None, "Ann", "小明"]),
        tags=st.lists(st.sampled_from(["drink", "旅行"]), max_size=2),
        keyed=st.booleans(),
    )
    def add(self, user: str, said: list[str], at: datetime, keyed: bool, session: str | None, **more: Any) -> None:
        self.number += 1
        key = f"key {self.number}"
        if keyed:
            given: Any = [{"memory_key": key, "content": said[0], "occurred_at": at, "importance": len(said) / 4}]
            self.keys.append((user, key))
        else:
            turns = [at + timedelta(minutes=turn, seconds=self.number) for turn in range(len(said))]
            given = [
                {"role": "user", "content": text, "timestamp": turn, "name": more["speaker"]}
                for text, turn in zip(said, turns, strict=True)
            ]
        self.same(
            lambda memory: memory.add(given, user_id=user, session_id=session, tags=more["tags"]),
            lambda receipt: (receipt.state, receipt.created, [made.content for made in receipt.memories]),
        )

    @rule(
        which=st.integers(0, 99),
        change=st.fixed_dictionaries({"content": texts})
        | st.fixed_dictionaries({"tags": st.lists(st.sampled_from(WORDS), max_size=2)})
        | st.fixed_dictionaries({"importance": st.floats(0, 1), "memory_type": st.sampled_from(["task", "skill"])})
        | st.fixed_dictionaries({"status": st.sampled_from(["active", "archived"])})
        | st.fixed_dictionaries({"valid_to": st.none() | days}),
    )
    def update(self, which: int, change: dict[str, Any]) -> None:
        user, key = self.chosen(which)
        self.same(lambda memory: memory.update(key, user_id=user, **change), lambda item: (item.content, item.version))

    @rule(which=st.integers(0, 99))
    def delete(self, which: int) -> None:
        user, key = self.chosen(which)
        self.same(lambda memory: memory.delete(key, user_id=user), removed)

    def chosen(self, which: int) -> tuple[str, str]:
        """One that was added, or one that never was."""
        known = [*self.keys, ("mei", "never added")]
        return known[which % len(known)]

    @rule(user=users)
    def delete_all(self, user: str) -> None:
        self.same(lambda memory: memory.delete_all(user), removed)

    @rule(
        user=users,
        query=texts,
        more=st.fixed_dictionaries(
            {"search_mode": st.sampled_from(["hybrid", "keyword", "semantic"]), "limit": st.integers(1, 8)},
            optional={
                "as_of": days,
                "tags": st.just(["drink"]),
                "session_id": st.just("s"),
                "memory_types": st.just(["fact", "message"]),
                "time_range": days.map(lambda day: (day, day + timedelta(days=5))),
            },
        ),
    )
    def search(self, user: str, query: str, more: dict[str, Any]) -> None:
        def view(found: Any) -> Any:
            hits = [(hit.content_preview, round(hit.relevance_score, 5), hit.keywords) for hit in found.hits]
            return hits, found.total_found, found.searched, found.degraded, found.expanded_keywords

        self.same(lambda memory: memory.search(query, user_id=user, **more), view)

    @invariant()
    def all_pages_agree(self) -> None:
        if not self.both:
            return

        async def pages(memory: Memory) -> list[list[tuple[str, int]]]:
            found = []
            for user, types in product(USERS, (None, ["message"])):
                cursor = None
                while True:
                    page = await memory.list(user_id=user, memory_types=types, limit=3, cursor=cursor)
                    found.append([(item.content, item.version) for item in page.items])
                    cursor = page.next_cursor
                    if cursor is None:
                        break
            return found

        self.same(pages, lambda found: found)
        self.same(lambda memory: memory.users(), list)
        self.search("mei", "tea 咖啡 Berlin", {"search_mode": "hybrid", "limit": 8})


@pytest.fixture
def machine(databases: Databases, empty_store: Path) -> Iterator[type[TwoDatabases]]:
    TwoDatabases.databases, TwoDatabases.empty_file = databases, empty_store
    yield TwoDatabases


def test_a_file_and_postgresql_agree(machine: type[TwoDatabases]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=60 if LONG else 5, stateful_step_count=20))
