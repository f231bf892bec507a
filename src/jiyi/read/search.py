"""One search, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..embed import Embedder, Vectors, embed_query
from ..errors import EmbeddingError, EmbeddingModelChanged
from ..index.query import Candidates, Question
from ..languages.dates import dates
from ..languages.script import language
from ..languages.tokens import non_overlapping, tokens
from ..models import MemoryItem, SearchResult
from ..store.contract import Outset
from .assemble import hit, matched_terms
from .earlier import as_they_were
from .expand import expand
from .formulas import FORMULAS
from .interpret import Inquiry
from .past import asks_for_the_past
from .people import asks_assistant, people_named, without_names
from .presets import Weights
from .relevance import BOTH, BY_MEANING, BY_WORDS, Relevance, explain, relevance
from .score import LEGS, Scores, best, score

if TYPE_CHECKING:
    from ..index.search_index import SearchIndex
    from ..settings import Preset
    from ..store.store import Store

Places = NDArray[np.intp]

MOST_TURNS = 20  # of a dialogue, the last ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How candidates are scored."""

    preset: Preset
    weights: Weights
    priorities: Mapping[str, float]
    half_lives: Mapping[str, float] = field(default_factory=dict)  # of types that have their own


async def search(
    inquiry: Inquiry, outset: Outset, store: Store, index: SearchIndex, embedder: Embedder, ranking: Ranking
) -> SearchResult:
    degraded: list[str] = []
    question = await question_of(inquiry, outset, index, embedder, ranking, degraded)
    candidates = await index.gather(question)
    await _tell_unembedded(inquiry, candidates, store, embedder, degraded)
    legs = tuple(leg for leg in LEGS[inquiry.mode] if leg != "semantic" or question.vector is not None)
    scores = _scores(candidates, ranking, legs, inquiry)
    places = best(candidates, scores, inquiry.limit)
    memories = await store.memories.get(inquiry.filter.user_id, list(candidates.ids[places]))
    found = {memory.id: memory for memory in as_they_were(memories, inquiry.filter.as_of)}
    why = _relevance(candidates, scores, places, legs, inquiry, found) if ranking.preset == "measured" else None
    values = scores.total if why is None else why.values
    hits = []
    for place in places:
        memory = found.get(candidates.ids[place])
        # One that is missing was deleted a moment ago, or is a profile that said nothing yet.
        if memory is not None and values[place] >= inquiry.at_least:
            terms = matched_terms(memory, question.terms) if inquiry.explain else ()
            reasons = explain(scores, int(place), float(values[place]), why, terms) if inquiry.explain else None
            hits.append(hit(memory, inquiry.query, float(values[place]), reasons))
    return SearchResult(
        query=inquiry.query,
        hits=tuple(hits),
        total_found=int(np.count_nonzero(scores.matched & (values >= inquiry.at_least))),
        searched=len(candidates),
        search_strategy_used=inquiry.mode,
        expanded_keywords=expanded_keywords(inquiry, question.synonyms),
        degraded=tuple(degraded),
    )


async def question_of(
    inquiry: Inquiry, outset: Outset, index: SearchIndex, embedder: Embedder, ranking: Ranking, degraded: list[str]
) -> Question:
    """What the legs need: the query's words and their synonyms, vectors, people and times."""
    user_id = inquiry.filter.user_id
    named = people_named(inquiry.query, await index.people(user_id, embedder.id))
    turns = [without_names(turn, named) for turn in inquiry.turns[-MOST_TURNS:]]
    whole = " ".join(turns) if turns else without_names(inquiry.query, named)
    last = turns[-1] if turns else whole
    vectors: list[Vectors] = []
    if "semantic" in LEGS[inquiry.mode]:
        vectors = await _vectors([whole, *turns], inquiry, embedder, degraded)
    terms = [*tokens(whole), *chain(*map(tokens, inquiry.extra_keywords))]
    last_terms = tokens(last)
    by_words = "text" in LEGS[inquiry.mode]
    spans = tuple((span.start, span.end) for span in dates(last, inquiry.filter.now))
    return Question(
        filter=inquiry.filter,
        terms=tuple(terms) if by_words else (),
        last_terms=tuple(last_terms if by_words else ()) if turns else None,
        words=tuple(non_overlapping(last_terms)) if by_words else (),
        phrases=tuple(tuple(tokens(phrase)) for phrase in inquiry.phrases) if by_words else (),
        keywords=inquiry.keywords,
        synonyms=synonyms_of(inquiry, outset),
        vector=vectors[0] if vectors else None,
        turns=tuple(vectors[1:]),
        named=named,
        spans=spans,
        current=ranking.preset == "measured" and not asks_for_the_past(last, spans, inquiry.filter.now),
        priorities=ranking.priorities if ranking.weights.priority else {},
        ageing={name: ranking.weights.half_life_days / days for name, days in ranking.half_lives.items()},
        model=embedder.id,
        tip=0 if outset.tip is None else outset.tip.seq,
    )


def expandable(inquiry: Inquiry) -> tuple[str, ...]:
    """The keywords whose synonyms this search asks for."""
    return inquiry.keywords if inquiry.with_synonyms and "keyword" in LEGS[inquiry.mode] else ()


def synonyms_of(inquiry: Inquiry, outset: Outset) -> Mapping[str, tuple[str, ...]]:
    """What else the keywords may be called, if this search asks for it."""
    if not expandable(inquiry):
        return {}
    known = expand(inquiry.keywords, outset.synonyms).by_word
    named = {word: others for word, others in inquiry.other_words if word in inquiry.keywords}
    return {word: tuple(dict.fromkeys((*known.get(word, ()), *named.get(word, ())))) for word in {**known, **named}}


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


def _scores(candidates: Candidates, ranking: Ranking, legs: tuple[str, ...], inquiry: Inquiry) -> Scores:
    formula = FORMULAS.get(ranking.preset)
    if formula is not None:
        return formula(candidates, ranking.weights, legs)
    return score(candidates, ranking.weights, legs, unasked=not asks_assistant(inquiry.query))


def _relevance(
    candidates: Candidates,
    scores: Scores,
    places: Places,
    legs: tuple[str, ...],
    inquiry: Inquiry,
    found: Mapping[str, MemoryItem],
) -> Relevance | None:
    if not len(places):
        return None
    first = int(places[0])
    calibration = BOTH
    if "semantic" not in legs:
        calibration = BY_WORDS
    elif "text" not in legs or not candidates.coverage[first]:
        memory = found.get(candidates.ids[first])
        languages = {language(inquiry.query), language(memory.content) if memory else "other"}
        if "text" not in legs or languages == {"zh", "en"}:
            calibration = BY_MEANING
    return relevance(candidates, scores, first, calibration)


async def _tell_unembedded(
    inquiry: Inquiry, candidates: Candidates, store: Store, embedder: Embedder, degraded: list[str]
) -> None:
    """Memories that the vector leg cannot see are a reason to say so; if it sees none, by meaning nothing is found."""
    if not candidates.unembedded or "semantic" not in LEGS[inquiry.mode]:
        return
    coverage = await store.entries.coverage(embedder.id, inquiry.filter.user_id)
    others = sorted(model for model in coverage.models if model != embedder.id)
    whose = f" but of {', '.join(others)}" if others else ""
    problem = (
        f"{candidates.unembedded} of {len(candidates)} memories have no vector of {embedder.id}{whose}:"
        " run `jiyi reindex --embeddings`"
    )
    if inquiry.mode == "semantic" and candidates.unembedded == len(candidates):
        raise EmbeddingModelChanged(problem)
    degraded.append(f"these are found by words only: {problem}")
