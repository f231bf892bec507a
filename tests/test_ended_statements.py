"""A fact of a message ends by a later message: the message as a whole brings nothing back, and the rest of it stays."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from jiyi import Memory
from support import NOW, Place, rows_with


@pytest.fixture
async def memory(place: Place) -> AsyncIterator[Memory]:
    async with Memory.open(place) as memory:
        yield memory


ROME = "I live in Rome. My dog is called Rex."
NINGBO = "我住在宁波。我家的狗叫阿黄。"


async def told(memory: Memory, *texts: str, at_once: bool = False) -> None:
    """Add messages of ten days each, by themselves or in one call."""
    messages = [
        {"id": f"m{at}", "role": "user", "content": text, "timestamp": (NOW - timedelta(days=50 - 10 * at)).isoformat()}
        for at, text in enumerate(texts)
    ]
    for batch in [messages] if at_once else [[one] for one in messages]:
        await memory.add(batch, user_id="mei", session_id=None if at_once else str(batch[0]["id"]))


async def listed(memory: Memory) -> list[str]:
    return [one.content for one in (await memory.list(user_id="mei")).items]


CHANGES = [
    (ROME, "I moved to Milan.", "Where do I live?", "Rome", "Milan", "What is my dog called?", "Rex"),
    (NINGBO, "我搬到绍兴了。", "我住在哪里？", "宁波", "绍兴", "我的狗叫什么？", "阿黄"),
    (
        "I'm Mei, I live in Oslo and work at Acme.",
        "Last week I moved to Bergen and I now work at Globex.",
        "Where do I work?", "Acme", "Globex", "What's my name?", "Mei",
    ),
    (
        "我叫小雨，住在上海，在安克上班。",
        "我上周搬到了深圳，现在在大疆工作",
        "我在哪里工作？", "安克", "大疆", "我叫什么名字？", "小雨",
    ),
    (
        "My phone number is 555-0182. I read the paper with my coffee. We have a cabin in Jämtland.",
        "My phone number is now 555-0147.",
        "What is my phone number?", "555-0182", "555-0147", "Where is our cabin?", "Jämtland",
    ),
    (
        "我的房租是3200。房东住在国外。我室友叫阿杰。",
        "我的房租涨到3600了。",
        "我的房租是多少？", "3200", "3600", "房东住在哪里？", "房东",
    ),
]  # fmt: skip


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize(("text", "later", "question", "old", "new", "other", "kept"), CHANGES)
async def test_a_message_does_not_bring_back_what_has_ended(
    memory: Memory, text: str, later: str, question: str, old: str, new: str, other: str, kept: str, at_once: bool
) -> None:
    await told(memory, text, later, at_once=at_once)
    hits = (await memory.search(question, user_id="mei")).hits
    assert new in hits[0].content
    assert all(old not in hit.content for hit in hits if hit.relevant)
    assert text not in [hit.content for hit in hits]
    context = await memory.context(question, user_id="mei")
    assert new in context and old not in context
    assert any(kept in line for line in await listed(memory))
    assert not any(old in line for line in await listed(memory))
    assert kept in (await memory.search(other, user_id="mei")).hits[0].content


@pytest.mark.parametrize(
    ("text", "later", "past", "old"),
    [
        (ROME, "I moved to Milan.", "Where did I live before?", "I live in Rome."),
        (NINGBO, "我搬到绍兴了。", "我以前住在哪里？", "我住在宁波。"),
    ],
)
async def test_questions_about_the_past_find_the_statement(
    memory: Memory, text: str, later: str, past: str, old: str
) -> None:
    await told(memory, text, later)
    assert old in [hit.content for hit in (await memory.search(past, user_id="mei")).hits]
    then = await memory.search(past, user_id="mei", as_of=NOW - timedelta(days=45))
    assert then.hits[0].content == old


async def test_somebody_else_who_moves_ends_no_home_of_the_user(memory: Memory) -> None:
    await told(memory, "I live in Leeds with Samir.", "Samir moved out, now I live alone.")
    hits = (await memory.search("Where do I live?", user_id="mei")).hits
    assert any("Leeds" in hit.content for hit in hits if not hit.outdated)


@pytest.mark.parametrize(
    ("text", "later", "question", "old"),
    [
        (ROME, "I moved to Milan.", "Where do I live?", "Rome"),
        (NINGBO, "我搬到绍兴了。", "我住在哪里？", "宁波"),
    ],
)
@pytest.mark.parametrize("undo", [False, True])
async def test_without_the_change_the_statement_holds_again(
    memory: Memory, text: str, later: str, question: str, old: str, undo: bool
) -> None:
    await told(memory, text, later)
    if undo:
        await memory.maintenance.undo(user_id="mei", session_id="m1")
    else:
        newest = (await memory.list(user_id="mei")).items[0]
        await memory.delete(newest.id, user_id="mei")
    hits = (await memory.search(question, user_id="mei")).hits
    first = next(hit for hit in hits if hit.content != later)
    assert old in first.content and first.relevant


async def test_deleting_an_ended_fact_leaves_no_byte_of_it(memory: Memory, place: Place) -> None:
    await told(memory, ROME, "I moved to Milan.", NINGBO, "我搬到绍兴了。")
    for word in ("Rome", "宁波"):
        ended = [one for one in (await memory.timeline(user_id="mei")).items if word in one.content]
        await memory.delete_many([one.id for one in ended], user_id="mei")
        assert rows_with(place, word) == {}
    assert {"Rex", "阿黄"} <= {word for word in ("Rex", "阿黄") if any(word in line for line in await listed(memory))}


async def test_a_history_that_is_sent_again_adds_nothing(memory: Memory) -> None:
    for _ in range(2):
        await told(memory, ROME, "I moved to Milan.", at_once=True)
        number = len((await memory.list(user_id="mei", memory_types=["message", "fact"])).items)
    await told(memory, ROME, "I moved to Milan.", at_once=True)
    assert len((await memory.list(user_id="mei", memory_types=["message", "fact"])).items) == number
