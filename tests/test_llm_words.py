"""Words by a language model: other words for a query, and keywords of a memory, which count as its own source."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import FaultServer, fault_server, hang, says, status
from jiyi import KeywordExtractor, LlmBadReply, LlmError, LlmUnavailable, Memory
from jiyi.llm import resolve
from jiyi.llm.keywords import MAX_RELATED, MAX_SYNONYMS, Expander, read_expansion
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from jiyi.write.index import KeywordRules, index_entry


@pytest.fixture
async def server() -> AsyncIterator[FaultServer]:
    async with fault_server() as faults:
        yield faults


def expander(server: FaultServer, timeout_s: float = 60, cache_size: int = 8) -> Expander:
    llm = resolve(load_settings(llm={"model": "m", "api_key": "k", "base_url": server.url}))
    assert llm is not None
    return Expander(llm, timeout_s=timeout_s, cache_size=cache_size)


GOOD = {
    "core_keywords": ["allergies", "food"],
    "synonyms": [["allergies", "过敏", "intolerance"], ["food", "diet", "food"], ["chess", "go"]],
    "related_concepts": ["doctor", "过敏", "peanuts"],
}


async def test_a_query_gets_other_words(server: FaultServer) -> None:
    server.behave(says(GOOD))
    found = await expander(server).expand("any food allergies?", user_id="mei")
    assert found.original == ("allergies", "food")
    assert found.synonyms == {"allergies": ("过敏", "intolerance"), "food": ("diet",)}
    assert found.related == ("doctor", "peanuts")


async def test_answers_are_remembered_for_one_user(server: FaultServer) -> None:
    server.behave(says(GOOD))
    words = expander(server, cache_size=2)
    for query, user in (("any food?", "mei"), ("Any  FOOD?", "mei"), ("any food?", "li"), ("any food?", "mei")):
        await words.expand(query, user_id=user)
    assert len(server.requests) == 2
    await words.expand("a third", user_id="li")
    await words.expand("any food?", user_id="li")  # was forgotten: it was asked longest ago
    assert len(server.requests) == 4


async def test_a_slow_model_is_not_waited_for(server: FaultServer) -> None:
    server.behave(hang)
    with pytest.raises(LlmUnavailable, match=r"within 0\.1 s"):
        await asyncio.wait_for(expander(server, timeout_s=0.1).expand("food", user_id="mei"), 60)


@pytest.mark.parametrize("behaviour", [status(500), status(401), says("no JSON"), says({"words": []})])
async def test_a_failure_is_named_once_and_not_remembered(server: FaultServer, behaviour: Any) -> None:
    server.behave(behaviour, says(GOOD))
    words = expander(server)
    with pytest.raises(LlmError):
        await words.expand("any food?", user_id="mei")
    assert len(server.requests) == 1
    assert (await words.expand("any food?", user_id="mei")).synonyms


async def test_prompts_are_in_the_language_of_the_query(server: FaultServer) -> None:
    server.behave(says({"core_keywords": ["过敏"], "synonyms": [["过敏", "allergy"]], "related_concepts": []}))
    assert (await expander(server).expand("我对什么过敏？", user_id="mei")).synonyms == {"过敏": ("allergy",)}
    assert "用户搜索查询" in server.requests[0]["messages"][1]["content"]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["tea", "茶"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(ANYTHING, ANYTHING, ANYTHING)
def test_no_answer_breaks_the_bounds(core: Any, synonyms: Any, related: Any) -> None:
    found = read_expansion({"core_keywords": core, "synonyms": synonyms, "related_concepts": related}, "green tea 绿茶")
    assert set(found.original) <= {"tea", "茶", "green", "绿", "绿茶"} | set(found.original)
    assert all(len(words) <= MAX_SYNONYMS for words in found.synonyms.values())
    assert len(found.related) <= MAX_RELATED
    assert set(found.synonyms) <= set(found.original)


# -- keywords of a memory ---------------------------------------------------------------------------------------------

RULES = KeywordRules(most=5, lightest=0.3)


def keywords(data: dict[str, Any], content: str = "Mei moved to Berlin with her cat.") -> dict[str, tuple[float, str]]:
    entry = index_entry(content, content, ("Home",), data, "fact", RULES)
    return {word: (weight, source) for word, weight, source in entry.keywords}


def test_words_that_a_model_named_come_before_those_by_rule() -> None:
    found = keywords({"extractor": "llm", "keywords": ["Berlin", "cat"]})
    assert found["home"] == (1.0, "user_tag")
    assert found["berlin"] == (0.9, "llm")
    assert found["cat"] == (0.8, "llm")
    assert {source for _, source in found.values()} == {"user_tag", "llm", "rule"}
    assert len(found) <= RULES.most + 1


@pytest.mark.parametrize("words", [["Paris"], "Berlin", [7, None, {}], {}, None, ["x" * 500]])
def test_what_is_no_word_of_the_memory_is_no_keyword(words: Any) -> None:
    assert keywords({"extractor": "llm", "keywords": words}) == keywords({})


def test_the_keywords_in_a_users_data_are_the_users_own_affair() -> None:
    assert keywords({"keywords": ["Berlin"]}) == keywords({})


async def test_a_bad_reply_is_one(server: FaultServer) -> None:
    server.behave(says("[]"))
    with pytest.raises(LlmBadReply):
        await expander(server).expand("food", user_id="mei")


async def test_the_extractor_asks_the_memorys_model(server: FaultServer, path: Path) -> None:
    settings = load_settings(llm={"model": "m", "api_key": "k", "base_url": server.url, "tokens_per_hour": 2_000})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        extractor = KeywordExtractor(memory, "mei")
        server.behave(says({"keywords": [{"word": "peanuts", "weight": 0.95}]}))
        assert await extractor.extract_keywords("I am allergic to peanuts") == [("peanuts", 0.95)]
        server.behave(says(GOOD))
        assert "intolerance" in (await extractor.expand_keywords(["allergies"]))["synonyms"]
        assert len(server.requests) == 2
        server.behave(status(500))  # then the rules stand
        assert dict(await extractor.extract_keywords("I am allergic to peanuts")).keys() == {"allergic", "peanuts"}


async def test_a_search_finds_what_a_model_calls_it(server: FaultServer, path: Path) -> None:
    llm = {"model": "m", "api_key": "k", "base_url": server.url}
    settings = load_settings(llm=llm, search={"expand_with_llm": True})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        await memory.add("Mei drives a Škoda", user_id="mei")
        server.behave(says({"core_keywords": ["vehicle"], "synonyms": [["vehicle", "škoda"]], "related_concepts": []}))
        found = await memory.search("which vehicle?", user_id="mei", search_mode="keyword")
        assert [hit.summary for hit in found.hits] == ["Mei drives a Škoda"]
        assert (found.expanded_keywords, found.degraded) == (("vehicle", "škoda"), ())
        await memory.search("which vehicle?", user_id="mei", search_mode="keyword")
        assert len(server.requests) == 1, "the answer is remembered"
        server.behave(status(500))
        found = await memory.search("what does Mei drive?", user_id="mei")
        assert found.hits
        assert "without the language model's synonyms" in found.degraded[0]


async def test_a_search_asks_no_model_unless_it_is_told_to(server: FaultServer, path: Path) -> None:
    settings = load_settings(llm={"model": "m", "api_key": "k", "base_url": server.url})
    async with Memory.open(path, settings=settings, embedder=WordEmbedder()) as memory:
        await memory.add("Mei drives a Škoda", user_id="mei")
        await memory.search("which vehicle?", user_id="mei")
    assert server.requests == []
