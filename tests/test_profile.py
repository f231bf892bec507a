"""Profiles of users and groups, and behaviour histories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jiyi import CandidateMemory, Memory, MemoryItem
from jiyi.write.behavior import MOST_TIMES

AT = datetime(2026, 1, 1, 9, tzinfo=UTC)


async def test_a_group_profile_has_each_line_once(extracting_memory: Memory) -> None:
    memory = extracting_memory
    for who in ("Ana", "Bo", "Ana"):
        said = ["We meet every Tuesday at 10.", "I live in Lisbon.", "我们每周五下午开会。"]
        talk = [{"role": "user", "name": who, "content": text} for text in said]
        await memory.add(talk, user_id="mei", group_id="team", session_id=f"s{who}")
    await memory.add("likes tea", user_id="mei", memory_type="preference")
    team = await memory.usage.profile(user_id="mei", group_id="team")
    lines = [(item.content, item.data.get("subject")) for item in team]
    assert sorted(text for text, _ in lines) == [
        "I live in Lisbon.",
        "I live in Lisbon.",
        "We meet every Tuesday at 10.",
        "我们每周五下午开会。",
    ]
    assert {who for text, who in lines if "Lisbon" in text} == {"Ana", "Bo"}
    assert "likes tea" in [item.content for item in await memory.usage.profile(user_id="mei")]


STRUCTURED = [
    {
        "memory_type": "preference",
        "content": "用户偏好使用蓝色配色方案",
        "structured_data": {"category": "design", "key": "color_scheme", "value": "blue"},
    },
    {
        "memory_type": "fact",
        "content": "用户的公司名称是'TechCorp'，主营AI产品",
        "structured_data": {"entity": "company", "name": "TechCorp", "industry": "AI"},
    },
]


async def test_a_profile_has_attributes_with_values(extracting_memory: Memory) -> None:
    memory = extracting_memory
    said = ["I work at Acme. My sister lives in Oslo.", "我住在杭州。", "I like long walks."]
    for text in said:
        await memory.add([{"role": "user", "content": text}], user_id="mei")
    await memory.add(STRUCTURED, user_id="mei")
    page = await memory.usage.profile(user_id="mei")
    lines = [(line.subject, line.attribute, line.value) for line in page.lines if line.attribute]
    assert lines == [
        ("mei", "color_scheme", "blue"),
        ("mei", "employer", "Acme"),
        ("mei", "home", "杭州"),
        ("sister", "home", "Oslo"),
    ]
    texts = [line.text for line in page.lines if line.attribute is None]
    assert "用户的公司名称是'TechCorp'，主营AI产品" in texts and "I like long walks." in texts
    assert {line.memory_id for line in page.lines} == {item.id for item in page.items}
    await memory.add([{"role": "user", "content": "I live in Ningbo now."}], user_id="mei")
    lines_now = (await memory.usage.profile(user_id="mei")).lines
    assert [line.value for line in lines_now if (line.subject, line.attribute) == ("mei", "home")] == ["Ningbo"]


async def report(memory: Memory, day: int, **more: object) -> MemoryItem:
    given = CandidateMemory(content="打开了周报", memory_type="behavior", occurred_at=AT + timedelta(days=day), **more)  # type: ignore[arg-type]
    return (await memory.add(given, user_id="mei")).memories[0]


async def test_a_behavior_collects_the_times_at_which_it_happened(memory: Memory) -> None:
    first = await report(memory, 0)
    assert (first.layer, first.data["count"]) == ("episodic", 1)
    await report(memory, 7, tags=("work",))
    await report(memory, 3)
    await report(memory, 3)
    [item] = await memory.list(user_id="mei", memory_types=["behavior"])
    assert item.id == first.id and item.tags == ("work",)
    assert item.data["times"] == [(AT + timedelta(days=day)).isoformat() for day in (0, 3, 7)]
    assert (item.data["count"], item.occurred_at) == (3, AT + timedelta(days=7))


async def test_what_somebody_did_and_when_is_a_history_without_their_help(extracting_memory: Memory) -> None:
    memory = extracting_memory
    told = {
        5: "I went to the dentist yesterday.",
        12: "I finished the first draft of my thesis last night.",
        15: "我今天把车送去保养了。",
    }
    for day, text in told.items():
        said = {"role": "user", "content": text, "sent_at": AT.replace(month=10, day=day, hour=18)}
        await memory.add([said], user_id="mei")
    history = await memory.timeline(user_id="mei", memory_types=["event", "behavior"])
    assert [one.content for one in history] == [*reversed(told.values())]
    assert [one.occurred_at.day for one in history] == [15, 11, 4]


async def test_a_long_history_keeps_the_latest_times_and_counts_all(memory: Memory) -> None:
    days = range(MOST_TIMES + 20)
    moments = [
        CandidateMemory(content="跑步", memory_type="behavior", occurred_at=AT + timedelta(days=day)) for day in days
    ]
    await memory.add(moments[:60], user_id="mei")
    await memory.add(moments[60:], user_id="mei")
    [item] = await memory.list(user_id="mei", memory_types=["behavior_history"])
    times = item.data["times"]
    assert isinstance(times, list) and len(times) == MOST_TIMES
    assert (item.data["count"], times[-1]) == (MOST_TIMES + 20, (AT + timedelta(days=days[-1])).isoformat())


@pytest.mark.parametrize("text", ["went to the gym", "去了健身房"])
async def test_what_happens_again_is_another_event(text: str, memory: Memory) -> None:
    days = [datetime(2026, 10, day, 9, tzinfo=UTC) for day in (1, 8, 15)]
    for day in (*days, days[1]):
        await memory.add([{"type": "event", "text": text}], user_id="mei", occurred_at=day)
    held = await memory.list(user_id="mei", memory_types=["event"])
    assert sorted(item.occurred_at for item in held) == days
    [hit, *_] = await memory.search(text, user_id="mei", time_range=(days[1], days[2]))
    assert hit.occurred_at == days[1]
