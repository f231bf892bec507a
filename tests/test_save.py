"""Saving an `add`: what refers to a memory that is not saved is dropped, and the messages are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jiyi import Memory
from jiyi.models import ReceiptState
from jiyi.store.write_set import Addition, Change, ChangedMemory, Effects, NewMemory, NewMessage, NewRelation, Source
from jiyi.write.index import KeywordRules, index_entry
from support import dump

NOW = datetime(2026, 5, 7, tzinfo=UTC)
GONE = "9" * 26
RULES = KeywordRules(most=10, lightest=0.1)


def new_memory(number: int, content: str, **more: object) -> NewMemory:
    memory_id = f"{number}" * 26
    values = NewMemory(
        id=memory_id, memory_key=memory_id, memory_type="fact", layer="semantic", content=content, summary=content,
        data={}, metadata={}, importance=0.5, tags=(), dedupe_hash=f"hash of {content}", occurred_at=NOW,
        valid_from=NOW, expires_at=None, source="extracted", index=index_entry(content, content, (), {}, "fact", RULES),
    )  # fmt: skip
    return replace(values, **more)  # type: ignore[arg-type]


def addition(*memories: NewMemory, effects: Effects) -> Addition:
    message = NewMessage(
        id="5" * 26, external_id=None, role="user", speaker=None, text="we like tea", sent_at=NOW, dedupe_hash=None
    )
    return Addition(
        id="6" * 26, user_id="mei", epoch="", session_id=None, agent_id=None, group_id=None, idempotency_key=None,
        request_hash="", actor="jiyi", at=NOW, state=ReceiptState.INDEXED, problems=(), model="m",
        messages=(message,), memories=memories, effects=effects,
    )  # fmt: skip


def relation(memory_id: str, target_id: str) -> NewRelation:
    return NewRelation(memory_id=memory_id, target_id=target_id, relation_type="contradicts", strength=1.0)


async def test_references_to_memories_that_are_not_saved_are_dropped(memory: Memory) -> None:
    """Two derived memories say the same, so one is dropped; relations and sources of the dropped one go with it."""
    [there] = (await memory.add("the friend is called Rachel", user_id="mei")).memories
    kept = new_memory(1, "likes tea")
    twin = new_memory(2, "likes tea too", dedupe_hash=kept.dedupe_hash)
    effects = Effects(
        relations=(relation(twin.id, there.id), relation(there.id, GONE), relation(kept.id, there.id)),
        evidence={twin.id: (Source(message_id="5" * 26),), GONE: (Source(message_id="5" * 26),)},
        changes=(
            ChangedMemory(
                id=there.id,
                change=Change(values={"superseded_by": twin.id}, action="supersede", actor="jiyi", reason=None, at=NOW),
            ),
        ),
    )
    receipt = await memory._engine.store.additions.save(addition(kept, twin, effects=effects))
    assert receipt.created == 1
    assert any("2 relation" in problem for problem in receipt.problems)
    assert any("2 source" in problem for problem in receipt.problems)
    found = await memory.relations.list(there.id, user_id="mei")
    assert [(one.memory_id, one.target_id) for one in found] == [(kept.id, there.id)]
    assert (await memory.get(there.id, user_id="mei")).superseded_by is None


async def test_a_new_memory_points_to_no_successor_that_is_not_saved(memory: Memory) -> None:
    await memory._engine.store.additions.save(
        addition(new_memory(1, "lived in Rome", superseded_by=GONE), effects=Effects())
    )
    assert (await memory.get("1" * 26, user_id="mei")).superseded_by is None


@pytest.mark.parametrize("times", [1, 700])
async def test_a_large_addition_is_looked_up_in_parts(memory: Memory, times: int) -> None:
    texts = [f"fact number {number}" for number in range(times)]
    assert (await memory.add(texts, user_id="mei")).created == times
    assert (await memory.add(texts, user_id="mei")).created == 0


async def test_messages_that_are_added_again_change_nothing(extracting_memory: Memory, path: Path) -> None:
    for messages in (
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "I live in Oslo."}],
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "I teach maths.", "sent_at": NOW}],
    ):
        first = await extracting_memory.add(messages, user_id="mei", session_id="s")
        before = dump(path)
        again = await extracting_memory.add(messages, user_id="mei", session_id="s")
        assert {one.id for one in again.memories} <= {one.id for one in first.memories}
        assert len(again.memories) == 1, "the message is found, and is not read again"
        changed = {table for table, rows in dump(path).items() if rows != before[table]}
        assert changed <= {"jobs", "job_memories"}
