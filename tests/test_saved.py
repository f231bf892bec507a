"""A saved text is judged by the language model in the background: `add` does not wait for it, and a bad judgement
loses nothing."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.errors import LlmUnavailable
from jiyi.llm import LLMRequest, Reply
from jiyi.testing import ScriptedLLM, WordEmbedder
from support import MONDAY, stored


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


# -- which pairs are judged, and what a judgement changes -------------------------------------------------------------

BIKE, MOVED = "The red bicycle stands in the cellar", "The red bicycle stands in the garden now"


class Desk:
    """A memory whose saved texts are judged alike; `pairs` are the old and new texts that the model was shown."""

    def __init__(self, path: Path, action: str) -> None:
        self.model = ScriptedLLM(judged(action))
        self.memory = Memory.open(path, llm=self.model, embedder=WordEmbedder(512))

    async def __aenter__(self) -> Desk:
        await self.memory.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.memory.__aexit__(*error)

    async def save(self, *texts: Any, **how: Any) -> list[str]:
        receipt = await self.memory.add(list(texts), user_id="mei", **how)
        await self.memory.jobs.work()
        return [one.id for one in receipt.memories]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        lines = [line for request in self.model.requests for line in request.user.splitlines() if line.startswith("[")]
        texts = [line.partition("): ")[2] for line in lines]
        return list(zip(texts[::2], texts[1::2], strict=True))

    async def current(self) -> set[str]:
        return {one.content for one in await stored(self.memory)}


async def test_a_stored_memory_is_judged_with_one_saved_text_only(path: Path) -> None:
    async with Desk(path, "keep_both") as desk:
        await desk.save(BIKE)
        await desk.save(MOVED, "The red bicycle stands in the hall today")
        assert len(desk.pairs) == 1 and desk.pairs[0][0] == BIKE


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"agent_id": "a"}, {}),
        ({"group_id": "g"}, {}),
        ({}, {"agent_id": "a"}),
        ({}, {"group_id": "g"}),
        ({"trust": 0.5}, {}),
    ],
)
async def test_only_memories_of_the_same_agent_group_and_trust_are_judged(
    path: Path, first: dict[str, Any], then: dict[str, Any]
) -> None:
    async with Desk(path, "supersede") as desk:
        await desk.save(BIKE, **first)
        await desk.save(MOVED, **then)
        assert desk.pairs == []


async def test_a_text_that_ends_is_not_judged(path: Path) -> None:
    ends = datetime.now(UTC) + timedelta(days=9)
    async with Desk(path, "supersede") as desk:
        await desk.save({"content": BIKE, "valid_to": ends})
        await desk.save(MOVED)
        await desk.save({"content": "The red bicycle stands in the hall", "valid_to": ends})
        assert desk.pairs == []


async def test_an_edited_or_unlike_memory_is_not_judged(path: Path) -> None:
    async with Desk(path, "supersede") as desk:
        [edited, _] = await desk.save(BIKE, "Tom sells warm bread near the station every morning")
        await desk.memory.update(edited, user_id="mei", importance=0.9)
        await desk.save(MOVED)
        assert desk.pairs == [] and BIKE in await desk.current()


@pytest.mark.parametrize(("number", "asked"), [(8, 8), (9, 0)])
async def test_more_than_eight_texts_are_an_import_and_not_judged(path: Path, number: int, asked: int) -> None:
    names = ("apples", "bread", "cheese", "dates", "eggs", "flour", "grapes", "honey", "icing")[:number]
    async with Desk(path, "keep_both") as desk:
        await desk.memory.add([f"shelf {name} {name} holds" for name in names], user_id="mei")
        await desk.memory.jobs.work()
        desk.model.requests.clear()
        await desk.save(*(f"shelf {name} {name} holds wares" for name in names))
        assert len(desk.pairs) == asked


@pytest.mark.parametrize(("days", "holds"), [(0, True), (1, False)])
async def test_a_saved_text_ends_only_older_ones(path: Path, days: int, holds: bool) -> None:
    async with Desk(path, "supersede") as desk:
        await desk.save(BIKE, occurred_at=MONDAY)
        await desk.save(MOVED, occurred_at=MONDAY + timedelta(days=days))
        assert desk.pairs == [(BIKE, MOVED)] and (BIKE in await desk.current()) is holds


async def test_a_text_that_says_less_ends_and_leaves_its_tags(path: Path) -> None:
    whole = "The red bicycle stands in the cellar behind the wine rack"
    async with Desk(path, "ignore") as desk:
        await desk.save(whole, tags=["wine"])
        [less] = await desk.save(BIKE, tags=["bike"], importance=0.9)
        [kept] = await stored(desk.memory)
        assert (kept.content, set(kept.tags), kept.importance) == (whole, {"wine", "bike"}, 0.9)
        ended = await desk.memory.get(less, user_id="mei")
        assert ended.superseded_by == kept.id
        [relation] = await desk.memory.relations.list(less, user_id="mei")
        assert (relation.memory_id, relation.target_id, relation.relation_type) == (kept.id, less, "refines")


async def test_a_text_that_has_changed_takes_no_second_memory_s_place(path: Path) -> None:
    async with Desk(path, "replace") as desk:
        await desk.save("The red bicycle stands in the cellar", "The wine rack stands in the cellar", tags=["old"])
        desk.model.requests.clear()
        await desk.save("The red bicycle and the wine rack stands in the cellar", tags=["new"])
        assert len(desk.pairs) == 2 and len(await desk.current()) == 2


async def test_of_more_than_eight_pairs_the_most_similar_are_judged(path: Path) -> None:
    async with Desk(path, "keep_both") as desk:
        kinds = ("apples", "bread", "cheese")
        await desk.save(*(f"{kind} {kind} {kind} lie on shelf {at}" for kind in kinds for at in range(1, 5)))
        await desk.save(
            "apples apples apples come with the old green van today",
            "bread bread bread lie on shelf 9",
            "cheese cheese cheese lie on shelf 9",
        )
        assert sorted(old.split()[0] for old, _ in desk.pairs) == ["bread"] * 4 + ["cheese"] * 4
