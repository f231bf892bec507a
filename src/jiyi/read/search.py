"""One search, stage by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..embed import Embedder, Vectors, embed_query
from ..errors import EmbeddingError, EmbeddingModelChanged
from ..models import SearchResult
from ..store.contract import Candidates, Question
from .assemble import hit, matched_terms
from .interpret import Inquiry
from .score import LEGS, Weights, best, explain, score

if TYPE_CHECKING:
    from ..store.base import Store


async def search(inquiry: Inquiry, store: Store, embedder: Embedder, weights: Weights) -> SearchResult:
    degraded: list[str] = []
    vector = await _query_vector(inquiry, embedder, degraded)
    candidates = await store.gather(
        Question(
            filter=inquiry.filter,
            terms=inquiry.terms,
            keywords=inquiry.keywords,
            vector=vector,
            model=embedder.id,
        )
    )
    await _tell_unembedded(inquiry, candidates, store, embedder, degraded)
    legs = tuple(leg for leg in LEGS[inquiry.mode] if leg != "semantic" or vector is not None)
    scores = score(candidates, weights, legs)
    places, total = best(candidates, scores, limit=inquiry.limit, at_least=inquiry.at_least)
    found = {memory.id: memory for memory in await store.get(inquiry.filter.user_id, list(candidates.ids[places]))}
    hits = []
    for place in places:
        memory = found.get(candidates.ids[place])
        if memory is not None:  # it may have been deleted a moment ago
            terms = matched_terms(memory, inquiry.terms) if inquiry.explain else ()
            reasons = explain(scores, int(place), terms) if inquiry.explain else None
            hits.append(hit(memory, float(scores.total[place]), reasons))
    return SearchResult(
        query=inquiry.query,
        hits=tuple(hits),
        total_found=total,
        searched=len(candidates),
        search_strategy_used=inquiry.mode,
        expanded_keywords=inquiry.keywords,
        degraded=tuple(degraded),
    )


async def _query_vector(inquiry: Inquiry, embedder: Embedder, degraded: list[str]) -> Vectors | None:
    """The query's vector. Without one a hybrid search goes on by words and says so; a semantic one cannot."""
    if "semantic" not in LEGS[inquiry.mode]:
        return None
    try:
        return await embed_query(embedder, inquiry.query)
    except EmbeddingError as error:
        if inquiry.mode == "semantic":
            raise
        degraded.append(f"searched by words only: {error}")
        return None


async def _tell_unembedded(
    inquiry: Inquiry, candidates: Candidates, store: Store, embedder: Embedder, degraded: list[str]
) -> None:
    """Memories that the vector leg cannot see are a reason to say so; if it sees none, by meaning nothing is found."""
    if not candidates.unembedded or "semantic" not in LEGS[inquiry.mode]:
        return
    coverage = await store.coverage(embedder.id, inquiry.filter.user_id)
    others = sorted(model for model in coverage.models if model != embedder.id)
    whose = f" but of {', '.join(others)}" if others else ""
    problem = (
        f"{candidates.unembedded} of {len(candidates)} memories have no vector of {embedder.id}{whose}:"
        " run `jiyi reindex --embeddings`"
    )
    if inquiry.mode == "semantic" and candidates.unembedded == len(candidates):
        raise EmbeddingModelChanged(problem)
    degraded.append(f"these are found by words only: {problem}")
