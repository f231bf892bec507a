"""Reconcile new memories with stored ones: find repetitions, end superseded facts, place facts that are told late.

Facts are compared within one subject and attribute only: similar texts are neither the same nor a contradiction.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from .. import threads
from ..ids import identity
from ..models import MemoryItem
from ..roles import is_person, teller_of, told_by
from ..scope import Scope
from ..store.store import Store
from ..store.write_set import (
    BY_A_PERSON,
    PAST,
    REST_OF,
    STATED,
    Change,
    ChangedMemory,
    Effects,
    NewMemory,
    NewRelation,
    SlotEntry,
    Source,
)
from .build import Context, part_row, statement_hash
from .drafts import COMPARED
from .facts import Fact, Line, Timeline, fact_in, fact_of, line_of, partial_line, placed, several_slot
from .parts import Part, nearest_part, parts_of, rest_of

Told = MemoryItem | NewMemory

ACTOR = "jiyi"
CAN_END = ("fact", "preference", "pattern", "task", "event")
DATED = frozenset({"event", "task"})  # the same on another day is another one


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A new memory and its facts. A `stated` one is kept even if it says nothing new. When one of several facts ends,
    `keep_rest` stores the others."""

    memory: NewMemory
    facts: tuple[Fact, ...] = ()
    told_at: datetime
    stated: bool = False
    ends: tuple[str, ...] = ()  # ids of stored memories that no longer hold
    repeats: tuple[str, ...] = ()  # and of those that say the same
    merges: tuple[str, ...] = ()  # and of those that it says too

    @property
    def slot(self) -> str | None:
        return self.facts[0].slot if len(self.facts) == 1 and self.memory.slot is None else self.memory.slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    memories: tuple[NewMemory, ...]  # those that are left, and parts of others
    met: tuple[str, ...]  # stored memories that say the same as the rest
    effects: Effects
    new: frozenset[str] = frozenset()  # dedupe hashes that were looked up and are not stored
    repeats: Mapping[str, str] = field(default_factory=dict)  # stored memories with the same words, by new id
    cut: frozenset[str] = frozenset()  # ended statements of which a part may still hold
    over: tuple[Line, ...] = ()  # facts that have ended
    problems: tuple[str, ...] = ()


def fact_told(memory: NewMemory | MemoryItem, context: Context) -> Fact | None:
    """Return the fact of a new memory, if it has one."""
    on = memory.occurred_at.date() if memory.memory_type in DATED else None
    return fact_of(memory.data, context.place, user_names=context.user_names, on=on, trust=memory.trust)


def facts_in(memory: NewMemory | MemoryItem, context: Context) -> tuple[Fact, ...]:
    """Return the facts of a statement."""
    if not by_a_person(memory):
        return ()
    own = fact_told(memory, context)
    if own is not None:
        return (own,)
    return tuple(fact for part in parts_of(memory.content) if (fact := part_fact(part, memory, context.place)))


def by_a_person(memory: NewMemory | MemoryItem) -> bool:
    """Return False for words of an assistant or a tool that were saved as a statement: they end no facts."""
    role = memory.data.get("role")
    return role is None or is_person(role)


def stated_facts(memory: NewMemory, context: Context) -> Proposed:
    """Propose a statement with the attributes that it states, changes or ends."""
    plain = Proposed(memory=memory, told_at=memory.occurred_at, stated=True)
    facts = facts_in(memory, context)
    if facts and fact_told(memory, context) is None and len(parts_of(memory.content)) > 1:
        slot = several_slot(context.agent_id, context.group_id, memory.trust)
        memory = replace(memory, slot=slot)
    return replace(plain, memory=memory, facts=facts)


def part_fact(part: Part, whole: NewMemory | MemoryItem | SlotEntry, place: Scope) -> Fact | None:
    """Return the fact that a part of a statement states."""
    one = part.value
    if one is None:
        return None
    about = {
        "subject": one.subject,
        "attribute": one.slot,
        "value": one.value,
        "single": not one.ended,
        "ended": one.ended,
        "replaces": one.replaces,
    }
    on = whole.valid_from.date() if whole.memory_type in DATED else None
    return fact_of({**whole.data, **about}, place, on=on, trust=whole.trust)


