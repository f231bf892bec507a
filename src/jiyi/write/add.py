"""One `add`, stage by stage."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..embed import Embedder
from ..ids import new_id
from ..models import Receipt, ReceiptState, utc_now
from ..store.contract import Addition, NewMemory
from .accept import Accepted
from .extract import Context, extract, identity
from .index import KeywordRules, embed_entries, index_entry

if TYPE_CHECKING:
    from ..store.base import Store


async def add(
    accepted: Accepted,
    context: Context,
    *,
    idempotency_key: str | None,
    actor: str,
    store: Store,
    embedder: Embedder,
    rules: KeywordRules,
) -> Receipt:
    request_hash = identity(repr(accepted), repr(context))
    if idempotency_key is not None:  # looked at again inside the transaction; here it saves the work
        earlier = await store.receipt(context.user_id, idempotency_key, request_hash)
        if earlier is not None:
            return earlier
    at = utc_now()
    messages, memories = extract(accepted, context, at)
    memories, problem = await _index(memories, embedder, rules)
    return await store.save(
        Addition(
            id=new_id(),
            user_id=context.user_id,
            session_id=context.session_id,
            agent_id=context.agent_id,
            group_id=context.group_id,
            idempotency_key=idempotency_key,
            request_hash=request_hash,
            actor=actor,
            at=at,
            state=ReceiptState.EXTRACTED if problem else ReceiptState.INDEXED,
            problems=(*accepted.problems, *([problem] if problem else [])),
            model=embedder.id,
            messages=messages,
            memories=memories,
        )
    )


async def _index(
    memories: Sequence[NewMemory], embedder: Embedder, rules: KeywordRules
) -> tuple[tuple[NewMemory, ...], str | None]:
    entries = await asyncio.to_thread(
        lambda: [index_entry(new.content, new.summary, new.tags, new.data, rules) for new in memories]
    )
    entries, problem = await embed_entries(entries, [new.content for new in memories], embedder)
    return tuple(replace(new, index=entry) for new, entry in zip(memories, entries, strict=True)), problem
