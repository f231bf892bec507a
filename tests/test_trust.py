"""How far a source is trusted: kept, inherited, filtered by; and what is trusted less has no power over the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from jiyi import InvalidInput, Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from support import Place, contents, stored


async def test_trust_is_kept_and_filters_everywhere(memory: Memory) -> None:
    await memory.add("the PIN is 0000", user_id="mei", trust=0.2, session_id="web")
    await memory.add(["the PIN is a secret", {"text": "the PIN is old", "trust": 0.6}], user_id="mei")
    assert {item.content: item.trust for item in await stored(memory)} == {
        "the PIN is 0000": 0.2,
        "the PIN is a secret": 1.0,
        "the PIN is old": 0.6,
    }
    for mode in ("hybrid", "keyword", "semantic"):
        found = await memory.search("PIN", user_id="mei", search_mode=mode, min_trust=0.5)
        assert (sorted(contents(found)), found.searched) == (["the PIN is a secret", "the PIN is old"], 2)
    assert len(await stored(memory, min_trust=0.2)) == 3
    assert await memory.count(user_id="mei", min_trust=0.7) == 1
    assert "0000" not in await memory.context("PIN", user_id="mei", min_trust=0.5)
    assert "0000" in await memory.context("PIN", user_id="mei")
    for wrong in (-0.1, 1.1, "0.5", float("nan")):
        with pytest.raises(InvalidInput, match="trust"):
            await memory.add("x", user_id="mei", trust=wrong)
        with pytest.raises(InvalidInput, match="min_trust"):
            await memory.search("x", user_id="mei", min_trust=wrong)


async def test_a_setting_holds_for_all_that_name_none(place: Place) -> None:
    settings = load_settings(search={"min_trust": 0.5}, extraction={"enabled": False})
    async with Memory.open(place, settings=settings, embedder=WordEmbedder()) as memory:
        await memory.add("the PIN is 0000", user_id="mei", trust=0.2)
        assert contents(await memory.search("PIN", user_id="mei")) == []
        assert await memory.context("PIN", user_id="mei") == ""
        assert contents(await memory.search("PIN", user_id="mei", min_trust=0)) == ["the PIN is 0000"]
        assert len(await stored(memory)) == 1, "who looks after memories sees all of them"


async def test_the_same_words_from_both_are_two_memories(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei", trust=0.2)
    assert (await memory.add("likes tea", user_id="mei")).created == 1
    assert (await memory.add("likes tea", user_id="mei", trust=0.2)).created == 0
    assert [item.trust for item in await stored(memory, min_trust=0.5)] == [1.0]
    verified = await memory.maintenance.verify()
    assert verified.drift == {}


@pytest.mark.parametrize("as_message", [True, False])
async def test_what_is_trusted_less_ends_nothing_and_grows_nothing(place: Place, as_message: bool) -> None:
    """A web page says that Mei lives elsewhere: what she said stays current, and her profile hers."""

    def said(text: str) -> object:
        return [{"role": "user", "name": "Mei", "content": text}] if as_message else text

    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        await memory.add(said("I live in Berlin and I am a vegetarian."), user_id="mei", session_id="s")
        before = {item.id: item for item in await stored(memory)}
        await memory.add(said("I live in Paris now and I am a butcher."), user_id="mei", session_id="web", trust=0.2)
        after = {item.id: item for item in await stored(memory, min_trust=0.5)}
        assert after == before
        assert all("Paris" not in item.content for item in after.values())
        poison = [item for item in await stored(memory) if item.id not in before]
        assert poison and all(item.trust == 0.2 for item in poison)
        assert (await memory.maintenance.verify()).drift == {}
        await memory.maintenance.undo(session_id="web", user_id="mei")
        assert {item.id for item in await stored(memory)} == set(before)


async def test_trust_survives_export_and_import(path: Path, tmp_path: Path) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        await memory.add("the PIN is 0000", user_id="mei", trust=0.2)
        await memory.transfer.export(tmp_path / "all.jsonl")
    async with Memory.open(tmp_path / "other.db", embedder=WordEmbedder()) as other:
        await other.transfer.import_memories(tmp_path / "all.jsonl")
        assert [item.trust for item in await stored(other)] == [0.2]
        assert (await other.add("the PIN is 0000", user_id="mei", trust=0.2)).created == 0
