"""Units of conversation can be read, with subject, summary and narrative."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.testing import ScriptedLLM, WordEmbedder

AT = datetime(2025, 3, 10, 9, tzinfo=UTC)
SAID = [
    ("user", "Ana", "我对花生过敏。"),
    ("user", "Bo", "我上周搬到了杭州。"),
    ("assistant", None, "好的，记住了。"),
]


def talk(said: list[tuple[str, str | None, str]], at: datetime = AT) -> list[dict[str, object]]:
    return [
        {"role": role, "name": name, "content": text, "sent_at": at + timedelta(minutes=number)}
        for number, (role, name, text) in enumerate(said)
    ]


async def test_a_unit_has_subject_summary_narrative_and_messages(extracting_memory: Memory) -> None:
    memory = extracting_memory
    await memory.add(talk(SAID), user_id="mei", session_id="s1", group_id="team")
    [unit] = await memory.usage.units(user_id="mei")
    assert (unit.session_id, unit.group_id, unit.participants) == ("s1", "team", ("Ana", "Bo", "assistant"))
    assert unit.narrative == (
        "2025-03-10 09:00 Ana: 我对花生过敏。\n2025-03-10 09:01 Bo: (2025-03-03 to 2025-03-09) 我上周搬到了杭州。"
    )
    assert unit.summary == "我对花生过敏。 / 我上周搬到了杭州。 / 好的，记住了。"
    assert unit.subject is not None and "花生" in unit.subject
    assert [message.text for message in unit.messages] == [text for _, _, text in SAID]
    assert (unit.started_at, unit.ended_at) == (AT, AT + timedelta(minutes=2))
    derived = await memory.get_many(unit.memory_ids, user_id="mei")
    assert "我对花生过敏。" in [item.content for item in derived]
    assert not (await memory.usage.units(user_id="bo")).items


async def test_a_narrative_has_what_people_stated_and_when(extracting_memory: Memory) -> None:
    said = [
        ("user", "Ana", "Hi there!"),
        ("user", "Ana", "I moved to Porto last week (May 7, 2023). My brother Luis still lives in Braga."),
        ("assistant", None, "Porto has 230,000 inhabitants. I live in a data centre."),
        ("user", "Ana", "Which tram goes to the beach?"),
        ("user", "Bo", "I go swimming every Tuesday and Thursday at 8 am."),
        ("user", "Bo", "哈哈哈"),
    ]
    await extracting_memory.add(talk(said), user_id="mei", session_id="s1", group_id="team")
    [unit] = await extracting_memory.usage.units(user_id="mei")
    lines = unit.narrative.splitlines()
    assert [line[:20] for line in lines] == ["2025-03-10 09:01 Ana", "2025-03-10 09:01 Ana", "2025-03-10 09:04 Bo:"]
    assert "May 7, 2023" in lines[0] and "Luis" in lines[1] and "every Tuesday and Thursday at 8 am" in lines[2]


async def test_units_grow_and_are_read_in_pages(extracting_memory: Memory) -> None:
    memory = extracting_memory
    for day in range(3):
        await memory.add(talk(SAID[:1], AT + timedelta(days=day)), user_id="mei", session_id="s1")
    await memory.add(talk(SAID[1:2], AT + timedelta(days=2, minutes=5)), user_id="mei", session_id="s1")
    first = await memory.usage.units(user_id="mei", session_id="s1", limit=2)
    rest = await memory.usage.units(user_id="mei", session_id="s1", limit=2, cursor=first.next_cursor)
    assert [unit.started_at.day for unit in (*first, *rest)] == [12, 11, 10] and rest.next_cursor is None
    assert first.items[0].participants == ("Ana", "Bo") and "杭州" in first.items[0].summary


async def test_what_was_deleted_is_in_no_unit(extracting_memory: Memory) -> None:
    memory = extracting_memory
    await memory.add(talk(SAID), user_id="mei", session_id="s1")
    [hit, *_] = await memory.search("花生", user_id="mei")
    await memory.delete(hit.id, user_id="mei", with_sources=True)
    [unit] = await memory.usage.units(user_id="mei")
    assert "花生" not in unit.model_dump_json() and "杭州" in unit.narrative
    await memory.delete_all("mei")
    assert not (await memory.usage.units(user_id="mei")).items


def spread(*minutes: float, last: str = "By the way, the tram is late.") -> list[dict[str, object]]:
    """Return messages at these minutes; the last one says something else."""
    texts = [*(f"The tram number {number} was late." for number in range(len(minutes) - 1)), last]
    return [
        {"role": "user", "content": text, "sent_at": AT + timedelta(minutes=minute)}
        for text, minute in zip(texts, minutes, strict=True)
    ]


@pytest.mark.parametrize(
    ("messages", "sizes"),
    [
        (spread(0, 60, last="The tram is late again."), [2]),
        (spread(0, 60.1, last="The tram is late again."), [1, 1]),
        (spread(70, 10, last="The tram is late again."), [2]),
        (spread(0, 1, 2, 3), [4]),
        (spread(0, 1, 2, 3, 4), [4, 1]),
        (spread(0, 1, 2, 100, 101), [3, 2]),
        (spread(0, 1, 2, 3, 4, last="Oslo Bergen Stavanger Tromsø Bodø Narvik"), [4, 1]),
        (spread(0, 1, 2, 3, 4, last="Oslo Bergen Stavanger Tromsø Bodø"), [5]),
        (spread(0, 1, 2, 3, 4, last="tram Oslo Bergen Stavanger Tromsø Bodø Narvik"), [5]),
        (spread(*range(41), last="The tram is late again."), [40, 1]),
    ],
    ids=["an hour", "longer", "back", "fourth", "fifth", "after a pause", "topic", "short", "shared word", "long"],
)
@pytest.mark.parametrize("together", [True, False])
async def test_a_unit_ends_with_a_pause_a_topic_or_its_length(
    extracting_memory: Memory, path: Path, messages: list[dict[str, object]], sizes: list[int], together: bool
) -> None:
    for some in [messages] if together else [messages[:-2], messages[-2:-1], messages[-1:]]:
        if some:
            await extracting_memory.add(some, user_id="mei", session_id="s1")
    units = await extracting_memory.usage.units(user_id="mei")
    assert [len(unit.messages) for unit in reversed(units.items)] == sizes


async def test_each_participant_has_an_episode_of_their_own_and_it_tells_the_unit(tmp_path: Path) -> None:
    said = [
        ("user", "Ana", "I'm allergic to peanuts."),
        ("user", "Bo", "I moved to Lisbon and found a flat."),
        ("user", "Ana", "Bo, bring no peanuts to the party!"),
    ]
    episodes = [
        {
            "participant": "Ana",
            "title": "Ana asks Bo to bring no peanuts",
            "content": "Ana told that Ana is allergic to peanuts and asked Bo to bring no peanuts to the party.",
            "messages": [1, 3],
        },
        {
            "participant": "Bo",
            "title": "Bo moved to Lisbon",
            "content": "Bo told that Bo moved to Lisbon and found a flat.",
            "messages": [2],
        },
    ]
    model = ScriptedLLM(json.dumps({"memories": [], "episodes": episodes}))
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(), llm=model) as memory:
        await memory.add(talk(said), user_id="mei", session_id="s1")
        told = {item.data["subject"]: item for item in await memory.list(user_id="mei", memory_types=["episode"])}
        assert told["Ana"].content == episodes[0]["content"] and told["Bo"].content == episodes[1]["content"]
        assert [len(told[name].source_ids) for name in ("Ana", "Bo")] == [2, 1]
        [unit] = await memory.usage.units(user_id="mei")
        assert unit.subject == episodes[0]["title"]
        assert unit.narrative == f"{episodes[0]['content']}\n{episodes[1]['content']}"
