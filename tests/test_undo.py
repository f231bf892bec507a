"""Undo: by memory, by source, by time; a preview equals what is done, and nothing is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from jiyi import InvalidInput, Memory, MemoryItem
from jiyi.settings import load_settings
from jiyi.testing import Clock, WordEmbedder
from support import contents, stored

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def clock() -> AsyncIterator[Clock]:
    with Clock(START) as clock:
        yield clock


@pytest.fixture
async def keeper(place: str | Path, clock: Clock) -> AsyncIterator[Memory]:
    """A memory that works memories out by itself, at a time that stands still."""
    async with Memory.open(place, settings=load_settings(), embedder=WordEmbedder(512)) as memory:
        yield memory


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def facts(items: list[MemoryItem]) -> set[str]:
    return {item.content for item in items if item.memory_type == "fact"}


async def everything(memory: Memory, user_id: str = "mei") -> dict[str, object]:
    """All fields of all memories, but for versions and when they were changed."""
    both = [*await stored(memory, user_id), *await stored(memory, user_id, status="archived")]
    over = await stored(memory, user_id, as_of=START)
    return {
        item.id: item.model_dump(exclude={"version", "updated_at", "access_count", "last_accessed_at"})
        for item in (*both, *over)
    }


async def test_what_a_session_brought_is_taken_back_and_what_it_ended_holds_again(keeper: Memory, clock: Clock) -> None:
    await keeper.add(said("I live in Berlin."), user_id="mei", session_id="s1")
    clock.now += DAY
    await keeper.add(said("I live in Lisbon now."), user_id="mei", session_id="s2")
    assert facts(await stored(keeper)) == {"I live in Lisbon now."}
    plan = await keeper.maintenance.undo_plan(session_id="s2", user_id="mei")
    assert facts(await stored(keeper)) == {"I live in Lisbon now."}, "a plan changes nothing"
    clock.now += DAY
    done = await keeper.maintenance.undo(session_id="s2", user_id="mei", actor="mei")
    assert done.steps == plan.steps
    assert facts(await stored(keeper)) == {"I live in Berlin."}
    assert "Lisbon" not in str(contents(await keeper.search("where do I live?", user_id="mei")))
    [berlin] = [item for item in await stored(keeper) if item.memory_type == "fact"]
    last = (await keeper.history(berlin.id, user_id="mei"))[-1]
    assert (last.actor, last.reason) == ("mei", "undo: what session s2 brought")
    assert last.before is not None and last.before["valid_to"] and last.after["valid_to"] is None


async def test_an_undo_can_be_undone(keeper: Memory, clock: Clock) -> None:
    await keeper.add(said("I live in Berlin. 我养了一只猫。"), user_id="mei", session_id="s1")
    clock.now += DAY
    await keeper.add(said("I live in Lisbon now."), user_id="mei", session_id="s2")
    before = await everything(keeper)
    clock.now += DAY
    await keeper.maintenance.undo(session_id="s1", user_id="mei")
    assert facts(await stored(keeper)) == {"I live in Lisbon now."}
    clock.now += DAY
    await keeper.maintenance.undo(to=START + 1.5 * DAY, user_id="mei")
    assert await everything(keeper) == before


async def test_as_it_was_on_monday(keeper: Memory, clock: Clock) -> None:
    first = (await keeper.add("我对花生过敏", user_id="mei", tags=["健康"])).memories[0]
    other = (await keeper.add("The rent is 900 euros", user_id="mei")).memories[0]
    monday = clock.now
    on_monday = await everything(keeper)
    clock.now += DAY
    await keeper.update(first.id, user_id="mei", content="我不过敏", tags=[])
    await keeper.update(other.id, user_id="mei", status="archived")
    await keeper.add("The sky is green", user_id="mei")
    await keeper.add("Bob's own", user_id="bob")
    clock.now += DAY
    plan = await keeper.maintenance.undo_plan(to=monday, user_id="mei")
    done = await keeper.maintenance.undo(user_id="mei", plan=plan)
    assert done.steps == plan.steps and {step.does for step in done.steps} == {"archive", "restore", "change"}
    now = await everything(keeper)
    assert {key: now[key] for key in on_monday} == on_monday
    assert {item.content for item in await stored(keeper)} == {"我对花生过敏", "The rent is 900 euros"}
    assert contents(await keeper.search("花生", user_id="mei", search_mode="keyword")) == ["我对花生过敏"]
    assert len(await stored(keeper, "bob")) == 1, "another user's memory has its own time"


async def test_one_memorys_last_change(keeper: Memory, clock: Clock) -> None:
    item = (await keeper.add("The meeting is at 10:00", user_id="mei")).memories[0]
    clock.now += DAY
    await keeper.update(item.id, user_id="mei", content="The meeting is at 11:00")
    await keeper.maintenance.undo(item.id, user_id="mei")
    assert (await keeper.get(item.id, user_id="mei")).content == "The meeting is at 10:00"
    fresh = (await keeper.add("Coffee is bad", user_id="mei")).memories[0]
    await keeper.maintenance.undo(fresh.id, user_id="mei")
    assert (await keeper.get(fresh.id, user_id="mei")).status == "archived"


async def test_an_actor_and_a_document_can_be_rolled_back(keeper: Memory, clock: Clock) -> None:
    await keeper.add("Mei likes tea", user_id="mei")
    clock.now += DAY
    await keeper.add("Mei owes 5000 dollars to a prince", user_id="mei", actor="crawler")
    clock.now += DAY
    await keeper.add(
        [{"role": "user", "content": "My cat is called Momo."}], user_id="mei", metadata={"document": "notes.pdf"}
    )
    assert len((await keeper.maintenance.undo(source_actor="crawler", user_id="mei")).steps) == 1
    done = await keeper.maintenance.undo(metadata={"document": "notes.pdf"}, user_id="mei")
    assert done.steps and all("Momo" in step.text or "cat" in step.text for step in done.steps)
    assert {item.content for item in await stored(keeper)} == {"Mei likes tea"}
    assert (await keeper.maintenance.undo(source_actor="crawler", user_id="bob")).steps == ()


async def test_what_a_person_changed_since_stays(keeper: Memory, clock: Clock) -> None:
    item = (await keeper.add("The code is 1234", user_id="mei", session_id="s1")).memories[0]
    clock.now += DAY
    await keeper.update(item.id, user_id="mei", content="The code is 9876")
    done = await keeper.maintenance.undo(session_id="s1", user_id="mei")
    assert done.steps == () and "changed it" in done.left[0]
    assert (await keeper.get(item.id, user_id="mei")).content == "The code is 9876"


async def test_what_was_written_after_the_plan_stays(keeper: Memory, clock: Clock) -> None:
    item = (await keeper.add("The code is 1234", user_id="mei", session_id="s1")).memories[0]
    plan = await keeper.maintenance.undo_plan(session_id="s1", user_id="mei")
    await keeper.update(item.id, user_id="mei", importance=0.9)
    done = await keeper.maintenance.undo(user_id="mei", plan=plan)
    assert done.steps == () and "version 2" in done.left[0]
    assert (await keeper.get(item.id, user_id="mei")).status == "active"


async def test_what_was_said_again_meanwhile_is_not_there_twice(keeper: Memory, clock: Clock) -> None:
    item = (await keeper.add("Tea is good", user_id="mei")).memories[0]
    clock.now += DAY
    await keeper.update(item.id, user_id="mei", status="archived")
    clock.now += DAY
    await keeper.add("Tea is good", user_id="mei")
    done = await keeper.maintenance.undo(item.id, user_id="mei")
    assert done.steps == () and "says the same already" in done.left[0]
    assert len(await stored(keeper)) == 1


@pytest.mark.parametrize(
    "arguments",
    [{}, {"memory_id": "x", "to": START}, {"since": START}, {"to": START, "since": START}, {"metadata": {"a": ""}}],
)
async def test_what_to_undo_has_to_be_said(keeper: Memory, arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        await keeper.maintenance.undo(user_id="mei", **arguments)  # type: ignore[arg-type]


async def test_a_plan_of_another_user_is_refused(keeper: Memory) -> None:
    await keeper.add("x", user_id="mei", session_id="s1")
    plan = await keeper.maintenance.undo_plan(session_id="s1", user_id="mei")
    with pytest.raises(InvalidInput, match="another user"):
        await keeper.maintenance.undo(user_id="bob", plan=plan)


async def test_what_other_sessions_worked_out_stays(keeper: Memory, clock: Clock) -> None:
    for number, text in enumerate(
        ("I live in Berlin.", "I work at Siemens.", "I live in Lisbon now.", "I work at Bosch now.")
    ):
        clock.now += DAY
        await keeper.add(said(text), user_id="mei", session_id=f"s{number}")
    assert facts(await stored(keeper)) == {"I live in Lisbon now.", "I work at Bosch now."}
    clock.now += DAY
    await keeper.maintenance.undo(session_id="s2", user_id="mei")
    assert facts(await stored(keeper)) == {"I live in Berlin.", "I work at Bosch now."}


async def test_of_a_source_only_what_came_since_a_moment_is_taken_back(keeper: Memory, clock: Clock) -> None:
    for text in ("Mei owes 5000 dollars to a prince", "Mei won a lottery", "Mei inherited a castle"):
        clock.now += DAY
        await keeper.add(text, user_id="mei", actor="crawler")
    await keeper.maintenance.undo(source_actor="crawler", since=clock.now - DAY, user_id="mei")
    assert {item.content for item in await stored(keeper)} == {"Mei owes 5000 dollars to a prince"}


async def test_a_document_in_a_session_is_taken_back_without_the_rest_of_it(keeper: Memory, clock: Clock) -> None:
    """What the session changed besides the document stays; without naming the document it is taken back too."""
    await keeper.add(said("I live in Berlin."), user_id="mei", session_id="s0")
    clock.now += DAY
    await keeper.add("Mei likes tea", user_id="mei", session_id="s1", metadata={"document": "a"})
    clock.now += DAY
    await keeper.add("Mei likes milk", user_id="mei", session_id="s2", metadata={"document": "a"})
    clock.now += DAY
    await keeper.add(said("I live in Lisbon now."), user_id="mei", session_id="s1")
    await keeper.maintenance.undo(session_id="s1", metadata={"document": "a"}, user_id="mei")
    assert facts(await stored(keeper)) == {"Mei likes milk", "I live in Lisbon now."}
