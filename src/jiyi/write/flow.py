"""Parts of the write pipeline, and the stages that `add` and the worker share."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..languages.words import normalise
from ..metrics import Meter
from ..scope import Scope
from ..store.contract import (
    NO_EFFECTS,
    Effects,
    NewMemory,
    NewMessage,
    UnitPart,
)
from .build import Context, derived
from .derive import HISTORY_MESSAGES, UNIT_MESSAGES, derive
from .drafts import Extractor
from .facts import Fact
from .index import KeywordRules, embed_entries, index_entries
from .reconcile import Proposed
from .settle import fact_told, settle
from .stated import stated_facts
from .supersede import supersede

if TYPE_CHECKING:
    from ..index.search_index import SearchIndex
    from ..settings import ExtractionSettings
    from ..store.store import Store
    from .alike import Judge


MOST_COMPARED = 200  # statements in one call; more of them are a load of ready memories, not news


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    store: Store
    index: SearchIndex
    embedder: Embedder
    keyword_rules: KeywordRules
    settings: ExtractionSettings
    extractors: tuple[Extractor, ...]  # run inside `add`
    slow_extractor: Extractor | None  # of a language model: run by a worker, when `add` has accepted
    judge: Judge | None = None  # of memories that are alike; run by the worker, too
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Derived memories, units and effects of an `add`, without the verbatim messages."""

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
    made = Made()
    # Another name is another person, even if nobody else speaks in the conversation.
    is_user = frozenset({normalise(context.user_id)})
    compared = flow.settings.enabled and len(stated) <= MOST_COMPARED
    proposed = await asyncio.to_thread(_stated, stated, context) if compared else _plain(stated)
    if messages and flow.settings.enabled:
        reach = max(UNIT_MESSAGES, HISTORY_MESSAGES)
        ids = {message.id for message in messages}
        before = await flow.store.messages.tail(place, reach + len(ids), before=max(ids))
        before = [message for message in before if message.id not in ids][-reach:]
        found = await derive(messages, before, place, extractors, flow.settings)
        sent_at = {message.id: message.sent_at for message in [*before, *messages]}
        for draft in found.drafts:
            memory = derived(draft, context)
            told_at = max(sent_at[source.message_id] for source in memory.sources)
            facts = _facts(memory, place, is_user)
            proposed.append(Proposed(memory=memory, facts=facts, told_at=told_at))
        made = Made(
            units=found.units,
            external_ids={message.id: message.external_id or message.id for message in [*before, *messages]},
            problems=found.problems,
        )
    if not proposed:
        return made
    settled = await settle(proposed, place.user_id, at, flow.store)
    settled = await supersede(settled, place, at, flow.store)
    return replace(made, memories=settled.memories, met=settled.met, effects=settled.effects)


def _plain(stated: Sequence[NewMemory]) -> list[Proposed]:
    return [Proposed(memory=memory, told_at=memory.occurred_at, stated=True) for memory in stated]


def _stated(stated: Sequence[NewMemory], context: Context) -> list[Proposed]:
    """Propose statements with their attributes; one that has ended already supersedes nothing."""
    current = [memory for memory in stated if memory.valid_to is None and memory.status == "active"]
    found = {memory.id: stated_facts(memory, context) for memory in current}
    return [found.get(plain.memory.id, plain) for plain in _plain(stated)]


def _facts(memory: NewMemory, place: Scope, is_user: frozenset[str]) -> tuple[Fact, ...]:
    fact = fact_told(memory, place, is_user)
    return () if fact is None else (fact,)


async def index(
    verbatims: Sequence[NewMemory], known: Collection[str], made: Made, user_id: str, at: datetime, flow: Flow
) -> tuple[tuple[NewMemory, ...], Effects, str | None]:
    """Make memories findable, except those that are stored already (`known`: hashes of the verbatims among them).

    Returns the memories, their effects, and what went wrong."""
    memories = (*verbatims, *made.memories)
    there = {*known, *await flow.store.memories.known(user_id, [memory.dedupe_hash for memory in made.memories], at)}
    new = [memory for memory in memories if memory.dedupe_hash not in there]
    texts = [(one.id, one.content, one.summary, one.tags, one.data) for one in new]
    entries, times = await asyncio.to_thread(index_entries, [text[1:] for text in texts], flow.keyword_rules)
    for seconds in times:
        flow.meter.observe("keyword_extraction_seconds", seconds)
    entries, problem = await embed_entries(entries, [text[1] for text in texts], flow.embedder)
    found = {text[0]: entry for text, entry in zip(texts, entries, strict=True)}
    indexed = tuple(replace(memory, index=found[memory.id]) if memory.id in found else memory for memory in memories)
    return indexed, made.effects, problem
