"""`add`: what goes in, what comes of it, and what happens when it goes in twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from time import monotonic

import pytest

from jiyi import CandidateMemory, IdempotencyConflict, InvalidInput, Memory, MemoryKeyTaken, Message
from jiyi.settings import load_settings
from jiyi.testing import FailingEmbedder, WordEmbedder
from jiyi.write import build
from support import DAY, LONG_AGO, NOW, Place, contents, dump, each_case, stored

# -- what can be handed in ------------------------------------------------------------------------------------------


async def test_a_statement_becomes_one_memory(memory: Memory) -> None:
    receipt = await memory.add("我吃素，对花生过敏", user_id="mei")
    [made] = receipt.memories
    assert (receipt.state, receipt.created, receipt.problems, receipt.user_id) == ("indexed", 1, (), "mei")
    assert (made.content, made.memory_type, made.layer, made.source) == (
        "我吃素，对花生过敏",
        "fact",
        "semantic",
        "statement",
    )
    assert (made.status, made.version, made.importance, made.confidence) == ("active", 1, 0.5, 1.0)


async def test_what_the_receipt_shows_is_what_is_stored(memory: Memory) -> None:
    receipt = await memory.add(
        "Mei moved to Berlin with her cat Tofu in May and works on compilers", user_id="mei", tags=["life", "home"]
    )
    assert receipt.memories[0] == await memory.get(receipt.memories[0].id, user_id="mei")


async def test_every_argument_of_add_is_kept(memory: Memory) -> None:
    receipt = await memory.add(
        "buy oat milk",
        user_id="mei",
        session_id="s1",
        agent_id="shopper",
        group_id="家",
        memory_type="task",
        importance=0.9,
        tags=["买菜", "Food"],
        metadata={"where": {"shop": "盒马"}, "n": [1, 2.5, None, True]},
        occurred_at=LONG_AGO,
        expires_at=NOW + DAY,
    )
    found = await memory.get(receipt.memories[0].id, user_id="mei")
    assert (found.session_id, found.agent_id, found.group_id) == ("s1", "shopper", "家")
    assert (found.memory_type, found.layer, found.importance) == ("task", "episodic", 0.9)
    assert found.tags == ("买菜", "Food")
    assert found.metadata == {"where": {"shop": "盒马"}, "n": [1, 2.5, None, True]}
    assert (found.occurred_at, found.valid_from, found.expires_at) == (LONG_AGO, LONG_AGO, NOW + DAY)
    assert {"买菜", "food"} <= set(found.keywords)


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "下周三去上海出差"},
        {"role": "user", "text": "下周三去上海出差"},
        {"role": "user", "content": [{"type": "text", "text": "下周三去上海出差"}]},
        Message(text="下周三去上海出差"),
    ],
    ids=["content", "text", "parts", "Message"],
)
async def test_a_message_is_kept_verbatim_and_found(memory: Memory, message: object) -> None:
    receipt = await memory.add(message, user_id="mei")
    [made] = receipt.memories
    assert (made.memory_type, made.layer, made.content) == ("message", "episodic", "下周三去上海出差")
    found = await memory.search("上海", user_id="mei")
    assert [hit.content for hit in found.hits] == ["下周三去上海出差"]


async def test_a_conversation_keeps_its_order_speakers_and_times(memory: Memory) -> None:
    said = [
        {"role": "user", "name": "Mei", "content": "I adopted a cat", "timestamp": LONG_AGO.isoformat(), "id": "m1"},
        {"role": "assistant", "content": "What is its name?", "timestamp": (LONG_AGO + DAY).isoformat(), "id": "m2"},
        {"role": "user", "speaker": "Mei", "text": "豆腐", "sent_at": LONG_AGO + 2 * DAY, "id": "m3"},
    ]
    receipt = await memory.add(said, user_id="mei", session_id="s1")
    assert [made.content for made in receipt.memories] == ["I adopted a cat", "What is its name?", "豆腐"]
    assert [made.source_ids for made in receipt.memories] == [("m1",), ("m2",), ("m3",)]
    assert [made.occurred_at for made in receipt.memories] == [LONG_AGO, LONG_AGO + DAY, LONG_AGO + 2 * DAY]
    assert [made.data["speaker"] for made in receipt.memories] == ["Mei", None, "Mei"]
    assert [made.data["role"] for made in receipt.memories] == ["user", "assistant", "user"]
    found = await memory.search("cat", user_id="mei")
    assert found.hits[0].source_ids == ("m1",)
    assert found.hits[0].speaker == "Mei"
    assert found.hits[0].occurred_at == LONG_AGO


async def test_a_list_by_tag_has_only_what_bears_it(memory: Memory) -> None:
    await memory.add("likes oolong", user_id="mei", tags=["drink"])
    await memory.add("likes a drink by the sea", user_id="mei")
    await memory.add("likes the sea", user_id="mei", tags=["place"])
    assert [item.content for item in (await memory.list(user_id="mei", tags=["drink"])).items] == ["likes oolong"]


async def test_a_list_of_a_time_has_what_was_in_it_alone(memory: Memory) -> None:
    for number in range(3):
        await memory.add(f"note {number}", user_id="mei", occurred_at=LONG_AGO + number * DAY)
    page = await memory.list(user_id="mei", time_range=(LONG_AGO + DAY, LONG_AGO + 2 * DAY))
    assert [item.content for item in page.items] == ["note 1"], "the end is no part of it"


async def test_pages_of_a_list_come_one_after_the_other(memory: Memory) -> None:
    for number in range(5):
        await memory.add(f"note {number}", user_id="mei")
    seen: list[str] = []
    cursor = None
    for _ in range(3):
        page = await memory.list(user_id="mei", limit=2, cursor=cursor)
        seen += [item.content for item in page.items]
        cursor = page.next_cursor
    assert cursor is None and seen == [f"note {number}" for number in (4, 3, 2, 1, 0)]


async def test_the_speaker_is_a_word_to_search_for(memory: Memory) -> None:
    await memory.add([{"role": "user", "name": "Ottokar", "content": "I adopted a cat"}], user_id="mei")
    assert contents(await memory.search("Ottokar", user_id="mei", search_mode="keyword")) == ["I adopted a cat"]


async def test_times_in_any_zone_become_the_same_instant_in_utc(memory: Memory) -> None:
    said = {"role": "user", "content": "早", "timestamp": "2024-05-01T08:00:00+08:00"}
    receipt = await memory.add(said, user_id="mei")
    assert receipt.memories[0].occurred_at == datetime(2024, 5, 1, tzinfo=UTC)
    assert receipt.memories[0].occurred_at.utcoffset() == timedelta(0)


@each_case(
    ("name", "at"),
    product(("timestamp", "created_at", "create_time", "sent_at"), ("2024-05-01T00:00:00Z", 1714521600)),
)
async def test_the_time_of_a_message_is_read_by_any_of_its_names(memory: Memory, name: str, at: str | int) -> None:
    receipt = await memory.add({"role": "user", "content": "早", name: at}, user_id="mei")
    assert receipt.memories[0].occurred_at == datetime(2024, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("first", ["sent_at", "created_at"])
async def test_our_own_name_of_the_time_counts_whatever_stands_beside_it(memory: Memory, first: str) -> None:
    times = {"sent_at": LONG_AGO.isoformat(), "created_at": (LONG_AGO + DAY).isoformat(), "timestamp": None}
    said = {"role": "user", "content": "早", **dict(sorted(times.items(), key=lambda one: one[0] != first))}
    assert (await memory.add(said, user_id="mei")).memories[0].occurred_at == LONG_AGO


async def test_messages_without_a_time_take_that_of_the_call(memory: Memory) -> None:
    before = datetime.now(UTC)
    given = await memory.add({"role": "user", "content": "one"}, user_id="mei", occurred_at=LONG_AGO)
    taken = await memory.add({"role": "user", "content": "two"}, user_id="mei")
    assert given.memories[0].occurred_at == LONG_AGO
    assert before <= taken.memories[0].occurred_at <= datetime.now(UTC)


async def test_of_an_image_only_its_description_is_remembered(memory: Memory) -> None:
    image = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}
    parts = [{"type": "text", "text": "look at this"}, image, {**image, "alt": "我家的猫"}]
    said = [{"role": "user", "content": parts}, {"role": "user", "content": [image]}]
    receipt = await memory.add(said, user_id="mei")
    assert receipt.problems == ("what[1] has no text and was left out",)
    assert [made.content for made in receipt.memories] == ["look at this\n我家的猫"]


@pytest.mark.parametrize("content", [None, "", []], ids=["null", "empty", "no parts"])
async def test_a_message_that_only_calls_tools_is_left_out_and_named(memory: Memory, content: object) -> None:
    """Servers write the missing text of a tool call in three ways."""
    call = {"role": "assistant", "content": content, "tool_calls": [{"id": "c1", "function": {"name": "f"}}]}
    said = [{"role": "user", "content": "weather?"}, call, {"role": "tool", "content": "sunny", "tool_call_id": "c1"}]
    receipt = await memory.add(said, user_id="mei")
    assert [made.content for made in receipt.memories] == ["weather?", "sunny"]
    assert receipt.problems == ("what[1] has no text and was left out",)
    assert receipt.state == "indexed"


async def test_candidates_are_stored_as_they_are_worked_out(memory: Memory) -> None:
    candidate = CandidateMemory(
        content="Mei prefers window seats on long flights",
        memory_type="preference",
        summary="window seats",
        memory_key="seat",
        importance=0.8,
        confidence=0.6,
        tags=("travel",),
        data={"attribute": "seat"},
        metadata={"by": "candidate"},
        valid_from=LONG_AGO,
        valid_to=NOW + DAY,
        occurred_at=LONG_AGO - DAY,
        expires_at=NOW + DAY,
    )
    await memory.add(candidate, user_id="mei", tags=["call"], metadata={"by": "call", "too": 1}, importance=0.1)
    found = await memory.get("seat", user_id="mei")
    assert (found.memory_type, found.summary, found.importance, found.confidence) == (
        "preference",
        "window seats",
        0.8,
        0.6,
    )
    assert (found.data, found.metadata) == ({"attribute": "seat"}, {"by": "candidate", "too": 1})
    assert found.tags == ("call", "travel")
    assert (found.valid_from, found.valid_to, found.occurred_at) == (LONG_AGO, NOW + DAY, LONG_AGO - DAY)


async def test_lists_of_statements_and_candidates_may_be_mixed(memory: Memory) -> None:
    receipt = await memory.add(
        ["likes tea", {"content": "买票", "memory_type": "task"}], user_id="mei", memory_type="preference"
    )
    assert [(made.content, made.memory_type) for made in receipt.memories] == [
        ("likes tea", "preference"),
        ("买票", "task"),
    ]


async def test_messages_and_statements_in_one_call_are_refused(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="what: mixes messages with statements"):
        await memory.add(["likes tea", {"role": "user", "content": "hi"}], user_id="mei")
    assert await stored(memory) == []


async def test_nothing_is_stored_when_one_of_many_is_bad(memory: Memory) -> None:
    with pytest.raises(InvalidInput) as refused:
        await memory.add(["likes tea", "likes coffee", "  "], user_id="mei")
    assert refused.value.argument == "what[2]"
    assert await memory.count(user_id="mei") == 0


async def test_a_memory_key_of_the_caller_is_unique_per_user(memory: Memory) -> None:
    await memory.add({"content": "likes tea", "memory_key": "drink"}, user_id="mei")
    await memory.add({"content": "likes tea", "memory_key": "drink"}, user_id="bo")
    with pytest.raises(MemoryKeyTaken, match="'drink'"):
        await memory.add({"content": "likes coffee", "memory_key": "drink"}, user_id="mei")
    with pytest.raises(MemoryKeyTaken, match="'seat'"):
        await memory.add(
            [{"content": "a", "memory_key": "seat"}, {"content": "b", "memory_key": "seat"}], user_id="mei"
        )
    assert [made.content for made in await stored(memory)] == ["likes tea"]


async def test_equal_statements_under_different_keys_are_kept_apart(memory: Memory) -> None:
    """Whoever chose a key must find the memory under it, whatever else says the same."""
    await memory.add("likes tea", user_id="mei")
    made = await memory.add([{"content": "likes tea", "memory_key": key} for key in ("a", "b")], user_id="mei")
    assert made.created == 2
    assert (await memory.add({"content": "likes tea", "memory_key": "a"}, user_id="mei")).created == 0
    assert [(await memory.get(key, user_id="mei")).content for key in ("a", "b")] == ["likes tea"] * 2
    await memory.update("a", user_id="mei", content="likes coffee")
    await memory.update("b", user_id="mei", content="likes coffee")
    assert len(await stored(memory)) == 3


async def test_a_candidate_may_be_archived_from_the_start(memory: Memory) -> None:
    made = (await memory.add({"content": "likes tea", "status": "archived"}, user_id="mei")).memories[0]
    assert made.status == "archived"
    assert (await memory.search("tea", user_id="mei")).searched == 0
    assert await stored(memory) == []
    assert (await memory.update(made.id, user_id="mei", status="active")).status == "active"
    assert len((await memory.search("tea", user_id="mei")).hits) == 1


async def test_groups_are_counted_for_one_user(memory: Memory) -> None:
    for group, user in (("b", "mei"), ("a", "mei"), ("a", "bo"), (None, "mei")):
        await memory.add(["likes tea", "likes coffee"], user_id=user, group_id=group)
    await memory.add("drink tea", user_id="mei", group_id="b", memory_type="task")
    assert await memory.usage.groups(user_id="mei") == {"a": 2, "b": 3}
    assert await memory.usage.groups(user_id="mei", memory_types=["task"]) == {"b": 1}
    assert await memory.usage.groups(user_id="nobody") == {}


async def test_an_id_always_means_the_memory_with_that_id(memory: Memory) -> None:
    """A key that a caller chose cannot put itself in front of another memory."""
    first = (await memory.add({"content": "likes tea", "memory_key": "drink"}, user_id="mei")).memories[0]
    with suppress(InvalidInput):  # refusing such a key is as good
        await memory.add({"content": "likes coffee", "memory_key": first.id}, user_id="mei")
    assert (await memory.get(first.id, user_id="mei")).content == "likes tea"
    assert (await memory.history(first.id, user_id="mei"))[-1].after["content"] == "likes tea"
    await memory.delete(first.id, user_id="mei")
    assert "likes tea" not in [left.content for left in await stored(memory)]


# -- twice ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("once", "again"),
    [
        ("I like green tea.", " I like  green\ttea.\n"),
        ("我吃素", "我吃素\u3000"),
        ("caf\u00e9 at noon", "cafe\u0301 at noon"),
    ],
)
async def test_the_same_statement_makes_nothing_new(memory: Memory, once: str, again: str) -> None:
    """Spaces and the composition of characters do not make it another one; everything else may mean something."""
    first = await memory.add(once, user_id="mei")
    second = await memory.add(again, user_id="mei")
    assert (second.created, [made.id for made in second.memories]) == (0, [made.id for made in first.memories])
    assert [made.content for made in await stored(memory)] == [once]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("C is fine", "C++ is fine"),
        ("v2.1", "v21"),
        ("我吃素", "我不吃素"),
        ("weighs 5 kg", "weighs -5 kg"),
        ("!!!", "???"),
    ],
)
async def test_what_differs_in_substance_is_kept_apart(memory: Memory, one: str, other: str) -> None:
    await memory.add([one, other], user_id="mei")
    assert {made.content for made in await stored(memory)} == {one, other}


async def test_equal_statements_in_one_call_become_one(memory: Memory) -> None:
    receipt = await memory.add(["tea", "coffee", " tea"], user_id="mei")
    assert (receipt.created, [made.content for made in receipt.memories]) == (2, ["tea", "coffee"])


@pytest.mark.parametrize(
    "apart", [{"agent_id": "b"}, {"group_id": "b"}, {"memory_type": "preference"}, {"user_id": "bo"}]
)
async def test_agents_groups_types_and_users_have_memories_of_their_own(memory: Memory, apart: dict[str, str]) -> None:
    first = await memory.add("likes tea", user_id="mei")
    second = await memory.add("likes tea", **{"user_id": "mei", **apart})
    assert second.created == 1
    assert second.memories[0].id != first.memories[0].id


async def test_a_statement_of_another_session_is_the_same(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei", session_id="s1")
    assert (await memory.add("likes tea", user_id="mei", session_id="s2")).created == 0


async def test_the_same_statement_with_an_end_makes_nothing_new(memory: Memory) -> None:
    """A fact that is known to end is dedupable like any other."""
    fact = {"content": "the visa is valid", "valid_to": NOW + 30 * DAY}
    await memory.add(fact, user_id="mei")
    assert (await memory.add(fact, user_id="mei")).created == 0
    assert await memory.count(user_id="mei") == 1


async def test_what_has_expired_can_be_said_again(memory: Memory) -> None:
    """Nobody finds an expired memory, so it must not stand in the way of the same words said today."""
    await memory.add("the door code is 4711", user_id="mei", expires_at=datetime.now(UTC) + timedelta(milliseconds=50))
    await asyncio.sleep(0.1)
    assert await memory.count(user_id="mei") == 0
    receipt = await memory.add("the door code is 4711", user_id="mei")
    assert contents(await memory.search("door code", user_id="mei")) == ["the door code is 4711"]
    assert receipt.memories[0].expires_at is None


async def test_what_is_archived_can_be_said_again(memory: Memory) -> None:
    old = (await memory.add("likes tea", user_id="mei")).memories[0]
    await memory.update(old.id, user_id="mei", status="archived")
    assert (await memory.add("likes tea", user_id="mei")).created == 1
    assert contents(await memory.search("tea", user_id="mei")) == ["likes tea"]


@pytest.mark.parametrize("mark", [{"id": "m1"}, {"timestamp": LONG_AGO.isoformat()}])
async def test_messages_delivered_twice_are_kept_once(memory: Memory, mark: dict[str, str]) -> None:
    said = [{"role": "user", "content": "ok", **mark}, {"role": "assistant", "content": "good", **mark}]
    first = await memory.add(said, user_id="mei", session_id="s1")
    again = await memory.add([*said, {"role": "user", "content": "bye", **mark}], user_id="mei", session_id="s1")
    assert (again.created, len(again.memories)) == (1, 3)
    assert again.memories[:2] == first.memories
    assert (await stored(memory))[0].content == "bye"
    assert len(await stored(memory)) == 3


async def test_an_edited_or_archived_message_does_not_come_back_with_the_next_delivery(memory: Memory) -> None:
    """Importing the same chat again does not undo what a person did to its memories."""
    said = [
        {"role": "user", "content": "my PIN is 1234", "id": "m1"},
        {"role": "user", "content": "I like tea", "id": "m2"},
    ]
    pin, tea = (await memory.add(said, user_id="mei")).memories
    await memory.update(pin.id, user_id="mei", status="archived")
    await memory.update(tea.id, user_id="mei", content="I like green tea")
    assert (await memory.add(said, user_id="mei")).created == 0
    assert [kept.content for kept in await stored(memory)] == ["I like green tea"]


async def test_what_is_said_twice_in_a_conversation_is_kept_twice(memory: Memory) -> None:
    said = [{"role": "user", "content": "ok"}, {"role": "user", "content": "ok"}]
    for _ in range(2):
        await memory.add(said, user_id="mei")
    assert len(await stored(memory)) == 2


async def test_the_same_words_at_the_same_time_in_one_delivery_are_kept_as_often(memory: Memory) -> None:
    said = [{"role": "user", "content": "哈哈", "timestamp": LONG_AGO.isoformat()}] * 2
    assert (await memory.add(said, user_id="mei")).created == 2
    assert (await memory.add(said, user_id="mei")).created == 0


async def test_a_message_of_two_agents_belongs_to_both(memory: Memory, place: Place) -> None:
    """Each agent finds it; what one agent deletes stays whole for the other."""
    said = {"role": "user", "content": "I like tea", "id": "m1"}
    one = (await memory.add(said, user_id="mei", agent_id="a")).memories[0]
    other = (await memory.add(said, user_id="mei", agent_id="b")).memories[0]
    assert one.id != other.id
    assert len(dump(place)["messages"]) == 1
    await memory.delete(one.id, user_id="mei")
    assert (await memory.get(other.id, user_id="mei")).source_ids == ("m1",)


# -- idempotency keys -----------------------------------------------------------------------------------------------


async def test_a_repeated_call_returns_the_first_receipt(memory: Memory, place: Place) -> None:
    said = [{"role": "user", "content": "ok"}, {"role": "user", "content": "I work on compilers in Berlin with Rust"}]
    first = await memory.add(said, user_id="mei", idempotency_key="k1")
    before = dump(place)
    assert await memory.add(said, user_id="mei", idempotency_key="k1") == first
    assert dump(place) == before


@pytest.mark.parametrize(
    "other", [{"what": "coffee"}, {"session_id": "s2"}, {"tags": ["x"]}, {"occurred_at": LONG_AGO}]
)
async def test_the_same_key_for_something_else_is_a_conflict(memory: Memory, other: dict[str, object]) -> None:
    call = {"what": "tea", "user_id": "mei", "idempotency_key": "k1"}
    await memory.add(**call)
    with pytest.raises(IdempotencyConflict, match="'k1'"):
        await memory.add(**call | other)
    assert await memory.count(user_id="mei") == 1


async def test_the_order_of_keys_is_no_other_request(memory: Memory) -> None:
    first = await memory.add(
        [{"content": "likes tea", "metadata": {"a": 1, "b": {"c": 2, "d": 3}}}],
        user_id="mei",
        metadata={"x": 1, "y": 2},
        idempotency_key="k1",
    )
    again = await memory.add(
        [{"metadata": {"b": {"d": 3, "c": 2}, "a": 1}, "content": "likes tea", "tags": []}],
        user_id="mei",
        metadata={"y": 2, "x": 1},
        trust=1.0,
        idempotency_key="k1",
    )
    assert again == first
    with pytest.raises(IdempotencyConflict):
        await memory.add([{"content": "likes tea"}], user_id="mei", metadata={"x": 1}, idempotency_key="k1")


async def test_a_setting_of_the_program_is_no_other_request(place: Place) -> None:
    async with Memory.open(place, embedder=WordEmbedder()) as memory:
        first = await memory.add("likes tea", user_id="mei", idempotency_key="k1")
    async with Memory.open(place, embedder=WordEmbedder(), settings=load_settings(user_names=["Mei Lin"])) as memory:
        assert await memory.add("likes tea", user_id="mei", idempotency_key="k1") == first


async def test_a_request_of_another_version_is_taken_for_the_same(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes of another version cannot be compared, and a retry during an upgrade is likelier than a reused key."""
    with monkeypatch.context() as before:
        before.setattr(build, "REQUEST_VERSION", "00")
        first = await memory.add("likes tea", user_id="mei", idempotency_key="k1")
    assert await memory.add("likes tea", user_id="mei", metadata={}, idempotency_key="k1") == first


