"""Texts of the largest size: the event loop, which answers everybody, never works on them for long, and every call ends
in a bounded time with everything stored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from time import process_time, thread_time
from typing import Any, TypeVar

import pytest

from jiyi import Memory
from jiyi.agents.recall import recall
from jiyi.embed import BuiltinEmbedder
from jiyi.validation import MAX_QUERY, MAX_TEXT
from support import cpu_unit

T = TypeVar("T")

ENDED = "I sold my car. "
PARTS = {
    "ended things": ENDED,
    "statements": "I live in Rome, work at Acme as a cook, and my wife Petra drives a red Fiat. ",
    "run-on in Chinese": "我姐姐说我搬到上海了所以我们把车卖了而且",
    "dates": "2023-05-07 last May at 3pm, yesterday, 上周五, ",
    "recalled blocks": "<jiyi-memory>\n- I live in Rome\n</jiyi-memory>\n",
    "marks": "\u0301\u0316",
    "names": "My wife Petra and our son Ben met Dr. Ann Lee-Smith. ",
}
# In units of the CPU time of this machine (`cpu_unit`, about 0.03 s).
LONGEST_STEP = 4.5  # of the loop between two turns of everybody else; a thread has more than one step
LONGEST_CALL = 450


def text_of(part: str, length: int = MAX_TEXT) -> str:
    return f"I like {part * (length // len(part) + 1)}"[: length - 1] + "."


class Pulse:
    """Measures the longest step of the event loop, in CPU time of its thread: other processes do not count."""

    longest = 0.0

    async def beat(self) -> None:
        while True:
            before = thread_time()
            await asyncio.sleep(0.002)
            self.longest = max(self.longest, thread_time() - before)


async def bounded(verb: Awaitable[T]) -> T:
    """Await a verb, and check its CPU time and that of the longest step of the loop meanwhile."""
    pulse = Pulse()
    beating = asyncio.create_task(pulse.beat())
    await asyncio.sleep(0.01)
    began = process_time()
    try:
        return await verb
    finally:
        took = process_time() - began
        await asyncio.sleep(0.005)
        beating.cancel()
        unit = cpu_unit()
        assert pulse.longest < LONGEST_STEP * unit, f"the loop worked {pulse.longest:.2f} s at once"
        assert took < LONGEST_CALL * unit, f"it took {took:.1f} s of CPU time, where a unit takes {unit:.3f} s"


@pytest.fixture
async def memory(path: Path) -> AsyncIterator[Memory]:
    """A user who has stored texts of the largest size; what is only loaded once is loaded."""
    async with Memory.open(path, embedder=BuiltinEmbedder()) as opened:
        await opened.add([{"role": "user", "content": "I sold my car last May. 我把车卖了。" * 60}], user_id="warm")
        await opened.context("Which car did I sell? 哪辆车？", user_id="warm")
        for number, part in enumerate(PARTS.values()):
            await opened.add(f"{number}: {text_of(part, MAX_TEXT - 10)}", user_id="mei")
        yield opened


@pytest.mark.parametrize("kind", PARTS)
async def test_a_long_statement_or_message_holds_up_nobody(memory: Memory, kind: str) -> None:
    text = text_of(PARTS[kind])
    said = await bounded(memory.add([{"role": "user", "content": text}], user_id="mei", session_id="s"))
    assert kind == "recalled blocks" or said.memories[0].content == text
    told = await bounded(memory.add(text, user_id="mei"))
    assert told.memories[0].content == text


@pytest.mark.usefixtures("changes_are_read")
async def test_a_text_of_a_thousand_endings_holds_up_nobody_and_stops_no_other(memory: Memory) -> None:
    [car] = (await memory.add("I drive a blue Golf.", user_id="bo")).memories
    await memory.add(text_of(PARTS["names"]), user_id="bo")
    await bounded(memory.add((ENDED * 13_333)[:MAX_TEXT], user_id="bo"))
    await bounded(memory.add("I sold the Golf yesterday.", user_id="bo"))
    actions = [revision.action for revision in await memory.history(car.id, user_id="bo")]
    assert actions.count("supersede") == 1


async def test_many_long_messages_are_all_stored(memory: Memory) -> None:
    texts = [f"{number} {text_of(PARTS['statements'], MAX_TEXT - 10)}" for number in range(20)]
    receipt = await bounded(memory.add([{"role": "user", "content": text} for text in texts], user_id="bo"))
    page = await bounded(memory.messages(user_id="bo", limit=1000))
    assert {one.text for one in page.items} == set(texts) and receipt.problems


async def test_many_changes_at_once_are_bounded(memory: Memory) -> None:
    many = [f"We sold the thing number {number} and cancelled the plan {number}." for number in range(1500)]
    receipt = await bounded(memory.add([{"content": one} for one in many], user_id="mei"))
    assert receipt.created == len(many)


async def test_a_call_that_runs_out_of_time_stores_everything_and_says_so(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jiyi.write.add.COMPARING_S", -1.0)
    text = " ".join(f"My phone number is 555 0{number}." for number in range(60))
    receipt = await memory.add([{"role": "user", "content": text}], user_id="bo")
    assert [one.content for one in receipt.memories] == [text] and "CPU time" in receipt.problems[-1]
    receipt = await memory.add([ENDED * 100, text], user_id="bo")
    assert receipt.created == 2 and "CPU time" in receipt.problems[-1]


@pytest.mark.parametrize("kind", ["statements", "run-on in Chinese", "dates", "marks"])
async def test_a_change_to_a_long_text_holds_up_nobody(memory: Memory, kind: str) -> None:
    [told] = (await memory.add("I like tea.", user_id="mei")).memories
    text = text_of(PARTS[kind])
    changed = await bounded(memory.update(told.id, user_id="mei", content=text, summary=text, reason=text))
    assert changed.content == text
    await bounded(memory.history(told.id, user_id="mei"))
    await bounded(memory.restore(told.id, user_id="mei"))


@pytest.mark.parametrize("kind", ["ended things", "run-on in Chinese", "dates", "names"])
async def test_reading_long_memories_holds_up_nobody(memory: Memory, kind: str) -> None:
    query = text_of(PARTS[kind], MAX_QUERY)
    mine: Any = {"user_id": "mei"}
    found = await bounded(memory.search(query, limit=100, explain=True, **mine))
    assert found.hits and found.hits[0].explanation
    for most in (400, 1_000_000):
        assert await bounded(memory.context("Where does Petra live? 我住在哪里？", max_tokens=most, **mine))
        assert (await bounded(recall(memory, "Which car did I sell?", max_tokens=most, **mine))).block
        await bounded(memory.context(query, max_tokens=most, **mine))
    await bounded(memory.recall(query, **mine, explain=True))


async def test_overviews_of_long_memories_hold_up_nobody(memory: Memory, tmp_path: Path) -> None:
    mine: Any = {"user_id": "mei"}
    await bounded(memory.list(limit=1000, **mine))
    await bounded(memory.timeline(limit=1000, **mine))
    await bounded(memory.usage.profile(limit=1000, **mine))
    await bounded(memory.usage.changes(limit=1000, **mine))
    await bounded(memory.usage.units(limit=1000, **mine))
    assert any(one.name == "Rome" for one in await bounded(memory.usage.subjects(**mine)))
    assert await bounded(memory.usage.mentions("Rome", **mine))
    await bounded(memory.usage.review(limit=1000, **mine))
    await bounded(memory.transfer.export(tmp_path / "a.jsonl", **mine))
    await bounded(memory.transfer.export(tmp_path / "a.md", format="markdown", **mine))
    assert (await bounded(memory.maintenance.verify(**mine))).sound
    await bounded(memory.maintenance.compress_plan(**mine))
    await bounded(memory.delete_all("mei"))
