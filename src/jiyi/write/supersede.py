"""Changes, endings and corrections of things that are no single-valued attribute: "the knee op is on July 21 now".

The statement that shares the most words with the new one, weighted by rarity, is superseded if it shares enough. On
the training stories this is the outdated one in 85 % of the cases above the threshold. When in doubt both are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from math import log, sqrt
from typing import TYPE_CHECKING

from ..languages.terms import tokens
from ..models import MemoryItem
from ..scope import Filter, Scope
from ..store.contract import BY_A_PERSON, PAST, Change, ChangedMemory, Effects, NewMemory, NewRelation
from .endings import ended_things, names
from .hashes import identity
from .reconcile import ACTOR, Reconciled

if TYPE_CHECKING:
    from ..store.store import Store

ENDING = frozenset({"change", "end", "correction"})
LASTING = frozenset({"instruction", "plan"})  # to stop something later is no ending
PLACES = frozenset({"home", "hometown", "birthday", "name"})  # a cancelled Berlin marathon ends no home in Berlin
CAN_END = ("fact", "preference", "pattern", "task", "event")
ENOUGH = 0.17  # weight of the shared words, relative to both statements
RECENT = 200  # statements that are compared
COMMON = 20  # smooths the rarity of words while there are few statements

Told = MemoryItem | NewMemory


async def supersede(found: Reconciled, place: Scope, at: datetime, store: Store) -> Reconciled:
    """End the statements that new changes, endings and corrections make obsolete."""
    settled = {one.change.values.get("superseded_by") for one in found.effects.changes}
    settled |= {memory.superseded_by for memory in found.memories}
    things = {one.id: ended_things(one.content) for one in found.memories if one.data.get("kind") not in LASTING}
    news = [
        one
        for one in found.memories
        if (one.data.get("kind") in ENDING or things.get(one.id)) and one.id not in settled
    ]
    if not news:
        return found
    where = Filter(
        user_id=place.user_id, agent_id=place.agent_id, group_id=place.group_id, memory_types=CAN_END, now=at
    )
    page = await store.memories.page(where, cursor=None, limit=RECENT)
    changed = {one.id for one in found.effects.changes}
    there: list[Told] = [
        item
        for item in page.items
        if item.id not in changed and (item.agent_id, item.group_id) == (place.agent_id, place.group_id)
    ]
    there += [memory for memory in found.memories if memory.valid_to is None]
    words = {one.id: frozenset(tokens(one.content)) for one in there}
    common = Counter(word for own in words.values() for word in own)
    for new in news:
        named = things.get(new.id, [])
        old = _nearest(new, there, words, common, named)
        if old is None or (isinstance(old, MemoryItem) and await _edited(old, store)):
            if new.data.get("only_ends"):
                found = replace(found, memories=tuple(one for one in found.memories if one.id != new.id))
            continue
        there.remove(old)
        found = _ended(found, old, new, at)
    return found


def _nearest(
    new: NewMemory,
    there: Sequence[Told],
    words: Mapping[str, frozenset[str]],
    common: Counter[str],
    things: Sequence[frozenset[str]],
) -> Told | None:
    rarity = {word: log((len(words) + COMMON) / count) for word, count in common.items()}
    own = sum(rarity[word] for word in words[new.id])
    best, most = None, ENOUGH
    for old in there:
        if old.id == new.id or old.valid_from >= new.valid_from or old.trust != new.trust:
            continue
        if old.data.get("speaker") != new.data.get("speaker") or old.data.get("kind") == "instruction":
            continue
        named = any(names(str(old.data.get("value") or old.content), thing) for thing in things)
        if old.data.get("attribute") in PLACES:
            named = False
        if not named and (new.data.get("only_ends") or new.data.get("kind") not in ENDING):
            continue
        if old.data.get("attribute") and not named and new.data.get("kind") != "correction":
            continue  # an attribute has its own timeline: a flight to Rome does not end a home in Rome
        shared = sum(rarity[word] for word in words[old.id] & words[new.id])
        alike = shared / sqrt(own * sum(rarity[word] for word in words[old.id]) or 1.0)
        if named:
            alike += 1  # before all that are only alike
        if alike > most:
            best, most = old, alike
    return best


async def _edited(old: MemoryItem, store: Store) -> bool:
    """Return True if a person has changed a memory: then it stays."""
    return old.version > 1 and any(one.action in BY_A_PERSON for one in await store.history.get(old.user_id, old.id))


def _ended(found: Reconciled, old: Told, new: NewMemory, at: datetime) -> Reconciled:
    effects = found.effects
    relation = NewRelation(memory_id=new.id, target_id=old.id, relation_type="contradicts", strength=1.0)
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
        reason="a newer statement changes, ends or corrects it",
        at=at,
    )
    return replace(found, effects=_with_change(effects, old, change, relations))


def _with_change(effects: Effects, old: MemoryItem, change: Change, relations: tuple[NewRelation, ...]) -> Effects:
    return replace(
        effects,
        versions={**effects.versions, old.id: old.version},
        changes=(*effects.changes, ChangedMemory(id=old.id, change=change)),
        relations=relations,
    )
