"""One search, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING

from ..embed import Embedder, Vectors, embed_query
from ..errors import EmbeddingError, EmbeddingModelChanged
from ..models import SearchResult
from ..store.contract import Candidates, Question
from ..text.times import find_times
from .assemble import hit, matched_terms
from .expand import expand
from .interpret import Inquiry
from .people import asks_assistant, people_named, without_names
from .score import LEGS, Weights, best, explain, score
from .turns import turns

if TYPE_CHECKING:
    from ..store.base import Store

MOST_TURNS = 20  # of a dialogue, the last ones


async def search(inquiry: Inquiry, store: Store, embedder: Embedder, weights: Weights) -> SearchResult:
    degraded: list[str] = []
    question = await _question(inquiry, store, embedder, degraded)
    candidates = await store.gather(question)
    await _tell_unembedded(inquiry, candidates, store, embedder, degraded)
    scores = score(candidates, weights, _legs(inquiry, question, candidates), unasked=not asks_assistant(inquiry.query))
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
        expanded_keywords=expanded_keywords(inquiry, question.synonyms),
        degraded=tuple(degraded),
    )


async def _question(inquiry: Inquiry, store: Store, embedder: Embedder, degraded: list[str]) -> Question:
    """What the legs need: the query's words and their synonyms, vectors, people and times."""
    user_id = inquiry.filter.user_id
    named = people_named(inquiry.query, await store.people(user_id, embedder.id))
    synonyms = await synonyms_of(inquiry, store)
    said = turns(inquiry.query)
    vectors: list[Vectors] = []
    if "semantic" in LEGS[inquiry.mode]:
        texts = [without_names(text, named) for text in (inquiry.query, *said[-MOST_TURNS:])]
        vectors = await _vectors(texts, inquiry, embedder, degraded)
    return Question(
        filter=inquiry.filter,
        terms=inquiry.terms if "text" in LEGS[inquiry.mode] else (),
        keywords=inquiry.keywords,
        synonyms=synonyms,
        vector=vectors[0] if vectors else None,
        turns=tuple(vectors[1:]),
        named=named,
        spans=tuple((span.start, span.end) for span in find_times((said or [inquiry.query])[-1], inquiry.filter.now)),
        model=embedder.id,
    )


async def synonyms_of(inquiry: Inquiry, store: Store) -> Mapping[str, tuple[str, ...]]:
    """What else the keywords may be called, if this search asks for it."""
    if not inquiry.with_synonyms or "keyword" not in LEGS[inquiry.mode]:
        return {}
    return expand(inquiry.keywords, await store.synonyms_of(inquiry.filter.user_id, inquiry.keywords)).by_word


def expanded_keywords(inquiry: Inquiry, synonyms: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*inquiry.keywords, *chain(*synonyms.values()))))


async def _vectors(texts: list[str], inquiry: Inquiry, embedder: Embedder, degraded: list[str]) -> list[Vectors]:
    """The query's vectors. Without them a hybrid search goes on by words and says so; a semantic one cannot."""
    try:
        return [await embed_query(embedder, text) for text in texts]
    except EmbeddingError as error:
        if inquiry.mode == "semantic":
            raise
        degraded.append(f"searched by words only: {error}")
        return []


def _legs(inquiry: Inquiry, question: Question, candidates: Candidates) -> tuple[str, ...]:
    """The parts of the score that have something to say here; one that has not must not thin out the others."""
    legs = [leg for leg in LEGS[inquiry.mode] if leg != "semantic" or question.vector is not None]
    if question.named:
        legs.append("speaker")
    if candidates.around.any():
        legs.append("around")
    if candidates.time.any():
        legs.append("time")
    return tuple(legs)


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
