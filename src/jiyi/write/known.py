"""Stored memories that a conversation may repeat, change or end: a language model is shown them beside it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from ..embed import embed_documents
from ..errors import EmbeddingError
from ..index.query import IndexQuery
from ..languages.terms import tokens
from ..roles import is_instruction
from ..scope import Filter, Scope
from .drafts import Known, Said

if TYPE_CHECKING:
    from .add import Flow

MOST = 20  # memories
MOST_ASKED = 12  # messages by which they are found, the longest ones
LEAST = 0.2  # similarity or share of words
KINDS = ("fact", "preference", "pattern", "task", "event")


async def known_memories(said: Sequence[Said], *, place: Scope, at: datetime, flow: Flow) -> tuple[Known, ...]:
    """Return the memories nearest to some messages, oldest first."""
    where = Filter(user_id=place.user_id, agent_id=place.agent_id, group_id=place.group_id, memory_types=KINDS, now=at)
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
        Known(id=one.id, text=one.content, at=one.occurred_at) for one in sorted(found, key=lambda one: one.valid_from)
    )
