"""One scoring function with named weights. Everything it uses is kept, so that a score can be explained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..models import Explanation, ScorePart, SearchMode
from ..store.contract import Candidates, Floats

LEGS: dict[SearchMode, tuple[str, ...]] = {
    "hybrid": ("keyword", "text", "semantic"),
    "keyword": ("keyword", "text"),
    "semantic": ("semantic",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    keyword: float
    text: float
    semantic: float
    recency: float
    importance: float
    half_life_days: float


@dataclass(frozen=True, slots=True)
class Scores:
    """`total = (Σ weight × part) × Π factor`, for all candidates at once."""

    parts: dict[str, tuple[float, Floats]]  # name → weight, value in 0..1
    factors: dict[str, tuple[float, Floats, Floats]]  # name → weight, value in 0..1, factor
    total: Floats


def score(candidates: Candidates, weights: Weights, legs: tuple[str, ...]) -> Scores:
    """A weighted mean of the legs that ran; age and low importance take a share of it away."""
    whole = sum(getattr(weights, leg) for leg in legs) or 1.0
    parts = {leg: (getattr(weights, leg) / whole, getattr(candidates, leg).astype(np.float64)) for leg in legs}
    freshness = 0.5 ** (candidates.age_days / weights.half_life_days)
    factors = {
        name: (weight, value, 1.0 - weight + weight * value)
        for name, weight, value in (
            ("recency", weights.recency, freshness),
            ("importance", weights.importance, candidates.importance.astype(np.float64)),
        )
    }
    total = np.zeros(len(candidates))
    for weight, value in parts.values():
        total += weight * value
    for _, _, factor in factors.values():
        total *= factor
    return Scores(parts, factors, total)


def best(candidates: Candidates, scores: Scores, *, limit: int, at_least: float) -> tuple[NDArray[np.intp], int]:
    """The places of the best candidates, best first, newest first among equals; and how many reach the threshold."""
    reaching = np.flatnonzero((scores.total > 0) & (scores.total >= at_least))
    if len(reaching) > limit:
        threshold = np.partition(scores.total[reaching], len(reaching) - limit)[len(reaching) - limit]
        contenders = reaching[scores.total[reaching] >= threshold]
    else:
        contenders = reaching
    newest_first = contenders[np.argsort(candidates.ids[contenders])[::-1]]
    ordered = newest_first[np.argsort(-scores.total[newest_first], kind="stable")]
    return ordered[:limit], len(reaching)


def explain(scores: Scores, place: int, matched_terms: tuple[str, ...]) -> Explanation:
    return Explanation(
        parts=tuple(
            ScorePart(name=name, value=float(value[place]), weight=weight, contribution=weight * float(value[place]))
            for name, (weight, value) in scores.parts.items()
        ),
        factors=tuple(
            ScorePart(name=name, value=float(value[place]), weight=weight, contribution=float(factor[place]))
            for name, (weight, value, factor) in scores.factors.items()
        ),
        matched_terms=matched_terms,
        score=float(scores.total[place]),
    )
