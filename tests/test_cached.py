"""A search that was answered a moment ago is answered again without searching, and never out of date."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import workers
from jiyi import EmbeddingError, Memory, SearchResult
from jiyi.cache import LocalCache
from jiyi.embed import CachedQueries, Vectors
from jiyi.read import accesses
from jiyi.settings import load_settings
from jiyi.testing import FailingEmbedder, WordEmbedder
from support import DAY, LONG_AGO, contents, dump
from workers import crew

LASTING = {"recency_weight": 0, "half_life_days": 1e6}  # scores that do not move while a test runs


class CountingEmbedder(WordEmbedder):
    def __init__(self) -> None:
        super().__init__(512)
        self.queries: list[str] = []

    async def embed_query(self, text: str) -> Vectors:
        self.queries.append(text)
        return await super().embed_query(text)


class Clock:
    """Stands still until it is moved."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
        self.now = now
        for module in ("scope", "read.search", "read.accesses"):
            monkeypatch.setattr(f"jiyi.{module}.utc_now", lambda: self.now)


@pytest.fixture(autouse=True)
def recalls_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep recalls out of the database while a test runs: a memory opened later would count them in its scores."""
    monkeypatch.setattr(accesses, "PAUSE_S", 3600)


@pytest.fixture
async def memory(place: str | Path) -> AsyncIterator[Memory]:
    """Its answers live for an hour, so that no test meets the end of a period."""
    settings = load_settings(cache={"ttl_s": 3600}, search=LASTING)
    async with Memory.open(place, settings=settings, embedder=WordEmbedder(512)) as memory:
        yield memory


async def answered(memory: Memory) -> tuple[int, int]:
    use = (await memory.stats()).cache
    assert use is not None
    return use.answered, use.asked


async def fresh(place: str | Path, query: str, **options: Any) -> SearchResult:
    """What a memory that has no cache and has just been opened says."""
    settings = load_settings(
        cache={"max_searches": 0, "max_query_vectors": 0}, recalls={"enabled": False}, search=LASTING
    )
    async with Memory.open(place, settings=settings, embedder=WordEmbedder(512)) as memory:
        return await memory.search(query, user_id="mei", **options)


def same(one: SearchResult, other: SearchResult) -> None:
    """Equal in everything; scores up to what freshness loses between two searches."""
    assert [hit.relevance_score for hit in one.hits] == pytest.approx(
        [hit.relevance_score for hit in other.hits], abs=1e-5
    )
    plain = [
        found.model_copy(update={"hits": tuple(hit.model_copy(update={"relevance_score": 0.0}) for hit in found.hits)})
        for found in (one, other)
    ]
    assert plain[0] == plain[1]


async def test_a_repeated_search_gets_the_same_answer_without_a_search(memory: Memory, place: str | Path) -> None:
    said = {"role": "user", "name": "Ann", "content": "I like green tea", "id": "m1"}
    await memory.add(["likes green tea", "喜欢绿茶"], user_id="mei", tags=["drink"], metadata={"from": "form"})
    await memory.add([said], user_id="mei", session_id="s")
    for query in ("green tea", "绿茶", "what did Ann say about tea?", "xylophone"):
        first = await memory.search(query, user_id="mei")
        before = await answered(memory)
        again = await memory.search(query, user_id="mei")
        assert await answered(memory) == (before[0] + 1, before[1] + 1)
        assert again == first
        same(again, await fresh(place, query))


async def test_what_a_caller_does_to_an_answer_does_not_reach_the_next_one(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei", metadata={"n": 1})
    for _ in range(3):
        found = await memory.search("tea", user_id="mei")
        assert found.hits[0].metadata == {"n": 1}
        found.hits[0].metadata["n"] = 2


OTHER_QUESTIONS: list[dict[str, Any]] = [
    {"search_mode": "keyword"},
    {"search_mode": "semantic"},
    {"keywords": ["coffee"]},
    {"memory_types": ["preference"]},
    {"layers": ["procedural"]},
    {"tags": ["drink"]},
    {"time_range": (LONG_AGO, LONG_AGO + DAY)},
    {"time_range": (None, LONG_AGO + DAY)},
    {"session_id": "s"},
    {"agent_id": "a"},
    {"group_id": "g"},
    {"min_relevance_score": 0.9},
    {"limit": 1},
    {"as_of": LONG_AGO},
    {"asked_at": LONG_AGO},
    {"asked_at": LONG_AGO, "time_range_days": 3},
]


async def test_another_question_is_another_question(memory: Memory, path: Path) -> None:
    await memory.add(["likes green tea", "drinks tea", "coffee"], user_id="mei")
    await memory.add(
        {"content": "tea long ago", "memory_type": "preference", "tags": ["drink"], "occurred_at": LONG_AGO},
        user_id="mei",
        session_id="s",
        agent_id="a",
        group_id="g",
    )
    for _ in range(2):
        for options in ({}, *OTHER_QUESTIONS):
            same(await memory.search("green tea", user_id="mei", **options), await fresh(path, "green tea", **options))
    assert await answered(memory) == (len(OTHER_QUESTIONS) + 1, 2 * len(OTHER_QUESTIONS) + 2)


async def test_one_user_never_gets_anothers_answer(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    await memory.add("hates tea", user_id="bo")
    for _ in range(2):
        assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]
        assert contents(await memory.search("tea", user_id="bo")) == ["hates tea"]
        assert contents(await memory.search("tea", user_id="nobody")) == []


Write = Callable[[Memory, str], Awaitable[Any]]
WRITES: dict[str, Write] = {
    "add": lambda memory, _: memory.add("tea again", user_id="mei"),
    "message": lambda memory, _: memory.add({"role": "user", "name": "Tea", "content": "a tea"}, user_id="mei"),
    "update": lambda memory, known: memory.update(known, user_id="mei", content="no longer likes tea"),
    "metadata": lambda memory, known: memory.update(known, user_id="mei", metadata={"n": 2}),
    "archive": lambda memory, known: memory.update(known, user_id="mei", status="archived"),
    "expire": lambda memory, known: memory.update(known, user_id="mei", expires_at=LONG_AGO),
    "delete": lambda memory, known: memory.delete(known, user_id="mei"),
    "delete_all": lambda memory, _: memory.delete_all("mei"),
    "synonym": lambda memory, _: memory.synonyms.add([("tea", "bush")], user_id="mei"),
    "shared synonym": lambda memory, _: memory.synonyms.add([("tea", "bush")]),
}


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("write", WRITES)
async def test_every_write_is_seen_by_the_next_search(memory: Memory, place: str | Path, write: str, own: bool) -> None:
    made = (await memory.add(["likes tea", "green bush"], user_id="mei")).memories[0]
    before = [await memory.search("tea", user_id="mei") for _ in range(2)][-1]
    assert (await answered(memory))[0] == 1
    async with Memory.open(place, embedder=WordEmbedder(512)) as other:
        await WRITES[write](memory if own else other, made.id)
    after = await memory.search("tea", user_id="mei")
    assert after != before
    same(after, await fresh(place, "tea"))
    same(await memory.search("tea", user_id="mei"), after)


async def test_a_removed_synonym_is_forgotten(memory: Memory, place: str | Path) -> None:
    await memory.add(["likes tea", "green bush"], user_id="mei")
    await memory.synonyms.add([("tea", "bush")])
    assert "bush" in (await memory.search("tea", user_id="mei")).expanded_keywords
    assert "bush" in (await memory.search("tea", user_id="mei")).expanded_keywords
    await memory.synonyms.remove("tea")
    same(await memory.search("tea", user_id="mei"), await fresh(place, "tea"))


async def test_somebody_new_is_known_to_the_first_search_after_they_spoke(memory: Memory, place: str | Path) -> None:
    """Otherwise an answer that does not know them would be kept."""
    await memory.add([{"role": "user", "name": "Bo", "content": "I drink tea"}], user_id="mei", session_id="s")
    query = "what does Zelda drink?"
    await memory.search(query, user_id="mei")
    async with Memory.open(place, embedder=WordEmbedder(512)) as other:
        said = {"role": "user", "name": "Zelda", "content": "I drink milk"}
        await other.add([said], user_id="mei", session_id="s")
    for _ in range(2):
        same(await memory.search(query, user_id="mei"), await fresh(place, query))


async def test_what_another_user_writes_keeps_the_answer(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    await memory.search("tea", user_id="mei")
    await memory.add("likes tea", user_id="bo")
    await memory.delete_all("bo")
    await memory.search("tea", user_id="mei")
    assert await answered(memory) == (1, 2)


def test_other_processes_with_caches_see_each_others_writes(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "done"
    folder.mkdir()
    assert crew([(workers.ask_again, (path, number, folder, 3)) for number in range(3)]) == [None] * 3


# -- time -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["expires_at", "valid_to"])
async def test_no_answer_outlives_a_memory_that_expires_or_ends(
    memory: Memory, place: str | Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Also one that is not among the hits: it has a share in the statistics and in the counts."""
    clock = Clock(monkeypatch, datetime(2030, 1, 1, 12, 0, 1, tzinfo=UTC))
    over = clock.now + timedelta(minutes=10)
    await memory.add([{"content": "tea for now", end: over}, {"content": "likes tea"}], user_id="mei")
    for seconds, there in ((0, True), (599, True), (1, False), (5, False)):
        clock.now += timedelta(seconds=seconds)
        found = await memory.search("tea", user_id="mei")
        assert ("tea for now" in contents(found)) is there
        same(found, await fresh(place, "tea"))
    assert await answered(memory) == (2, 4)


