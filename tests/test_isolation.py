"""A user is an opaque string; no call sees, changes or infers another user's memories."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from jiyi import Memory, NotFound
from support import ODD_NAMES, Place, contents, dump, stored

Verb = Callable[[Memory, str, str], Awaitable[Any]]

BY_ID: dict[str, Verb] = {
    "get": lambda memory, user_id, memory_id: memory.get(memory_id, user_id=user_id),
    "update": lambda memory, user_id, memory_id: memory.update(memory_id, user_id=user_id, content="mine now"),
    "update a version": lambda memory, user_id, memory_id: memory.update(
        memory_id, user_id=user_id, expected_version=1, importance=0.1
    ),
    "restore": lambda memory, user_id, memory_id: memory.restore(memory_id, user_id=user_id),
    "restore a version": lambda memory, user_id, memory_id: memory.restore(memory_id, user_id=user_id, to_version=1),
    "delete": lambda memory, user_id, memory_id: memory.delete(memory_id, user_id=user_id),
    "history": lambda memory, user_id, memory_id: memory.history(memory_id, user_id=user_id),
}


@pytest.mark.parametrize("verb", BY_ID.values(), ids=BY_ID)
async def test_another_users_memory_is_as_if_it_did_not_exist(memory: Memory, place: Place, verb: Verb) -> None:
    """By id and by key, the error is the one that an invented id gets, letter for letter but for the id."""
    made = (await memory.add({"content": "likes tea", "memory_key": "drink"}, user_id="mei")).memories[0]
    await memory.update(made.id, user_id="mei", content="likes green tea")
    await memory.add("plays chess", user_id="bo")
    before = dump(place)
    for name in (made.id, "drink"):
        with pytest.raises(NotFound) as foreign:
            await verb(memory, "bo", name)
        with pytest.raises(NotFound) as invented:
            await verb(memory, "bo", "01hzzzzzzzzzzzzzzzzzzzzzzz")
        assert str(foreign.value).replace(name, "ID") == str(invented.value).replace("01hzzzzzzzzzzzzzzzzzzzzzzz", "ID")
        assert "mei" not in str(foreign.value)
    assert dump(place) == before


async def test_searching_and_listing_stay_within_the_user(memory: Memory) -> None:
    mine = (
        await memory.add("likes tea", user_id="mei", session_id="s", agent_id="a", group_id="g", tags=["t"])
    ).memories[0]
    await memory.search("tea", user_id="mei")
    scope = {"session_id": "s", "agent_id": "a", "group_id": "g", "tags": ["t"], "memory_types": ["fact"]}
    for mode in ("hybrid", "keyword", "semantic"):
        found = await memory.search("tea", user_id="bo", search_mode=mode, **scope)
        assert (found.searched, found.total_found, found.hits, found.degraded) == (0, 0, (), ())
    assert await stored(memory, "bo", **scope) == []
    assert await memory.count(user_id="bo", **scope) == 0
    assert await memory.get_many([mine.id, mine.memory_key], user_id="bo") == []
    assert (await memory.list(user_id="bo", cursor="z" * 26)).items == ()
    stats = await memory.stats("bo")
    assert (stats.memories, stats.by_type, stats.coverage.memories) == (0, {}, 0)


async def test_a_users_scores_do_not_tell_of_other_users(memory: Memory) -> None:
    """How rare a word is, is counted within the user; else a score would tell how often others used it."""
    await memory.add(["likes tea", "likes chess", "has a cat"], user_id="mei")
    asked = {"asked_at": datetime.now(UTC), "explain": True, "search_mode": "keyword"}  # of one moment: age counts too
    before = await memory.search("tea", user_id="mei", **asked)
    await memory.add([f"tea number {number}" for number in range(50)], user_id="bo")
    after = await memory.search("tea", user_id="mei", **asked)
    assert [hit.explanation.parts for hit in after.hits] == [hit.explanation.parts for hit in before.hits]


async def test_any_name_works_in_every_verb(memory: Memory) -> None:
    """Also as session, agent, group, actor and key."""
    for user_id in ODD_NAMES:
        await use_name(memory, user_id)


async def use_name(memory: Memory, user_id: str) -> None:
    await memory.add("likes tea", user_id="somebody else", session_id=user_id)
    receipt = await memory.add(
        {"content": "likes tea", "memory_key": user_id},
        user_id=user_id,
        session_id=user_id,
        agent_id=user_id,
        group_id=user_id,
        idempotency_key=user_id,
        actor=user_id,
    )
    made = receipt.memories[0]
    scope = {"session_id": user_id, "agent_id": user_id, "group_id": user_id}
    assert contents(await memory.search("tea", user_id=user_id, **scope)) == ["likes tea"]
    assert [kept.id for kept in await stored(memory, user_id, **scope)] == [made.id]
    assert (await memory.get(user_id, user_id=user_id)).id == made.id
    assert [kept.id for kept in await memory.get_many([user_id], user_id=user_id)] == [made.id]
    await memory.update(user_id, user_id=user_id, content="likes coffee", expected_version=1, actor=user_id)
    assert (await memory.restore(user_id, user_id=user_id)).content == "likes tea"
    assert [change.actor for change in await memory.history(user_id, user_id=user_id)][:2] == [user_id, user_id]
    assert (await memory.stats(user_id)).memories == 1
    assert await memory.users() == sorted([user_id, "somebody else"])
    assert (await memory.delete(user_id, user_id=user_id)).memories == 1
    assert await memory.count(user_id=user_id) == 0
    await memory.add("likes tea", user_id=user_id)
    assert (await memory.delete_all(user_id)).memories == 1
    assert await memory.users() == ["somebody else"]


async def test_messages_are_listed_per_user_and_session_page_by_page(memory: Memory) -> None:
    for number in range(3):
        turn = [{"role": "user", "content": f"hello {number}"}]
        await memory.add(turn, user_id="mei", session_id=f"s{number % 2}")
    await memory.add([{"role": "user", "content": "hello from bo"}], user_id="bo", session_id="s0")
    first = await memory.messages(user_id="mei", limit=2)
    rest = await memory.messages(user_id="mei", limit=2, cursor=first.next_cursor)
    assert [message.text for message in (*first.items, *rest.items)] == ["hello 2", "hello 1", "hello 0"]
    assert rest.next_cursor is None
    assert [message.text for message in (await memory.messages(user_id="mei", session_id="s1")).items] == ["hello 1"]
    assert (await memory.messages(user_id="lin")).items == ()
