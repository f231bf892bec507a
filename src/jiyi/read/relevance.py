"""What a score means: 0.8 and more, use it; 0.6 to 0.8, a hint; when the memory holds nothing on the matter, the best
score stays below 0.6. The same for every query, mode and language.

Parts that are stretched over the memories at hand tell which one is the best, not whether it is any good. That is told
by absolute signs: how many of the query's words the best one holds, and how near it is in meaning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..index.query import Candidates, Floats
from ..models import Explanation, ScorePart
from .score import Scores

MOST = 3.0  # so that those behind a very good hit can still be told apart
STEEPNESS = 3.5  # how quickly relevance falls behind the best


# Weights of the signs, as fitted by `bench/fitting.py`. What can be looked at differs: both, words only (keyword mode,
# or no vectors), meaning only (semantic mode, or a query and a memory in two languages, which share no words whatever
# they say).
Calibration = Mapping[str, float]
BOTH: Calibration = {"start": -3.1, "words": 3.9, "meaning": 8.7, "dialogue": 0.15}
BY_WORDS: Calibration = {"start": -1.35, "words": 5.9, "meaning": 0.0, "dialogue": 0.8}
BY_MEANING: Calibration = {"start": -2.75, "words": 0.0, "meaning": 10.8, "dialogue": -0.45}


@dataclass(frozen=True, slots=True)
class Relevance:
    """Of every candidate, and why."""

    values: Floats
    evidence: tuple[ScorePart, ...]
    best: float


def signs(candidates: Candidates, first: int) -> tuple[float, float, float, float]:
    """Absolute signs that a candidate answers the query, in the order of a calibration's weights."""
    words = float(max(candidates.coverage[first], candidates.keyword[first]))
    return 1.0, words, float(candidates.near[first]), float(candidates.last_text is not None)


def relevance(candidates: Candidates, scores: Scores, first: int, calibration: Calibration) -> Relevance:
    """How likely it is that the memory holds what is asked for, judged by the best candidate; less for those behind."""
    evidence = tuple(
        _part(name, weight, value)
        for (name, weight), value in zip(calibration.items(), signs(candidates, first), strict=True)
        if weight and value
    )
    level = min(math.fsum(part.contribution for part in evidence), MOST)
    best = float(scores.total[first])
    return Relevance(1 / (1 + np.exp(STEEPNESS * (best - scores.total) - level)), evidence, best)


def explain(
    scores: Scores, place: int, value: float, why: Relevance | None, matched_terms: tuple[str, ...]
) -> Explanation:
    parts = tuple(
        _part(name, weight if isinstance(weight, float) else float(weight[place]), float(part[place]))
        for name, (weight, part) in scores.parts.items()
    )
    return Explanation(
        parts=parts,
        evidence=why.evidence if why else (),
        behind=_part("behind", -STEEPNESS, why.best - float(scores.total[place])) if why else None,
        factors=tuple(
            ScorePart(name=name, value=float(part[place]), weight=weight, contribution=float(factor[place]))
            for name, (weight, part, factor) in scores.factors.items()
            if factor[place] != 1.0  # what takes nothing away explains nothing
        ),
        matched_terms=matched_terms,
        score=value,
    )


def _part(name: str, weight: float, value: float) -> ScorePart:
    return ScorePart(name=name, value=value, weight=weight, contribution=weight * value)
