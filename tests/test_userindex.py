"""The copy in RAM that a search scans: right by a slow and simple calculation, and never behind the database."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from jiyi import InvalidInput, Memory, MemoryItem, NotFound
from jiyi.index.legs import IndexRow
from jiyi.index.query import Candidates, IndexQuery
from jiyi.index.relations import find_episodes
from jiyi.index.search_index import SearchIndex
from jiyi.index.user_index import UserIndex
from jiyi.keep.erase import message_parts
from jiyi.languages.terms import non_overlapping, query_keywords, tokens
from jiyi.scope import Filter
from jiyi.settings import load_settings
from jiyi.store.repositories.index_entries import index_values
from jiyi.testing import WordEmbedder
from jiyi.write.index import KeywordRules, index_entry
from support import Place

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ANYWHERE = Filter(user_id="mei", now=NOW)
WORDS = [
    "tea",
    "teas",
    "teapot",
    "coffee",
    "Rust",
    "用户",
    "咖啡",
    "咖啡馆",
    "上海",
    "user_id",
    "v2.1",
    "cat",
    "running",
]
RULES = KeywordRules(5, 0.3)


def row_of(memory_id: str, text: str, tags: tuple[str, ...] = (), vector: Any = None) -> IndexRow:
    """A memory's row, made by the functions that `add` uses."""
    values = index_values("mei", memory_id, index_entry(text, text, tags, {}, "fact", RULES))["terms"][0]
    packed = {
        name: np.asarray(values[name], dtype).tobytes()
        for name, dtype in (
            ("hashes", "<i8"),
            ("counts", "<u2"),
            ("keyword_hashes", "<i8"),
            ("keyword_weights", "<f4"),
        )
    }
    return IndexRow(
        id=memory_id,
        memory_type="fact",
        layer="semantic",
        session_id=None,
        agent_id=None,
        group_id=None,
        speaker=None,
        assistant=False,
        derived=False,
        tags=tags,
        occurred_at=0,
        valid_from=0,
        valid_to=None,
        expires_at=None,
        last_accessed_at=None,
        access_count=0,
        importance=0.5,
        trust=1.0,
        length=values["length"],
        asks=values["asks"],
        kind=values["kind"],
        vector=None if vector is None else np.asarray(vector, "<f2").tobytes(),
        dimension=None if vector is None else len(vector),
        **packed,
    )


def slow_bm25(texts: dict[str, str], query: str) -> dict[str, float]:
    """BM25 as in the textbook, over the share that a perfect memory of average length would get."""
    documents = {memory_id: Counter(tokens(text)) for memory_id, text in texts.items()}
    average = max(sum(sum(words.values()) for words in documents.values()) / len(documents), 1.0)
    scores = dict.fromkeys(documents, 0.0)
    whole = 0.0
    for term, times in Counter(tokens(query)).items():
        holders = sum(term in words for words in documents.values())
        rarity = (1 + math.log(times)) * math.log(1 + (len(documents) - holders + 0.5) / (holders + 0.5))
        whole += rarity
        for memory_id, words in documents.items():
            often, length = words[term], sum(words.values())
            if often:
                scores[memory_id] += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * length / average))
    return {memory_id: score / whole if whole else 0.0 for memory_id, score in scores.items()}


def slow_coverage(texts: dict[str, str], query: str) -> dict[str, float]:
    """The share of the query's words, by rarity, that a memory holds."""
    words = set(non_overlapping(tokens(query)))
    documents = {memory_id: set(tokens(text)) for memory_id, text in texts.items()}
    holders = {word: sum(word in held for held in documents.values()) for word in words}
    rarity = {word: math.log(1 + (len(texts) - holders[word] + 0.5) / (holders[word] + 0.5)) for word in words}
    return {
        memory_id: math.fsum(rarity[word] for word in words & held) / math.fsum(rarity.values())
        for memory_id, held in documents.items()
    }


def slow_keywords(texts: dict[str, str], query: str) -> dict[str, float]:
    """Exact 1.0, beginning 0.8, times the weight, rare ones counting more."""
    carried = {
        memory_id: {word: weight for word, weight, _ in index_entry(text, text, (), {}, "fact", RULES).keywords}
        for memory_id, text in texts.items()
    }
    scores = dict.fromkeys(texts, 0.0)
    whole = 0.0
    for asked in query_keywords(query):
        begins = len(asked) >= 3 or not asked.isascii()
        best = {}
        for memory_id, words in carried.items():
            qualities = [
                weight * (1.0 if word == asked else 0.8)
                for word, weight in words.items()
                if word == asked or (begins and word.startswith(asked))
            ]
            if qualities:
                best[memory_id] = max(qualities)
        rarity = math.log(1 + (len(texts) - len(best) + 0.5) / (len(best) + 0.5))
        whole += rarity
        for memory_id, quality in best.items():
            scores[memory_id] += rarity * quality
    return {memory_id: score / whole if whole else 0.0 for memory_id, score in scores.items()}


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join)
vectors = st.lists(st.floats(-1, 1, width=16), min_size=4, max_size=4)
edits = st.lists(
    st.tuples(st.sampled_from(["put", "drop"]), st.integers(0, 11), texts, vectors), min_size=1, max_size=40
)


