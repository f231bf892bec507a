"""Who said it, what stands around it, when it happened: the parts of a score beyond words and meaning."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jiyi import Memory, SearchResult
from jiyi.embed import Vectors
from jiyi.read.query import asks_assistant, people_named, time_asked_about, turns, without_names
from jiyi.testing import WordEmbedder
from support import Place

MAY = datetime(2023, 5, 7, 9, tzinfo=UTC)


def parts(found: SearchResult, place: int = 0) -> dict[str, float]:
    told = found.hits[place].explanation
    assert told is not None
    return {part.name: part.value for part in (*told.parts, *told.factors)}


def contents(found: SearchResult) -> list[str]:
    return [hit.content_preview for hit in found.hits]


@pytest.mark.parametrize(
    ("query", "named", "rest"),
    [
        ("What did Caroline's sister say?", {"caroline"}, "What did sister say?"),
        ("小明喜欢什么？", {"小明"}, "喜欢什么？"),
        ("carolines house", set(), "carolines house"),
        ("Caroline", {"caroline"}, "Caroline"),
        ("what did the user say", set(), "what did the user say"),
        ("Jo or Joanna?", {"joanna"}, "Jo or ?"),
    ],
)
def test_names_are_found_as_words_and_cut_out(query: str, named: set[str], rest: str) -> None:
    people = frozenset({"caroline", "小明", "joanna", "user", "7"})
    assert people_named(query, people) == named
    assert without_names(query, frozenset(named)) == rest


@given(st.text(), st.frozensets(st.text(min_size=1), max_size=4))
def test_cutting_names_never_fails_and_never_leaves_nothing(query: str, people: frozenset[str]) -> None:
    rest = without_names(query, people_named(query, people))
    assert rest == query or any(map(str.isalnum, rest))


@pytest.mark.parametrize(
    ("query", "asks"),
    [
        ("Which book did you recommend?", True),
        ("Can you recommend a book?", False),
        ("你上次推荐的那本书叫什么？", True),
        ("remind me what we discussed", True),
        ("我们上次聊到哪里了？", True),
        ("Where do I live?", False),
        ("我住在哪里？", False),
    ],
)
def test_a_question_about_the_assistants_words_is_recognised(query: str, asks: bool) -> None:
    assert asks_assistant(query) is asks


def test_a_dialogue_is_cut_into_turns_and_a_question_is_none() -> None:
    assert turns("<Mei>: 我好累\n<Assistant>: Why?\n\nMei：加班太多了") == ["我好累", "Why?", "加班太多了"]
    assert turns("one line only") == []
    assert turns("one line\n   \n!!") == []


async def test_a_named_speakers_own_words_come_first(memory: Memory) -> None:
    said = [
        {"role": "user", "name": "Caroline", "content": "I paint lakes", "id": "c"},
        {"role": "user", "name": "Melanie", "content": "I paint rivers", "id": "m"},
    ]
    await memory.add(said, user_id="mei", session_id="s", occurred_at=MAY)
    found = await memory.search("what does Melanie paint", user_id="mei", explain=True)
    assert found.hits[0].source_ids == ("m",)
    assert parts(found)["speaker"] == 1.0
    assert parts(found, 1)["speaker"] == 0.0
    assert "speaker" not in parts(await memory.search("paint", user_id="mei", explain=True))


async def test_neighbours_lend_support_within_a_conversation_only(memory: Memory) -> None:
    """The answer often has none of the question's words; what stands beside it has."""

    def said(name: str, text: str, minutes: int) -> dict[str, object]:
        return {"role": "user", "name": name, "content": text, "sent_at": MAY + timedelta(minutes=minutes)}

    await memory.add(
        [said("Ann", "which pottery class", 0), said("Bo", "blue bowls", 1), said("Ann", "lunch", 600)],
        user_id="mei",
        session_id="s",
    )
    await memory.add("red bowls", user_id="mei")
    found = await memory.search("pottery class", user_id="mei", explain=True)
    assert contents(found) == ["which pottery class", "blue bowls"]
    assert parts(found, 1)["before"] > 0
    assert parts(found, 1)["episode"] > 0


async def test_the_assistants_words_step_back_unless_they_are_asked_for(memory: Memory) -> None:
    await memory.add(
        [{"role": "assistant", "content": "green tea"}, {"role": "user", "content": "green teapot tea"}],
        user_id="mei",
        session_id="s",
    )
    assert contents(await memory.search("green tea", user_id="mei"))[0] == "green teapot tea"
    asked = await memory.search("which green tea did you recommend", user_id="mei", explain=True)
    assert contents(asked)[0] == "green tea"


@pytest.mark.parametrize("query", ["tea last month", "上个月 tea", "tea in May 2023", "2023年5月 tea"])
async def test_a_time_in_the_query_counts(memory: Memory, query: str) -> None:
    """Relative times count from `asked_at`."""
    await memory.add("tea with Bo in the old garden", user_id="mei", occurred_at=MAY)
    await memory.add("tea with Bo in the new garden", user_id="mei", occurred_at=MAY - timedelta(days=400))
    found = await memory.search(query, user_id="mei", asked_at=MAY + timedelta(days=31), explain=True)
    assert contents(found)[0] == "tea with Bo in the old garden"
    assert (parts(found)["time"], parts(found, 1)["time"]) == (1.0, 0.0)


