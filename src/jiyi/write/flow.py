"""What the stages of writing work with, and the stages that `add` and the worker have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..store.contract import NO_EFFECTS, Effects, NewMemory, NewMessage, Place, UnitPart
from ..text.normal import normalise
from .build import Context, derived
from .derive import derive
from .drafts import Extractor
from .facts import Fact
from .index import KeywordRules, embed_entries, index_entry
from .reconcile import Proposed
from .settle import fact_told, settle

if TYPE_CHECKING:
    from ..settings import ExtractionSettings
    from ..store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    store: Store
    embedder: Embedder
    keyword_rules: KeywordRules
    settings: ExtractionSettings
    extractors: tuple[Extractor, ...]  # run inside `add`
    slow_extractor: Extractor | None  # of a language model: run by a worker, when `add` has accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What became of what was said, besides the memories that hold messages verbatim."""

    memories: tuple[NewMemory, ...] = ()
    met: tuple[str, ...] = ()
    effects: Effects = NO_EFFECTS
    units: tuple[UnitPart, ...] = ()
    external_ids: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


async def make(
    messages: Sequence[NewMessage],
    stated: Sequence[NewMemory],
    context: Context,
    extractors: Sequence[Extractor],
    at: datetime,
    flow: Flow,
) -> Made:
    """Work memories out of messages that are new, and set them and what was stated beside what is there."""
    place = context.place
    proposed = [
        Proposed(memory=memory, facts=_facts(memory, place, frozenset()), told_at=memory.occurred_at, stated=True)
        for memory in stated
    ]
    made = Made()
    if messages and flow.settings.enabled:
        reach = max(flow.settings.unit_messages, flow.settings.history_messages)
        ids = {message.id for message in messages}
        before = await flow.store.tail(place, reach + len(ids), before=max(ids))
        before = [message for message in before if message.id not in ids][-reach:]
        found = await derive(messages, before, place, extractors, flow.settings)
        is_user = _names_of_user([*before, *messages], context)
        sent_at = {message.id: message.sent_at for message in [*before, *messages]}
        for draft in found.drafts:
            memory = derived(draft, context)
            told_at = max(sent_at[source.message_id] for source in memory.sources)
            proposed.append(Proposed(memory=memory, facts=_facts(memory, place, is_user), told_at=told_at))
        made = Made(
            units=found.units,
            external_ids={message.id: message.external_id or message.id for message in [*before, *messages]},
            problems=found.problems,
        )
    if not proposed:
        return made
    settled = await settle(proposed, place.user_id, at, flow.store)
    return replace(made, memories=settled.memories, met=settled.met, effects=settled.effects)


def _facts(memory: NewMemory, place: Place, is_user: frozenset[str]) -> tuple[Fact, ...]:
    fact = fact_told(memory, place, is_user)
    return () if fact is None else (fact,)


def _names_of_user(messages: Sequence[NewMessage], context: Context) -> frozenset[str]:
    """Under which names the user is spoken of. Where several people speak as users, a name means whoever bears it."""
    speakers = {normalise(message.speaker) for message in messages if message.role == "user" and message.speaker}
    own = speakers if len(speakers) == 1 and context.group_id is None else set()
    return frozenset(own | {normalise(context.user_id)})


async def index(
    memories: Sequence[NewMemory], user_id: str, at: datetime, flow: Flow
) -> tuple[tuple[NewMemory, ...], str | None]:
    """Make memories findable, but for those that are there already. → with what went wrong"""
    known = await flow.store.known(user_id, [memory.dedupe_hash for memory in memories], at)
    new = [memory for memory in memories if memory.dedupe_hash not in known]
    entries = await asyncio.to_thread(
        lambda: [index_entry(one.content, one.summary, one.tags, one.data, flow.keyword_rules) for one in new]
    )
    entries, problem = await embed_entries(entries, [memory.content for memory in new], flow.embedder)
    indexed = {memory.id: entry for memory, entry in zip(new, entries, strict=True)}
    return tuple(
        replace(memory, index=indexed[memory.id]) if memory.id in indexed else memory for memory in memories
    ), problem
