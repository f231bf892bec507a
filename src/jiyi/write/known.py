"""Stored memories that an `add` may repeat, change or end: a language model is shown those near a conversation, and a
candidate may have the key of one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..embed import embed_documents
from ..errors import EmbeddingError
from ..index.query import IndexQuery
from ..languages.terms import tokens
from ..models import CandidateMemory, MemoryItem, OnConflict, Receipt, RowOutcome, RowResult
from ..roles import is_instruction, teller_of
from ..scope import Filter, Scope
from ..store.write_set import ChangedMemory, NewMemory
from .build import Context, stated
from .change import embed_changes, prepare
from .drafts import Known, Said
from .reconcile import ACTOR, CAN_END, Proposed, Reconciled, edited, may_join
from .repeats import has_details, says_both

if TYPE_CHECKING:
    from .add import Flow

MOST = 20  # memories
MOST_ASKED = 12  # messages by which they are found, the longest ones
LEAST = 0.2  # similarity or share of words


async def known_memories(said: Sequence[Said], *, place: Scope, at: datetime, flow: Flow) -> tuple[Known, ...]:
    """Return the memories nearest to some messages, oldest first."""
    where = Filter(
        user_id=place.user_id, agent_id=place.agent_id, group_id=place.group_id, memory_types=CAN_END, now=at
    )
    texts = [one.text for one in said if not is_instruction(one.role)]
    texts = sorted(texts, key=len, reverse=True)[:MOST_ASKED]
    try:
        vectors = list(await embed_documents(flow.embedder, texts))
    except EmbeddingError:
        vectors = [None] * len(texts)
    best: dict[str, float] = {}
    for text, vector in zip(texts, vectors, strict=True):
        query = IndexQuery(filter=where, vector=vector, terms=tuple(tokens(text)), model=flow.embedder.id)
        near = await flow.index.gather(query)
        score = near.text if vector is None else near.semantic + near.text
        for place_ in np.argsort(-score)[:MOST]:
            best[near.ids[place_]] = max(best.get(near.ids[place_], LEAST), float(score[place_]))
    chosen = sorted(best, key=lambda one: -best[one])[:MOST]
    found = await flow.store.memories.get(place.user_id, chosen)
    found = [one for one in found if (one.agent_id, one.group_id) == (place.agent_id, place.group_id)]
    return tuple(
        Known(id=one.id, text=one.content, at=one.occurred_at, speaker=_told_by(one))
        for one in sorted(found, key=lambda one: one.valid_from)
    )


def _told_by(memory: MemoryItem) -> str | None:
    teller = teller_of(memory.data, memory.user_id)
    return None if teller is None else teller.name or teller.kind


async def join_named(
    found: Reconciled, proposed: Sequence[Proposed], place: Scope, at: datetime, flow: Flow
) -> Reconciled:
    """Join new memories with the stored ones that they repeat, or say too, as a language model has named them. The
    stored one gets the sources and, if the new one says more, its text. Only the same teller's memories are joined,
    none that a person has edited, and only if no number, name or negation is lost."""
    named = {one.memory.id: (one.repeats, one.merges) for one in proposed if one.repeats or one.merges}
    involved = {one.change.values.get("superseded_by") for one in found.effects.changes}
    involved |= {end for one in found.effects.relations for end in (one.memory_id, one.target_id)}
    for new in [one for one in found.memories if one.id in named and one.id not in involved and one.valid_to is None]:
        repeats, merges = named[new.id]
        touched = {one.id for one in found.effects.changes} | found.effects.evidence.keys()
        for old in await flow.store.memories.get(place.user_id, [*repeats, *merges]):
            if not may_join(new, old, place) or old.id in touched or await edited(old, flow.store):
                continue
            if old.id in repeats and has_details(old.content, new.content):
                found = _joined(found, new, old)
            elif old.id in merges and says_both(new.content, old.content, new.content):
                why = "a language model said both in one text"
                change = prepare(
                    old, {"content": new.content}, flow.keyword_rules, action="merge", actor=ACTOR, reason=why
                )
                [change], _ = await embed_changes([replace(change, at=at)], [old], flow.embedder)
                found = _joined(found, new, old, ChangedMemory(id=old.id, change=change))
            else:
                continue
            break
    return found


def _joined(found: Reconciled, new: NewMemory, old: MemoryItem, *changes: ChangedMemory) -> Reconciled:
    effects = replace(
        found.effects,
        versions={**found.effects.versions, old.id: old.version},
        evidence={**found.effects.evidence, old.id: new.sources},
        changes=(*found.effects.changes, *changes),
    )
    memories = tuple(one for one in found.memories if one.id != new.id)
    return replace(found, memories=memories, met=(*found.met, old.id), effects=effects)


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenKeys:
    """Outcome of candidates whose memory_key a memory has already."""

    rest: tuple[CandidateMemory, ...]  # to be added
    changes: tuple[ChangedMemory, ...] = ()
    rows: tuple[RowResult, ...] = ()


async def taken_keys(
    candidates: Sequence[CandidateMemory],
    context: Context,
    at: datetime,
    *,
    on_conflict: OnConflict,
    actor: str,
    flow: Flow,
) -> TakenKeys:
    """Skip candidates whose key is taken, or make them changes of the memory with the key. Of several candidates with
    one key the last one counts when updating, the first one when skipping."""
    keys = [one.memory_key for one in candidates if one.memory_key is not None]
    if on_conflict == "error" or not keys:
        return TakenKeys(rest=tuple(candidates))
    found = await flow.store.memories.get(context.user_id, list(dict.fromkeys(keys)))
    holders = {memory.memory_key: memory for memory in found}
    order = list(enumerate(candidates)) if on_conflict == "skip" else list(enumerate(candidates))[::-1]
    rest, rows, edited, seen = {}, [], [], set[str]()
    for position, one in order:
        holder, key = holders.get(one.memory_key or ""), one.memory_key
        if key is not None and key in seen:
            continue
        seen |= set() if key is None else {key}
        if holder is None:
            rest[position] = one
            continue
        fields = _new_values(one, context, at, holder) if on_conflict == "update" else {}
        outcome: RowOutcome = "skipped" if on_conflict == "skip" else "updated" if fields else "unchanged"
        rows.append(RowResult(position=position, memory_id=holder.id, outcome=outcome))
        if fields:
            edited.append((holder, fields))
    prepared = [
        await asyncio.to_thread(partial(prepare, memory, fields, flow.keyword_rules, **_why(actor)))
        for memory, fields in edited
    ]
    memories = [memory for memory, _ in edited]
    changes, _ = await embed_changes(prepared, memories, flow.embedder)
    changed = [
        ChangedMemory(id=memory.id, change=change, version=memory.version)
        for memory, change in zip(memories, changes, strict=True)
    ]
    return TakenKeys(rest=tuple(rest[at] for at in sorted(rest)), changes=tuple(changed), rows=tuple(rows))


def _why(actor: str) -> dict[str, Any]:
    return {"action": "update", "actor": actor, "reason": "added again with its memory_key"}


def _new_values(one: CandidateMemory, context: Context, at: datetime, memory: MemoryItem) -> dict[str, Any]:
    """Return the fields that a candidate gives and that its memory has otherwise."""
    new = stated(one, context, at)
    given = {
        "content": True,
        "summary": one.summary is not None,
        "memory_type": (one.memory_type or context.memory_type) is not None,
        "importance": one.importance is not None or context.importance is not None,
        "tags": bool(new.tags),
        "metadata": one.metadata is not None or bool(context.metadata),
        "occurred_at": one.occurred_at is not None or context.occurred_at is not None,
        "valid_to": one.valid_to is not None,
        "expires_at": new.expires_at is not None,
        "status": "status" in one.model_fields_set,
    }
    values = {name: getattr(new, name) for name, is_given in given.items() if is_given}
    changed = {name: value for name, value in values.items() if value != getattr(memory, name)}
    return changed | ({"tags": list(new.tags)} if "tags" in changed else {})


def with_rows(
    receipt: Receipt, candidates: Sequence[CandidateMemory], resolved: Sequence[RowResult], at: datetime
) -> Receipt:
    """Return the receipt with what became of each candidate, if they have keys."""
    if all(one.memory_key is None for one in candidates):
        return receipt
    by_key = {memory.memory_key: memory for memory in receipt.memories}
    by_text = {memory.content: memory for memory in reversed(receipt.memories)}
    rows = {row.position: row for row in resolved}
    for position, one in enumerate(candidates):
        memory = by_text.get(one.content) if one.memory_key is None else by_key.get(one.memory_key)
        if memory is not None and position not in rows:
            outcome: RowOutcome = "created" if memory.created_at >= at else "known"
            rows[position] = RowResult(position=position, memory_id=memory.id, outcome=outcome)
    return receipt.model_copy(update={"rows": tuple(rows[position] for position in sorted(rows))})
