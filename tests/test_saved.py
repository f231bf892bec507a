"""A saved text is judged by the language model in the background: `add` does not wait for it, and a bad judgement
loses nothing."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.errors import LlmUnavailable
from jiyi.llm import LLMRequest, Reply
from jiyi.testing import ScriptedLLM


def judged(action: str, pairs: int = 8) -> str:
    return json.dumps(
        {"judgements": [{"pair": at + 1, "action": action, "reason": "so", "merged": None} for at in range(pairs)]}
    )


class Silent:
    """A model that answers only when it is told to."""

    id = "testing:silent"

    def __init__(self) -> None:
        self.answer = asyncio.Event()
        self.asked = asyncio.Event()

    async def reply(self, request: LLMRequest) -> Reply:
        self.asked.set()
        await self.answer.wait()
        return Reply(text=judged("supersede", 1), cut_off=False, usage=None)

    async def close(self) -> None:
        pass


class Down(Silent):
    async def reply(self, request: LLMRequest) -> Reply:
        raise LlmUnavailable("down")


async def saved(path: Path, llm: object, *texts: str) -> list[tuple[str, bool]]:
    """Save texts, let the jobs run, and return what is stored with whether it holds."""
    async with Memory.open(path / "memory.db", llm=llm) as memory:  # type: ignore[arg-type]
        ids = []
        for at, text in enumerate(texts):
            [item, *_] = (await memory.add(text, user_id="mei", tags=[f"t{at}"])).memories
            assert item.content == text
            ids.append(item.id)
            await memory.jobs.work()
        found = [await memory.get(one, user_id="mei") for one in ids]
        rest = [one for one in await memory.list(user_id="mei") if one.id not in ids]
        return [(one.content, one.valid_to is None) for one in (*found, *rest)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The team meets on the third floor", "The team meets in the cafeteria now, the third floor is being rebuilt"),
        ("我们的周会在三楼会议室开", "周会改到咖啡厅开了，三楼会议室在装修"),
    ],
)
async def test_what_a_saved_text_changes_has_ended(old: str, new: str, tmp_path: Path) -> None:
    assert await saved(tmp_path, ScriptedLLM(judged("supersede", 1)), old, new) == [(old, False), (new, True)]


async def test_only_the_changed_part_of_an_earlier_text_ends(tmp_path: Path) -> None:
    old = "The standup is at nine sharp in the kitchen, and my locker is next to the printer."
    new = "The standup in the kitchen starts at ten these days"
    found = await saved(tmp_path, ScriptedLLM(judged("supersede", 1)), old, new)
    assert found == [(old, False), (new, True), ("my locker is next to the printer.", True)]


@pytest.mark.parametrize("action", ["ignore", "merge", "replace"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Mei drinks her coffee black", "Mei drinks her coffee black, always without sugar"),
        ("小美喝黑咖啡", "小美喝黑咖啡，从来都是早上喝"),
    ],
)
async def test_the_longer_of_two_equal_texts_stays_with_both_tags(
    action: str, old: str, new: str, tmp_path: Path
) -> None:
    async with Memory.open(tmp_path / "memory.db", llm=ScriptedLLM(judged(action, 1))) as memory:
        for text, tag in ((old, "a"), (new, "b")):
            await memory.add(text, user_id="mei", tags=[tag])
            await memory.jobs.work()
        held = {one.content: set(one.tags) for one in await memory.list(user_id="mei")}
        assert held in ({new: {"a", "b"}}, {old: {"a"}, new: {"b"}})  # never the shorter one alone


@pytest.mark.parametrize("action", ["ignore", "merge", "replace", "supersede"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The WiFi password of the cabin is aBcD1234", "The bike lock of the cabin opens with 7788"),
        ("Mei plays the cello", "我妹妹在成都学画画"),
        ("Tom owes me 20 euros", "Nina owes me 35 euros"),
    ],
)
async def test_a_wrong_judgement_loses_no_detail(action: str, old: str, new: str, tmp_path: Path) -> None:
    found = await saved(tmp_path, ScriptedLLM(judged(action, 1)), old, new)
    if action != "supersede":
        assert found == [(old, True), (new, True)]
    assert (new, True) in found


async def test_a_judgement_to_keep_both_keeps_both(tmp_path: Path) -> None:
    texts = ("The team meets on the third floor", "The team meets on the third floor on Mondays")
    found = await saved(tmp_path, ScriptedLLM(judged("keep_both", 1)), *texts)
    assert found == [(texts[0], True), (texts[1], True)]


async def test_a_save_does_not_wait_for_the_model(tmp_path: Path) -> None:
    model = Silent()
    async with Memory.open(tmp_path / "memory.db", llm=model) as memory:
        for text in ("Mei has her cello lessons with Tom", "Mei has her cello lessons with Anna these days"):
            receipt = await memory.add(text, user_id="mei")
            assert (receipt.state, receipt.memories[0].content) == ("indexed", text)
        await model.asked.wait()
        assert len((await memory.list(user_id="mei")).items) == 2
        model.answer.set()
        await memory.jobs.work()
        assert [one.content for one in await memory.list(user_id="mei")] == [
            "Mei has her cello lessons with Anna these days"
        ]


async def test_without_an_answer_both_are_kept_and_the_receipt_says_so(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.db", llm=Down()) as memory:
        await memory.add("Mei has her cello lessons with Tom", user_id="mei")
        receipt = await memory.add("Mei has her cello lessons with Anna these days", user_id="mei")
        await memory.jobs.work()
        status = await memory.jobs.status(receipt, user_id="mei")
        assert status.state == "indexed"
        assert any("not compared" in problem for problem in status.problems)
        assert len((await memory.list(user_id="mei")).items) == 2
