"""Reconcile new facts with stored ones: find repetitions, end superseded facts, and place facts that are told late.

Facts are compared within one subject and attribute only: similar texts are neither the same nor a contradiction.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ..store.contract import Change, ChangedMemory, Effects, NewMemory, SlotEntry, Source
from .facts import Fact
from .timeline import Line, Timeline, line_of, placed

ACTOR = "jiyi"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A new memory and the facts in it. One that was `stated` in these words is kept even if it says nothing new. With
    several facts it can end others, but is not ended itself: the rest of it may still hold."""

    memory: NewMemory
    facts: tuple[Fact, ...] = ()
    told_at: datetime
    stated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    memories: tuple[NewMemory, ...]  # those that are left, and parts of others
    met: tuple[str, ...]  # memories that said the rest already
    effects: Effects


def reconcile(proposed: Sequence[Proposed], there: Sequence[SlotEntry], at: datetime) -> Reconciled:
    """By rule. `there`: the memories in the slots of all facts proposed."""
    timelines: defaultdict[str, Timeline] = defaultdict(Timeline)
    for entry in there:
        timelines[entry.slot].lines.append(line_of(entry))
    free: list[NewMemory] = []  # on no timeline: nothing ends them
    met: dict[str, None] = {}
    evidence: dict[str, tuple[Source, ...]] = {}
    for one in sorted(proposed, key=lambda one: (one.memory.valid_from, one.told_at)):
        alone = len(one.facts) == 1
        for fact in one.facts:
            line = _line(one, fact)
            known = timelines[fact.slot].place(line, one.told_at, stays=alone, stated=one.stated or not alone)
            if known is not None and known.stored is not None:
                met[known.id] = None
                evidence[known.id] = (*evidence.get(known.id, ()), *one.memory.sources)
        if not alone:
            free.append(one.memory)
    lines = [line for timeline in timelines.values() for line in timeline.lines]
    new = {line.id: placed(line, line.memory) for line in lines if line.memory is not None}
    new |= {memory.id: memory for memory in free}
    order = {one.memory.id: position for position, one in enumerate(proposed)}
    versions: dict[str, dict[str, int]] = {fact.slot: {} for one in proposed for fact in one.facts}
    for entry in there:
        versions.setdefault(entry.slot, {})[entry.id] = entry.version
    relations = [one for timeline in timelines.values() for one in timeline.relations.values()]
    exists = new.keys() | {entry.id for entry in there}
    return Reconciled(
        memories=tuple(sorted(new.values(), key=lambda memory: order.get(memory.id, len(order)))),
        met=tuple(met),
        effects=Effects(
            slots=versions,
            changes=tuple(_changed(line, line.stored, at) for line in lines if line.stored and line.reasons),
            evidence=evidence,
            relations=tuple(one for one in relations if one.memory_id in exists and one.target_id in exists),
        ),
    )


def _line(one: Proposed, fact: Fact) -> Line:
    return Line(
        id=one.memory.id,
        fact=fact,
        valid_from=one.memory.valid_from,
        valid_to=one.memory.valid_to,
        told=[(one.told_at, source) for source in one.memory.sources],
        memory=one.memory,
    )


def _changed(line: Line, stored: SlotEntry, at: datetime) -> ChangedMemory:
    values = {"valid_from": line.valid_from, "valid_to": line.valid_to, "superseded_by": line.superseded_by}
    return ChangedMemory(
        id=line.id,
        change=Change(
            values={name: value for name, value in values.items() if value != getattr(stored, name)},
            action="merge" if line.valid_to == stored.valid_to else "supersede",
            actor=ACTOR,
            reason="; ".join(dict.fromkeys(line.reasons)),
            at=at,
        ),
    )
