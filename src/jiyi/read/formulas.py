"""The formulas of the presets that are no fit: their score is their sum, and says nothing of whether it is enough."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..index.query import Candidates, Floats
from .presets import Weights
from .score import Scores, freshness, interaction, matched

ONE_LEG = 0.7  # what remains of a score that only one of two legs supports
NEVER_RECALLED = 365  # days


def two_legs(candidates: Candidates, weights: Weights, legs: tuple[str, ...]) -> Scores:
    """A weighted sum where both legs find a memory; seven tenths of the one that does, where it stands alone."""
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
    """Keywords, text and age make the relevance; interaction and type are added when results are ranked."""
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
    if candidates.priority is not None:
        parts["priority"] = (weights.priority, candidates.priority)
    if "text" not in legs:  # by meaning alone, that takes the place of the words
        parts["semantic"] = (weights.keyword + weights.text, candidates.semantic.clip(0, 1))
        del parts["keyword"], parts["text"]
    return _sum(candidates, legs, parts)


def meaning_and_time(candidates: Candidates, weights: Weights, legs: tuple[str, ...]) -> Scores:
    """Meaning, days since it was last recalled, importance."""
    idle = np.where(np.isinf(candidates.idle_days), NEVER_RECALLED, np.floor(candidates.idle_days))
    main: tuple[float, Floats] = (weights.semantic, candidates.semantic.clip(0, 1))
    if "semantic" not in legs:  # by words alone, those take its place
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
    takes: dict[str, tuple[float, Floats]] | None = None,
) -> Scores:
    parts = {name: (weight, value.astype(np.float64)) for name, (weight, value) in given.items()}
    total = np.zeros(len(candidates))
    for weight, value in parts.values():
        total += weight * value
    factors = {name: (weight, value, 1 - weight + weight * value) for name, (weight, value) in (takes or {}).items()}
    for _, _, factor in factors.values():
        total *= factor
    return Scores(parts, total, matched(candidates, legs), factors)
