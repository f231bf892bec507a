"""Memories made without a model keep the speaker's words and whole values; the later statement wins."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conftest import WordEmbedder
from jiyi import Draft, Memory, MemoryItem, Unit
from jiyi.settings import load_settings

MONDAY = datetime(2024, 5, 6, 9, tzinfo=UTC)


async def told(path: Path, *days: str | tuple[str, str]) -> list[MemoryItem]:
    """What is held after messages that were sent two days apart; a pair is a speaker and a text."""
    async with Memory.open(path / "memory.db", embedder=WordEmbedder(64)) as memory:
        for at, said in enumerate(days):
            name, text = said if isinstance(said, tuple) else (None, said)
            message = {"role": "user", "content": text, "sent_at": MONDAY + timedelta(days=2 * at)}
            await memory.add([message | ({"name": name} if name else {})], user_id="mei", session_id=str(at))
        page = await memory.list(user_id="mei", limit=100)
        return [item for item in page.items if item.memory_type != "message"]


def contents(items: list[MemoryItem]) -> list[str]:
    return sorted(item.content for item in items)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("I'm 34. I live in Rome.", ["I'm 34.", "I live in Rome."]),
        ("I live in Rome. I love jazz.", ["I live in Rome.", "I love jazz."]),
        ("我住在上海。我喜欢爵士乐。", ["我住在上海。", "我喜欢爵士乐。"]),
        ("我住在上海，在银行上班，养了一只猫。", ["我住在上海", "养了一只猫。", "在银行上班"]),
        ("My birthday is March 3. I live in Oslo.", ["I live in Oslo.", "My birthday is March 3."]),
        ("My kids are Tom (8) and Lisa (5).", ["My kids are Tom (8) and Lisa (5)."]),
        ("My salary is $4,500.", ["My salary is $4,500."]),
        ("我今年34岁。我住在罗马。", ["我今年34岁。", "我住在罗马。"]),
        ("我的生日是3月3号。我住在上海浦东。", ["我住在上海浦东。", "我的生日是3月3号。"]),
        ("I'm Lena, 34, a nurse from Graz.", ["I'm 34", "I'm a nurse from Graz", "I'm called Lena"]),
        ("I'm Italian, 34.", ["I'm Italian, 34."]),
        ("我叫陈晨，29岁，在阿里上班。", ["我29岁", "我叫陈晨", "我在阿里上班"]),
        ("I'm not allergic to nuts, only to peanuts.", ["I'm not allergic to nuts, only to peanuts."]),
    ],
)
async def test_a_memory_is_the_speakers_own_sentence(text: str, parts: list[str], tmp_path: Path) -> None:
    assert contents(await told(tmp_path, text)) == sorted(parts)


@pytest.mark.parametrize(
    ("story", "held"),
    [
        (["I live in Rome with my wife Petra.", "We moved to Bari."], ["My wife is called Petra", "We moved to Bari."]),
        (["My wife Petra and I live in Rome.", "We moved to Bari."], ["My wife Petra", "We moved to Bari."]),
        (
            ["I live in Rome with our sons Ed and Al.", "I moved to Bari."],
            ["I moved to Bari.", "Our sons are called Ed and Al"],
        ),
        (["My sister Ana lives in Lyon.", "Ana moved to Nice."], ["Ana moved to Nice.", "My sister is called Ana"]),
        (
            ["I live in Bonn with my wife Anne-Marie.", "We moved to Ulm."],
            ["My wife is called Anne-Marie", "We moved to Ulm."],
        ),
        (
            ["My best friend lives in Rome.", "My friend lives in Oslo."],
            ["My best friend lives in Rome.", "My friend lives in Oslo."],
        ),
        (["我和老公王强住在杭州。", "我们搬到苏州了。"], ["我们搬到苏州了。", "我老公叫王强"]),
        (["我和儿子乐乐住在杭州。", "我们搬到苏州了。"], ["我们搬到苏州了。", "我儿子叫乐乐"]),
        (["我和爸妈一起住在杭州。", "我搬到苏州了。"], ["我搬到苏州了。"]),
    ],
)
async def test_who_somebody_is_stays_known_when_the_rest_has_ended(
    story: list[str], held: list[str], tmp_path: Path
) -> None:
    assert contents(await told(tmp_path, *story)) == sorted(held)
    async with Memory.open(tmp_path / "at once.db", embedder=WordEmbedder(64)) as memory:
        times = [MONDAY, MONDAY + timedelta(days=2)]
        messages = [{"role": "user", "content": text, "sent_at": at} for text, at in zip(story, times, strict=True)]
        await memory.add(messages, user_id="mei", session_id="all")
        page = await memory.list(user_id="mei", limit=100)
    assert contents([item for item in page.items if item.memory_type != "message"]) == sorted(held)


@pytest.mark.parametrize(
    "story",
    [
        ("I live in Rome with my boyfriend Pablo.", "We moved to Bari.", "Pablo and I broke up."),
        ("My boyfriend is called Pablo.", "I broke up with Pablo."),
        ("My wife is Petra.", "My wife and I got divorced."),
        ("我和老公王强住在杭州。", "我们搬到苏州了。", "我和王强离婚了。"),
    ],
)
async def test_a_separation_ends_who_the_partner_is(story: tuple[str, ...], tmp_path: Path) -> None:
    held = contents(await told(tmp_path, *story))
    assert not [text for text in held if any(word in text for word in ("called", "My wife is", "老公叫"))]


@pytest.mark.parametrize("text", ["please keep answers short", "Call me Jo.", "叫我小王就行", "请用中文回答"])
async def test_how_to_answer_and_address_the_user_is_remembered(text: str, tmp_path: Path) -> None:
    assert [item.content for item in await told(tmp_path, text)] == [text]


@pytest.mark.parametrize("text", ["call me later", "叫我起床", "haha"])
async def test_what_is_wanted_once_is_not_remembered(text: str, tmp_path: Path) -> None:
    assert await told(tmp_path, text) == []


@pytest.mark.parametrize(
    ("named", "called"),
    [
        ("我叫李雷。", "我叫了外卖，等会儿就到。"),
        ("我叫李雷。", "我叫个车去机场。"),
        ("我妈叫陈兰。", "我妈叫我回家吃饭。"),
        ("我老婆叫小芳。", "我老婆叫我早点下班。"),
    ],
)  # fmt: skip
async def test_being_told_or_ordering_is_no_name(named: str, called: str, tmp_path: Path) -> None:
    assert named in contents(await told(tmp_path, named, called))


@pytest.mark.parametrize(
    ("story", "left"),
    [
        (["My salary is $4,500.", "My salary is $4,800 now."], ["$4,800"]),
        (["I live in Berlin.", "I moved to Paris last week."], ["Paris"]),
        (["I live in Berlin.", "Actually we moved to Paris last month."], ["Paris"]),
        (["I live in Berlin.", "I've just moved to Paris."], ["Paris"]),
        (["I live in Berlin.", "We've moved to Slack at work."], ["Berlin", "Slack"]),
        (["I live in Berlin.", "I live in a small flat with two cats."], ["Berlin", "small flat"]),
        (["我住在柏林。", "我上周搬到巴黎了。"], ["巴黎"]),
        (["I'm 34.", "My height is 1.80 m."], ["34", "1.80 m"]),
        (["我今年34岁。", "我身高1.8米。"], ["34岁", "1.8米"]),
        (["I work at Stripe.", "I quit my job at Acme."], ["Stripe", "quit"]),
        (["I work at Acme.", "I quit my job at Acme."], ["quit"]),
        (["I work at Acme.", "I quit my job at Acme.", "I started at Bolt last week."], ["Bolt"]),
        (["我在华为上班。", "我从华为离职了。", "我在腾讯上班。"], ["腾讯"]),
        (["我在华为上班。", "我从华为离职了。"], ["离职"]),
        (["I work at Acme.", "My husband works at Bosch."], ["Acme", "Bosch"]),
        (["我在华为上班。", "我老公在博世工作。"], ["华为", "博世"]),
        (["I live in Rome. I love jazz.", "I moved to Oslo."], ["jazz", "Oslo"]),
        (["我住在上海，在银行上班，养了一只猫。", "我搬到成都了。"], ["银行", "猫", "成都"]),
        (["I live in Rome.", "My sister lives in Toronto."], ["Rome", "Toronto"]),
        (["I live in Rome.", "I used to live in Berlin."], ["Rome", "Berlin"]),
        (["My rent is $1,450 a month.", "My rent went up to $1,600."], ["$1,600"]),
        (["My rent is $4,500.", "rent is $4,800 now"], ["$4,800"]),
        (["房租每个月4500元。", "房租涨到5200了。"], ["5200"]),
        (
            ["We went to the lake with Tom and saw a heron.", "We went to the lake with Tom and caught a trout."],
            ["heron", "trout"],
        ),
        (["My phone number is 555-0199.", "My phone number is 555-0142 now."], ["555-0142"]),
        (["I live in Rome.", ("Bob", "I live in Oslo.")], ["Rome", "Oslo"]),
    ],
)
async def test_the_later_statement_of_the_same_attribute_wins(
    story: list[str], left: list[str], tmp_path: Path
) -> None:
    held = contents(await told(tmp_path, *story))
    assert len(held) == len(left), held
    assert all(any(part in content for content in held) for part in left), held


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("I'm flying to Rome next Friday.", "2024-05-10"),
        ("下周三下午三点有个面试。", "2024-05-15 15:00"),
        ("The meeting was moved to December 20.", "2024-12-20"),
        ("The concert was pushed back to January 10.", "2025-01-10"),
        ("考试推迟到周五了。", "2024-05-10"),
        ("会议推迟到12月20日了。", "2024-12-20"),
        ("The deadline for the report is March 12.", "2025-03-12"),
        ("I broke my arm on Saturday.", "2024-05-04"),
    ],
)
async def test_dates_are_shown_before_the_text_and_plans_lie_ahead(text: str, date: str, tmp_path: Path) -> None:
    [memory] = await told(tmp_path, text)
    assert memory.content == text
    assert memory.dated_text == f"({date}) {text}"


async def test_plans_happen_on_their_day(tmp_path: Path) -> None:
    [memory] = await told(tmp_path, "下周三下午三点有个面试。")
    assert memory.memory_type == "task"
    assert memory.occurred_at == datetime(2024, 5, 15, 15, tzinfo=UTC)


@pytest.mark.parametrize("text", ["用要点列出来。", "Please answer in short sentences.", "以后用中文回答我。"])
async def test_instructions_are_no_facts(text: str, tmp_path: Path) -> None:
    [memory] = await told(tmp_path, text)
    assert (memory.memory_type, memory.data["kind"]) == ("preference", "instruction")


@pytest.mark.parametrize(
    "text",
    [
        "Oh great, I just love waiting two hours for the bus.",
        "我真是太喜欢加班了呢。",
        "haha",
        "嗯嗯",
        "Where do I live?",
        "我住在哪里？",
        "Translate this into German.",
        "帮我写封邮件给房东。",
        "got the job!! Well… second round, haha",
    ],
)
async def test_jokes_questions_requests_and_small_talk_become_no_memories(text: str, tmp_path: Path) -> None:
    assert contents(await told(tmp_path, text)) == []


@pytest.mark.parametrize("role", ["assistant", "tool", "model", "Assistant", "ai", "bot", "web", "observation"])
async def test_only_people_state_facts(role: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(64)) as memory:
        await memory.add([{"role": "user", "content": "I live in Rome."}], user_id="mei", session_id="1")
        await memory.add(
            [{"role": role, "content": "I live in Oslo. You moved to Oslo."}], user_id="mei", session_id="2"
        )
        page = await memory.list(user_id="mei", limit=100)
    assert contents([item for item in page.items if item.memory_type != "message"]) == ["I live in Rome."]


async def test_a_sentence_that_refers_to_the_one_before_keeps_it(tmp_path: Path) -> None:
    [one] = await told(tmp_path, "My husband works at Bosch. He starts at 7 every day.")
    assert one.content == "My husband works at Bosch. He starts at 7 every day."


@pytest.mark.usefixtures("changes_are_read")
@pytest.mark.parametrize(
    ("story", "gone"),
    [
        (["We're flying to Lisbon on June 3.", "Actually the Lisbon flight is June 5, not June 3."], "We're flying"),
        (["I've got my knee operation on June 9.", "The knee operation was moved to July 21."], "June 9"),
        (["膝盖手术定在6月9号。", "膝盖手术改到7月21号了。"], "6月9号"),
        pytest.param(
            ["We have a cat called Mochi.", "Our cat Mochi died last night."],
            "We have a cat",
            marks=pytest.mark.xfail(reason="the reader is not sure enough of it"),
        ),
        (["I take metformin every morning.", "I stopped taking metformin."], "every morning"),
        (["我每天早上吃二甲双胍。", "二甲双胍停了。"], "每天早上"),
    ],
)
async def test_changes_and_endings_of_a_named_thing_supersede_it(story: list[str], gone: str, tmp_path: Path) -> None:
    held = contents(await told(tmp_path, *story))
    assert len(held) == 1, held
    assert gone not in held[0]


@pytest.mark.parametrize(
    "story",
    [
        ["I take metformin every morning.", "I stopped going to the gym."],
        ["I live in Rome.", "My flight to Rome was moved to May 20."],
        ["我住在北京。", "去上海的航班改到5月20号了。"],
    ],
)
async def test_other_things_stay(story: list[str], tmp_path: Path) -> None:
    assert any(story[0] in content for content in contents(await told(tmp_path, *story)))


@pytest.mark.parametrize(
    ("first", "second"), [("My weight is 82 kg.", "No wait, 81."), ("我体重82公斤。", "不对，是81。")]
)
async def test_a_correction_right_after_a_statement_replaces_it(first: str, second: str, tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": first, "sent_at": MONDAY},
        {"role": "user", "content": second, "sent_at": MONDAY + timedelta(seconds=20)},
    ]
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(64)) as memory:
        await memory.add(said, user_id="mei", session_id="1")
        page = await memory.list(user_id="mei", limit=100)
    assert contents([item for item in page.items if item.memory_type != "message"]) == [f"{first} {second}"]


class Broken:
    """An extractor that fails until it is repaired."""

    id = "broken"

    def __init__(self) -> None:
        self.works = False

    async def __call__(self, unit: Unit, /) -> list[Draft]:
        if not self.works:
            raise RuntimeError("out of order")
        return []


async def test_messages_are_stored_when_extraction_fails_and_it_is_tried_again(tmp_path: Path) -> None:
    broken = Broken()
    settings = load_settings(jobs={"in_process": False, "wait_timeout_s": 0.1, "retry_delay_s": 0.1})
    async with Memory.open(
        tmp_path / "memory.db", embedder=WordEmbedder(64), extractors=[broken], settings=settings
    ) as memory:
        receipt = await memory.add([{"role": "user", "content": "I live in Rome."}], user_id="mei")
        assert "out of order" in receipt.problems[0]
        assert [item.content for item in receipt.memories] == ["I live in Rome."]
        broken.works = True
        await memory.jobs.work(until_idle=True)
        page = await memory.list(user_id="mei", memory_types=["fact"])
        assert contents(list(page.items)) == ["I live in Rome."]


async def test_a_correction_goes_with_either_of_its_messages(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "My weight is 82 kg.", "sent_at": MONDAY},
        {"role": "user", "content": "No wait, 81.", "sent_at": MONDAY + timedelta(seconds=20)},
    ]
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(64)) as memory:
        await memory.add(said, user_id="mei", session_id="1")
        page = await memory.list(user_id="mei", memory_types=["message"])
        first = next(item for item in page.items if "82" in item.content)
        await memory.delete(first.id, user_id="mei", with_sources=True)
        page = await memory.list(user_id="mei", limit=100)
    assert not any("82" in item.content for item in page.items)


async def test_what_is_said_twice_at_once_names_the_messages_that_say_it(tmp_path: Path) -> None:
    """Something that became true again has the later message alone."""
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(64)) as memory:
        for user_id, days, sources in (
            ("tim", ["I love sushi.", "I love sushi."], [0, 1]),
            ("mei", ["I live in Rome.", "I moved to Oslo.", "I live in Rome."], [2]),
        ):
            said = [
                {"role": "user", "content": text, "sent_at": MONDAY + timedelta(days=day), "id": f"{user_id}{day}"}
                for day, text in enumerate(days)
            ]
            messages = [item.source_ids[0] for item in (await memory.add(said, user_id=user_id)).memories[: len(said)]]
            [held] = (await memory.list(user_id=user_id)).items
            assert held.content == days[0]
            assert sorted(held.source_ids) == sorted(messages[day] for day in sources)


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("Remind me to water the ferns on Sunday.", ["task"]),
        ("Please remind me to cancel the gym by April 30.", ["task"]),
        ("提醒我周五去取蛋糕。", ["task"]),
        ("remind me what you said about the visa", []),
        ("再提醒我一下上次推荐的书名。", []),
    ],
)
async def test_a_reminder_is_a_task(text: str, held: list[str], tmp_path: Path) -> None:
    assert [item.memory_type for item in await told(tmp_path, text)] == held


@pytest.mark.parametrize(
    "text", ["we use pnpm", "I'm vegan", "our office opens at 8", "我恐高", "我属马", "prod is in Oslo"]
)
async def test_a_short_statement_is_a_memory_with_and_without_a_stop(extracting_memory: Memory, text: str) -> None:
    memory = extracting_memory
    for user, said in (("plain", text), ("stopped", text + ("。" if text.startswith("我") else "."))):
        await memory.add([{"role": "user", "content": said}], user_id=user)
        assert [one.content for one in await memory.list(user_id=user)] == [said]
