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

REORDERED = [
    ("I speak Spanish and Portuguese", "I speak Portuguese and Spanish"),
    ("My kids love swimming and drawing", "My kids love drawing and swimming"),
    ("I'm allergic to shellfish and walnuts", "I'm allergic to walnuts and shellfish"),
    ("We own a canoe and two kayaks", "We own two kayaks and a canoe"),
    ("I take my coffee with oat milk and cinnamon", "I take my coffee with cinnamon and oat milk"),
    ("Every Thursday I teach pottery", "I teach pottery every Thursday"),
    ("I use Vim, tmux and zsh", "I use zsh, Vim and tmux"),
    ("Priya hates mushrooms and olives", "Priya hates olives and mushrooms"),
    ("I share the flat with Noor and Felix", "I share the flat with Felix and Noor"),
    ("On Sundays we visit my grandparents", "We visit my grandparents on Sundays"),
    ("我会说粤语和法语", "我会说法语和粤语"),
    ("我对芒果、海鲜过敏", "我对海鲜、芒果过敏"),
    ("我养了一只猫和两条金鱼", "我养了两条金鱼和一只猫"),
    ("我喜欢爬山、摄影和烘焙", "我喜欢烘焙、爬山和摄影"),
    ("每周三我上瑜伽课", "我每周三上瑜伽课"),
    ("孩子喜欢恐龙和火车", "孩子喜欢火车和恐龙"),
    ("更喜欢直接、简洁的回答", "更喜欢简洁、直接的回答"),
    ("我不吃香菜和芹菜", "我不吃芹菜和香菜"),
    ("我用飞书和钉钉", "我用钉钉和飞书"),
    ("我跟外婆、小姨一起住", "我跟小姨、外婆一起住"),
]
OTHERWISE_ORDERED = [
    ("I owe Hana 40 euros and Piet 25", "I owe Piet 40 euros and Hana 25"),
    ("Rosa introduced Emil to Jun", "Emil introduced Rosa to Jun"),
    ("I speak Spanish but not Portuguese", "I speak Portuguese but not Spanish"),
    ("I work from Leeds and live in York", "I work from York and live in Leeds"),
    ("We broke up and got back together", "We got back together and broke up"),
    ("Every Thursday I teach pottery", "I teach pottery every Tuesday"),
    ("I have 2 cats and 3 dogs", "I have 3 cats and 2 dogs"),
    ("My landlord sued my neighbour", "My neighbour sued my landlord"),
    ("She lives with Tara and Omar lives with Lin", "She lives with Omar and Tara lives with Lin"),
    ("The rule is measure, then cut", "The rule is cut, then measure"),
    ("我和小陈借了钱", "小陈和我借了钱"),
    ("周一上班，周二休息", "周二上班，周一休息"),
    ("我爱吃辣，不爱吃甜", "我爱吃甜，不爱吃辣"),
    ("老王把车卖给了老李", "老李把车卖给了老王"),
    ("部署流程：先构建、再测试", "部署流程：先测试、再构建"),
    ("小张住楼上、小刘住楼下", "小刘住楼上、小张住楼下"),
    ("我对猫毛过敏，喜欢狗", "我对狗毛过敏，喜欢猫"),
    ("爸爸做饭、妈妈洗碗", "妈妈做饭、爸爸洗碗"),
    ("我喜欢喝茶和不加糖的咖啡", "我喜欢喝咖啡和不加糖的茶"),
    ("我从苏州搬到了无锡", "我从无锡搬到了苏州"),
    ("I love my mum and my dad's dog", "I love my dad and my mum's dog"),
    ("我爱妈妈和爸爸的狗", "我爱爸爸和妈妈的狗"),
    ("I use 4711 and 0815 as PIN", "I use 0815 and 4711 as PIN"),
]


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory.open(tmp_path / "memory.db") as opened:
        yield opened


@pytest.mark.parametrize(("first", "second"), [*SAME, *REORDERED])
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


@pytest.mark.parametrize(("first", "second"), [*DIFFERENT, *OTHERWISE_ORDERED])
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
