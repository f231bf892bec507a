"""A sentence states a single-valued attribute only with a value that can be meant: one that says what something is like
must not end what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import WordEmbedder
from jiyi import Memory
from jiyi.write.slots import slot_values
from support import each_case

LINES = (Path(__file__).parent / "values.txt").read_text("utf-8").splitlines()
SENTENCES = [tuple(line.split("\t")) for line in LINES if not line.startswith("#")]


@each_case(("slot", "text"), [one for one in SENTENCES if one[0] != "-"])
def test_a_value_states_the_attribute(slot: str, text: str) -> None:
    assert slot in [one.slot for one in slot_values(text)]


@each_case("text", [text for slot, text in SENTENCES if slot == "-"])
def test_what_something_is_like_states_no_attribute(text: str) -> None:
    assert [one for one in slot_values(f"{text}.") if not one.ended] == []


@pytest.mark.parametrize(
    ("fact", "remark"),
    [
        ("My boss is Kate.", "My boss is annoying."),
        ("I study at Bocconi.", "I go to the gym on Tuesdays."),
        ("My laptop is a ThinkPad X1.", "My laptop is slow today."),
        ("I work at Fugro.", "I work at night this week."),
        ("I live in Rome.", "I moved to decaf."),
        ("I drive a Honda Civic.", "I drive my son to school every morning."),
        ("我住在北京。", "我今晚住在机场附近的酒店。"),
        ("我的车是特斯拉。", "我的车是红色的。"),
    ],
)
async def test_a_remark_does_not_end_a_fact(fact: str, remark: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path / "memory.db", embedder=WordEmbedder(64)) as memory:
        for how in ("said", "saved"):
            for text in (fact, remark):
                told = [{"role": "user", "content": text}] if how == "said" else text
                await memory.add(told, user_id=how, session_id="s")
            page = await memory.list(user_id=how, limit=20)
            assert fact in [item.content for item in page.items if item.memory_type != "message"]
