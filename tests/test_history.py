"""Changing a memory: who, when, why, before, after; nobody's change is lost, and any can be undone."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from jiyi import InvalidInput, Memory, MemoryItem, VersionConflict
from jiyi.testing import WordEmbedder
from support import DAY, LONG_AGO, NOW, Place, contents, each_case, stored


@pytest.fixture
async def tea(memory: Memory) -> MemoryItem:
    return await likes_tea(memory, user_id="mei")


async def likes_tea(memory: Memory, user_id: str) -> MemoryItem:
    return (await memory.add("likes tea", user_id=user_id, tags=["drink"], metadata={"n": 0})).memories[0]


async def test_an_update_changes_what_is_named_and_nothing_else(memory: Memory, tea: MemoryItem) -> None:
    changed = await memory.update(tea.id, user_id="mei", importance=0.9)
    expected = tea.model_copy(
        update={"importance": 0.9, "version": 2, "updated_at": changed.updated_at, "keywords": changed.keywords}
    )
    assert changed == expected
    assert changed.updated_at > tea.updated_at
    assert set(changed.keywords) == set(tea.keywords)


@each_case(
    "change",
    [
        {"content": "likes coffee"},
        {"summary": "a drink"},
        {"memory_type": "skill"},
        {"importance": 0.0},
        {"tags": []},
        {"tags": ["Ａ", "b"]},
        {"metadata": {"k": ["v", None]}},
        {"occurred_at": LONG_AGO},
        {"valid_to": NOW + DAY},
        {"expires_at": NOW + DAY},
        {"status": "archived"},
    ],
)
async def test_every_field_can_be_changed_and_changed_back(memory: Memory, change: dict[str, Any]) -> None:
    [(name, value)] = change.items()
    whose = {"user_id": str(change)}
    tea = await likes_tea(memory, **whose)
    changed = await memory.update(tea.id, **whose, **change)
    assert getattr(changed, name) == (tuple(value) if name == "tags" else value)
    back = await memory.restore(tea.id, **whose)
    ignored = {"version", "updated_at"}
    assert back.model_dump(exclude=ignored) == (await memory.get(tea.id, **whose)).model_dump(exclude=ignored)
    assert back.model_dump(exclude={*ignored, "keywords"}) == tea.model_dump(exclude={*ignored, "keywords"})
    assert set(back.keywords) == set(tea.keywords)
    assert back.version == 3


async def test_a_changed_memory_is_found_by_its_new_words_only(memory: Memory, tea: MemoryItem) -> None:
    await memory.search("tea", user_id="mei")
    await memory.update(tea.id, user_id="mei", content="likes 咖啡", tags=["morning"])
    for mode in ("hybrid", "keyword", "semantic"):
        for query in ("咖啡", "morning" if mode != "semantic" else "咖啡"):
            assert contents(await memory.search(query, user_id="mei", search_mode=mode)) == ["likes 咖啡"]
        for query in ("tea", "drink"):
            assert contents(await memory.search(query, user_id="mei", search_mode=mode)) == []
    assert (await memory.get(tea.id, user_id="mei")).summary == "likes 咖啡"


async def test_a_summary_of_the_callers_own_outlives_a_change_of_content(memory: Memory) -> None:
    made = (await memory.add({"content": "likes tea", "summary": "a habit"}, user_id="mei")).memories[0]
    assert (await memory.update(made.id, user_id="mei", content="likes coffee")).summary == "a habit"


async def test_the_type_brings_its_layer(memory: Memory, tea: MemoryItem) -> None:
    assert (await memory.update(tea.id, user_id="mei", memory_type="skill")).layer == "procedural"
    assert contents(await memory.search("tea", user_id="mei", layers=["procedural"])) == ["likes tea"]


# -- compare and set ------------------------------------------------------------------------------------------------


async def test_only_the_named_version_is_changed(memory: Memory, tea: MemoryItem) -> None:
    await memory.update(tea.id, user_id="mei", expected_version=1, importance=0.1)
    with pytest.raises(VersionConflict) as conflict:
        await memory.update(tea.id, user_id="mei", expected_version=1, importance=0.2)
    assert (conflict.value.memory_id, conflict.value.expected, conflict.value.actual) == (tea.id, 1, 2)
    assert (await memory.get(tea.id, user_id="mei")).importance == 0.1
    assert len(await memory.history(tea.id, user_id="mei")) == 2


async def test_concurrent_counters_lose_nothing(memory: Memory, tea: MemoryItem) -> None:
    """Twelve tasks each add one, reading again when somebody was faster."""

    async def add_one() -> None:
        while True:
            now = await memory.get(tea.id, user_id="mei")
            try:
                await memory.update(
                    tea.id, user_id="mei", expected_version=now.version, metadata={"n": now.metadata["n"] + 1}
                )
                return
            except VersionConflict:
                continue

    await asyncio.gather(*(add_one() for _ in range(12)))
    after = await memory.get(tea.id, user_id="mei")
    assert (after.metadata, after.version) == ({"n": 12}, 13)
    changes = await memory.history(tea.id, user_id="mei")
    assert [change.after["metadata"] for change in changes] == [{"n": number} for number in range(13)]


async def test_without_a_version_every_change_is_applied(memory: Memory, tea: MemoryItem) -> None:
    """However many come at once: who did not ask for compare-and-set never sees a conflict."""
    await asyncio.gather(*(memory.update(tea.id, user_id="mei", content=f"likes tea {number}") for number in range(40)))
    assert (await memory.get(tea.id, user_id="mei")).version == 41


async def test_changes_of_different_fields_at_once_are_all_kept(place: Place) -> None:
    """Two processes change one memory without a version: the later one keeps what the earlier one did."""
    async with (
        Memory.open(place, embedder=WordEmbedder()) as one,
        Memory.open(place, embedder=WordEmbedder()) as other,
    ):
        made = (await one.add("likes tea", user_id="mei")).memories[0]
        await asyncio.gather(
            one.update(made.id, user_id="mei", content="likes coffee"),
            other.update(made.id, user_id="mei", tags=["drink"]),
            one.update(made.id, user_id="mei", importance=0.9),
            other.update(made.id, user_id="mei", metadata={"k": 1}),
        )
        after = await other.get(made.id, user_id="mei")
        assert (after.content, after.tags, after.importance, after.metadata) == (
            "likes coffee",
            ("drink",),
            0.9,
            {"k": 1},
        )
        for query in ("coffee", "drink"):
            assert contents(await one.search(query, user_id="mei", search_mode="keyword")) == ["likes coffee"]


# -- history --------------------------------------------------------------------------------------------------------


async def test_history_tells_who_when_why_before_and_after(memory: Memory, tea: MemoryItem) -> None:
    before = datetime.now(UTC)
    await memory.update(tea.id, user_id="mei", content="likes coffee", actor="agent:barista", reason="she said so")
    await memory.update(tea.id, user_id="mei", status="archived", actor="mei")
    added, updated, archived = await memory.history(tea.id, user_id="mei")
    assert (added.action, added.version, added.actor, added.before) == ("add", 1, "user", None)
    assert added.after["content"] == "likes tea"
    assert (updated.action, updated.version, updated.actor, updated.reason) == (
        "update",
        2,
        "agent:barista",
        "she said so",
    )
    assert updated.before == added.after
    assert updated.after["content"] == "likes coffee"
    assert (archived.action, archived.version, archived.actor, archived.reason) == ("archive", 3, "mei", None)
    assert (archived.before, archived.after["status"]) == (updated.after, "archived")
    assert added.changed_at <= before <= updated.changed_at <= archived.changed_at
    assert {change.memory_id for change in (added, updated, archived)} == {tea.id}


async def test_an_archived_memory_is_out_of_sight_but_there(memory: Memory, tea: MemoryItem) -> None:
    await memory.update(tea.id, user_id="mei", status="archived")
    assert (await memory.search("tea", user_id="mei")).searched == 0
    assert await stored(memory) == []
    assert [kept.id for kept in await stored(memory, status="archived")] == [tea.id]
    assert await memory.count(user_id="mei", status="archived") == 1
    assert (await memory.get(tea.id, user_id="mei")).status == "archived"
    await memory.update(tea.id, user_id="mei", status="active")
    assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]


async def test_restore_goes_back_one_change_or_to_a_version(memory: Memory, tea: MemoryItem) -> None:
    await memory.update(tea.id, user_id="mei", content="likes coffee")
    await memory.update(tea.id, user_id="mei", content="likes water")
    assert (await memory.restore(tea.id, user_id="mei")).content == "likes coffee"
    assert (await memory.restore(tea.id, user_id="mei", to_version=1)).content == "likes tea"
    changes = await memory.history(tea.id, user_id="mei")
    assert [change.action for change in changes] == ["add", "update", "update", "restore", "restore"]
    assert [change.reason for change in changes[3:]] == ["back to version 2", "back to version 1"]
    for query, found in (("tea", ["likes tea"]), ("water", []), ("coffee", [])):
        assert contents(await memory.search(query, user_id="mei")) == found


@pytest.mark.parametrize("version", [2, 3, 1500])
async def test_there_is_no_way_back_to_the_present_or_the_future(memory: Memory, tea: MemoryItem, version: int) -> None:
    await memory.update(tea.id, user_id="mei", content="likes coffee")
    with pytest.raises(InvalidInput, match=f"is at version 2 and cannot go back to {version}"):
        await memory.restore(tea.id, user_id="mei", to_version=version)


async def test_a_memory_that_never_changed_cannot_be_restored(memory: Memory, tea: MemoryItem) -> None:
    with pytest.raises(InvalidInput) as refused:
        await memory.restore(tea.id, user_id="mei")
    assert refused.value.argument == "to_version"


async def test_a_restore_never_makes_a_second_memory_of_the_same_text(memory: Memory, tea: MemoryItem) -> None:
    await memory.update(tea.id, user_id="mei", content="likes coffee")
    other = (await memory.add("likes  tea", user_id="mei")).memories[0]
    with pytest.raises(InvalidInput, match=f"memory {other.id} says the same already"):
        await memory.restore(tea.id, user_id="mei")
    assert (await memory.get(tea.id, user_id="mei")).version == 2
    await memory.delete(other.id, user_id="mei")
    assert (await memory.restore(tea.id, user_id="mei")).content == "likes tea"


async def test_an_update_never_makes_a_second_memory_of_the_same_text(memory: Memory, tea: MemoryItem) -> None:
    other = (await memory.add("likes coffee", user_id="mei")).memories[0]
    with pytest.raises(InvalidInput, match=f"memory {tea.id} says the same already"):
        await memory.update(other.id, user_id="mei", content=" likes\ntea")
    assert (await memory.get(other.id, user_id="mei")).content == "likes coffee"
    assert contents(await memory.search("coffee", user_id="mei")) == ["likes coffee"]


async def test_unarchiving_never_makes_a_second_memory_of_the_same_text(memory: Memory, tea: MemoryItem) -> None:
    await memory.update(tea.id, user_id="mei", status="archived")
    await memory.add("likes tea", user_id="mei")
    with pytest.raises(InvalidInput, match="says the same already"):
        await memory.update(tea.id, user_id="mei", status="active")
    assert (await memory.search("tea", user_id="mei")).searched == 1


async def test_a_changed_statement_can_be_said_again(memory: Memory, tea: MemoryItem) -> None:
    """What the memory says now is what counts for "the same again"."""
    await memory.update(tea.id, user_id="mei", content="likes coffee")
    assert (await memory.add("likes coffee", user_id="mei")).created == 0
    assert (await memory.add("likes tea", user_id="mei")).created == 1


async def test_memories_are_changed_by_key_too(memory: Memory) -> None:
    await memory.add({"content": "likes tea", "memory_key": "drink"}, user_id="mei")
    assert (await memory.update("drink", user_id="mei", content="likes coffee")).content == "likes coffee"
    assert len(await memory.history("drink", user_id="mei")) == 2
    assert (await memory.restore("drink", user_id="mei")).content == "likes tea"
    assert (await memory.delete("drink", user_id="mei")).memories == 1
