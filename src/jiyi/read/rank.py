"""Order candidates. By default a weighted sum of the legs picks a shortlist, whose statements are judged one by one
(`judging.py`). Presets with a plain formula use that formula's sum as the score."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..index.query import Candidates, Floats, IndexQuery
from ..models import Explanation, ScorePart
from .presets import Ranking, Weights
from .query import LEGS, Query, asks_assistant

SHORTLIST = 24  # best by the weighted sum, and at least two for each hit that is wanted
MOST_SIMILAR = 24  # best by meaning and words alone, added to those
SIMILARITY = 2.0  # weight of the cosine against the share of the query's words
DIGITS = 6  # of a sum that count for the order: the rest depends on how floats happened to be added


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit before its memory is read."""

    id: str
    score: float
    logit: float = 0.0  # of the score
    outdated: bool = False  # it has ended, and the query is about the present
    named: bool = False  # the query names it, so it is returned beyond the limit
    parts: tuple[ScorePart, ...] = ()
    evidence: tuple[ScorePart, ...] = ()
    factors: tuple[ScorePart, ...] = ()

    def rescored(self, name: str, value: float, logit: float, weight: float = 1.0) -> RankedHit:
        """Return the hit with another logit, and the named evidence for it if there is evidence for others."""
        evidence = self.evidence
        if evidence:
            part = ScorePart(name=name, value=value, weight=weight, contribution=logit - self.logit)
            evidence = tuple(sorted((*evidence, part), key=lambda one: -abs(one.contribution)))
        return replace(self, logit=logit, score=round(1 / (1 + math.exp(-logit)), DIGITS), evidence=evidence)

    def explanation(self, matched_terms: tuple[str, ...]) -> Explanation:
        return Explanation(
            parts=self.parts,
            evidence=self.evidence,
            factors=self.factors,
            matched_terms=matched_terms,
            score=self.score,
        )


@dataclass(frozen=True, slots=True)
class Ranked:
    hits: Sequence[RankedHit]
    total: int  # statements that match, on the shortlist or not


def rank(candidates: Candidates, query: Query, index_query: IndexQuery, ranking: Ranking) -> Ranked:
    """Return the best memories by the formula of a preset, best first."""
    legs = legs_of(query, index_query)
    plain = FORMULAS[ranking.preset](candidates, ranking.weights, legs)
    return _by_formula(candidates, _within(query.radius, candidates, plain, legs), query)


def legs_of(query: Query, index_query: IndexQuery) -> tuple[str, ...]:
    """Return the legs that run: without a vector, only words are compared."""
    return tuple(leg for leg in LEGS[query.mode] if leg != "semantic" or index_query.vector is not None)


def shortlist(
    candidates: Candidates, query: Query, legs: tuple[str, ...], ranking: Ranking
) -> tuple[Scores, NDArray[np.intp]]:
    """Return the weighted sums of all candidates, and the places of those that are worth a closer look, best first."""
    scores = score(candidates, ranking.weights, legs, unasked=not asks_assistant(query.text))
    scores = _within(query.radius, candidates, scores, legs)
    places = best(candidates, scores, max(SHORTLIST, 2 * query.limit))
    return scores, _with_similar(candidates, scores, places) if len(places) else places


def _within(radius: float | None, candidates: Candidates, scores: Scores, legs: tuple[str, ...]) -> Scores:
    """Leave out candidates that only their meaning finds and that are less similar than the radius."""
    if radius is None or "semantic" not in legs:
        return scores
    by_words = matched(candidates, tuple(leg for leg in legs if leg != "semantic"))
    return replace(scores, matched=scores.matched & (by_words | (candidates.semantic >= radius)))


def _with_similar(candidates: Candidates, scores: Scores, places: NDArray[np.intp]) -> NDArray[np.intp]:
    """Add the candidates that are most similar by themselves, which in a large store others can crowd out."""
    if int(np.count_nonzero(scores.matched)) <= len(places):
        return places
    alone = np.where(scores.matched, SIMILARITY * candidates.semantic + candidates.coverage, -np.inf)
    alone[places] = -np.inf
    nearest = np.argpartition(alone, -min(MOST_SIMILAR, len(alone)))[-MOST_SIMILAR:]
    return np.concatenate([places, nearest[alone[nearest] > -np.inf]])


def _by_formula(candidates: Candidates, scores: Scores, query: Query) -> Ranked:
    places = best(candidates, scores, query.limit)
    hits = [
        RankedHit(
            id=str(candidates.ids[place]),
            score=float(scores.total[place]),
            parts=parts_at(scores, int(place)) if query.explain else (),
            factors=_factors(scores, int(place)) if query.explain else (),
        )
        for place in places
        if scores.total[place] >= query.min_score
    ]
    return Ranked(hits, int(np.count_nonzero(scores.matched & (scores.total >= query.min_score))))


def parts_at(scores: Scores, place: int) -> tuple[ScorePart, ...]:
    return tuple(
        _part(name, weight if isinstance(weight, float) else float(weight[place]), float(part[place]))
        for name, (weight, part) in scores.parts.items()
    )


