"""New memories beside those that are there: look, decide, and say what has to be written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..scope import Scope
from ..store.contract import NewMemory, SlotEntry, Source
from .facts import Fact, fact_in, fact_of, whom
from .grow import GROWING, PROFILES, Grown, grow, tells
from .reconcile import Proposed, Reconciled, reconcile

if TYPE_CHECKING:
    from ..store.store import Store

DATED = frozenset({"event", "task"})  # the same on another day is another one


def fact_told(memory: NewMemory, place: Scope, is_user: frozenset[str]) -> Fact | None:
    on = memory.occurred_at.date() if memory.memory_type in DATED else None
    return fact_of(
        memory.data, agent_id=place.agent_id, group_id=place.group_id, is_user=is_user, on=on, trust=memory.trust
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled(Reconciled):
    grown: tuple[Grown, ...]


async def settle(proposed: Sequence[Proposed], user_id: str, at: datetime, store: Store) -> Settled:
    """What is proposed, reconciled with what is there."""
    wanted = {fact.slot for one in proposed for fact in (*one.facts, *one.ends)}
    there = await store.memories.slots(user_id, sorted(wanted)) if wanted else []
    known = await store.memories.known(user_id, [one.memory.dedupe_hash for one in proposed], at)
    evidence: dict[str, tuple[Source, ...]] = {}
    open_questions: list[Proposed] = []
    repeated: list[Proposed] = []
    for one in proposed:
        twin = known.get(one.memory.dedupe_hash)
        if twin is None or _agrees(one, next((entry for entry in there if entry.id == twin), None)):
            open_questions.append(one)
        elif one.stated:
            repeated.append(one)
        else:
            evidence[twin] = (*evidence.get(twin, ()), *one.memory.sources)
    growing = [
        one for one in open_questions if one.memory.memory_type in GROWING and len(one.facts) == 1 and not one.stated
    ]
    begins = {entry.slot for entry in there} | {one.facts[0].slot for one in growing if not one.aside}
    facts = [one for one in open_questions if one not in growing]
    done = reconcile(facts, [entry for entry in there if entry.memory_type not in GROWING], at)
    over = _over(done, there)
    lines = await _profiles_with(over, _of_whom(done, there), user_id, store) if over else set()
    if lines - wanted:
        there = [*there, *await store.memories.slots(user_id, sorted(lines - wanted))]
    begun, grown = grow([(one.memory, one.facts[0]) for one in growing if one.facts[0].slot in begins], there, over)
    versions = {slot: dict[str, int]() for slot in wanted | lines}
    for entry in there:
        versions[entry.slot][entry.id] = entry.version
    evidence |= {more.entry.id: more.sources for more in grown if more.sources}
    left = {memory.id: memory for memory in (*done.memories, *begun)} | {one.memory.id: one.memory for one in repeated}
    return Settled(
        memories=(*(left.pop(one.memory.id) for one in proposed if one.memory.id in left), *left.values()),
        met=tuple(dict.fromkeys((*evidence, *done.met))),
        effects=replace(done.effects, slots=versions, evidence={**evidence, **done.effects.evidence}),
        grown=tuple(grown),
    )


def _over(done: Reconciled, there: Sequence[SlotEntry]) -> dict[str, datetime]:
    """What has ended, by its words, and when."""
    said = {entry.id: entry.content for entry in there}
    ends = {said[one.id]: one.change.values.get("valid_to") for one in done.effects.changes}
    ends |= {memory.content: memory.valid_to for memory in done.memories}
    return {content: end for content, end in ends.items() if isinstance(end, datetime)}


def _of_whom(done: Reconciled, there: Sequence[SlotEntry]) -> set[str]:
    """Whom the facts are about that have changed, and where."""
    changed = {one.id for one in done.effects.changes}
    return {whom(entry.slot) for entry in there if entry.id in changed}


async def _profiles_with(over: Mapping[str, datetime], of: set[str], user_id: str, store: Store) -> set[str]:
    """Where what has ended is a line of a profile of the same person, in the same place."""
    profiles = await store.memories.current_by_slot(user_id, PROFILES) if of else {}
    return {slot for slot, told in profiles.items() if whom(slot) in of and any(tells(data, over) for data in told)}


def _agrees(one: Proposed, twin: SlotEntry | None) -> bool:
    """A memory with the same words is met on its timeline, unless a person has given it these words."""
    return twin is not None and len(one.facts) == 1 and not one.stated and one.facts[0].says_the_same(fact_in(twin))
