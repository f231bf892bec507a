"""Whatever happens, through whichever memory on the file: with a cache and without, searches have the same answers."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from jiyi import InvalidInput, Memory, NotFound, SearchResult
from jiyi.read import accesses
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import LONG

BEGINNING = datetime(2030, 1, 1, 22, 59, 50, tzinfo=UTC)
WORDS = ["tea", "bush", "咖啡", "walk"]
texts = st.lists(st.sampled_from([*WORDS, "green", "Bo", "昨天", "一杯"]), min_size=1, max_size=3).map(" ".join)
moments = st.integers(-60, 60).map(lambda minutes: timedelta(minutes=minutes))
writers = st.sampled_from(["cached", "plain", "other"])
questions = st.fixed_dictionaries(
    {"query": st.sampled_from(["tea", "the tea", "咖啡", "walk yesterday", "昨天 walk", "what does Bo drink?"])},
    optional={
        "search_mode": st.sampled_from(["hybrid", "keyword", "semantic"]),
        "limit": st.sampled_from([1, 5]),
        "session_id": st.just("s"),
        "tags": st.just(["tea"]),
        "time_range_days": st.just(1),
        "asked_at": st.just(BEGINNING),
        "as_of": st.just(BEGINNING),
    },
)


class WithAndWithout(RuleBasedStateMachine):
    ids = Bundle("ids")
    cached = load_settings()

    def __init__(self) -> None:
        super().__init__()
        self.now = BEGINNING
        self.asked: list[dict[str, Any]] = []
        self.patches = [patch(f"jiyi.{module}.utc_now", lambda: self.now) for module in MODULES]
        # Otherwise it would hang on the real clock who sees whose accesses when it loads a memory anew.
        self.patches.append(patch.object(accesses, "PAUSE_S", 3600))
        for one in self.patches:
            one.start()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "memory.db"
        off = load_settings(cache={"max_searches": 0, "max_query_vectors": 0})
        self.memories = {
            name: Memory.open(path, settings=given, embedder=WordEmbedder())
            for name, given in (("cached", self.cached), ("plain", off), ("other", self.cached))
        }
        for memory in self.memories.values():
            self.runner.run(memory.__aenter__())

    def teardown(self) -> None:
        for memory in self.memories.values():
            self.runner.run(memory.close())
        self.runner.close()
        self.folder.cleanup()
        for one in self.patches:
            one.stop()

    @initialize(target=ids, words=st.lists(texts, min_size=1, max_size=4))
    def begin(self, words: list[str]) -> Any:
        return self.add("other", words, "s", timedelta(0), None)

    @rule(
        target=ids,
        who=writers,
        words=st.lists(texts, min_size=1, max_size=2),
        session=st.none() | st.just("s"),
        ago=moments,
        ends=st.none() | moments,
    )
    def add(self, who: str, words: list[str], session: str | None, ago: timedelta, ends: timedelta | None) -> Any:
        at = self.now - 20 * ago
        over = None if ends is None else self.now + ends
        said = [{"content": text, "occurred_at": at, "valid_from": BEGINNING, "expires_at": over} for text in words]
        receipt = self.runner.run(self.memories[who].add(said, user_id="mei", session_id=session, tags=words[:1]))
        return multiple(*(memory.id for memory in receipt.memories))

    @rule(who=writers, text=texts, speaker=st.sampled_from(["Bo", "Ann"]))
    def say(self, who: str, text: str, speaker: str) -> None:
        said = {"role": "user", "name": speaker, "content": text, "sent_at": self.now}
        self.runner.run(self.memories[who].add(said, user_id="mei", session_id="s"))

    @rule(
        memory_id=ids,
        who=writers,
        change=st.fixed_dictionaries({"content": texts})
        | st.fixed_dictionaries({"metadata": st.dictionaries(st.just("n"), st.integers(0, 9))})
        | st.fixed_dictionaries({"status": st.sampled_from(["active", "archived"])})
        | st.fixed_dictionaries({"valid_to": st.none() | st.integers(-9, 9).map(lambda n: BEGINNING + n * HOUR)}),
    )
    def update(self, memory_id: str, who: str, change: dict[str, Any]) -> None:
        self.quietly(self.memories[who].update(memory_id, user_id="mei", **change))

    @rule(memory_id=consumes(ids), who=writers)
    def delete(self, memory_id: str, who: str) -> None:
        self.quietly(self.memories[who].delete(memory_id, user_id="mei"))

    @rule(who=writers)
    def delete_all(self, who: str) -> None:
        self.runner.run(self.memories[who].delete_all("mei"))

    @rule(who=writers, word=st.sampled_from(WORDS), whose=st.none() | st.just("mei"), similarity=st.just(0.9))
    def add_synonym(self, who: str, word: str, whose: str | None, similarity: float) -> None:
        self.quietly(self.memories[who].synonyms.add([(word, "green", similarity)], user_id=whose))

    @rule(who=writers, whose=st.none() | st.just("mei"))
    def remove_synonym(self, who: str, whose: str | None) -> None:
        self.quietly(self.memories[who].synonyms.remove("green", user_id=whose))

    @rule(seconds=st.sampled_from([1, 5, 9, 11, 40, 60, 1800, 3599, 86_000]))
    def wait(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(question=questions)
    def ask(self, question: dict[str, Any]) -> None:
        self.asked = [*self.asked[-3:], question]

    def quietly(self, work: Any) -> None:
        with suppress(NotFound, InvalidInput):  # it is gone, or says what another says already
            self.runner.run(work)

    @invariant()
    def the_answers_are_the_same(self) -> None:
        for question in self.asked:
            with_cache, without = (
                self.runner.run(self.memories[name].search(user_id="mei", **question)) for name in ("cached", "plain")
            )
            assert plain(with_cache) == plain(without)
            assert scores(with_cache) == pytest.approx(scores(without), abs=1e-4)


MODULES = ("scope", "read.search", "read.accesses")
HOUR = timedelta(hours=1)


def scores(found: SearchResult) -> list[float]:
    return [hit.relevance_score for hit in found.hits]


def plain(found: SearchResult) -> dict[str, Any]:
    """All but the scores, which move a little with every second."""
    values = found.model_dump(exclude={"hits"})
    return values | {"hits": [hit.model_dump(exclude={"relevance_score"}) for hit in found.hits]}


TestWithAndWithout = WithAndWithout.TestCase
TestWithAndWithout.settings = settings(max_examples=500 if LONG else 8, stateful_step_count=20)