def _factors(scores: Scores, place: int) -> tuple[ScorePart, ...]:
    return tuple(
        ScorePart(name=name, value=float(part[place]), weight=weight, contribution=float(factor[place]))
        for name, (weight, part, factor) in scores.factors.items()
        if factor[place] != 1.0
    )


def _part(name: str, weight: float, value: float) -> ScorePart:
    return ScorePart(name=name, value=value, weight=weight, contribution=weight * value)


# -- weighted sums ----------------------------------------------------------------------------------------------------

# The best text match counts as 1, the best and the worst cosine as 1 and 0. These floors keep small differences small
# where nothing matches well or all candidates are alike.
LEAST_TEXT, LEAST_EPISODE, LEAST_RANGE = 0.05, 0.5, 0.3
MOST_WORDS = 0.5  # share of the query's words, by rarity, above which holding them counts for itself: a code, a name
Messages = slice | NDArray[np.bool_]  # candidates that are not derived; they set the scale


@dataclass(frozen=True, slots=True)
class Scores:
    """For all candidates at once: `total = (Σ weight × part) × Π factor`."""

    parts: Mapping[str, tuple[Floats | float, Floats]]  # name → weight, value
    total: Floats
    matched: NDArray[np.bool_]
    factors: Mapping[str, tuple[float, Floats, Floats]] = field(default_factory=dict)  # name → weight, value, factor


def score(candidates: Candidates, weights: Weights, legs: tuple[str, ...], *, unasked: bool = False) -> Scores:
    """`legs` are those that ran; `unasked`: the query is not about what the assistant said."""
    parts = {
        name: (weight, value)
        for name, value in parts_of(candidates, weights, legs, unasked)
        if (weight := getattr(weights, name)) and value is not None
    }
    total = np.zeros(len(candidates), np.float32)
    for weight, value in parts.values():
        total += np.float32(weight) * value
    return Scores(parts, total, matched(candidates, legs))


def parts_of(
    candidates: Candidates, weights: Weights, legs: tuple[str, ...], unasked: bool
) -> Iterator[tuple[str, Floats | None]]:
    messages = slice(None) if candidates.derived is None or candidates.derived.all() else ~candidates.derived
    if "text" in legs:
        yield from _words(candidates, messages)
    if "keyword" in legs:
        yield "keyword", candidates.keyword
    if "semantic" in legs:
        yield from _meaning(candidates, messages)
    yield "speaker", candidates.speaker
    yield "time", candidates.time
    if unasked:
        yield "assistant", candidates.assistant
    yield "asks", candidates.asks
    yield "over", candidates.over
    yield "succeeds", candidates.succeeds
    if candidates.derived is not None:
        yield "derived", candidates.derived.astype(np.float32)
    if weights.recency:
        yield "recency", freshness(candidates.age_days, weights.half_life_days)
    yield "importance", candidates.importance
    if weights.uses:
        yield "uses", interaction(candidates, weights.half_life_days)
    yield "priority", candidates.priority


def _words(candidates: Candidates, messages: Messages) -> Iterator[tuple[str, Floats | None]]:
    best = max(float(candidates.text[messages].max(initial=0)), LEAST_TEXT)
    if candidates.last_text is None:
        yield "text", (candidates.text / best).clip(0, 1)
    else:
        yield "dialogue_text", (candidates.text / best).clip(0, 1)
        yield "last_text", _scaled(messages, candidates.last_text)
    if candidates.episode is not None:
        yield "episode", _scaled(messages, candidates.episode, LEAST_EPISODE)
    if candidates.before is not None:
        yield "before", candidates.before / best
    yield "held", ((candidates.coverage - MOST_WORDS) / (1 - MOST_WORDS)).clip(0, 1)
    yield "phrase", candidates.phrase


def _meaning(candidates: Candidates, messages: Messages) -> Iterator[tuple[str, Floats | None]]:
    near = candidates.near
    if candidates.last_semantic is None:
        yield "semantic", _stretched(messages, near)
    else:
        yield "dialogue_semantic", _stretched(messages, near)
        yield "last_semantic", _stretched(messages, candidates.last_semantic)
        yield "whole_semantic", _stretched(messages, candidates.whole_semantic)
    yield "gist", _stretched(messages, candidates.gist, between=near)