@given(edits=edits, query=texts, direction=vectors)
def test_every_leg_equals_the_textbook_after_any_edits(
    edits: list[tuple[str, int, str, list[float]]], query: str, direction: list[float]
) -> None:
    index = UserIndex("m", seen=0)
    alive: dict[str, tuple[str, list[float]]] = {}
    for verb, number, text, vector in edits:
        memory_id = f"id{number:02}"
        if verb == "put":
            index.put([row_of(memory_id, text, vector=vector)])
            index.words.learn(word for word, _, _ in index_entry(text, text, (), {}, "fact", RULES).keywords)
            alive[memory_id] = (text, vector)
        else:
            index.drop([memory_id])
            alive.pop(memory_id, None)
    found = index.gather(
        IndexQuery(
            filter=ANYWHERE,
            terms=tuple(tokens(query)),
            words=tuple(non_overlapping(tokens(query))),
            keywords=tuple(query_keywords(query)),
            vector=np.array(direction, np.float32),
            model="m",
        )
    )
    assert len(index) == len(alive)
    assert sorted(found.ids) == sorted(alive)
    if not alive:
        return
    by_words = slow_bm25({memory_id: text for memory_id, (text, _) in alive.items()}, query)
    coverage = slow_coverage({memory_id: text for memory_id, (text, _) in alive.items()}, query)
    by_keyword = slow_keywords({memory_id: text for memory_id, (text, _) in alive.items()}, query)
    for at, memory_id in enumerate(found.ids):
        cosine = math.fsum(one * other for one, other in zip(alive[memory_id][1], direction, strict=True))
        assert found.text[at] == pytest.approx(by_words[memory_id], abs=1e-5)
        assert found.coverage[at] == pytest.approx(coverage[memory_id], abs=1e-5)
        assert found.keyword[at] == pytest.approx(by_keyword[memory_id], abs=1e-5)
        assert found.semantic[at] == pytest.approx(cosine, abs=1e-5)


@pytest.mark.parametrize("batch", [1, 7, 1000])
def test_growth_keeps_everything(batch: int) -> None:
    """Across every enlargement of the arrays, and with postings in the sorted part and in the tail."""
    index = UserIndex("m", seen=0)
    rows = [
        row_of(f"id{number:05}", f"tea {number} {'word' * (number % 3)}", vector=[1, number]) for number in range(3000)
    ]
    for start in range(0, len(rows), batch):
        index.put(rows[start : start + batch])
    found = index.gather(
        IndexQuery(filter=ANYWHERE, terms=("2999", "tea"), vector=np.array([1, 0], np.float32), model="m")
    )
    assert list(found.ids) == [row.id for row in rows]
    assert found.ids[found.text.argmax()] == "id02999"
    assert (found.text > 0).all()
    assert (found.semantic == 1).all()
    assert found.unembedded == 0


def test_memories_without_a_vector_are_counted_and_never_similar() -> None:
    index = UserIndex("m", seen=0)
    index.put([row_of("a", "tea"), row_of("b", "tea")])
    index.put([row_of("c", "tea", vector=[1, 0]), row_of("d", "tea")])
    index.put([row_of("c", "tea")])
    found = index.gather(IndexQuery(filter=ANYWHERE, vector=np.array([1, 0], np.float32), model="m"))
    assert found.unembedded == 4
    assert not found.semantic.any()


def test_an_index_that_is_mostly_dead_says_so() -> None:
    index = UserIndex("m", seen=0)
    rows = [row_of(f"id{number:05}", "tea") for number in range(1200)]
    index.put(rows)
    assert not index.mostly_dead
    index.drop(row.id for row in rows[:700])
    assert index.mostly_dead
    index.put([replace(row) for row in rows[700:]])
    assert len(index) == 500


async def gone_at_once(memory: Memory, items: Sequence[MemoryItem]) -> None:
    """In one transaction; nothing was made of them that would have to be told anew."""
    await memory._engine.store.deletions.delete(
        "mei",
        [one.id for one in items],
        with_sources=False,
        rewrite=lambda *_: [],
        parts=message_parts(memory._engine.rules),
    )


