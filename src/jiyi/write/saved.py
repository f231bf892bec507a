"""Work of a language model on saved texts after they are stored. It judges what they repeat or change: that is
merged with them or ended. In the summary of a context it looks for what that states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import JsonValue

from ..errors import LlmError
from ..ids import new_id
from ..index.query import IndexQuery
from ..models import CandidateMemory, MemoryItem
from ..scope import Filter, Scope
from ..store.write_set import STATED, Change, ChangedMemory, Effects, NewMemory, NewRelation
from .build import Context, stated
from .change import embed_changes, prepare
from .derive import wishes
from .drafts import Draft, Extracted, Said, Unit
from .extract import extract
from .reconcile import ACTOR, CAN_END, Reconciled, edited, end_statement, facts_in, keep_rest, may_join
from .repeats import content_words, covers, merged_fields, says_both
from .similar import MAX_PAIRS, DatedText, Judgement

if TYPE_CHECKING:
    from .add import Flow, Made

NEIGHBOURS = 4  # stored memories that a saved text is compared with
MIN_LIKENESS = 0.3  # cosine
SUMMARY, SUMMARY_TRUST = "summary", 0.5  # kind in the data of a summary's episode


def to_judge(memories: Sequence[NewMemory], known: Mapping[str, str]) -> list[JsonValue]:
    """Return the ids of saved texts that a model should judge; a long list is an import and is not judged."""
    found: list[JsonValue] = [
        one.id for one in memories if one.source == STATED and one.valid_to is None and one.id not in known
    ]
    return found if len(found) <= MAX_PAIRS else []


async def judge_saved(ids: Sequence[str], context: Context, at: datetime, flow: Flow) -> Reconciled:
    """Return what saved texts change."""
    found = Reconciled(memories=(), met=(), effects=Effects())
    saved = [one for one in await flow.store.memories.get(context.user_id, list(ids)) if _current(one)]
    pairs = await _pairs(saved, context.place, at, flow)
    if not pairs or flow.judge is None:
        return found
    try:
        judgements = await flow.judge(
            [(DatedText.of(new), DatedText.of(old)) for new, old in pairs], user_id=context.user_id
        )
    except LlmError as error:
        return replace(found, problems=(f"what was saved was not compared with other memories: {error}",))
    for (new, old), judgement in zip(pairs, judgements, strict=True):
        changed = {one.id for one in found.effects.changes}
        if judgement is not None and changed.isdisjoint((new.id, old.id)):
            found = await _apply(judgement, new, old, found, at, flow)
    ended = {one.change.values.get("superseded_by") for one in found.effects.changes}
    facts = [fact for one in saved if one.id in ended for fact in facts_in(one, context)]
    return await keep_rest(found, facts, context.place, flow.store, {one.id: one.content for one in saved})


def _current(one: MemoryItem) -> bool:
    return one.status == "active" and one.valid_to is None


async def _pairs(
    saved: Sequence[MemoryItem], place: Scope, at: datetime, flow: Flow
) -> list[tuple[MemoryItem, MemoryItem]]:
    """Pair each saved text with the memories nearest to it that nobody has edited."""
    entries = await flow.store.entries.get(place.user_id, [one.id for one in saved])
    found: list[tuple[float, MemoryItem, MemoryItem]] = []
    taken = {one.id for one in saved}
    where = Filter(
        user_id=place.user_id, agent_id=place.agent_id, group_id=place.group_id, memory_types=CAN_END, now=at
    )
    for new in saved:
        entry = entries.get(new.id)
        if entry is None or entry.vector is None:
            continue
        near = await flow.index.gather(IndexQuery(filter=where, vector=entry.vector, model=flow.embedder.id))
        nearest = [at_ for at_ in np.argsort(-near.semantic) if near.ids[at_] not in taken][:NEIGHBOURS]
        likeness = {str(near.ids[at_]): float(near.semantic[at_]) for at_ in nearest}
        for old in await flow.store.memories.get(place.user_id, list(likeness)):
            near_enough = likeness[old.id] >= MIN_LIKENESS and may_join(new, old, place)
            if near_enough and not await edited(old, flow.store):
                found.append((likeness[old.id], new, old))
                taken.add(old.id)
    found.sort(key=lambda pair: -pair[0])
    return [(new, old) for _, new, old in found[:MAX_PAIRS]]


async def _apply(
    judgement: Judgement, new: MemoryItem, old: MemoryItem, found: Reconciled, at: datetime, flow: Flow
) -> Reconciled:
    """Apply a judgement as far as the words of both memories bear it out; otherwise both are kept."""
    action, why = judgement.action, f"{judgement.reason} ({judgement.made_by})"
    related = bool(content_words(new.content) & content_words(old.content))
    if action == "merge" and judgement.merged is not None and says_both(judgement.merged, old.content, new.content):
        return await _replaced(old, by=new, found=found, why=why, at=at, flow=flow, text=judgement.merged)
    if action == "supersede" and related and old.valid_from < new.valid_from:
        return end_statement(found, old, new, at, why)
    if action == "ignore" and covers(old.content, new.content):
        return await _replaced(new, by=old, found=found, why=why, at=at, flow=flow)
    if action in ("ignore", "merge", "replace") and covers(new.content, old.content):
        return await _replaced(old, by=new, found=found, why=why, at=at, flow=flow)
    return found


async def _replaced(
    old: MemoryItem,
    *,
    by: MemoryItem,
    found: Reconciled,
    why: str,
    at: datetime,
    flow: Flow,
    text: str | None = None,
) -> Reconciled:
    """End a memory that another one repeats, and give that one its tags, metadata and importance, and the merged text
    of both if there is one."""
    ends = Change(
        values={"valid_to": max(old.valid_from, by.valid_from), "superseded_by": by.id},
        action="supersede",
        actor=ACTOR,
        reason=why,
        at=at,
    )
    changes = [ChangedMemory(id=old.id, change=ends)]
    values: dict[str, Any] = merged_fields(by, tags=old.tags, metadata=old.metadata, importance=old.importance)
    if text is not None and text != by.content:
        values["content"] = text
    if values:
        merge = prepare(by, values, flow.keyword_rules, action="merge", actor=ACTOR, reason=why)
        [merge], _ = await embed_changes([replace(merge, at=at)], [by], flow.embedder)
        changes.append(ChangedMemory(id=by.id, change=merge))
    effects = found.effects
    relation = NewRelation(memory_id=by.id, target_id=old.id, relation_type="refines", strength=1.0)
    return replace(
        found,
        effects=replace(
            effects,
            versions={**effects.versions, old.id: old.version, by.id: by.version},
            changes=(*effects.changes, *changes),
            relations=(*effects.relations, relation),
        ),
    )


# -- summaries of a context, which an agent's model wrote --------------------------------------------------------------


def summary_episode(summary: str) -> CandidateMemory:
    """Return the episode of a summary."""
    data = {"kind": SUMMARY}
    return CandidateMemory(
        content=summary, memory_type="episode", importance=0.6, tags=(SUMMARY,), trust=SUMMARY_TRUST, data={**data}
    )


def stated_in_summary(summary: str, user_id: str, at: datetime) -> list[CandidateMemory]:
    """Return what a summary states, by the built-in extractor. A summary that is one statement states nothing else."""
    said = Said(id=new_id(), role="user", speaker=None, text=summary, sent_at=at)
    drafts = extract(Unit(id=new_id(), messages=(said,), user_id=user_id))
    return [_candidate(draft) for draft in drafts if draft.content != summary.strip()]


def new_summaries(memories: Iterable[NewMemory], known: Mapping[str, str]) -> list[NewMemory]:
    """Return the episodes of summaries that are not stored yet."""
    return [one for one in memories if one.source == STATED and one.data.get("kind") == SUMMARY and one.id not in known]


async def read_summaries(ids: Sequence[str], context: Context, at: datetime, flow: Flow, *, is_last: bool) -> Made:
    """Return what summaries state, found by a language model; in the last attempt by the built-in
    extractor, if it fails again."""
    from .add import make  # which imports this file

    candidates: list[CandidateMemory] = []
    problems: tuple[str, ...] = ()
    for episode in await flow.store.memories.get(context.user_id, list(ids)):
        try:
            found, more = await _ask(episode, context, flow)
        except LlmError as error:
            if error.temporary and not is_last:
                raise
            found = stated_in_summary(episode.content, episode.user_id, episode.occurred_at)
            more = (f"the language model failed, the built-in extractor read the summary: {error}",)
        candidates += found
        problems += more
    memories = [stated(one, context, at) for one in candidates]
    made = await make((), memories, context, (), at, flow)
    return replace(made, problems=(*problems, *made.problems))


async def _ask(episode: MemoryItem, context: Context, flow: Flow) -> tuple[list[CandidateMemory], tuple[str, ...]]:
    if flow.slow_extractor is None:
        return stated_in_summary(episode.content, episode.user_id, episode.occurred_at), ()
    instructions, categories = wishes(context, flow.settings)
    said = Said(id=episode.id, role="user", speaker=None, text=episode.content, sent_at=episode.occurred_at)
    unit = Unit(
        id=new_id(),
        messages=(said,),
        user_id=context.user_id,
        user_names=context.user_names,
        session_id=context.session_id,
        group_id=context.group_id,
        instructions=instructions,
        categories=categories,
        epoch=context.epoch,
    )
    found = await flow.slow_extractor(unit)
    extracted = found if isinstance(found, Extracted) else Extracted(drafts=tuple(found))
    return [_candidate(draft) for draft in extracted.drafts], extracted.problems


def _candidate(draft: Draft) -> CandidateMemory:
    fields: dict[str, Any] = {
        "content": draft.content,
        "memory_type": draft.memory_type,
        "importance": draft.importance,
        "confidence": draft.confidence,
        "tags": tuple(dict.fromkeys((SUMMARY, *draft.tags))),
        "trust": SUMMARY_TRUST,
        "data": {name: value for name, value in draft.data.items() if name != "speaker"},
        "occurred_at": draft.occurred_at,
        "valid_to": draft.valid_to,
    }
    return CandidateMemory(**fields)