async def test_keys_of_different_users_do_not_meet(memory: Memory) -> None:
    await memory.add("tea", user_id="mei", idempotency_key="k1")
    assert (await memory.add("coffee", user_id="bo", idempotency_key="k1")).created == 1


async def test_a_key_is_free_again_after_the_users_erasure(memory: Memory) -> None:
    await memory.add("tea", user_id="mei", idempotency_key="k1")
    await memory.delete_all("mei")
    assert (await memory.add("coffee", user_id="mei", idempotency_key="k1")).created == 1


async def test_calls_at_the_same_time_make_one_memory(memory: Memory) -> None:
    keyed = await asyncio.gather(
        *(memory.add({"role": "user", "content": "ok"}, user_id="mei", idempotency_key="k") for _ in range(8))
    )
    assert len({receipt.id for receipt in keyed}) == 1
    stated = await asyncio.gather(*(memory.add("likes tea", user_id="mei") for _ in range(8)))
    assert sorted(receipt.created for receipt in stated) == [0] * 7 + [1]
    assert len(await stored(memory)) == 2


async def test_hundreds_of_calls_at_once_all_get_their_answer(memory: Memory) -> None:
    adding = [memory.add(f"fact {number}", user_id=f"user {number % 7}") for number in range(100)]
    searching = [memory.search("fact", user_id=f"user {number % 7}") for number in range(100)]
    answers = await asyncio.gather(*(call for pair in zip(adding, searching, strict=True) for call in pair))
    assert sum(receipt.created for receipt in answers[::2]) == 100
    assert sum([(await memory.search("fact", user_id=f"user {user}")).total_found for user in range(7)]) == 100


