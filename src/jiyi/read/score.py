"""The score of a statement: the probability that it answers the query, or bears on the request.

One logistic model takes what is known of the pair of query and statement: the reader's logit, their similarity,
shared words, kind of sentence, who said it. Age is left out: in the stories of the fit facts are told early and asked
for at the end, so it would prefer what is old. Nothing of the rest of the store enters the score, so it depends on
neither limit, filters nor other memories (only `fitting.py` compares two hits). Statements that were not read have a
model of their own; where others were read in their place they stay below 0.5. The weights are in `score.json`, fitted
by `bench.reader.fit` on stories that no reader was trained on."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise

from ..languages.words import language
from ..models import ScorePart

DIGITS = 6  # that count: the rest depends on how floats happened to be added
MOST = 30.0  # logit
HOLDS_ALL = 1.1  # least logit of a statement with all of a few keywords: readers are trained on questions
MAX_UNREAD = 0.49  # score of a statement that was not read, where others were
MAX_ENDED = 0.3  # score of a statement that has ended, for a query about the present
ACROSS = "similarity across languages"
INPUTS = (
    "reader",  # its logit
    "similarity",  # of the vectors
    "words",  # share of the query's words that the statement has
    "names missing",  # share of the names, codes and numbers of the query that it lacks
    "quoted words",
    "words of the message before",
    "by the assistant",
    "asks",
    "small talk",
    "no answer",
    "joke or quote",
    "general knowledge",
    "derived",
    "by a named person",
    "at a named time",
    "other language",
    ACROSS,
)


@dataclass(frozen=True, slots=True)
class Score:
    """A probability, and what it was made of: contributions to the logit."""

    value: float
    logit: float
    parts: tuple[ScorePart, ...] = ()


Weights = Mapping[str, float]  # by input, and "bias"
AS_IT_IS: Weights = {"reader": 1.0}  # of a reader for which no weights were fitted


def score(
    inputs: Mapping[str, float],
    query: str,
    reader: str | None,
    *,
    confidence: float = 1.0,
    holds_all: bool = False,
    has_ended: bool = False,
    is_beyond: bool = False,
    explain: bool = False,
) -> Score:
    """Score a statement from its inputs; without a logit of the reader evidence decides. `confidence`: that the
    statement is true. `holds_all`: it has all words of a query that is a few keywords. `is_beyond`: the reader could
    have read it, but others came first."""
    weights = _weights(inputs, query, reader)
    steps = [("", weights.get("bias", 0.0) + sum(weights.get(name, 0.0) * value for name, value in inputs.items()))]
    if holds_all:
        steps.append(("all keywords", max(steps[-1][1], HOLDS_ALL)))
    if confidence < 1:
        steps.append(("unsupported", _logit(confidence * _share(steps[-1][1]))))
    if has_ended:
        steps.append(("has ended", min(steps[-1][1], _logit(MAX_ENDED))))
    elif is_beyond:
        steps.append(("not read", min(steps[-1][1], _logit(MAX_UNREAD))))
    logit = steps[-1][1]
    parts = [*_of_inputs(inputs, weights), *_of_steps(steps)] if explain else []
    parts.sort(key=lambda part: -abs(part.contribution))
    return Score(round(_share(logit), DIGITS), round(logit, DIGITS), tuple(parts))


def _of_inputs(inputs: Mapping[str, float], weights: Weights) -> Iterator[ScorePart]:
    for name, value in {"bias": 1.0, **inputs}.items():
        weight = weights.get(name, 0.0)
        yield ScorePart(name=name, value=value, weight=weight, contribution=weight * value)


def _of_steps(steps: Sequence[tuple[str, float]]) -> Iterator[ScorePart]:
    """Yield what each step after the first has added to the logit."""
    for (_, before), (name, after) in pairwise(steps):
        yield ScorePart(name=name, value=1.0, weight=after - before, contribution=after - before)


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-max(min(logit, MOST), -MOST)))


def _logit(share: float) -> float:
    return math.log(share / (1 - share))


def _weights(inputs: Mapping[str, float], query: str, reader: str | None) -> Weights:
    """Return the weights for a query in its language: of the reader, or of the evidence that there is."""
    own = "en" if language(query) == "en" else "zh"
    if "reader" in inputs:
        return _fitted().get(reader or "", {}).get(own, AS_IT_IS)
    if "similarity" not in inputs:
        return _fitted()["words"][own]
    return _fitted()["unread"][own]


@cache
def _fitted() -> Mapping[str, Mapping[str, Weights]]:
    """Return the weights by reader, or by the evidence, and language."""
    found: dict[str, dict[str, Weights]] = json.loads((files(__package__) / "score.json").read_text(encoding="utf-8"))
    return found
