"""New memories beside those that are there: look, decide, and say what has to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..scope import Scope
from ..store.contract import NewMemory, SlotEntry, Source
from .facts import Fact, fact_in, fact_of
from .reconcile import Proposed, Reconciled, reconcile

if TYPE_CHECKING:
    from ..store.store import Store

DATED = frozenset({"event", "task"})  # the same on another day is another one


def fact_told(memory: NewMemory, place: Scope, is_user: frozenset[str]) -> Fact | None:
    on = memory.occurred_at.date() if memory.memory_type in DATED else None
    return fact_of(
        memory.data, agent_id=place.agent_id, group_id=place.group_id, is_user=is_user, on=on, trust=memory.trust
    )


async def settle(proposed: Sequence[Proposed], user_id: str, at: datetime, store: Store) -> Reconciled:
    """Reconcile what is proposed with what is stored."""
    wanted = {fact.slot for one in proposed for fact in one.facts}
    there = await store.memories.slots(user_id, sorted(wanted)) if wanted else []
    known = await store.memories.known(user_id, [one.memory.dedupe_hash for one in proposed], at)
    evidence: dict[str, tuple[Source, ...]] = {}
    new: list[Proposed] = []
    repeated: list[NewMemory] = []
    for one in proposed:
        twin = known.get(one.memory.dedupe_hash)
        if twin is None or _agrees(one, next((entry for entry in there if entry.id == twin), None)):
            new.append(one)
        elif one.stated:
            repeated.append(one.memory)
        else:
            evidence[twin] = (*evidence.get(twin, ()), *one.memory.sources)
    done = reconcile(new, there, at)
    versions = {slot: dict[str, int]() for slot in wanted}
    for entry in there:
        versions[entry.slot][entry.id] = entry.version
    left = {memory.id: memory for memory in (*done.memories, *repeated)}
    return Reconciled(
        memories=(*(left.pop(one.memory.id) for one in proposed if one.memory.id in left), *left.values()),
        met=tuple(dict.fromkeys((*evidence, *done.met))),
        effects=replace(done.effects, slots=versions, evidence={**evidence, **done.effects.evidence}),
    )


def _agrees(one: Proposed, twin: SlotEntry | None) -> bool:
    """A memory with the same words is met on its timeline, unless a person has given it these words."""
    return twin is not None and len(one.facts) == 1 and not one.stated and one.facts[0].says_the_same(fact_in(twin))
