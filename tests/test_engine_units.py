"""MongoDB holds units of conversation, and the memories derived from them name them."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jiyi import Memory
from jiyi.settings import Settings, load_settings
from jiyi.testing import ScriptedLLM, WordEmbedder
from test_engine_faults import database
from test_engines import engine_settings, engines_of, open_with, settled
from test_units import AT, SAID, talk

EPISODE = {
    "participant": "Ana",
    "title": "Ana lives in Chengdu",
    "content": "Ana told that Ana 住在成都.",
    "messages": [1],
}
LATER = [("user", "Ana", "我住在成都。"), ("user", "Bo", "My locker code is 7Q4Z. I am allergic to nuts.")]


@pytest.fixture
def settings(engine_urls: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Return settings with MongoDB only, and extraction as a user has it."""
    monkeypatch.setattr("jiyi.engines.CONFIRM_S", 0.0)
    given = engine_settings({"mongodb": engine_urls["mongodb"]}, search=False)
    return given.model_copy(update={"extraction": load_settings().extraction})


def documents(settings: Settings) -> dict[str, list[dict[str, Any]]]:
    with database(settings) as there:
        return {name: list(there[name].find()) for name in there.list_collection_names()}


async def exact(memory: Memory, settings: Settings) -> list[dict[str, Any]]:
    """Feed MongoDB, and compare its units with those of the store; return the documents of the units, newest first."""
    await settled(memory)
    (report,) = await memory.maintenance.verify_engines(full=True)
    assert report.sound and not report.missing + report.extra + report.different, report
    found = documents(settings)
    held = {one["unit_id"]: one for one in found.get("memunits", [])}
    units = (await memory.usage.units(user_id="mei")).items
    assert held.keys() == {unit.unit_id for unit in units}
    named: dict[str, set[str]] = {unit.unit_id: set() for unit in units}
    for name, some in found.items():
        for one in some if name not in ("memunits", "messages") else ():
            for unit_id in one["memunit_id_list"] if one["status"] == "active" else ():
                named[unit_id].add(one["event_id"])
    for unit in units:
        one = held[unit.unit_id]
        assert (one["subject"], one["summary"], one["narrative"]) == (unit.subject, unit.summary, unit.narrative)
        assert (one["group_id"], tuple(one["participants"])) == (unit.group_id, unit.participants)
        assert [each["content"] for each in one["original_data"]] == [each.text for each in unit.messages]
        assert one["timestamp"] == unit.started_at.isoformat()
        assert named[unit.unit_id] == set(unit.memory_ids)
    return [held[unit.unit_id] for unit in units]


async def test_a_unit_is_a_document_that_memories_name(path: Path, settings: Settings) -> None:
    async with open_with(path, settings) as memory:
        await memory.add(talk(SAID), user_id="mei", session_id="s1", group_id="team")
        (unit,) = await exact(memory, settings)
        assert (unit["group_id"], unit["participants"]) == ("team", ["Ana", "Bo", "assistant"])
        assert unit["user_id_list"] == ["mei"] and unit["source_type"] == "conversation"
        assert "我对花生过敏。" in [one["content"] for one in unit["semantic_memories"]]
        found = documents(settings)
        assert [one["memunit_id_list"] for one in found["messages"]] == [[unit["unit_id"]]] * len(SAID)
        assert {unit["unit_id"]} == {one for each in found["semantic_memories"] for one in each["memunit_id_list"]}


async def test_units_follow_every_change(path: Path, settings: Settings) -> None:
    """Messages that are added, redacted and deleted, and memories that are changed, repeated and deleted."""
    async with open_with(path, settings) as memory:
        await memory.add(talk(SAID), user_id="mei", session_id="s1")
        await exact(memory, settings)
        await memory.add(talk(LATER, AT + timedelta(minutes=3)), user_id="mei", session_id="s1")
        (unit,) = await exact(memory, settings)
        assert len(unit["original_data"]) == len(SAID) + len(LATER)

        await memory.add(talk(SAID[:1], AT + timedelta(days=2)), user_id="mei", session_id="s2")  # said again
        newest, _ = await exact(memory, settings)
        assert "我对花生过敏" in newest["narrative"]

        listed = {one.content: one for one in (await memory.list(user_id="mei")).items if one.memory_type != "message"}
        allergy = next(one for text, one in listed.items() if "花生" in text)
        await memory.update(allergy.id, user_id="mei", content="Ana 对花生和芝麻过敏", memory_type="preference")
        first = (await exact(memory, settings))[-1]
        assert "Ana 对花生和芝麻过敏" in [one["content"] for one in first["semantic_memories"]]
        await memory.update(allergy.id, user_id="mei", status="archived")
        await exact(memory, settings)

        locker = next(one for text, one in listed.items() if "7Q4Z" in text)
        await memory.delete(locker.id, user_id="mei")
        await exact(memory, settings)
        assert "7Q4Z" not in str(documents(settings)) and "nuts" in str(documents(settings))

        [hit, *_] = await memory.search("杭州", user_id="mei")
        await memory.delete(hit.id, user_id="mei", with_sources=True)
        await exact(memory, settings)
        assert "杭州" not in str(documents(settings))

        for item in (await memory.list(user_id="mei", session_id="s2")).items:
            await memory.delete(item.id, user_id="mei", with_sources=True)
        await exact(memory, settings)
        await memory.delete_all(user_id="mei")
        await settled(memory)
        assert not any(documents(settings).values())