async def test_words_for_times_mean_the_present_day(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A period that holds a midnight: 3,600 s would end there, 3,500 s do not."""
    settings = load_settings(cache={"ttl_s": 3500}, search=LASTING)
    midnight = datetime(2030, 1, 2, tzinfo=UTC)
    assert int((midnight - timedelta(seconds=60)).timestamp()) // 3500 == int(midnight.timestamp()) // 3500
    clock = Clock(monkeypatch, midnight - timedelta(seconds=60))
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(512)) as memory:
        for day, text in ((midnight - 1.5 * DAY, "the first walk"), (midnight - 0.5 * DAY, "the other walk")):
            await memory.add(text, user_id="mei", occurred_at=day)
        for query in ("a walk yesterday", "昨天的 walk"):
            found = []
            for clock.now in (midnight - timedelta(seconds=60), midnight + timedelta(seconds=1)):
                for _ in range(2):
                    found.append(await memory.search(query, user_id="mei"))
                    same(found[-1], await fresh(path, query))
            before, _, after, _ = ([(hit.id, hit.relevance_score) for hit in one.hits] for one in found)
            assert before != after
        assert await answered(memory) == (4, 8)


async def test_an_answer_lives_no_longer_than_its_period(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC))
    await memory.add("likes tea", user_id="mei")
    for seconds in (0, 3599, 1, 1):
        clock.now += timedelta(seconds=seconds)
        await memory.search("tea", user_id="mei")
    assert await answered(memory) == (2, 4)


async def test_a_short_half_life_shortens_the_period(path: Path) -> None:
    settings = load_settings(cache={"ttl_s": 3600}, search={"half_life_days": 1e-9})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(512)) as memory:
        await memory.add("likes tea", user_id="mei")
        for _ in range(2):
            await memory.search("tea", user_id="mei")
        assert await answered(memory) == (0, 2)


async def test_the_last_days_are_others_at_each_moment(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    for _ in range(2):
        assert contents(await memory.search("tea", user_id="mei", time_range_days=3)) == ["likes tea"]
    assert await answered(memory) == (0, 0)


# -- what is not kept -----------------------------------------------------------------------------------------------


async def test_explanations_are_worked_out_each_time(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    for _ in range(2):
        assert (await memory.search("tea", user_id="mei", explain=True)).hits[0].explanation
    assert await answered(memory) == (0, 0)


async def test_a_degraded_answer_is_not_kept(deaf_memory: Memory, switch: FailingEmbedder) -> None:
    switch.failing = False
    await deaf_memory.add("likes tea", user_id="mei")
    switch.failing = True
    assert (await deaf_memory.search("tea", user_id="mei")).degraded
    switch.failing = False
    assert not (await deaf_memory.search("tea", user_id="mei")).degraded
    assert (await answered(deaf_memory))[0] == 0


async def test_a_cache_holds_ids_and_scores_and_no_text(memory: Memory) -> None:
    await memory.add("likes zanzibarquartz", user_id="mei", tags=["zanzibartag"])
    await memory.search("zanzibarquartz", user_id="mei")
    [cache] = memory._engine.searcher._caches
    assert cache._values
    assert "zanzibar" not in repr([(key, value) for (_, key), value in cache._values.items()])
    await memory.delete_all("mei")
    assert not cache._values and not memory._engine.searcher._kept._values


async def test_what_a_caller_does_to_a_result_stays_there(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei", metadata={"from": {"file": "a.md"}})
    for _ in range(3):
        [found] = await memory.search("tea", user_id="mei")
        assert found.metadata == {"from": {"file": "a.md"}}
        found.metadata["from"]["file"] = "b.md"  # type: ignore[index, call-overload]
        found.metadata.clear()
    assert (await answered(memory))[0] == 2


async def test_garbage_in_a_cache_is_no_answer(memory: Memory, path: Path) -> None:
    made = (await memory.add("likes tea", user_id="mei")).memories[0]
    first = await memory.search("tea", user_id="mei")
    [cache] = memory._engine.searcher._caches
    memory._engine.searcher._kept = LocalCache(0)
    [(entry, (value, until))] = cache._values.items()
    good = value.decode()
    for garbage in (
        b"",
        b"\xff\x00",
        b"null",
        b"[]",
        b"{}",
        good[:-5].encode(),
        good.replace(made.id, "0" * 26).encode(),
        good.replace('"total_found":1', '"total_found":"1"').encode(),
        good.replace('"total_found":1', '"total_found":-1').encode(),
        good.replace('"searched"', '"more":1,"searched"').encode(),
        good.replace("[[", '[["a",2.0],[').encode(),
    ):
        assert garbage != value
        cache._values[entry] = garbage, until
        same(await memory.search("tea", user_id="mei"), first)
    assert (await answered(memory))[0] == 0


async def test_caching_can_be_switched_off_and_is_bounded(path: Path) -> None:
    for most, expected in ((0, (0, 0)), (2, (0, 6)), (3, (3, 6))):
        async with Memory.open(
            path, settings=load_settings(cache={"max_searches": most}), embedder=WordEmbedder()
        ) as one:
            await one.add("likes tea", user_id="mei")
            for _ in range(2):
                for query in ("tea", "the tea", "a tea"):
                    await one.search(query, user_id="mei")
            assert await answered(one) == expected


async def test_answers_from_a_cache_are_recalls_too(memory: Memory, path: Path) -> None:
    await memory.add("likes tea", user_id="mei")
    for _ in range(3):
        await memory.search("tea", user_id="mei")
    assert len(await memory.usage.recalls(user_id="mei")) == 3
    assert len(dump(path)["recalls"]) == 3


# -- vectors of queries ---------------------------------------------------------------------------------------------


async def test_a_query_is_embedded_once(path: Path) -> None:
    counting = CountingEmbedder()
    settings = load_settings(cache={"max_searches": 0})
    async with Memory.open(path, settings=settings, embedder=counting) as memory:
        await memory.add("likes tea", user_id="mei")
        first = await memory.search("tea", user_id="mei")
        await memory.add("likes coffee", user_id="mei")
        again = await memory.search("tea", user_id="mei", limit=1)
        await memory.search("tea", user_id="bo")
        assert counting.queries == ["tea"]
        assert again.hits[0].id == first.hits[0].id


async def test_only_the_vectors_asked_for_lately_are_remembered() -> None:
    counting = CountingEmbedder()
    remembering = CachedQueries(counting, 2)
    for text in ("a", "b", "a", "c", "a", "b"):
        assert len(await remembering.embed_query(text)) == counting.dimension
    assert counting.queries == ["a", "b", "c", "b"]


async def test_a_failure_and_nonsense_are_not_remembered(switch: FailingEmbedder) -> None:
    remembering = CachedQueries(switch, 10)
    with pytest.raises(EmbeddingError):
        await remembering.embed_query("tea")
    switch.failing = False
    vector = await remembering.embed_query("tea")
    assert np.linalg.norm(vector) == pytest.approx(1)
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 5
    switch.failing = True
    assert np.array_equal(await remembering.embed_query("tea"), vector)

    class Nonsense(WordEmbedder):
        async def embed_query(self, text: str) -> Any:
            return [float("nan")]

        async def embed_documents(self, texts: Sequence[str]) -> Vectors:
            return np.ones((len(texts), 2), np.float32)

    for _ in range(2):
        with pytest.raises(EmbeddingError, match="not finite"):
            await CachedQueries(Nonsense(), 10).embed_query("tea")


async def test_searches_at_the_same_time_get_the_same_answer(memory: Memory) -> None:
    await memory.add([f"tea number {number}" for number in range(30)], user_id="mei")
    found = await asyncio.gather(*(memory.search("tea number 7", user_id="mei") for _ in range(20)))
    for one in found[1:]:
        same(one, found[0])