async def test_a_mostly_dead_index_is_loaded_anew(memory: Memory) -> None:
    made = (await memory.add([f"tea {number}" for number in range(1100)], user_id="mei")).memories
    await memory.search("tea", user_id="mei")
    await gone_at_once(memory, made[:800])
    assert (await memory.search("tea", user_id="mei")).searched == 300  # catches up
    assert (await memory.search("some tea", user_id="mei")).searched == 300  # loads anew; a kept answer would not
    index = memory._engine.index._users["mei"]
    assert index._size == 300


async def test_far_behind_is_loaded_anew(memory: Memory) -> None:
    await memory.search("tea", user_id="mei")
    await memory.add([f"tea {number}" for number in range(2100)], user_id="mei")
    assert (await memory.search("tea", user_id="mei")).searched == 2100
    await memory.add("tea at last", user_id="mei")
    assert (await memory.search("tea", user_id="mei")).searched == 2101


async def test_the_words_of_deleted_memories_do_not_crowd_out_others(memory: Memory) -> None:
    """Only so many continuations of a word are looked at; those that nobody carries any more must not fill the list."""
    gone = (await memory.add([f"appl{number:03}" for number in range(150)], user_id="mei")).memories
    await memory.add("applz", user_id="mei")
    await memory.search("appl", user_id="mei")
    await gone_at_once(memory, gone)
    assert (await memory.search("appl", user_id="mei", search_mode="keyword")).total_found == 1


async def test_users_beyond_the_budget_are_found_all_the_same(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder(), settings=load_settings(cache_mb=0)) as memory:
        for user in "abc":
            await memory.add(f"tea of {user}", user_id=user)
        for _ in range(2):
            for user in "abc":
                assert (await memory.search("tea", user_id=user)).total_found == 1
        assert len(memory._engine.index._users) == 1