async def test_messages_that_join_a_unit_later_name_it(path: Path, settings: Settings) -> None:
    """With a language model, units are made when it has read the messages, after MongoDB had these."""
    model = ScriptedLLM(json.dumps({"memories": [], "episodes": [EPISODE]}))
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(64), llm=model) as memory:
        for at, said in enumerate((SAID, LATER)):
            await memory.add(talk(said, AT + timedelta(days=at)), user_id="mei", session_id="s1", wait=False)
            before = await exact(memory, settings)
            assert len(before) == at
            assert [not one["memunit_id_list"] for one in documents(settings)["messages"]].count(True) == len(said)
            await memory.jobs.work()
            units = await exact(memory, settings)
            assert all(one["memunit_id_list"] for one in documents(settings)["messages"])
        told = [unit for unit in units if unit["subject"] == EPISODE["title"]]
        assert told and all(unit["narrative"] == EPISODE["content"] for unit in told)


async def test_units_that_differ_are_found_and_repaired(path: Path, settings: Settings) -> None:
    async with open_with(path, settings) as memory:
        for day in range(3):
            await memory.add(talk(SAID, AT + timedelta(days=day)), user_id="mei", session_id=f"s{day}")
        first, second, _ = await exact(memory, settings)
        with database(settings) as there:
            there.memunits.delete_one({"_id": first["_id"]})
            there.memunits.update_one({"_id": second["_id"]}, {"$set": {"summary": "another summary"}})
            there.memunits.insert_one({**first, "_id": f"{first['_id']}x"})
        (report,) = await memory.maintenance.verify_engines(full=True)
        assert (report.missing, report.different, report.extra) == (1, 1, 1) and not report.sound
        (report,) = await memory.maintenance.verify_engines(full=True, repair=True)
        assert report.repaired == 3 and report.sound
        await exact(memory, settings)
        with database(settings) as there:
            there.memunits.delete_many({})
        assert (await memory.maintenance.rebuild("mongodb")).sound
        await exact(memory, settings)


async def test_changes_of_units_that_wait_are_no_differences(path: Path, settings: Settings) -> None:
    async with open_with(path, settings) as memory:
        added = await memory.add(talk(SAID), user_id="mei", session_id="s1")
        await exact(memory, settings)
        await memory.add(talk(LATER, AT + timedelta(minutes=3)), user_id="mei", session_id="s1")
        await memory.delete(added.memories[0].id, user_id="mei", with_sources=True)
        (report,) = await memory.maintenance.verify_engines(full=True)
        assert (report.missing, report.extra, report.different, report.behind) == (0, 0, 0, 1)
        await exact(memory, settings)


