"""What a delete reaches besides the memory itself, and what its receipt says."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jiyi import Memory, MemoryItem, NotFound
from jiyi.keep.erase import remainder
from jiyi.models import ReceiptState
from jiyi.settings import load_settings
from jiyi.store.repositories.deletions import Held, Rewritten
from jiyi.store.write_set import Addition, Change, ChangedMemory, Effects, NewMemory, NewRelation
from jiyi.testing import WordEmbedder
from jiyi.write.index import KeywordRules, index_entry
from support import NOW, Place, ask, contents, file_bytes, rows_with, stored, stored_memory

RULES = KeywordRules(8, 0.3)
CHAT = [
    {"role": "user", "content": "我住在柏林。", "id": "m1"},
    {"role": "user", "content": "我对花生过敏。", "id": "m2"},
    {"role": "user", "content": "I like chess.", "id": "m3"},
]


@pytest.fixture
async def learning(place: Place) -> AsyncIterator[Memory]:
    """A memory that works out memories."""
    async with Memory.open(place, embedder=WordEmbedder(512)) as memory:
        yield memory


async def one(memory: Memory, memory_type: str, text: str = "") -> MemoryItem:
    (found,) = [item for item in await stored(memory, memory_types=[memory_type]) if text in item.content]
    return found


async def test_with_sources_the_raw_messages_go_and_all_that_came_from_nothing_else(
    learning: Memory, place: Place
) -> None:
    await learning.add(CHAT, user_id="mei", session_id="s")
    fact = await one(learning, "fact", "柏林")
    gone = await learning.delete(fact.id, user_id="mei", with_sources=True)
    assert gone.messages == 1
    assert rows_with(place, "柏林") == {}
    assert {item.memory_type for item in await stored(learning) if "花生" in item.content} >= {"fact", "message"}
    assert {"memories", "messages", "vectors", "terms", "keywords", "revisions", "sources"} <= gone.removed.keys()
    assert gone.memories == 1 + len(gone.derived)


async def test_what_has_other_support_stays(learning: Memory) -> None:
    await learning.add(CHAT, user_id="mei", session_id="s")
    await learning.add([{"role": "user", "content": "我对花生过敏。", "id": "m9"}], user_id="mei", session_id="t")
    told = await one(learning, "fact", "花生")
    assert set(told.source_ids) == {"m2", "m9"}
    (first,) = [item for item in await stored(learning, memory_types=["message"]) if item.source_ids == ("m2",)]
    await learning.delete(first.id, user_id="mei", with_sources=True)
    assert (await learning.get(told.id, user_id="mei")).source_ids == ("m9",)


async def test_deleting_reaches_only_that_user(learning: Memory, place: Place) -> None:
    for user in ("mei", "bo"):
        await learning.add(CHAT, user_id=user, session_id="s")
    mine = await stored(learning, "bo")
    for item in await stored(learning):
        try:
            await learning.delete(item.id, user_id="mei", with_sources=True)
        except NotFound:
            continue
    assert await stored(learning) == []
    assert await stored(learning, "bo") == mine
    assert {row[0] for row in ask(place, "SELECT user_id FROM messages")} == {"bo"}


async def test_a_stand_in_goes_and_those_it_stood_for_speak_again(memory: Memory) -> None:
    """A memory that compressing made tells what its members tell; when one of them goes, it does."""
    first, second = (await memory.add(["likes oolong tea", "likes green tea"], user_id="mei")).memories
    stand_in = NewMemory(
        id="0" * 26, memory_key="0" * 26, memory_type="fact", layer="semantic", content="likes oolong and green tea",
        summary="likes tea", data={}, metadata={}, importance=0.5, tags=(), dedupe_hash="x", occurred_at=NOW,
        valid_from=NOW, expires_at=None, source="compressed",
    )  # fmt: skip
    await plant(memory, stand_in, [first.id, second.id])
    gone = await memory.delete(first.id, user_id="mei")
    assert gone.derived == (stand_in.id,)
    assert gone.restored == (second.id,)
    assert contents(await memory.search("tea", user_id="mei")) == ["likes green tea"]
    assert [change.action for change in await memory.history(second.id, user_id="mei")][-1] == "restore"


async def plant(memory: Memory, stand_in: NewMemory, members: list[str]) -> None:

    archive = Change(values={"status": "archived"}, action="archive", actor="jiyi", reason=None, at=NOW)
    entry = index_entry(stand_in.content, stand_in.summary, (), {}, "fact", RULES)

    await memory._engine.store.additions.save(
        Addition(
            id="1" * 26, user_id="mei", epoch="", session_id=None, agent_id=None, group_id=None, idempotency_key=None,
            request_hash="", actor="jiyi", at=NOW, state=ReceiptState.INDEXED, problems=(), model="m", messages=(),
            memories=(replace(stand_in, index=entry),),
            effects=Effects(
                changes=tuple(ChangedMemory(id=member, change=archive) for member in members),
                relations=tuple(
                    NewRelation(memory_id=stand_in.id, target_id=member, relation_type="refines", strength=1.0)
                    for member in members
                ),
            ),
        )
    )  # fmt: skip


async def test_what_it_superseded_does_not_point_to_it(learning: Memory, place: Place) -> None:
    await learning.add("I live in Berlin", user_id="mei")
    await learning.add("I live in Rome", user_id="mei")
    (superseder,) = {row[0] for row in ask(place, "SELECT superseded_by FROM memories")} - {None}
    await learning.delete(superseder, user_id="mei")
    assert {row[0] for row in ask(place, "SELECT superseded_by FROM memories")} == {None}


async def test_a_question_that_only_it_could_answer_is_forgotten(memory: Memory, place: Place) -> None:
    made = (await memory.add(["the key lies under zanzibarquartz", "likes tea"], user_id="mei")).memories[0]
    await memory.search("tea and ZANZIBARQUARTZ", user_id="mei", limit=10)
    await memory.search("tea", user_id="mei", limit=1)
    await memory.usage.recalls(user_id="mei")
    await memory.delete(made.id, user_id="mei")
    assert rows_with(place, "zanzibarquartz", "ZANZIBARQUARTZ") == {}
    assert [recall.query for recall in await memory.usage.recalls(user_id="mei")] == ["tea"]


async def test_deleting_a_memory_that_is_not_there_removes_nothing(memory: Memory) -> None:
    await memory.add("likes tea", user_id="mei")
    with pytest.raises(NotFound):
        await memory.delete("nothing", user_id="mei", with_sources=True)
    assert await memory.count(user_id="mei") == 1


async def test_the_database_can_be_rewritten_while_it_is_open(memory: Memory) -> None:
    made = (await memory.add("likes tea", user_id="mei")).memories[0]
    await memory.delete(made.id, user_id="mei")
    await memory.maintenance.vacuum()
    assert (await memory.add("likes tea", user_id="mei")).created == 1


async def test_the_log_is_emptied_when_a_reader_has_let_go(path: Path) -> None:
    """A delete does not wait for a reader of another process, and is not forgotten either."""
    async with Memory.open(path, embedder=WordEmbedder(), settings=load_settings(busy_timeout_s=5)) as memory:
        made = (await memory.add("zanzibarquartz " * 50, user_id="mei")).memories[0]
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM memories").fetchone()
            gone = await memory.delete(made.id, user_id="mei")
            assert any("while somebody reads" in note for note in gone.notes)
            assert (await memory.add("others go on writing", user_id="mei")).created == 1
            reader.rollback()
        for _ in range(1200):
            if b"zanzibarquartz" not in file_bytes(path):
                break
            await asyncio.sleep(0.05)
        assert b"zanzibarquartz" not in file_bytes(path)


# -- what is left of a memory that was made of others ---------------------------------------------------------------


def held(memory_type: str, content: str, *, messages: str = "", source: str = "extracted", **data: object) -> Held:
    return stored_memory(
        Held,
        id=content,
        memory_type=memory_type,
        content=content,
        data=dict(data),
        source=source,
        messages=frozenset(messages),
    )


def test_an_episode_that_a_model_told_is_removed_as_a_whole() -> None:
    episode = held("episode", "They spoke: Mei lives in Berlin, it seems.", extractor="llm")
    assert remainder(episode, [held("fact", "Mei lives in Berlin")], frozenset(), rules=RULES) is None
    assert remainder(episode, [held("fact", "Mei likes tea")], frozenset(), rules=RULES) is episode


def test_an_episode_whose_message_goes_is_removed() -> None:
    episode = held("episode", "Mei lives in Berlin. Mei likes tea.", messages="ab", extractor="builtin")
    assert remainder(episode, [], frozenset("a"), rules=RULES) is None
    assert remainder(episode, [], frozenset("c"), rules=RULES) is episode


def test_a_profile_that_a_person_wrote_loses_only_the_line() -> None:
    written = "Likes quiet.\nMei lives in Berlin\nIn Berlin since May."
    left = remainder(held("profile", written), [held("fact", "Mei lives in Berlin")], frozenset(), rules=RULES)
    assert isinstance(left, Rewritten)
    assert left.content == "Likes quiet.\nIn Berlin since May."


def test_a_profile_whose_message_goes_is_removed() -> None:
    derived = held("profile", "lives in Rome", messages="ab")
    assert remainder(derived, [], frozenset("a"), rules=RULES) is None
    assert remainder(derived, [], frozenset("c"), rules=RULES) is derived


# -- files ----------------------------------------------------------------------------------------------------------


async def test_the_files_of_a_workspace_have_lost_it_when_delete_returns(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "notes"

    def written() -> str:
        return "".join(file.read_text(encoding="utf-8") for file in folder.rglob("*") if file.is_file())

    async with Memory.open(path, embedder=WordEmbedder(), workspace=folder) as memory:
        made = (await memory.add(["the key lies under zanzibarquartz", "likes tea"], user_id="mei")).memories[0]
        await memory.workspace.sync(user_id="mei")
        assert "zanzibarquartz" in written()
        await memory.delete(made.id, user_id="mei")
        assert "zanzibarquartz" not in written()
        assert "likes tea" in written()
        await memory.delete_all("mei")
        assert "likes tea" not in written()
        await memory.workspace.sync(user_id="mei")
        assert await stored(memory) == []