async def settle(
    proposed: Sequence[Proposed], place: Scope, at: datetime, store: Store, looked_up: Mapping[str, str | None]
) -> Reconciled:
    """Reconcile what is proposed with what is stored. `looked_up`: ids of stored memories by dedupe hash, None for
    hashes that are not stored."""
    wanted = {fact.slot for one in proposed for fact in one.facts}
    wanted |= {several_slot(place.agent_id, place.group_id, one.memory.trust) for one in proposed if one.facts}
    hashes = [one.memory.dedupe_hash for one in proposed]
    known = {one: memory_id for one, memory_id in looked_up.items() if memory_id is not None}
    there: Sequence[SlotEntry] = ()
    asked = [one for one in hashes if one not in looked_up]
    if asked or wanted:
        more, there = await store.additions.snapshot(place.user_id, asked, sorted(wanted), at)
        known |= more
    evidence: dict[str, tuple[Source, ...]] = {}
    new: list[Proposed] = []
    repeated: list[NewMemory] = []
    repeats: dict[str, str] = {}
    by_id = {entry.id: entry for entry in there}
    for one in proposed:
        twin = known.get(one.memory.dedupe_hash)
        if twin is not None:
            repeats[one.memory.id] = twin
        if twin is None or _agrees(one, by_id.get(twin)):
            new.append(one)
        elif one.stated:
            repeated.append(one.memory)
        else:
            evidence[twin] = (*evidence.get(twin, ()), *one.memory.sources)
    texts = (*(one.memory.content for one in new), *(one.content for one in there))
    size = sum(min(len(text), COMPARED) for text in texts)
    done = await threads.run(size, reconcile, new, there, at, place)
    left = {memory.id: memory for memory in (*done.memories, *repeated)}
    return Reconciled(
        memories=(*(left.pop(one.memory.id) for one in proposed if one.memory.id in left), *left.values()),
        met=tuple(dict.fromkeys((*evidence, *done.met))),
        effects=replace(
            done.effects,
            slots={**{slot: {} for slot in wanted}, **done.effects.slots},
            evidence={**evidence, **done.effects.evidence},
        ),
        new=frozenset(hashes) - known.keys(),
        repeats=repeats,
        cut=done.cut,
        over=done.over,
    )


def _agrees(one: Proposed, twin: SlotEntry | None) -> bool:
    """Return True if the stored memory with the same words has the same fact: the timeline then finds it."""
    return twin is not None and len(one.facts) == 1 and not one.stated and one.facts[0].says_the_same(fact_in(twin))


