"""One search, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from ..models import RELEVANT, MemoryItem, SearchResult
from ..store.contract import Outset
from .assemble import hit, matched_terms
from .earlier import as_they_were
from .expand import expand
from .features import proper_words
from .interpret import Inquiry
from .past import asks_for_the_past
from .people import asks_for_questions, people_named, without_names
from .rank import RankedHit, Ranking, rank
from .score import LEGS

if TYPE_CHECKING:
    from ..index.search_index import SearchIndex
    from ..store.store import Store

Places = NDArray[np.intp]

WEAK_KINDS = ("question", "request", "smalltalk", "nonanswer")
MOST_TURNS = 20  # of a dialogue, the last ones


async def search(
    inquiry: Inquiry, outset: Outset, store: Store, index: SearchIndex, embedder: Embedder, ranking: Ranking
) -> SearchResult:
    degraded: list[str] = []
    people = await index.people(inquiry.filter.user_id, embedder.id)
    vectors = await _vectors(query_texts(inquiry, people), inquiry, embedder, degraded)
    question = index_query(inquiry, people, vectors, outset, embedder.id, ranking)
    candidates = await index.gather(question)
    await _tell_unembedded(inquiry, candidates, store, embedder, degraded)
    ranked = rank(candidates, inquiry, question, ranking, embedder.id)
    memories = await store.memories.get(inquiry.filter.user_id, [one.id for one in ranked.hits])
    found = {memory.id: memory for memory in as_they_were(memories, inquiry.filter.as_of)}
    hits = []
    for one in _across_languages(inquiry, ranked.hits, found, ranking):
        memory = found.get(one.id)
        if memory is not None:  # otherwise it was deleted a moment ago, or is a profile without content at that time
            terms = matched_terms(memory, question.terms) if inquiry.explain else ()
            reasons = one.explanation(terms) if inquiry.explain else None
            hits.append(hit(memory, inquiry.query, one.score, reasons))
    return SearchResult(
        query=inquiry.query,
        hits=tuple(hits),
        total_found=ranked.total,
        searched=len(candidates),
        search_strategy_used=inquiry.mode,
        expanded_keywords=expanded_keywords(inquiry, question.synonyms),
        degraded=tuple(degraded),
    )


def _across_languages(
    inquiry: Inquiry, ranked: Sequence[RankedHit], found: Mapping[str, MemoryItem], ranking: Ranking
) -> list[RankedHit]:
    """Score Chinese memories for English queries, and the reverse, without expecting common words."""
    own = language(inquiry.query)
    if ranking.preset != "measured" or own not in ("zh", "en") or inquiry.mode == "keyword":
        return list(ranked)
    languages = {one.id: language(found[one.id].content) for one in ranked if one.id in found}
    if any(one.score >= RELEVANT and languages.get(one.id) == own for one in ranked):
        return list(ranked)
    other = "en" if own == "zh" else "zh"
    hits = [one.in_other_language() if languages.get(one.id) == other else one for one in ranked]
    return sorted(hits, key=lambda one: -one.score)


def query_texts(inquiry: Inquiry, people: frozenset[str]) -> list[str]:
    """Return the texts to embed: the whole query, then each turn of a dialogue, without the names of speakers."""
    named = people_named(inquiry.query, people)
    turns = [without_names(turn, named) for turn in inquiry.turns[-MOST_TURNS:]]
    return [" ".join(turns) if turns else without_names(inquiry.query, named), *turns]


def index_query(
    inquiry: Inquiry, people: frozenset[str], vectors: Sequence[Vectors], outset: Outset, model: str, ranking: Ranking
) -> Question:
    """Turn a query into what the index needs: words and their synonyms, vectors, people and times.

    `vectors` belong to `query_texts`; without any, only words are searched.
    """
    named = people_named(inquiry.query, people)
    whole, *turns = query_texts(inquiry, people)
    last = turns[-1] if turns else whole
    by_words = "text" in LEGS[inquiry.mode]
    last_terms = tokens(last) if by_words else []
    spans = tuple((span.start, span.end) for span in dates(last, inquiry.filter.now))
    return Question(
        filter=inquiry.filter,
        terms=(*tokens(whole), *chain(*map(tokens, inquiry.extra_keywords))) if by_words else (),
        last_terms=tuple(last_terms) if turns else None,
        words=tuple(non_overlapping(last_terms)),
        proper=proper_words(last) if by_words else (),
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
        weak_kinds=() if asks_for_questions(last) else WEAK_KINDS,
        model=model,
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
    if "semantic" not in LEGS[inquiry.mode]:
        return []
    try:
        return [await embed_query(embedder, text) for text in texts]
    except EmbeddingError as error:
        if inquiry.mode == "semantic":
            raise
        degraded.append(f"searched by words only: {error}")
        return []


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
