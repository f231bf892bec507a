"""Instructions and categories: what a language model is to remember and what never, and the tags it may give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jiyi import InvalidInput, Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from test_llm_inputs import Model

CASES = [
    (
        "I eat no pork, and the implant costs 900 euros.",
        {"messages": [1], "quote": "I eat no pork", "type": "preference", "text": "Mei eats no pork.",
         "tags": ["Diet", "health", "food"]},
        "Never remember prices.", ("diet: food and allergies", "work"), ("diet",),
    ),
    (
        "我不吃猪肉，种牙要九千块。",
        {"messages": [1], "quote": "我不吃猪肉", "type": "preference", "text": "小美不吃猪肉。",
         "tags": ["饮食", "健康"]},
        "不要记价格。", ("饮食：吃的和过敏", "工作"), ("饮食",),
    ),
]  # fmt: skip


@pytest.mark.parametrize("where", ["settings", "user", "call"])
@pytest.mark.parametrize(("said", "proposed", "instructions", "categories", "tags"), CASES)
async def test_wishes_are_part_of_the_prompt_and_categories_come_back_as_tags(
    where: str,
    said: str,
    proposed: dict[str, Any],
    instructions: str,
    categories: tuple[str, ...],
    tags: tuple[str, ...],
    tmp_path: Path,
) -> None:
    wishes: dict[str, Any] = {"instructions": instructions, "categories": categories}
    extraction = {"settings": wishes, "user": {"users": {"mei": wishes}}, "call": {}}[where]
    call = wishes if where == "call" else {}
    model = Model(memories=[proposed])
    settings = load_settings(extraction=extraction)
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder(), settings=settings) as memory:
        await memory.add({"role": "user", "content": said}, user_id="mei", **call)
        await memory.add({"role": "user", "content": said}, user_id="tom")
        [item] = await memory.list(user_id="mei")
        assert (item.content, item.tags) == (proposed["text"], tags)
    mine, toms = (request.system for request in model.requests)
    assert instructions in mine and f"- {categories[0]}" in mine
    assert (instructions in toms) is (where == "settings")


async def test_wishes_reach_a_prompt_that_has_no_place_for_them(tmp_path: Path) -> None:
    (tmp_path / "en" / "production").mkdir(parents=True)
    (tmp_path / "en" / "production" / "memories.md").write_text(
        "# system\nBe brief.\n# user\n{{conversation}}\n", "utf-8"
    )
    model = Model()
    settings = load_settings(llm={"prompts": tmp_path}, extraction={"instructions": "Never remember prices."})
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder(), settings=settings) as memory:
        await memory.add({"role": "user", "content": "I eat no pork."}, user_id="mei", categories=["diet"])
    [asked] = model.requests
    assert asked.system == "Be brief.\n\nNever remember prices.\n\n- diet"


async def test_with_instructions_the_rules_do_not_stand_in_for_the_model(tmp_path: Path) -> None:
    """They know nothing of what is never to be remembered."""
    unquoted = {"messages": [1], "quote": "I eat no beef", "type": "fact", "text": "Mei eats no beef."}
    model = Model(memories=[unquoted])
    settings = load_settings(jobs={"retry_delay_s": 0.001}, extraction={"instructions": "Never remember food."})
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder(), settings=settings) as memory:
        receipt = await memory.add({"role": "user", "content": "I eat no pork."}, user_id="mei")
        assert receipt.state == "failed" and (await memory.list(user_id="mei")).items == ()


async def test_wishes_are_checked(tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder()) as memory:
        for wrong in ({"instructions": ""}, {"instructions": "x" * 4001}, {"categories": "diet"}):
            with pytest.raises(InvalidInput):
                await memory.add("I eat no pork.", user_id="mei", **wrong)  # type: ignore[arg-type]