# -- when the embedder is down --------------------------------------------------------------------------------------


async def test_without_an_embedder_memories_are_kept_and_found_by_words(
    deaf_memory: Memory, switch: FailingEmbedder
) -> None:
    receipt = await deaf_memory.add("我喜欢喝咖啡", user_id="mei")
    assert (receipt.state, receipt.created) == ("extracted", 1)
    [problem] = receipt.problems
    assert "switched off" in problem
    assert "jiyi reindex --embeddings" in problem
    found = await deaf_memory.search("咖啡", user_id="mei")
    assert contents(found) == ["我喜欢喝咖啡"]
    assert "switched off" in found.degraded[0]
    switch.failing = False
    again = await deaf_memory.search("咖啡", user_id="mei")
    assert contents(again) == ["我喜欢喝咖啡"]
    assert "1 of 1 memories have no vector" in again.degraded[0]
    assert await deaf_memory.maintenance.reindex() == 1
    repaired = await deaf_memory.search("咖啡", user_id="mei", search_mode="semantic")
    assert (contents(repaired), repaired.degraded) == (["我喜欢喝咖啡"], ())


async def test_a_receipt_never_says_indexed_of_what_is_not(deaf_memory: Memory, switch: FailingEmbedder) -> None:
    """Said again when the embedder is back: either it is embedded now, or the receipt says that it is not."""
    await deaf_memory.add("likes tea", user_id="mei")
    switch.failing = False
    again = await deaf_memory.add("likes tea", user_id="mei")
    coverage = (await deaf_memory.stats("mei")).coverage
    assert again.state == ("indexed" if coverage.embedded == coverage.memories else "extracted")


