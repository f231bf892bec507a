"""Order candidates and give each its relevance score.

By default a weighted sum of the legs picks a shortlist, and the relevance model scores each candidate on it. Presets
with a plain formula use that formula's sum as the score. A message and the memories derived from it are one statement:
only the best of them is a hit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..index.query import Candidates, Floats, Question
from ..models import Explanation, ScorePart
from .features import CUES, query_features
from .formulas import FORMULAS
from .interpret import Inquiry
from .people import asks_assistant
from .presets import Weights
from .relevance import relevance_model
from .score import DIGITS, LEGS, Scores, best, score

if TYPE_CHECKING:
    from ..settings import Preset

SHORTLIST = 100
OUTDATED = 3.0  # subtracted from the logit of a superseded statement when the query is about the present
WEAK_KIND = 1.5  # subtracted from the logit of questions, small talk and non-answers
KEYWORDS = 4.0  # added to the logit of a candidate with all words of a keyword query, subtracted if it has none
MAX_KEYWORDS = 6
HELD = 0.5  # share of the words that some candidate must have
ASSISTANT = 2.0  # subtracted there from what the assistant said, added where the query asks for that
OTHER_LANGUAGE = 1.2  # added to the logit of a memory in another language, which cannot share the query's words
WHOLE = 0.8  # share of a message's words from which on a derived memory is shown in its place
DERIVED = 0.1  # added to the logit of derived memories: of two equal wordings, the one with subject and date wins


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Settings for scoring."""

    preset: Preset
    weights: Weights
    priorities: Mapping[str, float]
    half_lives: Mapping[str, float] = field(default_factory=dict)  # by memory type, where it has its own


@dataclass(frozen=True, slots=True)
class RankedHit:
    """A hit before its memory is read."""

    id: str
    score: float
    parts: tuple[ScorePart, ...] = ()
    evidence: tuple[ScorePart, ...] = ()
    factors: tuple[ScorePart, ...] = ()

    def in_other_language(self) -> RankedHit:
        """Return the hit with a score that makes up for the words it cannot share with the query."""
        odds = self.score / max(1 - self.score, 1e-9) * math.exp(OTHER_LANGUAGE)
        part = ScorePart(name="other language", value=1.0, weight=1.0, contribution=OTHER_LANGUAGE)
        return replace(self, score=odds / (1 + odds), evidence=(*self.evidence, part) if self.evidence else ())

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


def rank(candidates: Candidates, inquiry: Inquiry, question: Question, ranking: Ranking, embedder: str) -> Ranked:
    """Return the best statements, best first."""
    legs = tuple(leg for leg in LEGS[inquiry.mode] if leg != "semantic" or question.vector is not None)
    formula = FORMULAS.get(ranking.preset)
    if formula is not None:
        return _by_formula(candidates, formula(candidates, ranking.weights, legs), inquiry)
    scores = score(candidates, ranking.weights, legs, unasked=not asks_assistant(inquiry.query))
    places = best(candidates, scores, max(SHORTLIST, inquiry.limit))
    if not len(places):
        return Ranked((), 0)
    relevance = _Relevance(candidates, places, inquiry, question, embedder)
    values = np.round(relevance.scores(), DIGITS)  # so that equals stay equal, and newest first
    order = np.argsort(-values, kind="stable")
    firsts = order[_one_per_statement(candidates.statement[places[order]])]
    firsts = firsts[values[firsts] >= inquiry.at_least]
    shown = relevance.clearest(firsts[: inquiry.limit], candidates, places)
    hits = [
        RankedHit(
            id=str(candidates.ids[places[at]]),
            score=float(values[first]),
            parts=_parts(scores, int(places[first])) if inquiry.explain else (),
            evidence=relevance.explain(int(first)) if inquiry.explain else (),
        )
        for first, at in zip(firsts, shown, strict=False)
    ]
    beyond = 0 if inquiry.at_least else int(np.count_nonzero(scores.matched)) - len(places)
    return Ranked(hits, len(firsts) + beyond)


