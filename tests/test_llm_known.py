"""A language model is shown the stored memories that a conversation may be about, and names those that it repeats,
adds to or ends."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.testing import WordEmbedder
from test_llm_inputs import Model

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
OLD = {"en": "Mei's bike is a blue Kona.", "zh": "小美的自行车是蓝色的。"}
SAID = {"en": ("My bike is a blue Kona.", "The blue Kona bike of mine has 24 gears."),
        "zh": ("我的自行车是蓝色的。", "我那辆蓝色的自行车有二十四速。")}  # fmt: skip
BOTH = {"en": "Mei's bike is a blue Kona and has 24 gears.", "zh": "小美的自行车是蓝色的，有二十四速。"}
LANGUAGES = pytest.mark.parametrize("language", ["en", "zh"])


def proposed(text: str, quote: str, **more: Any) -> list[dict[str, Any]]:
    return [{"messages": [1], "quote": quote, "type": "fact", "text": text, "importance": 0.6, **more}]


async def after(
    path: Path, language: str, text: str, *, saved: bool = False, name: str | None = None, **named: Any
) -> tuple[dict[str, Any], Model]:
    """Return what is stored after two turns, the second of which says `text` and names the first one's memory."""
    first, second = SAID[language]
    model = Model(memories=proposed(OLD[language], first))
    async with Memory.open(path / "m.db", llm=model, embedder=WordEmbedder(512)) as memory:
        if saved:
            await memory.add(OLD[language], user_id="mei")
        else:
            await memory.add({"content": first, "sent_at": AT}, user_id="mei", session_id="a")
        model.answers["memories"] = proposed(text, second, **named)
        message = {"content": second, "sent_at": AT + timedelta(days=9), "name": name}
        await memory.add(message, user_id="mei", session_id="b")
        return {one.content: one for one in await memory.list(user_id="mei")}, model


@LANGUAGES
async def test_what_a_model_names_as_repeated_is_confirmed(language: str, tmp_path: Path) -> None:
    text = {"en": "The bike of Mei is a blue one.", "zh": "小美有一辆蓝色的自行车。"}[language]
    held, model = await after(tmp_path, language, text, repeats=[1])
    assert set(held) == {OLD[language]} and len(held[OLD[language]].source_ids) == 2
    assert f"[K1] (2026-03-02) {OLD[language]}" in model.requests[-1].user


@LANGUAGES
@pytest.mark.parametrize("saved", [False, True])
async def test_what_a_model_merges_is_one_memory_with_the_merged_text(
    saved: bool, language: str, tmp_path: Path
) -> None:
    held, _ = await after(tmp_path, language, BOTH[language], saved=saved, merges=[1])
    assert set(held) == {BOTH[language]}
    one = held[BOTH[language]]
    assert (one.version, len(one.source_ids)) == (2, 1 if saved else 2)
    async with Memory.open(tmp_path / "m.db", embedder=WordEmbedder(512)) as memory:
        found = await memory.history(one.id, user_id="mei")
        assert "merge" in [change.action for change in found]
        assert (await memory.restore(one.id, user_id="mei")).content == OLD[language]


@LANGUAGES
@pytest.mark.parametrize("named", ["repeats", "merges"])
async def test_no_detail_is_lost(named: str, language: str, tmp_path: Path) -> None:
    text = {"en": "Mei has a Giant bike with 24 gears.", "zh": "小美的车没有铃，有24速。"}[language]
    held, _ = await after(tmp_path, language, text, **{named: [1]})
    assert set(held) == {OLD[language], text}


@LANGUAGES
@pytest.mark.parametrize("named", ["repeats", "merges", "ends"])
async def test_another_person_changes_nothing_that_the_user_said(named: str, language: str, tmp_path: Path) -> None:
    held, _ = await after(tmp_path, language, BOTH[language], name="Tom", **{named: [1]})
    assert set(held) == {OLD[language], BOTH[language]}


async def test_the_model_sees_who_told_a_memory(tmp_path: Path) -> None:
    model = Model(memories=proposed("Tom's bike is red.", "red bike"))
    async with Memory.open(tmp_path / "m.db", llm=model, embedder=WordEmbedder(512)) as memory:
        told = {"content": "I have a red bike.", "name": "Tom (left)", "sent_at": AT}
        await memory.add(told, user_id="mei", session_id="a")
        await memory.add({"role": "user", "content": "Tom's bike is red, is it?"}, user_id="mei", session_id="b")
    assert "[K1] (2026-03-02, Tom left) Tom's bike is red." in model.requests[-1].user