async def test_an_update_without_an_embedder_takes_the_old_vector_away(place: Place, switch: FailingEmbedder) -> None:
    """A vector of the old text would find the new one for the wrong reason."""
    switch.failing = False
    async with Memory.open(place, embedder=switch) as memory:
        made = (await memory.add("likes tea", user_id="mei")).memories[0]
        switch.failing = True
        await memory.update(made.id, user_id="mei", content="plays chess")
        switch.failing = False
        found = await memory.search("tea", user_id="mei")
        assert found.hits == ()
        assert "1 of 1" in found.degraded[0]
        assert contents(await memory.search("chess", user_id="mei")) == ["plays chess"]


# -- interruptions --------------------------------------------------------------------------------------------------


async def test_a_cancelled_call_leaves_the_store_usable(place: Place) -> None:
    """Agents put timeouts around calls. Wherever one strikes, nothing is half written and nothing stays locked."""
    acknowledged = set()
    slowest = 0.0
    async with Memory.open(place, embedder=WordEmbedder(), settings=load_settings(busy_timeout_s=60)) as memory:
        for number in range(150):
            text = f"fact {number} about number {number * 7}"
            started = monotonic()
            try:
                await asyncio.wait_for(memory.add(text, user_id="mei"), timeout=0.0005 * (number % 50))
                acknowledged.add(text)
            except TimeoutError:
                pass
            slowest = max(slowest, monotonic() - started)
            if slowest > 30:
                break
        assert slowest < 30, "a cancelled write kept the database locked"
        await memory.add("the last number", user_id="mei")
        there = {kept.id: kept.content for kept in await stored(memory)}
        assert acknowledged < set(there.values())
        found = await memory.search("number", user_id="mei", limit=1000)
        assert {hit.id for hit in found.hits} == set(there)
    rows = dump(place)
    assert (
        {row[:2] for row in rows["terms"]} == {row[:2] for row in rows["embeddings"]} == {("mei", one) for one in there}
    )