async def test_what_asks_ranks_behind_what_tells(real_memory: Memory) -> None:
    await real_memory.add(["Do I like jasmine tea?", "I like jasmine tea"], user_id="mei")
    assert contents(await real_memory.search("jasmine tea", user_id="mei"))[0] == "I like jasmine tea"


async def test_a_synonym_finds_and_is_named(memory: Memory) -> None:
    await memory.add("素食 餐厅", user_id="mei", tags=["vegetarian"])
    found = await memory.search("吃素", user_id="mei", search_mode="keyword")
    assert len(found.hits) == 1
    assert "vegetarian" in found.expanded_keywords


async def test_ones_own_synonyms_are_used_and_nobody_elses(memory: Memory) -> None:
    await memory.add("kubernetes upgrade", user_id="mei")
    await memory.add("kubernetes upgrade", user_id="bo")
    await memory.synonyms.add([("zorblax", "kubernetes")], user_id="mei")
    assert len((await memory.search("zorblax", user_id="mei", search_mode="keyword")).hits) == 1
    assert (await memory.search("zorblax", user_id="bo", search_mode="keyword")).hits == ()


async def test_context_is_a_fenced_block_in_the_querys_language_within_its_budget(memory: Memory) -> None:
    await memory.add("我吃素，对花生过敏", user_id="mei", memory_type="preference")
    block = await memory.context("花生", user_id="mei", max_tokens=200)
    assert "我吃素，对花生过敏" in block
    assert "用户记忆" in block
    assert "USER MEMORY" in await memory.context("花生", user_id="mei", language="en")
    assert await memory.context("花生", user_id="mei", max_tokens=5) == ""
    assert await memory.context("花生", user_id="somebody else") == ""


async def test_what_a_filter_leaves_out_lends_no_support(memory: Memory) -> None:
    """A neighbour that is not in scope must not be felt through the score of one that is."""
    said = [
        {"role": "user", "name": "Ann", "content": "which pottery class", "sent_at": MAY},
        {"role": "user", "name": "Bo", "content": "blue bowls", "sent_at": MAY + timedelta(minutes=5)},
    ]
    await memory.add(said, user_id="mei", session_id="s")
    later = (MAY + timedelta(minutes=1), None)
    assert len((await memory.search("pottery class", user_id="mei")).hits) == 2
    assert (await memory.search("pottery class", user_id="mei", time_range=later)).hits == ()


class Opposite(WordEmbedder):
    """Nothing is like any question."""

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.tile(np.array([1.0, 0.0], np.float32), (len(texts), 1))

    async def embed_query(self, text: str) -> Vectors:
        return np.array([0.0, 1.0], np.float32)


async def test_by_meaning_alone_no_word_counts_not_even_a_neighbours(place: Place) -> None:
    said = [
        {"role": "user", "name": "Ann", "content": "which pottery class", "sent_at": MAY},
        {"role": "user", "name": "Bo", "content": "blue bowls", "sent_at": MAY + timedelta(minutes=5)},
    ]
    async with Memory.open(place, embedder=Opposite()) as memory:
        await memory.add(said, user_id="mei", session_id="s")
        assert (await memory.search("pottery class", user_id="mei", search_mode="semantic")).hits == ()


@pytest.mark.parametrize(
    ("told", "query", "found"),
    [
        (
            (
                ("2026-08-12", "I adopted a cat named Miso"),
                ("2026-08-20", "The roof needs repair"),
                ("2026-10-03", "I play chess"),
            ),
            "what did I say in August?",
            {"I adopted a cat named Miso", "The roof needs repair"},
        ),
        (
            (("2026-10-12", "我买了一辆自行车"), ("2026-08-20", "屋顶要修了"), ("2026-10-25", "我开始学钢琴")),
            "上个月我说了什么？",
            {"我买了一辆自行车", "我开始学钢琴"},
        ),
    ],
)
async def test_a_question_about_a_time_alone_is_answered_by_the_time(
    real_memory: Memory, told: tuple[tuple[str, str], ...], query: str, found: set[str]
) -> None:
    chat = []
    for day, text in told:
        at = datetime.fromisoformat(f"{day}T10:00:00+00:00")
        chat += [
            {"role": "user", "content": text, "sent_at": at},
            {"role": "assistant", "content": "OK!", "sent_at": at},
        ]
    await real_memory.add(chat, user_id="mei", session_id="s")
    asked: Any = {"user_id": "mei", "asked_at": datetime(2026, 11, 19, tzinfo=UTC)}
    answer = await real_memory.search(query, **asked)
    assert {hit.content for hit in answer} == found and all(hit.relevant for hit in answer)
    block = await real_memory.context(query, **asked)
    assert all(text in block for text in found)
    assert not any(text in block for _, text in told if text not in found)


async def test_nonsense_recalls_nothing(real_memory: Memory) -> None:
    await real_memory.add(["I adopted a cat named Miso", "我买了一辆自行车"], user_id="mei")
    for query in ("zzz qqq", "呃呃 嗯"):
        assert await real_memory.context(query, user_id="mei") == ""


@pytest.mark.parametrize(
    "query",
    [
        "what did I say about Rome in August?",
        "我上个月说了多少次钢琴？",
        "what did Tom say in August?",
        "August",
        "what did I say?",
    ],
)
def test_a_question_about_more_than_a_time_is_no_question_about_a_time(query: str) -> None:
    assert time_asked_about(query, datetime(2026, 11, 19, tzinfo=UTC)) is None
