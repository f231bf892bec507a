"""What the stages of writing work with, and the stages that `add` and the worker have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..store.contract import NewMemory, NewMessage, UnitPart
from .build import Context, derived
from .derive import derive
from .drafts import Extractor
from .index import KeywordRules, embed_entries, index_entry

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
    """What became of messages, besides the memories that hold them verbatim."""

    memories: tuple[NewMemory, ...] = ()
    units: tuple[UnitPart, ...] = ()
    external_ids: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


async def make(messages: Sequence[NewMessage], context: Context, extractors: Sequence[Extractor], flow: Flow) -> Made:
    """Work memories out of messages that are new; what was said in the same place before helps."""
    if not messages or not flow.settings.enabled:
        return Made()
    reach = max(flow.settings.unit_messages, flow.settings.history_messages)
    ids = {message.id for message in messages}
    before = await flow.store.tail(context.place, reach + len(ids), before=max(ids))
    before = [message for message in before if message.id not in ids][-reach:]
    found = await derive(messages, before, context.place, extractors, flow.settings)
    return Made(
        memories=tuple(derived(draft, context) for draft in found.drafts),
        units=found.units,
        external_ids={message.id: message.external_id or message.id for message in [*before, *messages]},
        problems=found.problems,
    )


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
