"""Memories made of others, and lists that are kept for a while: what they hold when the others change."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.testing import Clock, WordEmbedder
from support import DAY, MONDAY, ask, contents, stored

REPAIRS = (
    "My bicycle was repaired in the old harbour shop by Anna Weber, it cost 42 euros.",
    "My laptop was repaired in the old harbour shop by Tom Beckett, it cost 310 euros.",
    "My watch was repaired in the old harbour shop by Ruth Adler, it cost 77 euros.",
)


async def test_a_profile_loses_the_line_that_is_deleted_and_its_history(memory: Memory, place: str | Path) -> None:
    written = "Mei lives in Berlin.\nMei likes green tea."
    profile = (await memory.add({"content": written, "memory_type": "profile"}, user_id="mei")).memories[0]
    other = (await memory.add({"content": "Tom drives a tram.", "memory_type": "profile"}, user_id="mei")).memories[0]
    fact = (await memory.add("Mei lives in Berlin.", user_id="mei")).memories[0]
    assert (await memory.search("Berlin", user_id="mei")).total_found >= 2
    done = await memory.delete(fact.id, user_id="mei")
    assert done.rewritten == (profile.id,)
    left = await memory.get(profile.id, user_id="mei")
    assert (left.content, left.version) == ("Mei likes green tea.", profile.version + 1)
    [revision] = await memory.history(profile.id, user_id="mei")
    assert (revision.action, revision.reason, revision.version) == ("update", "a part of it was deleted", left.version)
    told = ask(place, "SELECT memory_id, action FROM changes")
    assert {(profile.id, "update"), (fact.id, "delete")} <= set(told), "other processes hear of both"
    assert len(await memory.history(other.id, user_id="mei")) == 1
    assert contents(await memory.search("Berlin", user_id="mei", search_mode="keyword")) == []
    for mode in ("keyword", "semantic"):
        found = await memory.search("green tea", user_id="mei", search_mode=mode, limit=1)  # type: ignore[arg-type]
        assert contents(found) == ["Mei likes green tea."]


async def test_what_was_compressed_names_the_messages_of_its_parts(path: Path) -> None:
    with Clock(MONDAY) as clock:
        async with Memory.open(path, embedder=WordEmbedder(512)) as memory:
            for at, text in enumerate(REPAIRS):
                await memory.add([{"role": "user", "content": text}], user_id="mei", session_id=f"s{at}")
            facts = [item for item in await stored(memory) if item.memory_type != "message"]
            assert len(facts) == 3
            clock.now += 60 * DAY
            done = await memory.maintenance.compress(user_id="mei")
            made = [await memory.get(name, user_id="mei") for name in done.memory_ids]
    named = {name for item in made for name in item.source_ids}
    assert done.made >= 1 and named == {name for item in facts for name in item.source_ids}


async def test_a_unit_of_conversation_grows_with_its_messages(extracting_memory: Memory, tmp_path: Path) -> None:
    said = (
        ("Ann", "I live in Berlin and work at Acme.", 5),
        ("Bob", "I live in Oslo near the harbour.", 9),
        ("Ann", "The harbour in Oslo is lovely in summer.", 7),
        ("Eve", "I was there before you, by the way.", 4),
    )
    for name, text, minute in said:
        message = {"role": "user", "name": name, "content": text, "sent_at": MONDAY + timedelta(minutes=minute)}
        await extracting_memory.add([message], user_id="mei", session_id="s", group_id="g")
    await extracting_memory.transfer.export(tmp_path / "out.jsonl", user_id="mei")
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    [unit] = [one for one in records if one["kind"] == "unit"]
    assert unit["participants"] == ["Ann", "Bob", "Eve"] and unit["summary"] == "I live in Berlin and work at Acme."
    begun, ended = (datetime.fromisoformat(unit[name]) - MONDAY for name in ("started_at", "ended_at"))
    assert (begun, ended) == (timedelta(minutes=4), timedelta(minutes=9))
    assert {one["unit_id"] for one in records if one["kind"] == "message"} == {unit["id"]}


async def test_the_most_used_memories_are_kept_for_a_while(path: Path) -> None:
    settings = load_settings(extraction={"enabled": False})
    with Clock(MONDAY) as clock:
        async with Memory.open(path, settings=settings, embedder=WordEmbedder(512)) as memory:
            made = await memory.add(["likes jasmine", "plays the piano"], user_id="mei")
            jasmine, piano = (item.id for item in made.memories)

            async def recall(word: str, times: int) -> None:
                for at in range(times):
                    await memory.search(f"{word} {at}", user_id="mei", search_mode="keyword", limit=1)

            async def most_used(limit: int) -> list[str]:
                return [item.id for item in await memory.usage.most_used(user_id="mei", limit=limit)]

            await recall("jasmine", 1)
            assert await most_used(2) == [jasmine], "a list that is not full is made anew"
            await recall("piano", 2)
            assert await most_used(2) == [piano, jasmine] and await most_used(1) == [piano]
            await recall("jasmine", 3)
            assert await most_used(1) == [piano], "for an hour"
            clock.now += DAY
            assert await most_used(1) == [jasmine]
            await memory.delete(jasmine, user_id="mei")
            assert await most_used(1) == [piano]
