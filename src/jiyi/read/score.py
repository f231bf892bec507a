"""One scoring function with named weights. Everything it uses is kept, so that a score can be explained."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..models import Explanation, ScorePart, SearchMode
from ..store.contract import Candidates, Floats

if TYPE_CHECKING:
    from ..settings import SearchSettings

LEGS: dict[SearchMode, tuple[str, ...]] = {
    "hybrid": ("keyword", "text", "semantic"),
    "keyword": ("keyword", "text"),
    "semantic": ("semantic",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How much each part counts in the sum, and how much each factor can take away."""

    keyword: float
    text: float
    semantic: float
    speaker: float  # said by somebody whom the query names
    around: float  # what the neighbouring messages have
    time: float  # happened when the query says
    assistant: float  # loses this share if said by the assistant, unless that is asked for
    asks: float  # loses this share if it is a question
    recency: float
    importance: float
    half_life_days: float

    @classmethod
    def of(cls, settings: SearchSettings) -> Weights:
        """The settings call each of them `…_weight`."""
        names = [field.name for field in fields(cls) if field.name != "half_life_days"]
        given = {name: getattr(settings, f"{name}_weight") for name in names}
        return cls(half_life_days=settings.half_life_days, **given)


@dataclass(frozen=True, slots=True)
class Scores:
    """`total = (Σ weight × part) × Π factor`, for all candidates at once."""

    parts: dict[str, tuple[float, Floats]]  # name → weight, value in 0..1
    factors: dict[str, tuple[float, Floats, Floats]]  # name → weight, value in 0..1, factor
    total: Floats


def score(candidates: Candidates, weights: Weights, legs: tuple[str, ...], *, unasked: bool = False) -> Scores:
    """A weighted mean of the legs that ran; age and low importance take a share of it away."""
    whole = sum(getattr(weights, leg) for leg in legs) or 1.0
    parts = {leg: (getattr(weights, leg) / whole, getattr(candidates, leg).astype(np.float64)) for leg in legs}
    freshness = 0.5 ** (candidates.age_days / weights.half_life_days)
    factors = {
        name: (weight, value, 1.0 - weight + weight * value)
        for name, weight, value in (
            ("recency", weights.recency, freshness),
            ("assistant", weights.assistant if unasked else 0.0, 1.0 - candidates.assistant.astype(np.float64)),
            ("asks", weights.asks, 1.0 - candidates.asks.astype(np.float64)),
            ("importance", weights.importance, candidates.importance.astype(np.float64)),
        )
    }
    factors = {name: factor for name, factor in factors.items() if factor[0]}
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
            if factor[place] != 1.0  # what takes nothing away explains nothing
        ),
        matched_terms=matched_terms,
        score=float(scores.total[place]),
    )