class TwoProcesses(RuleBasedStateMachine):
    """Two memories on one file, each with its own copy in RAM. Whatever happens through either, a search through the
    first scans exactly what a copy loaded from the file this moment would hold."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.both = [Memory.open(Path(self.folder.name) / "memory.db", embedder=WordEmbedder()) for _ in range(2)]
        for memory in self.both:
            self.runner.run(memory.__aenter__())

    def teardown(self) -> None:
        for memory in self.both:
            self.runner.run(memory.close())
        self.runner.close()
        self.folder.cleanup()

    @initialize(target=ids, words=st.lists(texts, min_size=1, max_size=4))
    def begin(self, words: list[str]) -> Any:
        return self.add(0, words, None)

    @rule(
        target=ids,
        which=st.integers(0, 1),
        words=st.lists(texts, min_size=1, max_size=3),
        session=st.none() | st.just("s"),
    )
    def add_more(self, which: int, words: list[str], session: str | None) -> Any:
        return self.add(which, words, session)

    def add(self, which: int, words: list[str], session: str | None) -> Any:
        said = [{"role": "user", "content": text} for text in words]
        receipt = self.runner.run(
            self.both[which].add(said, user_id="mei", session_id=session, tags=words[0].split()[:2])
        )
        return multiple(*(memory.id for memory in receipt.memories))

    @rule(
        memory_id=ids,
        which=st.integers(0, 1),
        change=st.fixed_dictionaries({"content": texts})
        | st.fixed_dictionaries({"tags": st.lists(st.sampled_from(WORDS), max_size=2)})
        | st.fixed_dictionaries({"importance": st.floats(0, 1), "memory_type": st.sampled_from(["task", "skill"])})
        | st.fixed_dictionaries({"status": st.sampled_from(["active", "archived"])})
        | st.fixed_dictionaries({"valid_to": st.none() | st.just(NOW)}),
    )
    def update(self, memory_id: str, which: int, change: dict[str, Any]) -> None:
        self.quietly(self.both[which].update(memory_id, user_id="mei", **change))

    @rule(memory_id=consumes(ids), which=st.integers(0, 1))
    def delete(self, memory_id: str, which: int) -> None:
        self.quietly(self.both[which].delete(memory_id, user_id="mei"))

    @rule(which=st.integers(0, 1))
    def delete_all(self, which: int) -> None:
        self.runner.run(self.both[which].delete_all("mei"))

    def quietly(self, work: Any) -> None:
        with suppress(NotFound, InvalidInput):  # `delete_all` took it, or another one says the same already
            self.runner.run(work)

    @invariant()
    def the_copy_is_what_the_file_says(self) -> None:
        query = "tea 咖啡 user_id run"
        store = self.both[0]._engine.store
        anew = SearchIndex(store, budget=1 << 30)
        for filter_ in (ANYWHERE, replace(ANYWHERE, session_id="s"), replace(ANYWHERE, tags=("tea", "咖啡"))):
            question = IndexQuery(
                filter=filter_,
                terms=tuple(tokens(query)),
                keywords=tuple(query_keywords(query)),
                vector=WordEmbedder()._embed(query),
                model="testing:words@64",
            )
            kept = self.runner.run(self.both[0]._engine.index.gather(question))
            fresh = self.runner.run(anew.gather(question))
            assert by_id(kept) == by_id(fresh)
            assert kept.unembedded == fresh.unembedded == 0


def by_id(found: Candidates) -> dict[str, list[float]]:
    legs = (found.keyword, found.text, found.semantic, found.age_days, found.importance)
    return {memory_id: [round(float(leg[at]), 5) for leg in legs] for at, memory_id in enumerate(found.ids)}


TestTwoProcesses = TwoProcesses.TestCase
TestTwoProcesses.settings = settings(max_examples=6, stateful_step_count=12, deadline=None)


# -- episodes -------------------------------------------------------------------------------------------------------

HOUR = 3_600_000_000


@given(
    said=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12), st.floats(-1, 1, width=32)), min_size=1, max_size=20)
)
def test_episodes_equal_a_walk_through_each_session(said: list[tuple[int, int, float]]) -> None:
    session = np.array([number for number, _, _ in said])
    occurred = np.array([hour * HOUR for _, hour, _ in said])
    values = np.array([value for _, _, value in said], np.float32)
    found = find_episodes(np.arange(len(said)), session, occurred, np.ones(len(said), np.int32))
    expected = values.astype(np.float64).copy()
    groups: list[list[int]] = []
    for number in range(4):
        order = sorted((at for at in range(len(said)) if session[at] == number), key=lambda at: occurred[at])
        group: list[int] = []
        for at in order:
            if group and occurred[at] - occurred[group[-1]] > 4 * HOUR:
                groups.append(group)
                group = []
            group.append(at)
        groups.append(group)
    for group in groups:
        for place, at in enumerate(group):
            around = [group[other] for other in (place - 1, place + 1) if 0 <= other < len(group)]
            expected[at] = (values[at] + sum(values[other] for other in around) / 2) / (1 + len(around) / 2)
    assert found.smoothed(values, None) == pytest.approx(expected, abs=1e-6)
    assert found.count == sum(len(group) > 1 for group in groups)
    for group in groups:
        numbers = {int(found.number[at]) for at in group}
        assert len(numbers) <= 1
        assert (numbers == {-1}) == (len(group) == 1) or not group
    nobody = np.zeros(len(said), np.bool_)
    assert (found.smoothed(values, nobody) == values).all()


# -- what was worked out of messages ----------------------------------------------------------------------------------


def gist_of(index: UserIndex, where: Filter = ANYWHERE) -> dict[str, float]:
    found = index.gather(IndexQuery(filter=where, vector=np.array([1, 0], np.float32), model="m"))
    return (
        {}
        if found.gist is None
        else {memory_id: round(value, 3) for memory_id, value in zip(found.ids, found.gist.tolist(), strict=True)}
    )


def test_what_was_worked_out_lends_its_best_meaning_to_its_message() -> None:
    index = UserIndex("m", seen=0)
    rows = {name: row_of(name, name, vector=vector) for name, vector in {"said": (0, 1), "a": (0.6, 0.8)}.items()}
    index.put([*rows.values(), row_of("b", "b", ("x",), vector=(0.8, 0.6))])
    assert gist_of(index) == {}
    index.link([(gist, said, None) for gist, said in (("a", "said"), ("b", "said"), ("a", "gone"), ("gone", "said"))])
    assert gist_of(index) == {"said": 0.8, "a": 0, "b": 0}
    index.drop(["b"])
    assert gist_of(index) == {"said": 0.6, "a": 0}
    index.put([rows["said"]])  # it has changed, so it has another slot
    assert gist_of(index)["said"] == 0
    index.link([("a", "said", None)])
    assert gist_of(index) == {"said": 0.6, "a": 0}


def test_what_is_out_of_scope_lends_nothing() -> None:
    index = UserIndex("m", seen=0)
    index.put([replace(row_of("said", "s", vector=(0, 1)), memory_type="message"), row_of("a", "a", vector=(1, 0))])
    index.link([("a", "said", None)])
    assert gist_of(index)["said"] == 1
    assert gist_of(index, replace(ANYWHERE, memory_types=("message",))) == {"said": 0}
