"""Adding the same rows again, with edits; changing and deleting several memories at once."""

from __future__ import annotations

import pytest

from jiyi import InvalidInput, Memory, MemoryKeyTaken, NotFound, VersionConflict
from support import Place, contents, dump

ROWS = [
    {"memory_key": "row-1", "content": "The printer is on floor 3", "tags": ["office"], "metadata": {"line": 1}},
    {"memory_key": "row-2", "content": "The canteen opens at 11:30", "metadata": {"line": 2}},
    {"memory_key": "row-3", "content": "Parking costs 5 euros a day", "metadata": {"line": 3}},
]
EDITED = [
    ROWS[0],
    {**ROWS[1], "content": "The canteen opens at 12:00"},
    {**ROWS[2], "metadata": {"line": 4}},
    {"memory_key": "row-4", "content": "Visitors sign in at the desk"},
]


async def test_an_edited_file_is_imported_again(memory: Memory) -> None:
    first = await memory.add(ROWS, user_id="acme")
    assert [row.outcome for row in first.rows] == ["created"] * 3
    same = await memory.add(ROWS, user_id="acme", on_conflict="update")
    assert [row.outcome for row in same.rows] == ["unchanged"] * 3
    again = await memory.add(EDITED, user_id="acme", on_conflict="update")
    assert [row.outcome for row in again.rows] == ["unchanged", "updated", "updated", "created"]
    assert again.created == 1 and [row.position for row in again.rows] == [0, 1, 2, 3]
    assert [row.memory_id for row in again.rows[:3]] == [row.memory_id for row in first.rows]
    found = await memory.search("when does the canteen open?", user_id="acme", limit=1)
    assert contents(found) == ["The canteen opens at 12:00"]
    assert (await memory.get("row-3", user_id="acme")).metadata == {"line": 4}
    canteen = await memory.history("row-2", user_id="acme")
    assert [one.action for one in canteen] == ["add", "update"] and canteen[1].reason
    assert await memory.count(user_id="acme") == 4


async def test_skipping_keeps_what_is_there(memory: Memory) -> None:
    await memory.add(ROWS, user_id="acme")
    again = await memory.add(EDITED, user_id="acme", on_conflict="skip")
    assert [row.outcome for row in again.rows] == ["skipped", "skipped", "skipped", "created"]
    assert (await memory.get("row-2", user_id="acme")).content == "The canteen opens at 11:30"


async def test_a_taken_key_is_an_error_of_its_own_and_adds_nothing(memory: Memory, place: Place) -> None:
    await memory.add(ROWS, user_id="acme")
    before = dump(place)
    with pytest.raises(MemoryKeyTaken, match="on_conflict") as taken:
        await memory.add(EDITED, user_id="acme")
    assert taken.value.memory_keys == ("row-2",) and not isinstance(taken.value, InvalidInput)
    assert dump(place) == before
    with pytest.raises(InvalidInput, match="on_conflict"):
        await memory.add(EDITED, user_id="acme", on_conflict="replace")  # type: ignore[arg-type]


async def test_of_two_rows_with_one_key_the_last_one_counts_when_updating(memory: Memory) -> None:
    twice = [{"memory_key": "k", "content": "first"}, {"memory_key": "k", "content": "second"}]
    await memory.add(twice, user_id="acme", on_conflict="update")
    assert (await memory.get("k", user_id="acme")).content == "second"
    await memory.add([{**one, "memory_key": "j"} for one in twice], user_id="acme", on_conflict="skip")
    assert (await memory.get("j", user_id="acme")).content == "first"


async def test_several_memories_are_changed_or_none(memory: Memory, place: Place) -> None:
    made = (await memory.add(ROWS, user_id="acme")).memories
    seen = [{"memory_id": one.id, "tags": ["seen"], "expected_version": 1} for one in made]
    changed = await memory.update_many(seen, user_id="acme", reason="reviewed")
    assert {one.tags for one in changed} == {("seen",)} and {one.version for one in changed} == {2}
    before = dump(place)
    with pytest.raises(VersionConflict):
        await memory.update_many(
            [{"memory_id": "row-1", "importance": 1}, {"memory_id": "row-2", "importance": 1, "expected_version": 1}],
            user_id="acme",
        )
    with pytest.raises(NotFound):
        await memory.update_many(
            [{"memory_id": "row-1", "importance": 1.0}, {"memory_id": "nobody", "importance": 1.0}], user_id="acme"
        )
    with pytest.raises(InvalidInput, match="twice"):
        await memory.update_many([{"memory_id": "row-1", "importance": 1.0}] * 2, user_id="acme")
    assert dump(place) == before


async def test_several_memories_are_deleted_or_none(memory: Memory) -> None:
    await memory.add(ROWS, user_id="acme")
    with pytest.raises(NotFound):
        await memory.delete_many(["row-1", "nobody"], user_id="acme")
    assert await memory.count(user_id="acme") == 3
    gone = await memory.delete_many(["row-1", "row-2"], user_id="acme")
    assert gone.memories == 2 and await memory.count(user_id="acme") == 1
