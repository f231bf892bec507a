"""What people say has changed is no longer remembered as it was; and as of then, it still is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from changes_told import STORIES
from conftest import WordEmbedder
from jiyi import Memory, MemoryItem
from support import DAY

Told = tuple[datetime, str, str, str]

HOLDING = ("preference", "fact", "pattern", "skill", "profile")


def stories() -> list[list[Told]]:
    return [[_line(line) for line in block.splitlines()] for block in STORIES.strip().split("\n\n")]


def _line(line: str) -> Told:
    day, text, there, gone = (part.strip() for part in line.split(" | "))
    return datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC), text, there.strip("·"), gone.strip("·")


async def tell(memory: Memory, story: list[Told]) -> None:
    for at, text, _, _ in story:
        name = "Ann" if text.isascii() else "林梅"
        said = {"role": "user", "name": name, "content": text, "sent_at": at}
        receipt = await memory.add([said], user_id="mei", session_id=at.isoformat())
        await memory.jobs.wait(receipt, user_id="mei")


async def concluded(memory: Memory, as_of: datetime | None = None) -> list[MemoryItem]:
    page = await memory.list(user_id="mei", limit=100, as_of=as_of)
    return [item for item in page.items if item.memory_type not in ("message", "episode")]


@pytest.mark.parametrize("story", stories(), ids=lambda story: story[0][1])
async def test_what_changed_is_told_as_it_was_at_each_time(story: list[Told], tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(512)) as memory:
        await tell(memory, story)
        for at, text, there, gone in story:
            held = await concluded(memory, as_of=at + 10 * DAY)
            assert any(there.lower() in item.content.lower() for item in held), f"after “{text}” nothing says {there}"
            held = [item for item in held if item.memory_type in HOLDING]
            still = [item.content for item in held if gone and gone.lower() in item.content.lower()]
            assert not still, f"after “{text}”: {still}"


@pytest.fixture
async def memory(place: str | Path) -> AsyncIterator[Memory]:
    """With all defaults but the embedder."""
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        yield memory


def day(number: int) -> datetime:
    return datetime(2024, number, 3, 9, tzinfo=UTC)


async def test_somebody_who_is_gone_takes_along_what_was_known_of_them(memory: Memory) -> None:
    await tell(memory, [(day(1), "I have a cat called Mochi. My cat is three years old.", "", "")])
    await tell(memory, [(day(2), "我女朋友叫小雯，她在成都读研。", "", "")])
    await tell(memory, [(day(5), "Mochi died last week.", "", ""), (day(6), "我和小雯分手了。", "", "")])
    told = [item.content for item in await concluded(memory)]
    assert not [text for text in told if "three years" in text or "成都" in text or "has a cat" in text], told
    before = [item.content for item in await concluded(memory, as_of=day(4))]
    assert any("three years" in text for text in before)
    assert any("成都" in text for text in before)


async def test_what_is_over_says_which_memory_said_so_and_can_be_undone(memory: Memory) -> None:
    await tell(memory, [(day(1), "我在吃二甲双胍。", "", "")])
    [taking] = [item for item in await concluded(memory) if item.memory_type == "fact"]
    await tell(memory, [(day(5), "医生把二甲双胍停了。", "", "")])
    over = await memory.get(taking.id, user_id="mei")
    assert over.valid_to == day(5)
    [by] = [item for item in await concluded(memory) if item.id == over.superseded_by]
    assert "停了" in by.content
    change = list(await memory.history(taking.id, user_id="mei"))[-1]
    assert (change.action, change.reason) == ("supersede", "a newer memory says it is over")
    await memory.update(taking.id, user_id="mei", valid_to=None)
    assert taking.id in {item.id for item in await concluded(memory)}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("I'm allergic to peanuts.", "I stopped eating peanuts."),
        ("I love coffee.", "I gave up coffee."),
        ("My cat is called Mochi.", "I finished the book about Mochi."),
        ("我对海鲜过敏。", "海鲜不吃了。"),
        ("我女儿叫小雯。", "小雯把钢琴停了。"),
        ("My boyfriend is a programmer.", "My boyfriend quit smoking."),
        ("我男朋友是程序员。", "我男朋友戒烟了。"),
        ("I take metformin.", "I'm thinking about coming off metformin."),
        ("I work at Google.", "Should I have left Google?"),
        # What is over there is not that somebody is there.
        ("I live in Berlin.", "The Berlin marathon was cancelled."),
        ("I live in Berlin.", "I don't like Berlin any more."),
        ("I work at Siemens in Munich.", "My Munich trip is off."),
        ("我住在上海。", "上海的演唱会取消了。"),
        ("我在腾讯做后端开发。", "腾讯视频会员退了。"),
        # A name that only says which one.
        ("I drive a Tesla.", "I sold my Tesla shares."),
        ("I use Slack at work.", "We got rid of Slack notifications."),
        ("I'm learning Spanish.", "I dropped my Spanish book in the bath."),
        ("我用微信沟通。", "我把微信群退了。"),
        ("我在学日语。", "日语考试结束了。"),
        ("我家狗叫旺财。", "旺财的狗粮没了。"),
        # Only this time.
        ("I play tennis every Sunday.", "Tennis is off tonight."),
        ("我每周六打羽毛球。", "今天的羽毛球不打了。"),
        # Whoever does something to something else is not over.
        ("My manager is Sarah.", "Sarah left early today."),
        ("I have a cat called Luna.", "Luna left the room."),
        ("I use Notion for work.", "Notion deleted my page."),
        ("我用Notion记笔记。", "Notion把我的页面删了。"),
        ("I drink coffee every morning.", "I dropped my coffee."),
        ("I live in Leeds.", "We left Leeds at noon and were in York by one."),
        # Another side of the same: where one works, and as what; where one lives, and how.
        ("I work at Google.", "I'm a software engineer."),
        ("I'm a software engineer.", "I work at Google."),
        ("I work at Google.", "I got promoted to staff engineer."),
        ("I work at Google.", "I lead a team of five."),
        ("我在腾讯上班。", "我是后端工程师。"),
        ("我是后端工程师。", "我做推荐算法开发。"),
        ("I live in Berlin.", "I live with my sister."),
        ("I live in Berlin.", "I live near the canal."),
        ("I live in Berlin.", "I live on the third floor."),
        ("I live in Berlin.", "I live at 12 Garnet Street."),
        ("我住在北京。", "我住在十楼。"),
        ("我住在北京。", "我住在公司附近。"),
        ("我住在北京。", "我和我妹住。"),
        ("I ride a bike to work.", "I drive my daughter to school."),
        ("I ride a bike to work.", "I take the bus to work when it rains."),
        # Something else besides, for some days, or for work.
        ("I'm vegetarian.", "I'm lactose intolerant."),
        ("I'm vegetarian.", "I eat gluten-free."),
        ("I'm vegan.", "I'm sober."),
        ("I get up at 6.", "On Sundays I get up at 9."),
        ("我每天六点起床。", "周末九点起床。"),
        ("I drive a Golf.", "I drive a van at work."),
        ("My email is a@x.org.", "My work email is b@y.org."),
        ("我的邮箱是a@x.org。", "我的工作邮箱是b@y.org。"),
        ("I live in Berlin.", "I also live in Rome part of the year."),
        ("I'm a teacher.", "I'm also a yoga instructor."),
        ("我是老师。", "我也是瑜伽教练。"),
        ("I do yoga on Mondays.", "I also do yoga on Wednesdays."),
        ("I use Chrome now.", "I use Firefox too."),
        ("我现在用Chrome。", "我也用Firefox。"),
        ("我在腾讯上班。", "我周末在一家面包店兼职。"),
        ("I work at Google.", "I'm a staff engineer now."),
        ("我在腾讯上班。", "我现在是产品经理了。"),
        ("我是编辑。", "我在当当网上班。"),
        # Somebody else's.
        ("My car is a Golf.", "My wife's car is a Fiat."),
        # Of the same title.
        ("My dentist is Dr. Wu.", "My doctor is Dr. Wu."),
    ],
)
async def test_what_is_not_said_to_be_over_stays(first: str, then: str, memory: Memory) -> None:
    await tell(memory, [(day(1), first, "", "")])
    known = {item.id for item in await concluded(memory)}
    assert known
    await tell(memory, [(day(5), then, "", "")])
    assert known <= {item.id for item in await concluded(memory)}


async def test_what_ends_nothing_that_was_known_is_not_kept_for_that(memory: Memory) -> None:
    await tell(memory, [(day(1), "张伟调走了。", "", ""), (day(2), "Tom left.", "", "")])
    assert await concluded(memory) == []


async def test_another_agents_memories_and_other_people_are_not_touched(memory: Memory) -> None:
    for agent_id in (None, "coach"):
        said = {"role": "user", "name": "Ann", "content": "I take metformin.", "sent_at": day(1)}
        await memory.jobs.wait(await memory.add([said], user_id="mei", agent_id=agent_id), user_id="mei")
    before = {item.id: item for item in await concluded(memory)}
    said = {"role": "user", "name": "Ann", "content": "My doctor took me off metformin.", "sent_at": day(5)}
    await memory.jobs.wait(await memory.add([said], user_id="mei", agent_id="coach"), user_id="mei")
    left = {item.id for item in await concluded(memory)}
    assert {before[gone].agent_id for gone in before.keys() - left} == {"coach"}

    group = [
        {"role": "user", "name": name, "content": text, "sent_at": at}
        for name, text, at in (
            ("Ben", "I'm learning Japanese.", day(1)),
            ("Eva", "I'm learning Japanese.", day(1) + timedelta(minutes=1)),
            ("Eva", "I stopped learning Japanese.", day(5)),
        )
    ]
    await memory.jobs.wait(await memory.add(group, user_id="mei", group_id="class"), user_id="mei")
    learning = [item.content for item in await concluded(memory) if "learning Japanese" in item.content]
    assert any(text.startswith("Ben") for text in learning)
    assert not any(text.startswith("Eva is learning") for text in learning)


async def test_it_does_not_matter_under_which_name_or_in_which_language_somebody_speaks(memory: Memory) -> None:
    for at, name, text in (
        (1, None, "I use Vim for everything."),
        (2, "Ann", "I take metformin."),
        (5, "Ann", "Vim卸载了。"),
        (6, None, "My doctor took me off metformin."),
    ):
        said = {"role": "user", "content": text, "sent_at": day(at)} | ({"name": name} if name else {})
        await memory.jobs.wait(await memory.add([said], user_id="mei", session_id=text), user_id="mei")
    told = [item.content for item in await concluded(memory) if item.memory_type in HOLDING]
    assert not [text for text in told if "uses Vim" in text or "takes metformin" in text], told
    before = [item.content for item in await concluded(memory, as_of=day(4))]
    assert any("uses Vim" in text for text in before) and any("takes metformin" in text for text in before)


async def test_what_is_trusted_less_ends_nothing_that_is_trusted_more(memory: Memory) -> None:
    await tell(memory, [(day(1), "I take metformin.", "", "")])
    known = {item.id for item in await concluded(memory)}
    page = {"role": "user", "name": "Ann", "content": "My doctor took me off metformin.", "sent_at": day(5)}
    await memory.jobs.wait(await memory.add([page], user_id="mei", trust=0.2), user_id="mei")
    assert known <= {item.id for item in await concluded(memory)}


async def test_a_statement_ends_by_name_too(memory: Memory) -> None:
    await tell(memory, [(day(1), "I take metformin.", "", "")])
    await memory.add("My doctor took me off metformin.", user_id="mei", occurred_at=day(5))
    assert not [item.content for item in await concluded(memory) if "takes metformin" in item.content]


async def test_very_many_endings_at_once_and_very_long_ones(memory: Memory) -> None:
    await tell(memory, [(day(1), "I take metformin.", "", "")])
    said = [
        {"role": "user", "name": "Ann", "content": f"I sold alpha{at}, beta{at} and gamma{at}.", "sent_at": day(5)}
        for at in range(500)
    ]
    said += [{"role": "user", "name": "Ann", "content": "我把" + "很多东西" * 3000 + "卖了。", "sent_at": day(5)}]
    said += [{"role": "user", "name": "Ann", "content": "I came off metformin.", "sent_at": day(6)}]
    await memory.jobs.wait(await memory.add(said, user_id="mei"), user_id="mei")
    assert not [item for item in await concluded(memory) if item.content == "Ann takes metformin"]


async def test_what_ends_something_is_about_whom_it_is_about(memory: Memory) -> None:
    """Who said it is in its message; the ranking of names looks at whom a memory is about."""
    await tell(memory, [(day(1), "My sister lives in Leeds.", "", "")])
    assert not [item for item in await concluded(memory) if "speaker" in item.data]
