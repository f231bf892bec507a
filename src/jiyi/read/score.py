"""The score of a statement: the probability that it answers the query, or bears on the request.

One logistic model takes what is known of the pair of query and statement: the reader's logit, their similarity, shared
words, age, kind of sentence, who said it. Nothing of the rest of the store enters it, so a score depends on neither
limit, filters nor other memories. Statements that were not read have a model of their own, and stay below 0.5. The
weights are in `score.json`, fitted by `bench.reader.fit` on stories that no reader was trained on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ..languages.words import language
from ..models import ScorePart

DIGITS = 6
MAX_UNREAD = 0.49  # score of a statement that was not read
MAX_ENDED = 0.3  # score of a statement that has ended, for a query about the present
INPUTS = (
    "reader",  # its logit
    "similarity",  # of the vectors
    "words",  # share of the query's words that the statement has
    "words of the message before",
    "age",
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
)


@dataclass(frozen=True, slots=True)
class Score:
    """A probability and what it was made of."""

    value: float
    logit: float
    parts: tuple[ScorePart, ...] = ()


Weights = Mapping[str, float]  # by input, and "bias"
AS_IT_IS: Weights = {"reader": 1.0}  # of a reader for which no weights were fitted


def score(inputs: Mapping[str, float], query: str, reader: str, *, has_ended: bool, explain: bool) -> Score:
    """Score a statement from its inputs; without a logit of the reader it counts as not read."""
    weights = weights_of(query, reader if "reader" in inputs else None)
    logit = weights.get("bias", 0.0) + sum(weights.get(name, 0.0) * value for name, value in inputs.items())
    most = MAX_ENDED if has_ended else 1.0 if "reader" in inputs else MAX_UNREAD
    value = round(min(1 / (1 + math.exp(-max(min(logit, 30.0), -30.0))), most), DIGITS)
    if not explain:
        return Score(value, logit)
    parts = [
        ScorePart(name=name, value=value, weight=weights.get(name, 0.0), contribution=weights.get(name, 0.0) * value)
        for name, value in inputs.items()
    ]
    if has_ended:
        parts.append(ScorePart(name="has ended", value=1.0, weight=0.0, contribution=0.0))
    return Score(value, logit, tuple(sorted(parts, key=lambda part: -abs(part.contribution))))


def weights_of(query: str, reader: str | None) -> Weights:
    """Return the weights for a query in its language; `reader`: the one that read the statement, None if none did."""
    own = "en" if language(query) == "en" else "zh"
    fitted = _fitted()
    if reader is None:
        return fitted["unread"][own]
    return fitted.get(reader, {}).get(own, AS_IT_IS)


@cache
def _fitted() -> Mapping[str, Mapping[str, Weights]]:
    """Return the weights by reader, or "unread", and language."""
    found: dict[str, dict[str, Weights]] = json.loads((files(__package__) / "score.json").read_text(encoding="utf-8"))
    return found