def reconcile(proposed: Sequence[Proposed], there: Sequence[SlotEntry], at: datetime, place: Scope) -> Reconciled:
    """Place new facts on their timelines; `there` are the memories in the slots of all proposed facts."""
    timelines: defaultdict[str, Timeline] = defaultdict(Timeline)
    for entry in there:
        threads.check()
        if entry.slot != several_slot(place.agent_id, place.group_id, entry.trust):
            timelines[entry.slot].lines.append(line_of(entry))
            continue
        for part in parts_of(entry.content):
            if fact := part_fact(part, entry, place):
                timelines[fact.slot].lines.append(partial_line(entry, fact))
    free: list[NewMemory] = []  # not on a timeline: nothing ends them
    met: dict[str, None] = {}
    evidence: dict[str, tuple[Source, ...]] = {}
    for one in sorted(proposed, key=lambda one: (one.memory.valid_from, one.told_at)):
        alone = one.slot is not None and one.slot == one.facts[0].slot
        for fact in one.facts:
            threads.check()
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
    changed = [(line, line.stored) for line in lines if line.stored and line.reasons]
    changed.sort(key=lambda one: one[0].valid_to is not None)  # of a memory with several facts, the end counts
    changes = {line.id: _changed(line, stored, at) for line, stored in changed}
    return Reconciled(
        memories=tuple(sorted(new.values(), key=lambda memory: order.get(memory.id, len(order)))),
        met=tuple(met),
        effects=Effects(
            slots=versions,
            changes=tuple(changes.values()),
            evidence=evidence,
            relations=tuple(one for one in relations if one.memory_id in exists and one.target_id in exists),
        ),
        cut=frozenset(line.id for line, _ in changed if line.partial and line.valid_to is not None),
        over=tuple(line for line in lines if line.reasons and line.superseded_by and not line.partial),
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
    values = {"valid_to": line.valid_to, "superseded_by": line.superseded_by}
    if not line.partial:
        values["valid_from"] = line.valid_from
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


async def end_named(
    found: Reconciled, ends: Mapping[str, tuple[str, ...]], place: Scope, at: datetime, store: Store
) -> Reconciled:
    """End the stored memories that new ones name, unless they are newer, less trusted or edited by a person. Words of
    others end only what the same person said."""
    changed = {one.id for one in found.effects.changes}
    for new in [one for one in found.memories if one.id in ends]:
        teller = teller_of(new.data, place.user_id)
        for old in await store.memories.get(place.user_id, [one for one in ends[new.id] if one not in changed]):
            older = old.valid_to is None and old.valid_from < new.valid_from and old.trust == new.trust
            may_end = teller is None or teller == teller_of(old.data, place.user_id)
            if older and may_end and not await edited(old, store):
                found = end_statement(found, old, new, at)
                changed.add(old.id)
    return found


async def keep_rest(
    found: Reconciled,
    facts: Sequence[Fact],
    place: Scope,
    store: Store,
    saved: Mapping[str, str] | None = None,
) -> Reconciled:
    """Keep what still holds of saved statements of which a part has ended, as memories of their own. `saved`: texts of
    stored memories that ended them."""
    by = {one.id: one.change.values.get("superseded_by") for one in found.effects.changes if one.id in found.cut}
    cut = await store.memories.get(place.user_id, list(by)) if by else []
    if not cut:
        return found
    new = {one.id: one.content for one in found.memories} | dict(saved or {})
    successors = {old.id: new.get(by[old.id] or "") for old in cut}
    size = sum(min(len(old.content), COMPARED) for old in cut) + len(facts)
    rests = await threads.run(size, _rests, cut, successors, facts, place)
    kept = {one.dedupe_hash: one for one in found.memories}
    relations = list(found.effects.relations)
    for old, rest in rests:
        if rest.dedupe_hash not in kept:  # otherwise the new statement repeats it
            kept[rest.dedupe_hash] = rest
            relation = NewRelation(memory_id=rest.id, target_id=old.id, relation_type="refines", strength=1.0)
            relations.append(relation)
    more = [rest for _, rest in rests if kept[rest.dedupe_hash] is rest]
    effects = replace(found.effects, relations=tuple(relations))
    return replace(found, memories=(*found.memories, *more), effects=effects)


def _rests(
    cut: Sequence[MemoryItem], successors: Mapping[str, str | None], facts: Sequence[Fact], place: Scope
) -> list[tuple[MemoryItem, NewMemory]]:
    """Return what is left of each statement, as a memory."""
    by_slot: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        by_slot[fact.slot].append(fact)
    found = []
    for old in cut:
        threads.check()
        parts = parts_of(old.content)
        own = [(part, part_fact(part, old, place)) for part in parts]
        over = [part for part, fact in own if fact and any(one.ends(fact) for one in by_slot[fact.slot])]
        successor = successors[old.id]
        if not over and successor is not None and (nearest := nearest_part(parts, successor)):
            over = [nearest]
        if over and (rest := rest_of(old.content, parts, over)):
            left = [part for part in parts if part not in over]
            found.append((old, rest_row(rest, left, old, place)))
    return found


def rest_row(text: str, parts: Sequence[Part], old: Told, place: Scope) -> NewMemory:
    """Return the memory of what is left of a statement."""
    by = told_by(old.data, place.user_id)
    said = statement_hash(text, old.memory_type, place.agent_id, place.group_id, trust=old.trust, by=by)
    reason = "another part of the memory has ended"
    rest = part_row(old, text, {**old.data, REST_OF: old.id}, said, source=STATED, reason=reason)
    facts = [fact for part in parts if (fact := part_fact(part, rest, place))]
    several = several_slot(place.agent_id, place.group_id, old.trust) if facts else None
    return replace(rest, slot=facts[0].slot if len(parts) == 1 and facts else several)


def may_join(new: Told, old: MemoryItem, place: Scope) -> bool:
    """Return True if a stored memory holds and may say the same as a new one: it is of the same place, of the same
    teller, and as trusted."""
    if old.status != "active" or old.valid_to is not None or old.trust != new.trust:
        return False
    same_place = (old.agent_id, old.group_id) == (place.agent_id, place.group_id)
    return same_place and teller_of(old.data, place.user_id) == teller_of(new.data, place.user_id)


async def edited(old: MemoryItem, store: Store) -> bool:
    """Return True if a person has changed the memory: nothing derived changes or ends it then."""
    return old.version > 1 and any(one.action in BY_A_PERSON for one in await store.history.get(old.user_id, old.id))


def end_statement(
    found: Reconciled,
    old: Told,
    new: Told,
    at: datetime,
    reason: str = "a newer statement changes, ends or corrects it",
) -> Reconciled:
    """End a memory when another one begins."""
    effects = found.effects
    strength = min(new.confidence, old.confidence)
    relation = NewRelation(memory_id=new.id, target_id=old.id, relation_type="contradicts", strength=strength)
    relations = (*effects.relations, relation)
    if isinstance(old, NewMemory):
        hashed = PAST + identity(old.dedupe_hash, new.valid_from.isoformat())
        over = replace(old, valid_to=new.valid_from, superseded_by=new.id, dedupe_hash=hashed)
        memories = tuple(over if one.id == old.id else one for one in found.memories)
        return replace(found, memories=memories, effects=replace(effects, relations=relations))
    change = Change(
        values={"valid_to": new.valid_from, "superseded_by": new.id},
        action="supersede",
        actor=ACTOR,
        reason=reason,
        at=at,
    )
    more = replace(
        effects,
        versions={**effects.versions, old.id: old.version},
        changes=(*effects.changes, ChangedMemory(id=old.id, change=change)),
        relations=relations,
    )
    several = old.source == STATED and len(parts_of(old.content)) > 1
    return replace(found, effects=more, cut=found.cut | {old.id} if several else found.cut)