async def test_cancelled_searches_do_not_spoil_later_ones(memory: Memory) -> None:
    for number in range(40):
        await memory.add([f"number {number} {part}" for part in range(5)], user_id="mei")
        with suppress(TimeoutError):
            await asyncio.wait_for(memory.search("number", user_id="mei"), timeout=0.0005 * number)
    assert (await memory.search("number", user_id="mei")).total_found == 200


async def test_a_system_prompt_is_kept_but_is_no_memory(memory: Memory) -> None:
    """Elsewhere the agent's own instructions came back as things the user had said."""
    receipt = await memory.add(
        [{"role": "system", "content": "You are a pirate"}, {"role": "user", "content": "I sail on Sundays"}],
        user_id="mei",
    )
    assert [made.content for made in receipt.memories] == ["I sail on Sundays"]
    assert "system message" in receipt.problems[0]
    assert (await memory.search("pirate", user_id="mei", search_mode="keyword")).hits == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The WiFi password is aBcD1234", "The WiFi password is AbCd1234"),
        ("The area is 10² m", "The area is 102 m"),
        ("我姓乾", "我姓干"),
        ("臺灣的烏龍茶", "台湾的乌龙茶"),
        ("My code is ＡＢＣ", "My code is abc"),
    ],
)
async def test_what_is_spelled_in_another_way_is_not_lost(path: Path, one: str, other: str) -> None:
    async with Memory.open(path, embedder=WordEmbedder()) as memory:
        for wrap in (lambda text: text, lambda text: [{"role": "user", "content": text}]):
            assert (await memory.add(wrap(one), user_id="mei", session_id="s")).created
            receipt = await memory.add(wrap(other), user_id="mei", session_id="s")
            assert receipt.created and other in [item.content for item in receipt.memories]
            again = await memory.add(wrap(other), user_id="mei", session_id="s")
            assert not again.created, "the very same is stored once"
            assert other in await memory.context(other, user_id="mei")
            await memory.delete_all("mei")


async def test_results_are_iterated_over_directly(memory: Memory) -> None:
    await memory.add("My dog is called Rex.", user_id="mei")
    await memory.add([{"role": "user", "content": "hello"}], user_id="mei")
    assert [one.content for one in await memory.list(user_id="mei")] == ["My dog is called Rex."]
    assert [one.content for one in await memory.search("dog", user_id="mei", limit=1)] == ["My dog is called Rex."]
    assert [one.text for one in await memory.messages(user_id="mei")] == ["hello"]
