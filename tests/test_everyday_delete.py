"""Deleting a fact that somebody no longer wants to be remembered, as a user sees it."""

from __future__ import annotations

import pytest

from jiyi import Memory, MemoryItem
from jiyi.agents.tools import MemoryTools
from support import said


@pytest.fixture
def memory(extracting_memory: Memory) -> Memory:
    return extracting_memory


async def facts(memory: Memory) -> list[MemoryItem]:
    return list((await memory.list(user_id="mei")).items)


async def fact(memory: Memory, word: str) -> str:
    return next(one.id for one in await facts(memory) if word in one.content)


async def found(memory: Memory, query: str) -> list[str]:
    return [hit.content for hit in (await memory.search(query, user_id="mei")).hits]


async def test_a_deleted_fact_is_not_found_by_its_message(memory: Memory) -> None:
    await said(memory, "My dog is called Rex.", "I drink oolong tea.")
    gone = await memory.delete(await fact(memory, "Rex"), user_id="mei")
    assert gone.messages == 1
    assert not [text for text in await found(memory, "what is my dog called?") if "Rex" in text]
    assert await found(memory, "what tea do I drink?")


async def test_a_message_that_states_more_stays_and_the_receipt_says_so(memory: Memory) -> None:
    await said(memory, "My dog is called Rex. I live in Rome.")
    gone = await memory.delete(await fact(memory, "Rex"), user_id="mei")
    assert gone.messages == 0
    assert "state more" in " ".join(gone.notes)
    assert any("Rome" in text for text in await found(memory, "where do I live?"))


async def test_deleting_the_successor_lets_the_earlier_fact_hold_again(memory: Memory) -> None:
    await said(memory, "I live in Paris.", "I moved to Rome.")
    gone = await memory.delete(await fact(memory, "Rome"), user_id="mei")
    assert len(gone.restored) == 1
    assert [one.content for one in await facts(memory)] == ["I live in Paris."]
    history = await memory.history(gone.restored[0], user_id="mei")
    assert history[-1].action == "restore"


async def test_deleting_a_fact_between_two_others_leaves_the_first_superseded(memory: Memory) -> None:
    await said(memory, "I live in Paris.", "I moved to Rome.", "I moved to Oslo.")
    rome = next(one for one in (await memory.timeline(user_id="mei")).items if "Rome" in one.content)
    gone = await memory.delete(rome.id, user_id="mei")
    assert not gone.restored
    assert [one.content for one in await facts(memory)] == ["I moved to Oslo."]


async def test_an_agent_that_erases_a_fact_is_told_which_messages_stay(memory: Memory) -> None:
    await said(memory, "My dog is called Rex. I live in Rome.", "I drink oolong tea.")
    tools = MemoryTools(memory, user_id="mei")
    dog = await tools.call("forget_memory", {"memory_key": await fact(memory, "Rex"), "permanently": True})
    assert "state more" in dog.text
    assert "state more" in " ".join(dog.data["notes"])
    tea = await tools.call("forget_memory", {"memory_key": await fact(memory, "oolong"), "permanently": True})
    assert "messages" not in tea.text
    assert "messages" not in " ".join(tea.data["notes"])


async def test_a_fact_that_an_agent_archives_is_not_found_by_its_message(memory: Memory) -> None:
    await said(memory, "My dog is called Rex.")
    await memory.add("I drink oolong tea.", user_id="mei")
    tools = MemoryTools(memory, user_id="mei")
    dog = await tools.call("forget_memory", {"memory_key": await fact(memory, "Rex")})
    assert await found(memory, "what is my dog called?") == []
    assert not dog.data["notes"]
    tea = await tools.call("forget_memory", {"memory_key": await fact(memory, "oolong")})
    assert await found(memory, "what tea do I drink?") == []
    assert not tea.data["notes"]


async def test_list_and_count_leave_out_messages_unless_asked(memory: Memory) -> None:
    await said(memory, "My dog is called Rex.", "lol")
    assert [one.memory_type for one in (await memory.list(user_id="mei")).items] == ["fact"]
    assert await memory.count(user_id="mei") == 1
    assert len((await memory.list(user_id="mei", memory_types=["message"])).items) == 2
    assert len((await memory.messages(user_id="mei")).items) == 2