def matched(candidates: Candidates, legs: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return the candidates that a leg has found; the other parts only order them."""
    found = np.zeros(len(candidates), np.bool_)
    if "text" in legs:
        found |= candidates.text > 0
        if candidates.before is not None:
            found |= candidates.before > 0
    if "keyword" in legs:
        found |= candidates.keyword > 0
    if "semantic" in legs:
        found |= candidates.near > 0
    return found


def freshness(age_days: Floats, half_life_days: float) -> Floats:
    return np.exp(age_days * age_days.dtype.type(-math.log(2) / half_life_days))


def interaction(candidates: Candidates, half_life_days: float) -> Floats:
    """Rate how often (one half at five recalls) and how recently a memory was recalled."""
    return candidates.uses / (candidates.uses + 5) / 2 + freshness(candidates.idle_days, half_life_days) / 2


def _scaled(messages: Messages, values: Floats, least: float = LEAST_TEXT) -> Floats:
    scaled: Floats = (values / max(float(values[messages].max(initial=0)), least)).clip(0, 1)
    return scaled


def _stretched(messages: Messages, values: Floats | None, between: Floats | None = None) -> Floats | None:
    """Scale to 1 for the best and 0 for the worst of these values, or of the values in `between`."""
    if values is None or not len(values):
        return values
    scale = (values if between is None else between)[messages]
    stretched: Floats = ((values - scale.min()) / max(float(scale.max() - scale.min()), LEAST_RANGE)).clip(0, 1)
    return stretched


def best(candidates: Candidates, scores: Scores, limit: int) -> NDArray[np.intp]:
    """Return the positions of the best candidates, best first, newest first among equals."""
    found = np.flatnonzero(scores.matched)
    total = np.round(scores.total[found], DIGITS)
    if len(found) > limit:
        contenders = total >= np.partition(total, len(found) - limit)[len(found) - limit]
        found, total = found[contenders], total[contenders]
    order = np.argsort(-total, kind="stable")
    if (total[order[1:]] == total[order[:-1]]).any():
        newest_first = np.argsort(candidates.ids[found])[::-1]
        order = newest_first[np.argsort(-total[newest_first], kind="stable")]
    return found[order[:limit]]


# -- formulas of the other presets ------------------------------------------------------------------------------------

ONE_LEG = 0.7  # what remains of a score that only one of two legs supports
NEVER_RECALLED = 365  # days


def two_legs(candidates: Candidates, weights: Weights, legs: tuple[str, ...]) -> Scores:
    """Weight both legs where both find a memory; a leg that finds it alone counts seven tenths."""
    keyword, semantic = candidates.keyword.astype(np.float64), candidates.semantic.clip(0, 1).astype(np.float64)
    if "semantic" not in legs:
        return _sum(candidates, legs, {"keyword": (1.0, keyword)})
    if "keyword" not in legs:
        return _sum(candidates, legs, {"semantic": (1.0, semantic)})
    both = (keyword > 0) & (semantic > 0)
    parts = {
        "semantic": (np.where(both, weights.semantic, 1.0), semantic),
        "keyword": (np.where(both, weights.keyword, 1.0), keyword),
    }
    return _sum(candidates, legs, parts, {"one leg": (1 - ONE_LEG, both.astype(np.float64))})


def words_and_time(candidates: Candidates, weights: Weights, legs: tuple[str, ...]) -> Scores:
    """Sum keywords, text, recency, use and the priority of the type."""
    parts: dict[str, tuple[float, Floats]] = {
        "keyword": (weights.keyword, candidates.keyword),
        "text": (weights.text, candidates.text.clip(0, 1)),
        "recency": (weights.recency, freshness(np.floor(candidates.age_days), weights.half_life_days)),
        "uses": (weights.uses, interaction(candidates, weights.half_life_days)),
        "priority": (
            weights.priority,
            np.zeros(len(candidates)) if candidates.priority is None else candidates.priority,
        ),
    }
    if "text" not in legs:  # a semantic search replaces words by meaning
        parts["semantic"] = (weights.keyword + weights.text, candidates.semantic.clip(0, 1))
        del parts["keyword"], parts["text"]
    return _sum(candidates, legs, parts)


def meaning_and_time(candidates: Candidates, weights: Weights, legs: tuple[str, ...]) -> Scores:
    """Sum meaning, recency of the last recall, and importance."""
    idle = np.where(np.isinf(candidates.idle_days), NEVER_RECALLED, np.floor(candidates.idle_days))
    main: tuple[float, Floats] = (weights.semantic, candidates.semantic.clip(0, 1))
    if "semantic" not in legs:  # a keyword search replaces meaning by words
        main = (weights.semantic, candidates.text.clip(0, 1))
    parts = {
        "semantic" if "semantic" in legs else "text": main,
        "recency": (weights.recency, freshness(idle, weights.half_life_days)),
        "importance": (weights.importance, candidates.importance),
    }
    return _sum(candidates, legs, parts)


FORMULAS = {"two_legs": two_legs, "words_and_time": words_and_time, "meaning_and_time": meaning_and_time}


def _sum(
    candidates: Candidates,
    legs: tuple[str, ...],
    given: Mapping[str, tuple[Floats | float, Floats]],
    penalties: dict[str, tuple[float, Floats]] | None = None,
) -> Scores:
    parts = {name: (weight, value.astype(np.float64)) for name, (weight, value) in given.items()}
    total = np.zeros(len(candidates))
    for weight, value in parts.values():
        total += weight * value
    factors = {
        name: (weight, value, 1 - weight + weight * value) for name, (weight, value) in (penalties or {}).items()
    }
    for _, _, factor in factors.values():
        total *= factor
    return Scores(parts, total, matched(candidates, legs), factors)
