"""A text that is saved again, word for word or nearly, stays one memory with the tags and sources of both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.write.repeats import says_the_same

SAME = [
    ("I like green tea", "I really like green tea!"),
    ("I'm allergic to peanuts", "I am allergic to peanuts."),
    ("用户喜欢喝咖啡", "用户很喜欢喝咖啡。"),
    ("我每天早上跑步", "我每天早上都跑步"),
    ("Mei prefers window seats", "Mei prefers the window seats"),
]
DIFFERENT = [
    ("The WiFi password is aBcD1234", "The WiFi password is AbCd1234"),
    ("The code for the garden gate is A+", "The code for the garden gate is A-"),
    ("Tom likes Mia", "Mia likes Tom"),
    ("小明喜欢小红", "小红喜欢小明"),
    ("I like green tea", "I don't like green tea"),
    ("我喜欢喝绿茶", "我不喜欢喝绿茶"),
    ("I take the 8:15 train to work", "I take the 8:45 train to work"),
    ("The meeting room is on the 3rd floor", "The meeting room is on the 4th floor"),
    ("I moved to Rome", "I moved from Rome"),
    ("Use tabs in Makefiles", "Use spaces in Makefiles"),
    ("我的会员号是 A1b2", "我的会员号是 a1B2"),
    ("我妈妈喜欢京剧", "我爸爸喜欢京剧"),
]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


@pytest.mark.parametrize(("first", "second"), SAME)
async def test_nearly_the_same_is_one_memory_in_the_words_of_the_last_save(
    first: str, second: str, memory: Memory
) -> None:
    [old] = (await memory.add(first, user_id="mei", tags=["a"], metadata={"x": 1}, importance=0.4)).memories
    [kept] = (await memory.add(second, user_id="mei", tags=["b"], metadata={"y": 2}, importance=0.9)).memories
    [item] = await memory.list(user_id="mei")
    assert (kept.id, item.id, item.content) == (old.id, old.id, second)
    assert (item.tags, item.metadata, item.importance) == (("a", "b"), {"x": 1, "y": 2}, 0.9)
    assert [one.action for one in await memory.history(old.id, user_id="mei")] == ["add", "merge"]
    found = await memory.search(second, user_id="mei", tags=["b"])
    assert [hit.content for hit in found.hits] == [second]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("更喜欢简洁直接的回答", "更喜欢简洁直接的回答"),
        ("更喜欢简洁直接的回答", "更喜欢简洁、直接的回答。"),
        ("prefers short, direct answers", "really prefers short, direct answers"),
    ],
)
async def test_a_repetition_adds_its_data(first: str, second: str, memory: Memory) -> None:
    given = {"type": "PROFILE", "importance": 0.8, "tags": ["tone"]}
    await memory.add([{**given, "text": first, "data": {"key": "tone", "value": "brief"}}], user_id="mei")
    again = {**given, "text": second, "data": {"value": "direct", "scope": "chat"}}
    await memory.add([again], user_id="mei")
    [item] = await memory.list(user_id="mei")
    assert item.data == {"key": "tone", "value": "direct", "scope": "chat"}
    await memory.add(
        [{**again, "text": "a new text", "data": {"a": 1}}, {"text": "a new text", "type": "PROFILE"}], user_id="li"
    )
    [item] = await memory.list(user_id="li")
    assert item.data == {"a": 1}


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
async def test_another_number_name_code_or_negation_is_never_merged(first: str, second: str, memory: Memory) -> None:
    assert not says_the_same(first, second)
    await memory.add(first, user_id="mei")
    await memory.add(second, user_id="mei")
    assert second in [item.content for item in await memory.list(user_id="mei")]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I like tea more than coffee", "I like coffee more than tea"),
        ("my sister owes my brother money", "my brother owes my sister money"),
        ("we drove from rome to paris", "we drove from paris to rome"),
        ("the soup has too much salt", "the soup has salt"),
        ("我喜欢茶胜过咖啡", "我喜欢咖啡胜过茶"),
        ("我下个月结婚", "我下个月结婚了"),
        ("我喜欢写", "我喜欢写真"),
        ("der Hund mag die Katze", "die Katze mag der Hund"),
    ],
)
async def test_the_same_words_in_another_order_are_another_memory(first: str, second: str, memory: Memory) -> None:
    await memory.add(first, user_id="mei")
    await memory.add(second, user_id="mei")
    assert {item.content for item in await memory.list(user_id="mei")} == {first, second}


async def test_an_exact_repetition_adds_tags_importance_and_metadata(memory: Memory) -> None:
    for text, tag in (("我吃素，对花生过敏", "健康"), ("Mei drinks jasmine tea", "drinks")):
        await memory.add(text, user_id="mei", tags=["a"], metadata={"from": "form"})
        await memory.add(text, user_id="mei", tags=[tag], metadata={"by": "Tom"}, importance=0.9)
        await memory.add(text, user_id="mei")
        [item] = await memory.list(user_id="mei", tags=[tag])
        assert (item.content, item.tags, item.importance, item.version) == (text, ("a", tag), 0.9, 2)
        assert item.metadata == {"from": "form", "by": "Tom"}


async def test_equal_statements_of_one_call_are_merged(memory: Memory) -> None:
    both = [
        {"content": "Mei plays chess", "tags": ["a"]},
        {"content": "Mei plays chess", "tags": ["b"], "importance": 0.8},
    ]
    await memory.add(both, user_id="mei")
    [item] = await memory.list(user_id="mei")
    assert (item.tags, item.importance) == (("a", "b"), 0.8)


@pytest.mark.parametrize(
    "said",
    [("I love hiking in the mountains.", "I really love hiking in the mountains."), ("我喜欢爬山。", "我很喜欢爬山。")],
)
async def test_a_statement_that_is_said_again_has_both_messages_as_sources(
    said: tuple[str, str], memory: Memory
) -> None:
    for at, text in enumerate(said):
        message = {"role": "user", "content": text, "id": f"m{at}"}
        await memory.add([message], user_id="mei", session_id=f"s{at}")
    [item] = [one for one in await memory.list(user_id="mei") if one.memory_type != "message"]
    assert (item.content, set(item.source_ids)) == (said[0], {"m0", "m1"})


async def test_an_edited_memory_is_not_merged_with_a_similar_one(memory: Memory) -> None:
    [old] = (await memory.add("I like green tea", user_id="mei")).memories
    await memory.update(old.id, user_id="mei", content="I like green tea from Hangzhou")
    await memory.update(old.id, user_id="mei", content="I like green tea")
    await memory.add("I really like green tea", user_id="mei")
    assert len((await memory.list(user_id="mei")).items) == 2
