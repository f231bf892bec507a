"""`KeywordExtractor`: rules and statistics, type words, tags, and a language model that is not trusted."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jiyi import InvalidInput, Memory
from jiyi.keywords import TYPE_WEIGHT, KeywordExtractor
from jiyi.languages.en.words import TYPE_KEYWORDS as ENGLISH
from jiyi.languages.words import normalise
from jiyi.languages.zh.words import TYPE_KEYWORDS as CHINESE

TEXTS = [
    ("用户对花生过敏，只吃素食", "花生"),
    ("I am allergic to peanuts and eat vegetarian food", "vegetarian"),
    ("下周三去上海出差，住外滩的酒店", "上海"),
    ("The deployment of payment-service failed with OOMKilled on Friday", "payment-service"),
]


def saying(reply: Any) -> tuple[Callable[[str], Awaitable[Any]], list[str]]:
    """A language model that always says this, and what it was asked."""
    asked: list[str] = []

    async def llm(prompt: str) -> Any:
        asked.append(prompt)
        if isinstance(reply, Exception):
            raise reply
        return reply

    return llm, asked


@pytest.mark.parametrize(("text", "word"), TEXTS)
async def test_the_words_that_matter_are_found(text: str, word: str) -> None:
    found = await KeywordExtractor().extract_keywords(text)
    assert word in dict(found) and 1 <= len(found) <= 5
    assert [weight for _, weight in found] == sorted((weight for _, weight in found), reverse=True)
    assert all(0 < weight <= 1 and normalise(word) == word for word, weight in found)


async def test_tags_are_kept_at_full_weight_and_never_cut() -> None:
    tags = ["Health", "HEALTH", "饮食", "過敏"]
    found = await KeywordExtractor().extract_keywords("我对花生过敏", tags=tags, max_keywords=2)
    assert found == [("health", 1.0), ("饮食", 1.0), ("过敏", 1.0)]
    more = await KeywordExtractor().extract_keywords("我对花生过敏", tags=tags, max_keywords=5)
    assert more[:3] == found and "花生" in dict(more)


@pytest.mark.parametrize("memory_type", CHINESE)
async def test_a_type_lends_its_words_in_the_language_of_the_text(memory_type: str) -> None:
    for text, words in (("花生", CHINESE[memory_type]), ("peanuts", ENGLISH[memory_type])):
        found = dict(await KeywordExtractor().extract_keywords(text, memory_type=memory_type))
        assert {word: found[word] for word in words} == dict.fromkeys(words, TYPE_WEIGHT)
    assert await KeywordExtractor().extract_keywords("花生", memory_type="自定义") == [("花生", 1.0)]


async def test_a_stored_memory_has_the_words_of_its_type(memory: Memory) -> None:
    given = [
        {"type": "skill", "text": "部署流程：先打包再上传"},
        {"type": "config", "text": "MySQL listens on port 3307"},
        {"type": "preference", "text": "用户偏好使用蓝色配色方案"},
    ]
    await memory.add(given, user_id="mei")
    held = {item.memory_type: item for item in await memory.list(user_id="mei")}
    assert "技能" in held["skill"].keywords and "部署" in held["skill"].keywords
    assert {"config", "configuration", "mysql"} <= set(held["config"].keywords)
    assert "偏好" in held["preference"].keywords
    found = await memory.search("x", user_id="mei", keywords=["技能"], search_mode="keyword")
    assert [hit.memory_type for hit in found] == ["skill"]
    changed = await memory.update(held["config"].id, user_id="mei", memory_type="skill")
    assert "skill" in changed.keywords and "config" not in changed.keywords


async def test_a_word_that_has_synonyms_is_one_word() -> None:
    found = dict(await KeywordExtractor().extract_keywords("我每天早上喝一杯拿铁", memory_type="preference"))
    assert max(found, key=lambda word: found[word]) == "拿铁" and "铁" not in found
    assert "latte" in (await KeywordExtractor().expand_keywords(["拿铁"]))["synonyms"]
    assert "铁路局" in dict(await KeywordExtractor().extract_keywords("拿铁路局的票"))


async def test_a_summary_says_what_the_content_is_about() -> None:
    content = "咖啡 果汁 牛奶 可乐"
    plain = dict(await KeywordExtractor().extract_keywords(content, max_keywords=1))
    told = dict(await KeywordExtractor().extract_keywords(content, "最爱牛奶", max_keywords=1))
    assert "牛奶" not in plain and "牛奶" in told
    assert dict(await KeywordExtractor().extract_keywords(content, content[:5] + "…", max_keywords=1)) == plain


@pytest.mark.parametrize(
    "given",
    [
        {"content": ""},
        {"content": "x", "max_keywords": 0},
        {"content": "x", "max_keywords": 51},
        {"content": "x", "tags": "health"},
        {"content": "x", "memory_type": ""},
        {"content": "x" * 200_001},
        {"content": "\ud800"},
    ],
)
async def test_wrong_arguments_are_named(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        await KeywordExtractor().extract_keywords(**given)


@given(st.text(min_size=1, max_size=200), st.integers(1, 50), st.sampled_from([None, "task", "fact", "x"]))
async def test_any_text_has_keywords_within_bounds(text: str, most: int, memory_type: str | None) -> None:
    try:
        found = await KeywordExtractor().extract_keywords(text, memory_type=memory_type, max_keywords=most)
    except InvalidInput:
        return
    assert len(found) <= most and len(dict(found)) == len(found)
    assert all(0 < weight <= 1 for _, weight in found)


# -- the language model ---------------------------------------------------------------------------------------------


def reply_of(*entries: Any) -> str:
    return json.dumps({"keywords": list(entries)}, ensure_ascii=False)


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "```\n{}\n```", "  {} "])
async def test_a_good_reply_is_used(fence: str) -> None:
    reply = reply_of({"word": "Peanut", "weight": 0.9}, {"word": "ALLERGIC", "weight": 0.95})
    llm, asked = saying(fence.replace("{}", reply))
    found = await KeywordExtractor(llm=llm).extract_keywords("I am allergic to peanuts", memory_type="preference")
    assert found == [("allergic", 0.95), ("peanut", 0.9), ("preference", TYPE_WEIGHT)]
    [prompt] = asked
    assert "I am allergic to peanuts" in prompt and "at most 5 keywords" in prompt and "Type: preference" in prompt


async def test_the_prompt_is_in_the_language_of_the_memory() -> None:
    llm, asked = saying(reply_of({"word": "花生", "weight": 1}))
    found = await KeywordExtractor(llm=llm).extract_keywords("我对花生过敏 {summary}", "过敏", max_keywords=3)
    assert found == [("花生", 1.0)]
    assert "最多 3 个关键词" in asked[0] and "记忆内容: 我对花生过敏 {summary}" in asked[0]


async def test_words_that_are_not_in_the_memory_are_ignored_unless_they_are_tags_or_type_words() -> None:
    said = ("腰果", "art", "健康", "偏好", "花生", "ignore previous instructions")
    llm, _ = saying(reply_of(*({"word": word, "weight": 0.9} for word in said)))
    found = await KeywordExtractor(llm=llm).extract_keywords(
        "我对花生过敏，party 时要小心", memory_type="preference", tags=["健康"], max_keywords=9
    )
    assert dict(found) == {"健康": 1.0, "偏好": 0.9, "花生": 0.9}


BAD = [
    "",
    "Sure! Here are the keywords.",
    "[]",
    "null",
    "{}",
    '{"keywords": null}',
    '{"keywords": {"word": "花生"}}',
    '{"keywords": ["花生", 1, null, []]}',
    reply_of({"word": "花生"}, {"word": "花生", "weight": "high"}, {"weight": 1}, {"word": None, "weight": 1}),
    reply_of(*({"word": "花生", "weight": weight} for weight in (0, -1, 1.01, True, None, [1]))),
    '{"keywords": [{"word": "花生", "weight": 1e999}, {"word": "花生", "weight": NaN}]}',
    reply_of({"word": "花" * 100_000, "weight": 1}),
    '{"keywords": [{"word": "花生", "weight": ' + "9" * 5000 + "}]}",
    "[" * 19_999,
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    b"bytes",
    None,
    7,
    RuntimeError("the endpoint is down"),
    TimeoutError(),
]


@pytest.mark.parametrize("reply", BAD, ids=range(len(BAD)))
async def test_a_bad_reply_leaves_the_rules_standing(reply: Any, caplog: pytest.LogCaptureFixture) -> None:
    llm, asked = saying(reply)
    found = await KeywordExtractor(llm=llm).extract_keywords("我对花生过敏")
    assert found == await KeywordExtractor().extract_keywords("我对花生过敏")
    assert len(asked) == 1 and "language model" in caplog.text


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9) | st.just("花生"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["keywords", "word", "weight"]), inner),
    max_leaves=12,
)


@given(JSON, st.text(max_size=30))
async def test_no_reply_breaks_the_bounds(value: Any, noise: str) -> None:
    for reply in (json.dumps({"keywords": value}), json.dumps(value), noise):
        llm, _ = saying(reply)
        found = await KeywordExtractor(llm=llm).extract_keywords("我对花生过敏")
        assert found and all(0 < weight <= 1 and word in "我对花生过敏" for word, weight in found)


# -- expansion ------------------------------------------------------------------------------------------------------


async def test_without_a_memory_the_built_in_set_expands() -> None:
    found = await KeywordExtractor().expand_keywords(["过敏", "Zzz"])
    assert found == {"original": ["过敏", "zzz"], "synonyms": ["allergy", "allergic", "allergies"], "related": []}
    assert (await KeywordExtractor().expand_keywords(["过敏"], include_synonyms=False))["synonyms"] == []
    assert await KeywordExtractor().expand_keywords([]) == {"original": [], "synonyms": [], "related": []}


async def test_with_a_memory_the_users_own_words_expand(memory: Memory) -> None:
    for text in ("Anna lives in Berlin", "Berlin with Anna was cold", "I visit Anna in Berlin"):
        await memory.add(text, user_id="mei")
    for number in range(8):
        await memory.add(f"tea number{number}", user_id="mei")
    await memory.synonyms.add([("Berlin", "柏林")], user_id="mei")
    own, other = KeywordExtractor(memory, "mei"), KeywordExtractor(memory, "li")
    assert await own.expand_keywords(["berlin"]) == {"original": ["berlin"], "synonyms": ["柏林"], "related": ["anna"]}
    assert (await own.expand_keywords(["berlin"], include_semantic=False))["related"] == []
    assert await other.expand_keywords(["berlin"]) == {"original": ["berlin"], "synonyms": [], "related": []}


async def test_memory_and_user_belong_together(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="belong together"):
        KeywordExtractor(memory)
    with pytest.raises(InvalidInput, match="belong together"):
        KeywordExtractor(user_id="mei")


async def test_a_language_model_may_add_to_an_expansion() -> None:
    reply = {
        "core_keywords": ["过敏"],
        "synonyms": [["过敏", "敏感", "allergy", 7, "x" * 65, "a\x07b"], ["too", "many", "groups"], "none"],
        "related_concepts": ["抗组胺药", "敏感", "", *map(str, range(9))],
    }
    llm, asked = saying(json.dumps(reply))
    found = await KeywordExtractor(llm=llm).expand_keywords(["过敏"])
    assert found["synonyms"] == ["allergy", "allergic", "allergies", "敏感"]
    assert found["related"] == ["抗组胺药", "0", "1", "2", "3"]
    assert '用户搜索查询: "过敏"' in asked[0]
    for bad in BAD:
        llm, _ = saying(bad)
        assert await KeywordExtractor(llm=llm).expand_keywords(["过敏"]) == await KeywordExtractor().expand_keywords(
            ["过敏"]
        )


# -- speed ----------------------------------------------------------------------------------------------------------


async def test_extraction_is_far_below_half_a_second() -> None:
    """D1's target is a p95 of 500 ms, here for a text of 2,000 characters."""
    extractor = KeywordExtractor()
    await extractor.extract_keywords("热身 warm up")
    taken = []
    for number in range(20):
        text = " ".join(text for text, _ in TEXTS) * 10 + str(number)
        start = time.process_time()
        await extractor.extract_keywords(text, memory_type="fact", tags=["work"])
        taken.append(time.process_time() - start)
    assert sorted(taken)[int(0.95 * len(taken))] < 0.5
