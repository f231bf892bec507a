"""New facts beside old ones: what is said again is one memory, what is over ends, and every moment reads right."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors import SpelledOut
from jiyi import Memory
from jiyi.scope import Scope
from jiyi.settings import load_settings
from jiyi.store.write_set import NewMemory, SlotEntry, Source
from jiyi.testing import WordEmbedder
from jiyi.write.facts import Fact, fact_of
from jiyi.write.reconcile import Proposed, Reconciled, reconcile
from support import DAY, stored, stored_memory

START = datetime(2024, 1, 1, tzinfo=UTC)


def open_at(path: Path) -> Memory:
    return Memory.open(path, settings=load_settings(), embedder=WordEmbedder(), extractor=SpelledOut())


async def tell(memory: Memory, text: str, day: int, session: str = "s") -> Any:
    message = {"role": "user", "content": text, "sent_at": START + day * DAY}
    return await memory.add([message], user_id="mei", session_id=session)


async def known(memory: Memory, day: float | None = None) -> list[str]:
    as_of = None if day is None else START + day * DAY
    return sorted(one.content for one in await stored(memory, memory_types=["fact"], as_of=as_of))


CHAIN = [("Mei home = Rome", 1), ("Mei home = Oslo", 10), ("Mei home = Berlin", 20)]


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
async def test_a_chain_of_changes_reads_right_at_every_moment_in_any_order(path: Path, order: tuple[int, ...]) -> None:
    async with open_at(path) as memory:
        for at in order:
            await tell(memory, *CHAIN[at])
        assert await known(memory) == ["Mei home: Berlin"]
        for day, city in ((0.5, None), (1, "Rome"), (9.9, "Rome"), (10, "Oslo"), (19, "Oslo"), (20, "Berlin")):
            assert await known(memory, day) == ([f"Mei home: {city}"] if city else []), day
        everything = {
            one.content[10:]: one
            for day in (1, 10, 20)
            for one in await stored(memory, memory_types=["fact"], as_of=START + day * DAY)
        }
        assert everything["Rome"].superseded_by == everything["Oslo"].id
        assert everything["Oslo"].superseded_by == everything["Berlin"].id
        assert everything["Berlin"].superseded_by is None


async def test_what_is_over_ends_and_can_come_back(path: Path) -> None:
    async with open_at(path) as memory:
        await tell(memory, "Mei eats ~ meat", 1)
        await tell(memory, "Mei eats ~ fish", 1)
        await tell(memory, "Mei eats ! meat", 5)
        assert await known(memory, 2) == ["Mei eats: fish", "Mei eats: meat"]
        assert await known(memory) == ["Mei eats: fish", "Mei eats: no longer meat"]
        await tell(memory, "Mei eats ~ meat", 9)
        assert await known(memory) == ["Mei eats: fish", "Mei eats: meat"]


async def test_what_is_said_again_is_one_memory_with_both_messages(path: Path) -> None:
    async with open_at(path) as memory:
        first = await tell(memory, "Mei home = Rome", 1)
        again = await tell(memory, "Mei home = rome", 9, "another")
        made = first.memories[-1]
        assert again.created == 1 and again.memories[-1].id == made.id, "only the message is new"
        assert len((await memory.get(made.id, user_id="mei")).source_ids) == 2
        changes = await memory.history(made.id, user_id="mei")
        assert [(one.action, one.reason) for one in changes] == [("add", None), ("merge", "it was said again")]


async def test_several_values_stay_side_by_side(path: Path) -> None:
    async with open_at(path) as memory:
        for day, hobby in enumerate(("chess", "tea", "green tea")):
            await tell(memory, f"Mei hobby ~ {hobby}", day)
        assert len(await known(memory)) == 3


async def test_somebody_elses_fact_ends_nothing(path: Path) -> None:
    async with open_at(path) as memory:
        await tell(memory, "Mei home = Rome", 1)
        await tell(memory, "Tom home = Oslo", 2)
        await tell(memory, "Mei work = Oslo", 3)
        assert len(await known(memory)) == 3


async def test_superseding_is_recorded_related_and_can_be_undone(path: Path) -> None:
    async with open_at(path) as memory:
        rome = (await tell(memory, "Mei home = Rome", 1)).memories[-1]
        oslo = (await tell(memory, "Mei home = Oslo", 2)).memories[-1]
        last = (await memory.history(rome.id, user_id="mei"))[-1]
        assert (last.action, last.actor, last.reason) == ("supersede", "jiyi", "a newer memory says it has changed")
        [relation] = await memory.relations.list(rome.id, user_id="mei")
        assert (relation.memory_id, relation.relation_type, relation.target_id) == (oslo.id, "contradicts", rome.id)
        assert await memory.relations.list(oslo.id, user_id="mei") == [relation]
        await memory.restore(rome.id, user_id="mei")
        assert await known(memory) == ["Mei home: Oslo", "Mei home: Rome"]


async def test_a_persons_edit_is_not_reset(path: Path) -> None:
    async with open_at(path) as memory:
        rome = (await tell(memory, "Mei home = Rome", 1)).memories[-1]
        await memory.update(rome.id, user_id="mei", content="Mei lives near Rome, in Tivoli")
        await tell(memory, "Mei home = Rome", 1)  # delivered again
        assert await known(memory) == ["Mei lives near Rome, in Tivoli"]
        await tell(memory, "Mei home = Oslo", 2)  # an old chat, imported after the person's correction
        assert await known(memory) == ["Mei lives near Rome, in Tivoli"]


async def test_more_exact_is_a_refinement_and_less_exact_is_known(path: Path) -> None:
    async with open_at(path) as memory:
        plain = (await tell(memory, "Mei home = Berlin", 1)).memories[-1]
        await tell(memory, "Mei home = Berlin Mitte", 2)
        assert (await memory.relations.list(plain.id, user_id="mei"))[0].relation_type == "refines"
        await tell(memory, "Mei home = Berlin", 3)
        assert await known(memory) == ["Mei home: Berlin Mitte"]
        await tell(memory, "Mei home = not Berlin", 4)
        assert await known(memory) == ["Mei home: not Berlin"]


async def test_a_conversation_can_contradict_itself(path: Path) -> None:
    async with open_at(path) as memory:
        talk = [{"content": f"Mei home = {city}", "sent_at": START + day * DAY} for day, city in enumerate("ABCA")]
        await memory.add(talk, user_id="mei")
        assert [await known(memory, day) for day in range(4)] == [[f"Mei home: {city}"] for city in "ABCA"]
        assert (await memory.add(talk, user_id="mei")).created == 0


async def test_two_writers_of_one_fact_leave_one_current(path: Path) -> None:
    import asyncio

    async with open_at(path) as one, open_at(path) as two:
        told = [tell(memory, f"Mei home = {city}", day, f"s{day}") for day, (memory, city) in
                enumerate([(one, "A"), (two, "B"), (one, "C"), (two, "D"), (one, "E"), (two, "F")])]  # fmt: skip
        await asyncio.gather(*told)
        assert await known(one) == ["Mei home: F"]
        assert [await known(one, day) for day in range(6)] == [[f"Mei home: {city}"] for city in "ABCDEF"]


async def test_similar_words_alone_end_nothing(memory: Memory) -> None:
    await memory.add("My sister Anna lives in Rome with two cats", user_id="mei")
    await memory.add("My sister Anna lives in  Rome with two cats ", user_id="mei")
    await memory.add("My sister Anne lives in Rome with two cats", user_id="mei")
    assert await memory.count(user_id="mei") == 2


# -- by itself --------------------------------------------------------------------------------------------------------


def memory_of(number: int, value: str, day: int) -> NewMemory:
    return NewMemory(
        id=f"m{number:03}",
        memory_key=f"m{number:03}",
        memory_type="fact",
        layer="semantic",
        content=value,
        summary=value,
        data={"subject": "Mei", "attribute": "home", "value": value, "single": True},
        metadata={},
        importance=0.5,
        tags=(),
        dedupe_hash=value,
        occurred_at=START + day * DAY,
        valid_from=START + day * DAY,
        expires_at=None,
        source="extracted",
        sources=(Source(message_id=f"s{number}"),),
    )


TOLD = {f"s{day}": START + day * DAY for day in range(8)}


def applied(entries: dict[str, SlotEntry], done: Reconciled) -> dict[str, SlotEntry]:
    """What a store would hold afterwards."""
    after = dict(entries)
    for new in done.memories:
        told = tuple((TOLD[source.message_id], source) for source in new.sources)
        values = {name: getattr(new, name) for name in ("id", "content", "valid_from", "valid_to", "superseded_by")}
        after[new.id] = stored_memory(
            SlotEntry, slot=new.slot or "", data=dict(new.data), edited_at=None, told=told, **values
        )
    for memory_id, sources in done.effects.evidence.items():
        old = after[memory_id]
        after[memory_id] = replace(old, told=(*old.told, *((TOLD[one.message_id], one) for one in sources)))
    for changed in done.effects.changes:
        old = after[changed.id]
        after[changed.id] = replace(old, version=old.version + 1, **changed.change.values)
    return after


@given(st.permutations(range(8)), st.lists(st.sampled_from(["a", "b", "c"]), min_size=8, max_size=8), st.data())
def test_any_order_and_any_division_read_the_same(order: list[int], values: list[str], data: st.DataObject) -> None:
    """At each moment exactly the value told last holds."""
    entries: dict[str, SlotEntry] = {}
    waiting = [
        Proposed(memory=(new := memory_of(at, values[at], at)), facts=(fact_in(new),), told_at=new.valid_from)
        for at in order
    ]
    while waiting:
        some = data.draw(st.integers(1, len(waiting)))
        entries = applied(entries, reconcile(waiting[:some], list(entries.values()), START, Scope(user_id="mei")))
        waiting = waiting[some:]
    for day in range(8):
        moment = START + day * DAY + timedelta(hours=1)
        held = [one for one in entries.values() if one.valid_from <= moment < (one.valid_to or moment + DAY)]
        assert [one.content for one in held] == [values[day]], day
    current = [one for one in entries.values() if one.valid_to is None]
    assert [one.content for one in current] == [values[7]]


def fact_in(memory: NewMemory) -> Fact:
    found = fact_of(memory.data, Scope(user_id="mei"))
    assert found is not None
    return found


def test_the_user_has_many_names() -> None:
    names = [None, "user", "The user", "用户", "Mei", "mei"]
    slots = {
        fact_of({"subject": name, "attribute": "home"}, Scope(user_id="mei"), user_names=["Mei"]).slot  # type: ignore[union-attr]
        for name in names
    }
    assert len(slots) == 1
