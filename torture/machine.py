"""State machine of the trial `model`: the verbs as rules, each with its effect on a dictionary."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from jiyi import InvalidInput, Memory, NotFound, ReceiptState, VersionConflict
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

USERS = ("mei", "bo")
WORDS = ("tea", "coffee", "咖啡", "喝茶", "Berlin", "柏林", "v2.3", "花生过敏")
TAGS = ("drink", "旅行")
START = datetime(2024, 5, 1, tzinfo=UTC)
users, words = st.sampled_from(USERS), st.sampled_from(WORDS)
which = st.integers(0, 10**6)


@dataclass(slots=True)
class Kept:
    """The dictionary's entry for a memory."""

    user: str
    key: str
    content: str
    session: str | None
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    status: str = "active"
    valid_to: datetime | None = None
    version: int = 1
    told: bool = False  # a message: its key is its id
    before: list[dict[str, Any]] = field(default_factory=list)

    def state(self) -> dict[str, Any]:
        names = ("content", "tags", "importance", "status", "valid_to")
        return {name: getattr(self, name) for name in names}


class Machine(RuleBasedStateMachine):
    place: Callable[[], Any]  # a new store
    sever: Callable[[Any], Any]
    counts: Counter[str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.kept: dict[tuple[str, str], Kept] = {}
        self.order: list[tuple[str, str]] = []
        self.synonyms: dict[str, set[str]] = {user: set() for user in USERS}
        self.left: list[Memory] = []
        self.number = 0

    def do(self, verb: Any) -> Any:
        self.counts["steps"] += 1
        return self.runner.run(_awaited(verb))

    @initialize()
    def begin(self) -> None:
        self.counts["machines"] += 1
        self.where = self.runner.run(_awaited(type(self).place()))
        self.memory = self.opened()

    def opened(self) -> Memory:
        quiet = load_settings(extraction={"enabled": False})
        memory = Memory.open(self.where, embedder=WordEmbedder(), settings=quiet)
        self.runner.run(memory.__aenter__())
        return memory

    def teardown(self) -> None:
        if hasattr(self, "memory"):
            assert self.do(self.memory.maintenance.verify(vectors=True)).drift == {}
            for memory in (self.memory, *self.left):
                self.runner.run(_quietly(memory.close()))
        self.runner.close()
        self.folder.cleanup()

    def mine(self, user: str, status: str = "active") -> list[Kept]:
        """Entries of one user, newest first."""
        found = [self.kept[name] for name in reversed(self.order) if name in self.kept and name[0] == user]
        return [one for one in found if one.status == status]

    def some(self, number: int) -> Kept:
        every = list(self.kept.values())
        return every[number % len(every)]

    # -- writing ------------------------------------------------------------------------------------------------------

    @rule(user=users, word=words, session=st.sampled_from([None, "s", "t"]), tags=st.sets(st.sampled_from(TAGS)))
    def add(self, user: str, word: str, session: str | None, tags: set[str]) -> None:
        self.number += 1
        key, text = f"key {self.number}", f"{word} w{self.number}x"
        given = {"content": text, "memory_key": key, "tags": sorted(tags)}
        once = f"once {self.number}"
        receipt = self.do(self.memory.add(given, user_id=user, session_id=session, idempotency_key=once))
        assert (receipt.created, receipt.state) == (1, ReceiptState.INDEXED)
        again = self.do(self.memory.add(given, user_id=user, session_id=session, idempotency_key=once))
        assert again.id == receipt.id and [item.id for item in again.memories] == [item.id for item in receipt.memories]
        assert self.do(self.memory.add(given, user_id=user, session_id=session)).created == 0
        assert self.do(self.memory.jobs.status(receipt, user_id=user)).state is ReceiptState.INDEXED
        self.put(Kept(user, key, text, session, tuple(sorted(tags))))

    @rule(user=users, said=st.lists(words, min_size=1, max_size=3), session=st.sampled_from(["s", "t"]))
    def talk(self, user: str, said: list[str], session: str) -> None:
        turns = []
        for word in said:
            self.number += 1
            at = START + timedelta(seconds=self.number)
            turns.append({"role": "user", "content": f"{word} w{self.number}x", "timestamp": at})
        receipt = self.do(self.memory.add(turns, user_id=user, session_id=session))
        assert receipt.created == len(turns)
        for item, turn in zip(receipt.memories, turns, strict=True):
            assert item.content == turn["content"]
            self.put(Kept(user, item.id, item.content, session, told=True))
        assert self.do(self.memory.add(turns, user_id=user, session_id=session)).created == 0

    def put(self, one: Kept) -> None:
        self.kept[one.user, one.key] = one
        self.order.append((one.user, one.key))

    @precondition(lambda self: self.kept)
    @rule(number=which, change=st.sampled_from(["content", "importance", "tags", "status", "valid_to"]), word=words)
    def update(self, number: int, change: str, word: str) -> None:
        one = self.some(number)
        self.number += 1
        values: dict[str, Any] = {
            "content": f"{word} w{self.number}x",
            "importance": (number % 10) / 10,
            "tags": TAGS[: number % 3],
            "status": "archived" if one.status == "active" else "active",
            "valid_to": None if one.valid_to else START + timedelta(days=number % 3),
        }
        given = {change: values[change]}
        item = self.do(self.memory.update(one.key, user_id=one.user, expected_version=one.version, **given))
        one.before.append(one.state())
        setattr(one, change, values[change])
        one.version += 1
        self.check(one, item)
        try:
            self.do(self.memory.update(one.key, user_id=one.user, expected_version=one.version - 1, importance=0.1))
            raise AssertionError("a version that is over was changed")
        except VersionConflict:
            pass

    @precondition(lambda self: any(one.before for one in self.kept.values()))
    @rule(number=which, undo=st.booleans())
    def take_back(self, number: int, undo: bool) -> None:
        every = [one for one in self.kept.values() if one.before]
        one = every[number % len(every)]
        if undo:
            self.do(self.memory.maintenance.undo(one.key, user_id=one.user))
        else:
            self.do(self.memory.restore(one.key, user_id=one.user))
        now, then = one.state(), one.before[-1]
        if undo and now == then:
            return  # the last change had no effect to undo
        one.before.append(now)
        for name, value in then.items():
            setattr(one, name, value)
        one.version += 1
        self.check(one, self.do(self.memory.get(one.key, user_id=one.user)))

    @precondition(lambda self: self.kept)
    @rule(number=which)
    def delete(self, number: int) -> None:
        one = self.some(number)
        assert self.do(self.memory.delete(one.key, user_id=one.user)).memories == 1
        del self.kept[one.user, one.key]
        try:
            self.do(self.memory.get(one.key, user_id=one.user))
            raise AssertionError("it is still there")
        except NotFound:
            pass

    @rule(user=users)
    def delete_all(self, user: str) -> None:
        gone = [name for name in self.kept if name[0] == user]
        assert self.do(self.memory.delete_all(user)).memories == len(gone)
        for name in gone:
            del self.kept[name]
        self.synonyms[user].clear()

    @rule(user=users, word=words)
    def teach(self, user: str, word: str) -> None:
        if word in self.synonyms[user]:
            assert self.do(self.memory.synonyms.remove(word, user_id=user)) > 0
            self.synonyms[user].discard(word)
        else:
            self.do(self.memory.synonyms.add([(word, f"{word}like")], user_id=user))
            self.synonyms[user].add(word)
        found = self.do(self.memory.synonyms.list(user_id=user))
        assert len(found) == len(self.synonyms[user])

    # -- looking ------------------------------------------------------------------------------------------------------

    def check(self, one: Kept, item: Any) -> None:
        told = (item.content, item.tags, item.importance, item.status, item.valid_to, item.version, item.session_id)
        assert told == (*one.state().values(), one.version, one.session), (told, one)

    @precondition(lambda self: self.kept)
    @rule(number=which)
    def look(self, number: int) -> None:
        one = self.some(number)
        self.check(one, self.do(self.memory.get(one.key, user_id=one.user)))
        changes = self.do(self.memory.history(one.key, user_id=one.user))
        assert [change.version for change in changes] == list(range(1, one.version + 1))
        assert [change.after["content"] for change in changes] == [*(old["content"] for old in one.before), one.content]
        other = next(user for user in USERS if user != one.user)
        assert not self.do(self.memory.get_many([changes[0].memory_id], user_id=other))

    @rule(user=users, status=st.sampled_from(["active", "archived"]), limit=st.integers(1, 4), told=st.booleans())
    def pages(self, user: str, status: str, limit: int, told: bool) -> None:
        current = [one for one in self.mine(user, status) if one.valid_to is None and one.told == told]
        expected = [one.content for one in current]
        filters: dict[str, Any] = {"user_id": user, "status": status, "memory_types": ["message"] if told else None}
        found: list[str] = []
        cursor = None
        while True:
            page = self.do(self.memory.list(**filters, limit=limit, cursor=cursor))
            found += [item.content for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert Counter(found) == Counter(expected)
        assert self.do(self.memory.count(**filters)) == len(expected)
        tagged = [one for one in current if "drink" in one.tags]
        assert self.do(self.memory.count(**filters, tags=["Drink"])) == len(tagged)
        assert set(self.do(self.memory.users())) <= set(USERS)

    @precondition(lambda self: self.kept)
    @rule(number=which, mode=st.sampled_from(["hybrid", "keyword"]))
    def search(self, number: int, mode: str) -> None:
        one = self.some(number)
        mark = one.content.split()[-1]
        found = self.do(self.memory.search(mark, user_id=one.user, search_mode=mode, limit=50))
        alive = [other for other in self.mine(one.user) if other.valid_to is None]
        assert found.searched == len(alive) and not found.degraded
        there = one in alive
        hits = [hit.content_preview for hit in found.hits]
        assert (one.content in hits[:1]) == there, (mark, hits[:3])
        block = self.do(self.memory.context(mark, user_id=one.user, max_tokens=4000))
        assert (mark in block.split()) == there

    # -- faults and moves ---------------------------------------------------------------------------------------------

    @rule()
    def crash(self) -> None:
        self.counts["crashes"] += 1
        self.left.append(self.memory)
        self.runner.run(_awaited(type(self).sever(self.where)))
        self.memory = self.opened()

    @rule()
    def move(self) -> None:
        """Export everything, import it into a new store, and continue with that one."""
        self.counts["moves"] += 1
        file = Path(self.folder.name) / f"{self.number} {self.counts['moves']}.jsonl"
        self.do(self.memory.transfer.export(file))
        self.left.append(self.memory)
        self.where = self.runner.run(_awaited(type(self).place()))
        self.memory = self.opened()
        if self.kept:
            self.do(self.memory.transfer.import_memories(file))
            again = file.with_suffix(".again.jsonl")
            self.do(self.memory.transfer.export(again))
            assert again.read_bytes() == file.read_bytes()
        else:
            with suppress(InvalidInput):
                self.do(self.memory.transfer.import_memories(file))


async def _awaited(verb: Any) -> Any:
    return await verb


async def _quietly(verb: Any) -> None:
    with suppress(Exception):  # its connections were severed on purpose
        await verb