async def test_units_are_loaded_in_pages(path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jiyi.store.upkeep.engine_memories.PAGE", 4)
    async with open_with(path, settings) as memory:
        for day in range(6):
            await memory.add(talk(SAID[:2], AT + timedelta(days=day)), user_id="mei", session_id=f"s{day}")
        assert len(await exact(memory, settings)) == 6


async def test_units_of_an_export_arrive(path: Path, tmp_path: Path, empty_store: Path, settings: Settings) -> None:
    async with Memory.open(path) as memory:
        await memory.add(talk(SAID), user_id="mei", session_id="s1")
        await memory.transfer.export(tmp_path / "mei.jsonl")
    copy = tmp_path / "copy.db"
    copy.write_bytes(empty_store.read_bytes())
    async with open_with(copy, settings) as memory:
        await memory.add(talk(LATER), user_id="mei", session_id="s1")
        await settled(memory)
        await memory.transfer.import_memories(tmp_path / "mei.jsonl")
        assert len(await exact(memory, settings)) == 2


async def test_documents_of_an_earlier_layout_are_replaced(path: Path, settings: Settings) -> None:
    """Before, `memunits` had a document for each message."""
    async with open_with(path, settings) as memory:
        await memory.add(talk(SAID), user_id="mei", session_id="s1")
        await exact(memory, settings)
        with database(settings) as there:
            old = [{**one, "memunit_id_list": one["message_id_list"]} for one in there.messages.find()]
            there.drop_collection("messages")
            there.memunits.delete_many({})
            there.memunits.insert_many(old)
        engines_of(memory).outboxes[0]._check_at = 0.0
        assert len(await exact(memory, settings)) == 1


# -- import ------------------------------------------------------------------------------------------------------------


async def copied(settings: Settings, tmp_path: Path, empty_store: Path) -> Memory:
    """Return another store into which the documents were imported twice."""
    copy = tmp_path / "copy.db"
    copy.write_bytes(empty_store.read_bytes())
    memory = await Memory.open(copy, embedder=WordEmbedder(64), settings=load_settings()).__aenter__()
    url = settings.engines.mongodb_url
    assert url is not None
    first, again = [await memory.transfer.import_memories(url.get_secret_value()) for _ in range(2)]
    assert first.read == again.read and set(again.new.values()) == {0}
    assert first.new["message"] == first.read["message"]
    return memory


async def test_units_and_groups_are_imported(path: Path, tmp_path: Path, empty_store: Path, settings: Settings) -> None:
    """From documents of our own, the same units come with the same messages and memories."""

    async def shown(memory: Memory) -> list[dict[str, Any]]:
        units = (await memory.usage.units(user_id="mei")).items
        wanted = {"session_id", "group_id", "subject", "summary", "narrative", "participants", "started_at", "ended_at"}
        memories = [
            sorted(one.content for one in await memory.get_many(unit.memory_ids, user_id="mei")) for unit in units
        ]
        said = [[(one.role, one.speaker, one.text, one.sent_at) for one in unit.messages] for unit in units]
        return [
            unit.model_dump(include=wanted) | {"memories": own, "messages": some}
            for unit, own, some in zip(units, memories, said, strict=True)
        ]

    async with open_with(path, settings) as memory:
        await memory.add(talk(SAID), user_id="mei", session_id="s1", group_id="team", agent_id="helper")
        await memory.add(talk(LATER, AT + timedelta(days=1)), user_id="mei", session_id="s1", group_id="team")
        await memory.add(talk(SAID[1:], AT + timedelta(days=2)), user_id="mei", session_id="s2")
        units = {unit["unit_id"] for unit in await exact(memory, settings)}
        expected = await shown(memory)
    copy = await copied(settings, tmp_path, empty_store)
    try:
        found = await shown(copy)
        assert sorted(found, key=str) == sorted(expected, key=str)
        messages = (await copy.list(user_id="mei", memory_types=["message"])).items
        assert {one.metadata["mongodb"]["unit_id"] for one in messages} == units
        assert {one.agent_id for one in messages} == {"helper", None}
    finally:
        await copy.close()


async def test_units_of_another_program_are_imported(tmp_path: Path, empty_store: Path, settings: Settings) -> None:
    """A unit as its design describes it: messages, a narrative, its users, and an episode that names it."""
    said = [
        {"speaker_name": "林", "content": "周末去杭州吗？", "timestamp": AT},
        {"speaker_name": "梅", "content": "好，周六早上出发。", "timestamp": AT + timedelta(minutes=1)},
        {"type": "image"},
    ]
    unit = {
        "unit_id": "u-1",
        "user_id_list": ["lin", "mei"],
        "group_id": "trip",
        "original_data": said,
        "summary": "约好去杭州",
        "narrative": "林和梅约好周六去杭州。",
        "subject": "周末旅行",
        "participants": ["林", "梅"],
        "timestamp": AT,
    }
    episode = {
        "event_id": "e-1",
        "user_id": "mei",
        "group_id": "trip",
        "memunit_id_list": ["u-1"],
        "narrative": "梅答应周六早上和林一起去杭州。",
        "timestamp": AT,
    }
    with database(settings) as there:
        there.memunits.insert_one(unit)
        there.episodic_memories.insert_one(episode)
    copy = await copied(settings, tmp_path, empty_store)
    try:
        for user_id in ("lin", "mei"):
            (found,) = (await copy.usage.units(user_id=user_id)).items
            assert (found.group_id, found.participants) == ("trip", ("林", "梅"))
            assert [one.text for one in found.messages] == [one["content"] for one in said[:2]]
            told = (await copy.list(user_id=user_id, memory_types=["episode"])).items
            assert {one.group_id for one in told} == {"trip"} and unit["narrative"] in [one.content for one in told]
        assert {"id": "e-1", "unit_ids": ["u-1"]} in [one.metadata["mongodb"] for one in told]
    finally:
        await copy.close()
