"""From what the legs say to an order: a sum of named parts with named weights. Everything it uses is kept, so that a
score can be explained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..index.query import Candidates, Floats
from ..models import SearchMode
from .presets import Weights

LEGS: dict[SearchMode, tuple[str, ...]] = {
    "hybrid": ("keyword", "text", "semantic"),
    "keyword": ("keyword", "text"),
    "semantic": ("semantic",),
}
# The best memory's words count as 1, the best and the worst meaning as 1 and 0. But where nothing fits well, or all are
# alike, small differences stay small:
LEAST_TEXT, LEAST_EPISODE, LEAST_RANGE = 0.05, 0.5, 0.3
MOST_WORDS = 0.5  # of the query's words, by rarity; from there on, holding them counts for itself: a code, a name
Said = slice | NDArray[np.bool_]  # those that are not worked out of others; the scale is theirs

DIGITS = 6  # of a sum that count for the order: the rest depends on how floats happened to be added


@dataclass(frozen=True, slots=True)
class Scores:
    """For all candidates at once: `total = (Σ weight × part) × Π factor`."""

    parts: Mapping[str, tuple[Floats | float, Floats]]  # name → weight, value
    total: Floats
    matched: NDArray[np.bool_]
    factors: Mapping[str, tuple[float, Floats, Floats]] = field(default_factory=dict)  # name → weight, value, factor


def score(candidates: Candidates, weights: Weights, legs: tuple[str, ...], *, unasked: bool = False) -> Scores:
    """`legs` are those that ran; `unasked`: the query does not ask for what the assistant said."""
    parts = {
        name: (weight, value)
        for name, value in parts_of(candidates, weights, legs, unasked)
        if (weight := getattr(weights, name)) and value is not None
    }
    total = np.zeros(len(candidates))
    for weight, value in parts.values():
        total += weight * value
    return Scores(parts, total, matched(candidates, legs))


def parts_of(
    candidates: Candidates, weights: Weights, legs: tuple[str, ...], unasked: bool
) -> Iterator[tuple[str, Floats | None]]:
    said = slice(None) if candidates.derived is None or candidates.derived.all() else ~candidates.derived
    if "text" in legs:
        yield from _words(candidates, said)
    if "keyword" in legs:
        yield "keyword", candidates.keyword
    if "semantic" in legs:
        yield from _meaning(candidates, said)
    yield "speaker", candidates.speaker
    yield "time", candidates.time
    if unasked:
        yield "assistant", candidates.assistant
    yield "asks", candidates.asks
    yield "over", candidates.over
    yield "succeeds", candidates.succeeds
    if candidates.derived is not None:
        yield "derived", candidates.derived.astype(np.float32)
    yield "recency", freshness(candidates.age_days, weights.half_life_days)
    yield "importance", candidates.importance
    yield "uses", interaction(candidates, weights.half_life_days)
    yield "priority", candidates.priority


def _words(candidates: Candidates, said: Said) -> Iterator[tuple[str, Floats | None]]:
    best = max(float(candidates.text[said].max(initial=0)), LEAST_TEXT)
    if candidates.last_text is None:
        yield "text", (candidates.text / best).clip(0, 1)
    else:
        yield "dialogue_text", (candidates.text / best).clip(0, 1)
        yield "last_text", _scaled(said, candidates.last_text)
    if candidates.episode is not None:
        yield "episode", _scaled(said, candidates.episode, LEAST_EPISODE)
    if candidates.before is not None:
        yield "before", candidates.before / best
    yield "held", ((candidates.coverage - MOST_WORDS) / (1 - MOST_WORDS)).clip(0, 1)
    yield "phrase", candidates.phrase


def _meaning(candidates: Candidates, said: Said) -> Iterator[tuple[str, Floats | None]]:
    near = candidates.near
    if candidates.last_semantic is None:
        yield "semantic", _stretched(said, near)
    else:
        yield "dialogue_semantic", _stretched(said, near)
        yield "last_semantic", _stretched(said, candidates.last_semantic)
        yield "whole_semantic", _stretched(said, candidates.whole_semantic)
    yield "gist", _stretched(said, candidates.gist, between=near)


def matched(candidates: Candidates, legs: tuple[str, ...]) -> NDArray[np.bool_]:
    """What a leg has found; the rest of the parts only say in which order."""
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
    return 0.5 ** (age_days / half_life_days)


def interaction(candidates: Candidates, half_life_days: float) -> Floats:
    """How often it was recalled (half of it reached at five times), and how lately."""
    return candidates.uses / (candidates.uses + 5) / 2 + freshness(candidates.idle_days, half_life_days) / 2


def _scaled(said: Said, values: Floats, least: float = LEAST_TEXT) -> Floats:
    scaled: Floats = (values / max(float(values[said].max(initial=0)), least)).clip(0, 1)
    return scaled


def _stretched(said: Said, values: Floats | None, between: Floats | None = None) -> Floats | None:
    """With 1 for the best and 0 for the worst of them, or of others."""
    if values is None or not len(values):
        return values
    scale = (values if between is None else between)[said]
    stretched: Floats = ((values - scale.min()) / max(float(scale.max() - scale.min()), LEAST_RANGE)).clip(0, 1)
    return stretched


def best(candidates: Candidates, scores: Scores, limit: int) -> NDArray[np.intp]:
    """The places of the best candidates, best first, newest first among equals."""
    found = np.flatnonzero(scores.matched)
    total = np.round(scores.total[found], DIGITS)
    if len(found) > limit:
        contenders = total >= np.partition(total, len(found) - limit)[len(found) - limit]
        found, total = found[contenders], total[contenders]
    newest_first = np.argsort(candidates.ids[found])[::-1]
    return found[newest_first[np.argsort(-total[newest_first], kind="stable")]][:limit]
