"""New memories that say nearly the same as a stored one in other words. Similar is not the same, and different is no
contradiction, so similarity alone decides nothing: a language model judges, and without one both are kept unless their
words are the same (see `repeats.py`). Its decision
is recorded with the reason in the history, and can be undone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol, Self

import numpy as np

from ..errors import LlmError
from ..index.query import IndexQuery
from ..languages.terms import hamming
from ..models import MemoryItem
from ..scope import Filter, Scope
from ..store.write_set import Change, ChangedMemory, Effects, NewMemory, NewRelation, Source
from ..text.passages import summarise
from .index import embed_entries, entry_of, index_entry
from .reconcile import ACTOR, edited, may_join

if TYPE_CHECKING:
    from .add import Flow

MIN_SIMILARITY = 0.95  # cosine
MAX_BITS = 3  # by which two near hashes may differ
CANDIDATES = 3  # nearest memories that are compared
MAX_PAIRS = 8  # of one request

JudgedAction = Literal["ignore", "replace", "merge", "supersede", "keep_both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    action: JudgedAction
    reason: str
    merged: str | None  # with `merge`: one text for both
    made_by: str  # model and prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedText:
    """The text and time of a memory."""

    text: str
    at: datetime

    @classmethod
    def of(cls, memory: NewMemory | MemoryItem) -> Self:
        return cls(text=memory.content, at=memory.occurred_at)


Pair = tuple[DatedText, DatedText]  # new, old


class Judge(Protocol):
    """Judges pairs of a new memory and an old one."""

    def __call__(
        self, pairs: Sequence[Pair], *, user_id: str, epoch: str | None = None
    ) -> Awaitable[Sequence[Judgement | None]]: ...


@dataclass(slots=True, kw_only=True)
class _Outcome:
    dropped: set[str] = field(default_factory=set)
    changed: dict[str, NewMemory] = field(default_factory=dict)
    changes: list[ChangedMemory] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    evidence: dict[str, tuple[Source, ...]] = field(default_factory=dict)
    relations: list[NewRelation] = field(default_factory=list)


async def judge_similar(
    memories: Sequence[NewMemory], effects: Effects, place: Scope, at: datetime, flow: Flow
) -> tuple[tuple[NewMemory, ...], Effects, tuple[str, ...], tuple[str, ...]]:
    """Return the remaining memories, their effects, the stored memories that say the same, and problems."""
    pairs = await _pairs(memories, effects, place, at, flow) if flow.judge is not None else []
    if not pairs or flow.judge is None:
        return tuple(memories), effects, (), ()
    asked = [(DatedText.of(new), DatedText.of(old)) for new, old, _ in pairs]
    try:
        judgements = await flow.judge(asked, user_id=place.user_id)
    except LlmError as error:
        return tuple(memories), effects, (), (f"similar memories were both kept: {error}",)
    outcome = _Outcome()
    for (new, old, likeness), judgement in zip(pairs, judgements, strict=True):
        if judgement is not None:
            await _apply(judgement, new, old, likeness, at, flow, outcome)
    left = tuple(outcome.changed.get(one.id, one) for one in memories if one.id not in outcome.dropped)
    more = replace(
        effects,
        versions={**effects.versions, **outcome.versions},
        changes=(*effects.changes, *outcome.changes),
        evidence={**effects.evidence, **outcome.evidence},
        relations=(*effects.relations, *outcome.relations),
    )
    return left, more, tuple(outcome.evidence), ()


async def _pairs(
    memories: Sequence[NewMemory], effects: Effects, place: Scope, at: datetime, flow: Flow
) -> list[tuple[NewMemory, MemoryItem, float]]:
    """Pair each new memory with the most similar one of its type, if it is similar enough and nobody has edited it."""
    touched = {one.id for one in effects.changes} | effects.evidence.keys()
    settled = {one.change.values.get("superseded_by") for one in effects.changes}
    settled |= {end for one in effects.relations for end in (one.memory_id, one.target_id)}
    found = []
    for new in memories:
        if new.memory_type in ("episode", "message") or new.index.vector is None or new.valid_to is not None:
            continue
        if new.id in settled:  # its subject and attribute have decided already
            continue
        where = Filter(user_id=place.user_id, now=at, memory_types=(new.memory_type,))
        near = await flow.index.gather(IndexQuery(filter=where, vector=new.index.vector, model=flow.embedder.id))
        places = np.argsort(-near.semantic)[:CANDIDATES]
        ids = [str(near.ids[place]) for place in places if near.ids[place] not in touched]
        likeness = dict(zip((near.ids[place] for place in places), near.semantic[places].tolist(), strict=True))
        for old in await flow.store.memories.get(place.user_id, ids):
            if _similar(new, old, likeness[old.id], place, flow) and not await edited(old, flow.store):
                found.append((new, old, likeness[old.id]))
                touched.add(old.id)
                break
    return sorted(found, key=lambda pair: -pair[2])[:MAX_PAIRS]


def _similar(new: NewMemory, old: MemoryItem, likeness: float, place: Scope, flow: Flow) -> bool:
    if not may_join(new, old, place):
        return False
    if likeness >= MIN_SIMILARITY:
        return True
    known = entry_of(old, flow.keyword_rules)
    return hamming(new.index.near_hash, known.near_hash) <= MAX_BITS


async def _apply(
    judgement: Judgement,
    new: NewMemory,
    old: MemoryItem,
    likeness: float,
    at: datetime,
    flow: Flow,
    done: _Outcome,
) -> None:
    action, why = judgement.action, f"{judgement.reason} ({judgement.made_by})"
    if action == "keep_both":
        return
    if action == "supersede" and new.valid_from <= old.valid_from:
        return  # an older memory ends nothing
    done.versions[old.id] = old.version
    if action in ("ignore", "merge"):
        done.dropped.add(new.id)
        done.evidence[old.id] = new.sources
        if judgement.merged is not None:
            done.changes.append(await _merged(judgement.merged, old, why, at, flow))
        return
    ends = new.valid_from if action == "supersede" else old.valid_from  # a wrong memory was never valid
    values = {"valid_to": ends, "superseded_by": new.id}
    change = Change(values=values, action="supersede", actor=ACTOR, reason=why, at=at)
    done.changes.append(ChangedMemory(id=old.id, change=change))
    if action == "replace":
        done.changed[new.id] = replace(new, valid_from=min(new.valid_from, old.valid_from), reason=why)
    kind = "refines" if action == "replace" else "contradicts"
    strength = round(min(max(likeness, 0.0), 1.0), 3)
    done.relations.append(NewRelation(memory_id=new.id, target_id=old.id, relation_type=kind, strength=strength))


async def _merged(text: str, old: MemoryItem, why: str, at: datetime, flow: Flow) -> ChangedMemory:
    summary = summarise(text)
    rest = (old.tags, dict(old.data), old.memory_type, flow.keyword_rules)
    entry = await asyncio.to_thread(index_entry, text, summary, *rest)
    [entry], _ = await embed_entries([entry], [text], flow.embedder)
    values = {"content": text, "summary": summary}
    return ChangedMemory(
        id=old.id, change=Change(values=values, index=entry, action="merge", actor=ACTOR, reason=why, at=at)
    )