class _Relevance:
    """The relevance model applied to the shortlist of one search."""

    def __init__(
        self, candidates: Candidates, places: NDArray[np.intp], inquiry: Inquiry, question: Question, embedder: str
    ) -> None:
        self._model = relevance_model()
        self._vector = question.vector if embedder == self._model.embedder else None
        self._query = query_row(inquiry, question)
        self._evidence = candidates.evidence(places)
        self._logits = self._model.logits(self._vector, self._query, self._evidence)
        self._adjustments = {
            "successor": self._inherited(candidates, places),
            "keywords": self._keyword_bonus(question),
            "assistant asked": ASSISTANT * asks_assistant(inquiry.query) * self._evidence.columns["assistant"],
            "outdated": np.zeros(len(places)) if candidates.over is None else -OUTDATED * candidates.over[places],
            "weak kind": -WEAK_KIND * candidates.weak_kind[places],
            "derived": np.zeros(len(places)) if candidates.derived is None else DERIVED * candidates.derived[places],
        }

    def scores(self) -> Floats:
        return self._model.scores(self._logits + sum(self._adjustments.values()))

    def _inherited(self, candidates: Candidates, places: NDArray[np.intp]) -> Floats:
        """Raise what took an outdated statement's place to that statement's logit: it answers the same questions."""
        position = np.full(len(candidates), -1, np.intp)
        position[places] = np.arange(len(places))
        old, new = (position[some] for some in candidates.successions)
        both = (old >= 0) & (new >= 0)
        best = self._logits.copy()
        np.maximum.at(best, new[both], self._logits[old[both]])
        return best - self._logits

    def _keyword_bonus(self, question: Question) -> Floats:
        """Let words decide for queries that are a few keywords and no question."""
        columns = self._evidence.columns
        keywords = 0 < len(question.words) <= MAX_KEYWORDS and not self._query[: len(CUES)].any()
        if not keywords or columns["coverage"].max() < HELD:  # words that nothing has say nothing
            return np.zeros(len(self._logits))
        return KEYWORDS * (2 * columns["coverage"] - 1) - ASSISTANT * columns["assistant"]

    def clearest(self, firsts: NDArray[np.intp], candidates: Candidates, places: NDArray[np.intp]) -> list[int]:
        """Return for each statement the member to show: the derived memory if it says all of it, else the message."""
        if candidates.derived is None:
            return list(firsts)
        derived, statement = candidates.derived[places], candidates.statement[places]
        words = np.expm1(5 * self._evidence.columns["length"])
        shown = []
        for first in firsts:
            members = np.flatnonzero(statement == statement[first])
            messages, parts = members[~derived[members]], members[derived[members]]
            if not len(messages):
                shown.append(int(first))
            elif len(parts) == 1 and words[parts[0]] >= WHOLE * words[messages[0]]:
                shown.append(int(parts[0]))
            else:
                shown.append(int(messages[0]))
        return shown

    def explain(self, place: int) -> tuple[ScorePart, ...]:
        """Return what speaks for and against one candidate, strongest first."""
        found = self._model.contributions(self._vector, self._query, self._evidence, place)
        found |= {name: (1.0, float(values[place])) for name, values in self._adjustments.items() if values[place]}
        parts = [
            ScorePart(name=name, value=value, weight=1.0, contribution=contribution)
            for name, (value, contribution) in found.items()
        ]
        return tuple(sorted(parts, key=lambda part: -abs(part.contribution)))


def query_row(inquiry: Inquiry, question: Question) -> Floats:
    """Return the query's own features for the relevance model."""
    return query_features(
        inquiry.query, question.words, named=bool(question.named), dialogue=question.last_terms is not None
    )


def _one_per_statement(statements: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the positions at which a statement appears first."""
    return np.sort(np.unique(statements, return_index=True)[1])


def _by_formula(candidates: Candidates, scores: Scores, inquiry: Inquiry) -> Ranked:
    places = best(candidates, scores, inquiry.limit)
    hits = [
        RankedHit(
            id=str(candidates.ids[place]),
            score=float(scores.total[place]),
            parts=_parts(scores, int(place)) if inquiry.explain else (),
            factors=_factors(scores, int(place)) if inquiry.explain else (),
        )
        for place in places
        if scores.total[place] >= inquiry.at_least
    ]
    return Ranked(hits, int(np.count_nonzero(scores.matched & (scores.total >= inquiry.at_least))))


def _parts(scores: Scores, place: int) -> tuple[ScorePart, ...]:
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
