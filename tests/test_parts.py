"""A saved text with several facts: when one of them ends, the others are kept and the text stays in the history."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.testing import WordEmbedder
from jiyi.write.parts import parts_of, rest_of
from support import MONDAY

CHANGES = [
    ("I live in Rome, and my dog is called Rex.", "We moved to Milan", ["my dog is called Rex."]),
    ("我住在罗马，我的狗叫 Rex。", "我搬到米兰了", ["我的狗叫 Rex。"]),
    ("I'm 34. I live in Rome. I love jazz.", "I moved to Milan.", ["I'm 34. I love jazz."]),
    ("我住在上海，在银行上班，养了一只猫", "我搬到杭州了", ["在银行上班，养了一只猫"]),
    ("I live in Rome and work at Fiat", "We moved to Milan", ["work at Fiat"]),
    ("我对花生过敏，住在北京。", "我搬到上海了", ["我对花生过敏"]),
    ("The WiFi password is AbCd1234 and the door code is 4711.", "The WiFi password is now Xy99zz",
     ["the door code is 4711."]),
    ("I live in Rome.", "We moved to Milan", []),
    ("My sister lives in Oslo and I live in Rome.", "I moved to Milan.", ["My sister lives in Oslo"]),
]  # fmt: skip


@pytest.fixture
async def memory(tmp_path: Path):
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(64)) as opened:
        yield opened


async def held(memory: Memory) -> list[str]:
    return sorted(item.content for item in await memory.list(user_id="mei"))


@pytest.mark.parametrize(("saved", "change", "rest"), CHANGES)
@pytest.mark.parametrize("said", [False, True], ids=["saved", "said"])
async def test_the_rest_of_a_saved_text_holds(
    saved: str, change: str, rest: list[str], said: bool, memory: Memory
) -> None:
    [first] = (await memory.add(saved, user_id="mei", tags=["me"], importance=0.9, metadata={"by": "Mei"})).memories
    assert first.content == saved
    await memory.add([{"role": "user", "content": change}] if said else change, user_id="mei")
    left = [item for item in await memory.list(user_id="mei") if not item.content.startswith(change.rstrip("."))]
    assert [item.content for item in left] == rest
    assert all((item.tags, item.importance, item.metadata) == (("me",), 0.9, {"by": "Mei"}) for item in left)
    whole = await memory.get(first.id, user_id="mei")
    assert whole.content == saved
    assert whole.valid_to is not None


@pytest.mark.usefixtures("changes_are_read")
@pytest.mark.parametrize("said", [False, True], ids=["saved", "said"])
async def test_the_reader_ends_one_claim_of_a_saved_text(said: bool, memory: Memory) -> None:
    saved, change = "I drive a Honda Civic, and my dog Rex is five.", "We sold the Civic yesterday."
    [first] = (await memory.add(saved, user_id="mei", tags=["me"])).memories
    await memory.add([{"role": "user", "content": change}] if said else change, user_id="mei")
    [left] = [item for item in await memory.list(user_id="mei") if not item.content.startswith(change.rstrip("."))]
    assert (left.content, left.tags) == ("my dog Rex is five.", ("me",))
    assert (await memory.get(first.id, user_id="mei")).valid_to is not None
    assert (await memory.search("How old is Rex?", user_id="mei")).hits[0].content == "my dog Rex is five."
    await memory.delete(first.id, user_id="mei")
    assert left.id not in [item.id for item in await memory.list(user_id="mei")]


@pytest.mark.usefixtures("changes_are_read")
async def test_messages_of_one_call_end_what_earlier_ones_said(memory: Memory) -> None:
    texts = ("I drive a Honda Civic.", "We sold the Civic.", "I love jazz.")
    told = [
        {"role": "user", "content": text, "sent_at": MONDAY + timedelta(days=day)} for day, text in enumerate(texts)
    ]
    await memory.add(told, user_id="mei")
    assert "I drive a Honda Civic." not in await held(memory) and "I love jazz." in await held(memory)
    past = await memory.search("Civic", user_id="mei", as_of=MONDAY + timedelta(hours=1))
    assert "I drive a Honda Civic." in [hit.content for hit in past.hits]


async def test_what_is_left_can_end_too(memory: Memory) -> None:
    await memory.add("I'm 34. I live in Rome. I work at Fiat.", user_id="mei")
    await memory.add("I moved to Milan.", user_id="mei")
    await memory.add("I now work at Ferrari.", user_id="mei")
    assert await held(memory) == ["I moved to Milan.", "I now work at Ferrari.", "I'm 34."]


async def test_what_is_left_without_its_subject_can_end_too(memory: Memory) -> None:
    for text in ("我住在上海，在银行上班，养了一只猫", "我搬到杭州了", "我现在在华为上班"):
        await memory.add(text, user_id="mei")
    assert await held(memory) == ["养了一只猫", "我搬到杭州了", "我现在在华为上班"]


async def test_a_part_that_is_said_again_changes_nothing(memory: Memory) -> None:
    await memory.add("I live in Rome, and my dog is called Rex.", user_id="mei")
    await memory.add([{"role": "user", "content": "I live in Rome."}], user_id="mei")
    assert "I live in Rome, and my dog is called Rex." in await held(memory)


async def test_deleting_the_text_deletes_its_rest(memory: Memory) -> None:
    [first] = (await memory.add("I live in Rome, and my dog is called Rex.", user_id="mei")).memories
    await memory.add("We moved to Milan", user_id="mei")
    await memory.delete(first.id, user_id="mei")
    assert await held(memory) == ["We moved to Milan"]


async def test_deleting_the_change_restores_the_text(memory: Memory) -> None:
    await memory.add("我住在罗马，我的狗叫 Rex。", user_id="mei")
    changed = await memory.add("我搬到米兰了", user_id="mei")
    [milan] = [one.id for one in changed.memories if one.content == "我搬到米兰了"]
    await memory.delete(milan, user_id="mei")
    assert await held(memory) == ["我住在罗马，我的狗叫 Rex。"]


def test_a_rest_keeps_everything_else_in_order() -> None:
    text = "I'm 34. I live in Rome. I love jazz."
    parts = parts_of(text)
    assert "".join(part.text for part in parts).replace(" ", "") == text.replace(" ", "")
    assert [rest_of(text, parts, [one]) for one in parts] == [
        "I live in Rome. I love jazz.",
        "I'm 34. I love jazz.",
        "I'm 34. I live in Rome.",
    ]


async def test_a_statement_that_repeats_what_is_left_of_another_drops_nothing(memory: Memory) -> None:
    await memory.add("I live in Rome. We moved to Bari.", user_id="mei")
    receipt = await memory.add("I live in Rome.", user_id="mei")
    assert receipt.problems == ()
    assert [one.content for one in (await memory.list(user_id="mei")).items] == ["I live in Rome."]
