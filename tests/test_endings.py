"""What a message says is over ends the statement about it, and no other."""

from __future__ import annotations

import pytest

from jiyi import Memory
from support import said, stored

ENDINGS = [
    ("I drive a blue Golf.", "I sold the Golf yesterday."),
    ("I have a subscription to the Times.", "I cancelled my Times subscription."),
    ("I take vitamin D every morning.", "I stopped taking vitamin D."),
    ("我有一辆蓝色的高尔夫。", "我把高尔夫卖了。"),
    ("我每周日打网球。", "我不打网球了。"),
]


@pytest.mark.parametrize(("first", "then"), ENDINGS)
async def test_an_ending_ends_what_it_names_and_nothing_else(extracting_memory: Memory, first: str, then: str) -> None:
    others = [one for one, _ in ENDINGS if one != first]
    await said(extracting_memory, *others, first, then)
    held = {item.content.rstrip(".。") for item in await stored(extracting_memory) if item.memory_type != "message"}
    assert first.rstrip(".。") not in held
    assert {one.rstrip(".。") for one in others} <= held
