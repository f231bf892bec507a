"""From a conversation to memories, by the built-in extractor: in `add`, in both languages, without a key."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors import SpelledOut
from jiyi import Memory, ReceiptState, StoreError
from jiyi.testing import WordEmbedder
from jiyi.write.derive import segment
from jiyi.write.drafts import Said
from support import DAY, Place, dump, stored

MAY = datetime(2024, 5, 7, 9, tzinfo=UTC)
ZH = ["我吃素，对花生过敏", "我住在柏林", "我不住柏林了，搬到慕尼黑了"]
EN = ["I'm allergic to peanuts", "I live in Berlin", "I moved from Berlin to Munich"]


def talk(*texts: str, first: datetime = MAY, step: timedelta = timedelta(minutes=1)) -> list[dict[str, Any]]:
    return [
        {"role": "user", "name": "Mei", "content": text, "sent_at": first + at * step} for at, text in enumerate(texts)
    ]


@pytest.fixture
async def memory(place: Place) -> AsyncIterator[Memory]:
    """With all defaults but the embedder."""
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        yield memory


@pytest.mark.parametrize(("said", "city"), [(ZH, "慕尼黑"), (EN, "Munich")], ids=["zh", "en"])
async def test_a_conversation_becomes_memories_that_name_their_messages(
    memory: Memory, said: list[str], city: str
) -> None:
    receipt = await memory.add(talk(*said, step=DAY), user_id="mei", session_id="s")
    assert receipt.state is ReceiptState.INDEXED
    assert [one.content for one in receipt.memories if one.memory_type == "message"] == said
    facts = await stored(memory, memory_types=["fact"])
    assert any("花生" in one.content or "peanut" in one.content for one in facts)
    assert not {"Mei住在柏林", "Mei lives in Berlin"} & {one.content for one in facts}
    assert any(city in one.content for one in facts)
    for one in facts:
        assert len(one.source_ids) >= 1 and one.source == "extracted"
    then = await stored(memory, memory_types=["fact"], as_of=MAY + DAY + timedelta(hours=1))
    assert any("柏林" in one.content or "Berlin" in one.content for one in then)


async def test_a_statement_stays_as_it_is_and_ends_what_it_contradicts(memory: Memory) -> None:
    rome = (await memory.add("I live in Rome", user_id="mei")).memories
    oslo = (await memory.add("I live in Oslo", user_id="mei")).memories
    assert [one.content for one in (*rome, *oslo)] == ["I live in Rome", "I live in Oslo"]
    assert [one.content for one in await stored(memory)] == ["I live in Oslo"]
    assert (await memory.get(rome[0].id, user_id="mei")).superseded_by == oslo[0].id
    both = (await memory.add("我吃素，对花生过敏", user_id="mei")).memories
    assert [one.content for one in both] == ["我吃素，对花生过敏"]


async def test_a_statement_that_only_touches_a_thing_ends_nothing(memory: Memory) -> None:
    """Rules misread sentences; what somebody stated must not vanish by that."""
    said = [
        "I moved to Berlin in May and rent a flat near the canal",
        "下周三去上海出差，住在静安寺附近",  # for some nights
        "项目代号是ＡＬＰＨＡ－７",
        "合同编号是 HT-2024-0317",
        "我叫林梅",
        "养了一只橘猫，名字叫豆腐",
    ]
    await memory.add(said, user_id="mei")
    assert await memory.count(user_id="mei", memory_types=["fact"]) == len(said)


async def test_message_after_message_is_as_all_at_once(path: Path, tmp_path: Path) -> None:
    said = talk(*EN, *ZH, "By the way, my sister Anna is a doctor", step=timedelta(minutes=20))

    async def made(where: Path, parts: list[list[dict[str, Any]]]) -> set[tuple[str, str]]:
        async with Memory.open(where, embedder=WordEmbedder()) as memory:
            for part in parts:
                await memory.add(part, user_id="mei", session_id="s")
            kept = await stored(memory)
            units = sorted(len([row for row in dump(where)["unit_messages"] if row[2] == unit[1]])
                           for unit in dump(where)["units"])  # fmt: skip
            return {(one.memory_type, one.content) for one in kept if one.memory_type != "episode"} | {
                ("units", str(units))
            }

    assert await made(path, [said]) == await made(tmp_path / "other.db", [[one] for one in said])


async def test_recalled_text_that_was_pasted_makes_nothing_new(memory: Memory) -> None:
    await memory.add(talk(*EN), user_id="mei", session_id="s")
    before = len(await stored(memory))
    block = await memory.context("peanuts", user_id="mei", max_tokens=400)
    assert "peanuts" in str(block)
    for role in ("user", "assistant"):
        await memory.add([{"role": role, "content": str(block)}], user_id="mei", session_id="t")
    assert len(await stored(memory)) == before
    mixed = await memory.add([{"role": "user", "content": f"{block}\nI have a cat"}], user_id="mei", session_id="t")
    assert all("peanut" not in one.content for one in mixed.memories if one.memory_type != "profile")


async def test_extraction_can_be_switched_off(path: Path) -> None:
    from conftest import verbatim

    async with Memory.open(path, settings=verbatim(), embedder=WordEmbedder()) as memory:
        await memory.add(talk(*EN), user_id="mei")
        assert {one.memory_type for one in await stored(memory)} == {"message"}


# -- units ------------------------------------------------------------------------------------------------------------

WORDS = [
    "the red fox jumped over a fence today",
    "我们周末去爬山",
    "ok",
    "by the way, taxes",
    "换个话题吧",
    "tea please",
]
SAID = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.sampled_from(WORDS), st.integers(-30, 90)))


@given(SAID, st.data())
def test_any_division_gives_the_same_units(said: list[tuple[str, str, int]], data: st.DataObject) -> None:
    at, messages = MAY, []
    for number, (role, text, pause) in enumerate(said):
        at += timedelta(minutes=pause)
        messages.append(Said(id=str(number), role=role, speaker=None, text=text, sent_at=at))
    _, whole = segment(messages, [], most=7)
    parts: list[list[Said]] = []
    rest = messages
    while rest:
        some = data.draw(st.integers(1, len(rest)))
        grows, stretches = segment(rest[:some], parts[-1] if parts else [], most=7)
        if grows:
            parts[-1] += stretches.pop(0)
        parts += stretches
        rest = rest[some:]
    assert parts == whole
    assert [message for unit in whole for message in unit] == messages
    assert all(len(unit) <= 7 for unit in whole)


def test_a_pause_a_turn_and_length_begin_a_unit() -> None:
    def sizes(*said: tuple[str, int]) -> list[int]:
        at, messages = MAY, []
        for number, (text, pause) in enumerate(said):
            at += timedelta(minutes=pause)
            messages.append(Said(id=str(number), role="user", speaker=None, text=text, sent_at=at))
        return [len(unit) for unit in segment(messages, [], most=5)[1]]

    assert sizes(("a", 0), ("b", 61), ("c", 60)) == [1, 2]
    assert sizes(*[("a", 0)] * 7) == [5, 2]
    assert sizes(*[("tea", 0)] * 4, ("对了，明天几点开会？", 0)) == [4, 1]
    assert sizes(("tea", 0), ("By the way, when do we meet?", 0)) == [2]


# -- triggers ---------------------------------------------------------------------------------------------------------


async def test_an_observed_turn_is_stored(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        for at in range(20):
            await memory.observe(f"My favourite number is {at}", "Noted.", user_id="mei", session_id="s")
        assert (await memory.usage.observed()).accepted == 20
        assert await memory.count(user_id="mei", memory_types=["message"]) == 40


async def test_observing_raises_nothing_but_counts(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        with caplog.at_level(logging.WARNING):
            await memory.observe("", user_id="mei")
            await memory.observe("\ud800", user_id="mei")
            await memory.observe("fine", user_id="")
            await memory.observe(None, 7, user_id=None)  # type: ignore[arg-type]
            await memory.observe("I like tea", user_id="mei")
            counted = await memory.sessions.flush()
        assert (counted.accepted, counted.failed, counted.waiting) == (1, 4, 0)
        assert caplog.text.count("was not stored") == 4
        caplog.clear()
        for wrong in ((["hi"], None), ("hi", [{"role": "assistant", "content": "hello"}])):
            await memory.observe(*wrong, user_id="mei")  # type: ignore[arg-type]
        assert "user_text: must be a text; `sessions.observe` takes the messages" in caplog.text
        assert "assistant_text: must be a text" in caplog.text
        for wrong in ("hi", [], None, {"role": "user", "content": "hi"}):
            await memory.sessions.observe(wrong, user_id="mei")  # type: ignore[arg-type]
        assert caplog.text.count("messages: must be a list of messages; `observe` takes the texts") == 4
        await memory._engine.store.close()
        await memory.observe("the store is gone", user_id="mei")
        assert (await memory.sessions.flush()).failed == 11
        with pytest.raises(StoreError):
            await memory.count(user_id="mei")


async def test_the_end_of_a_session_waits_for_its_jobs(place: Place) -> None:
    from extractors import SpelledOut

    model = SpelledOut(gate=asyncio.Event())
    async with Memory.open(place, embedder=WordEmbedder(), extractor=model) as memory:
        await memory.observe("Mei home = Rome", user_id="mei", session_id="s")
        await memory.observe("Tom home = Oslo", user_id="mei", session_id="t")
        while not any(job.session_id == "s" for job in await memory.jobs.list(user_id="mei")):
            await asyncio.sleep(0.01)
        ending = asyncio.create_task(memory.sessions.end("s", user_id="mei"))
        await asyncio.sleep(0.3)
        assert not ending.done()
        model.gate.set()  # type: ignore[union-attr]
        [receipt] = await ending
        assert receipt.state is ReceiptState.INDEXED


async def test_a_summary_is_kept_as_an_episode(memory: Memory) -> None:
    receipt = await memory.sessions.add_summary("We planned the trip to Shanghai", user_id="mei", session_id="s")
    assert [(one.memory_type, one.session_id) for one in receipt.memories] == [("episode", "s")]


async def test_a_skill_that_succeeded_is_found_again(memory: Memory) -> None:
    steps = ["web_search", {"tool": "read_url", "depth": 2}, "summarize"]
    [skill] = (
        await memory.sessions.record_skill("deep research", steps, user_id="mei", note="took 3 minutes")
    ).memories
    assert (skill.memory_type, skill.layer) == ("skill", "procedural")
    assert skill.content == "deep research: web_search → read_url → summarize (took 3 minutes)"
    assert skill.data["workflow"][1] == {"step": 2, "tool": "read_url", "depth": 2}  # type: ignore[index,call-overload]
    assert (
        await memory.sessions.record_skill("deep research", steps, user_id="mei", note="took 3 minutes")
    ).created == 0
    await memory.sessions.record_skill("deep research", ["ask", "summarize"], user_id="mei")
    assert [one.content for one in await stored(memory)] == ["deep research: ask → summarize"]
    with pytest.raises(ValueError, match="workflow"):
        await memory.sessions.record_skill("x", "web_search", user_id="mei")


async def test_an_extractor_that_hangs_does_not_hold_the_message(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jiyi.write.add.DEADLINE_S", 0.05)
    monkeypatch.setattr("jiyi.write.add.DEADLINE_PER_MESSAGE_S", 0.0)
    hanging = SpelledOut(gate=asyncio.Event())
    async with Memory.open(path, embedder=WordEmbedder(), extractors=[hanging]) as memory:
        receipt = await memory.add([{"role": "user", "content": "mei home = Rome"}], user_id="mei", wait=False)
        assert "TimeoutError" in receipt.problems[0]
        assert [one.text for one in (await memory.messages(user_id="mei")).items] == ["mei home = Rome"]
        assert receipt.state == "accepted", "a job tries again"


async def test_reading_stops_when_its_time_is_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jiyi.write.add.READING_S", -1.0)
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        receipt = await memory.add([{"role": "user", "content": "I live in Rome. " * 100}], user_id="mei")
        assert [made.memory_type for made in receipt.memories] == ["message"]
        assert "kept verbatim only" in receipt.problems[0]


async def test_a_receipt_says_how_much_of_a_long_message_was_read(path: Path) -> None:
    said = [{"role": "user", "content": f"I own {number} boats in harbour {number}."} for number in range(900)]
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for text in (" ".join(one["content"] for one in said), "so many words " * 4000):
            receipt = await memory.add([{"role": "user", "content": text}], user_id="mei")
            assert "only the first 200 statements or 30,000 characters were read" in receipt.problems[0]
            assert receipt.memories[0].content.strip() == text.strip()
        receipt = await memory.add(said[:1], user_id="mei")
        assert not receipt.problems
