"""The relevance model: the probability that a candidate answers the query, from that candidate's own evidence.

A small network on the features below and on the built-in embedder's vectors: the query's and the message's vectors are
projected and multiplied, which lets it learn what differences of wording and kinds of sentences mean. Of other
candidates it sees only how similar the most similar earlier and later statements are. Fitted by `bench/relevance` on
exactly these functions; the score is calibrated so that a memory should be used from 0.6 on.
"""

import re
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from ..index.query import KIND_GROUPS, Candidates, Evidence, Floats, IndexQuery
from ..languages.en.words import CUES as ENGLISH_CUES
from ..languages.words import language
from ..languages.zh.words import CUES as CHINESE_CUES
from ..models import ScorePart
from .query import Query, asks_assistant, proper_words

Matrix = NDArray[np.float32]
Places = NDArray[np.intp]

OUTDATED = 3.0  # subtracted from the logit of a superseded statement when the query is about the present
ENDED = -0.85  # highest logit of such a statement, below that of lines of a context beside relevant ones
SMALL_TALK = 1.5  # subtracted from the logit of small talk and non-answers
LEFT_OUT = 2.0  # subtracted from the logit of messages that a language model read and found nothing in
TIME = 1.5  # added to the logit of a candidate in a time that the query names
KEYWORDS = 4.0  # added to the logit of a candidate with all words of a keyword query, subtracted if it has none
MAX_KEYWORDS = 6
HELD = 0.5  # share of the words that some candidate must have
ASSISTANT = 2.0  # subtracted there from messages of the assistant, added where the query asks for those
WHOLE = 0.8  # share of a message's words from which on a derived memory is shown in its place

LEGS = ("keyword", "text", "near", "episode", "before", "gist", "time", "last_text", "last_semantic")
MOST = 5.0  # larger values of a leg count as this
CANDIDATE_FEATURES = (
    "cosine",
    "previous_cosine",
    "next_cosine",
    "episode_cosine",
    "coverage",
    "previous_coverage",
    "rarest_word",
    "proper_words",
    "bm25",
    "speaker",
    "assistant",
    "previous_assistant",
    "asks",
    "previous_asks",
    "length",
    "age",
    "salience",
    "over",
    "succeeds",
    "derived",
    *KIND_GROUPS,
    *LEGS,
    "newer",
    "older",
    "newer_change",
    "older_of_change",
    "changed_cosine",
    "changed_coverage",
)
CUES = {name: re.compile(f"{ENGLISH_CUES[name]}|{CHINESE_CUES[name]}", re.IGNORECASE) for name in ENGLISH_CUES}
QUERY_FEATURES = (*CUES, "chinese", "words", "has_proper_words", "names_a_speaker", "dialogue")


def query_features(query: Query, index_query: IndexQuery) -> Floats:
    """Describe the query itself."""
    dialogue = index_query.last_terms is not None
    last = query.text.strip().splitlines()[-1] if dialogue else query.text
    cues = [float(cue.search(last) is not None) for cue in CUES.values()]
    words = min(len(index_query.words), 30) / 10
    others = (language(last) == "zh", words, bool(proper_words(last)), bool(index_query.named), dialogue)
    return np.array([*cues, *map(float, others)], np.float32)


def candidate_features(candidates: Candidates, places: Places) -> tuple[Evidence, Floats]:
    """Return the evidence of some candidates, and a row of features for each in the order of `CANDIDATE_FEATURES`."""
    evidence = candidates.evidence(places)
    rows = np.zeros((len(places), len(CANDIDATE_FEATURES)), np.float32)
    for at, name in enumerate(CANDIDATE_FEATURES):
        found = evidence.columns.get(name)
        if found is not None:
            rows[:, at] = found
        elif (values := getattr(candidates, name)) is not None:
            rows[:, at] = values[places].clip(-MOST, MOST)
    return evidence, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceModel:
    """Weights; `*_query`, `*_message` and `*_previous` project vectors of the built-in embedder."""

    match_query: Matrix
    match_message: Matrix
    before_query: Matrix
    before_previous: Matrix
    kind_message: Matrix
    kind_query: Matrix
    mean: Matrix
    spread: Matrix
    hidden: Matrix
    hidden_bias: Matrix
    output: Matrix
    direct: Matrix
    bias: Matrix
    scale: Matrix  # calibration: score = sigmoid(scale · (logit − line) + log(0.6 / 0.4))
    line: Matrix
    embedder: str

    def inputs(self, query_vector: Matrix | None, query: Floats, rows: Floats, evidence: Evidence) -> Matrix:
        """Return standardised features; `query_vector` is None where vectors of the model's embedder are missing."""
        of_candidates, scalars = rows.shape[1], len(self.mean)
        inputs = np.zeros((len(rows), len(self.hidden)), np.float32)
        inputs[:, :of_candidates] = rows
        inputs[:, of_candidates:scalars] = query
        inputs[:, :scalars] -= self.mean
        inputs[:, :scalars] /= self.spread
        if query_vector is not None and evidence.vectors.shape[1] == len(self.match_query):
            self._add_vector_features(inputs[:, scalars:], query_vector, evidence)
        return inputs

    def contributions(self, row: Matrix) -> dict[str, float]:
        """Explain one candidate: how much the logit would fall if each feature were average."""
        groups = {name: [at] for at, name in enumerate(CANDIDATE_FEATURES)}
        groups["query"] = list(range(len(CANDIDATE_FEATURES), len(self.mean)))
        groups["meaning"] = list(range(len(self.mean), len(row)))
        variants = np.tile(row, (len(groups) + 1, 1))
        for at, columns in enumerate(groups.values(), 1):
            variants[at, columns] = 0  # inputs are standardised: 0 is the average
        logits = self.logits(variants)
        return {name: float(logits[0] - logits[at]) for at, name in enumerate(groups, 1)}

    def logits(self, inputs: Matrix) -> Floats:
        hidden = _gelu(inputs @ self.hidden + self.hidden_bias)
        logits: Floats = (hidden @ self.output + inputs @ self.direct)[:, 0] + self.bias[0]
        return logits

    def _add_vector_features(self, inputs: Matrix, query_vector: Matrix, evidence: Evidence) -> None:
        """Fill columns of zeros: how query and message match, query and previous message, and the kind of both."""
        widths = [part.shape[1] for part in (self.match_query, self.before_query, self.kind_message)]
        match, before, kind, kind_of_query = np.split(inputs, np.cumsum(widths), axis=1)
        match[:] = (query_vector @ self.match_query) * (evidence.vectors @ self.match_message)
        if evidence.previous_vectors.any():
            before[:] = (query_vector @ self.before_query) * (evidence.previous_vectors @ self.before_previous)
        kind[:] = evidence.vectors @ self.kind_message
        kind_of_query[:] = query_vector @ self.kind_query

    def calibrated(self, logits: Floats) -> Floats:
        """Scale logits so that the score 0.6 is the line from which on a memory should be used."""
        calibrated: Floats = self.scale[0] * (logits - self.line[0]) + np.log(0.6 / 0.4)
        return calibrated


@cache
def relevance_model() -> RelevanceModel:
    """Load the weights that come with the package."""
    with np.load(BytesIO((files(__package__) / "relevance.npz").read_bytes())) as stored:
        known = tuple(str(name) for name in stored["features"])
        if known != CANDIDATE_FEATURES:
            raise RuntimeError("relevance.npz was fitted on other features: run `python -m bench.relevance`")
        arrays = {field.name: stored[field.name] for field in fields(RelevanceModel) if field.name != "embedder"}
        weights = {name: array.astype(np.float32) for name, array in arrays.items()}
        return RelevanceModel(**weights, embedder=str(stored["embedder"]))


def _gelu(x: Matrix) -> Matrix:
    y = x * x  # in place, and without `x**3`, which takes forty times as long
    y *= np.float32(0.044715)
    y += 1
    y *= x
    y *= np.float32(0.7978845608)
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= np.float32(0.5)
    return y


class Relevance:
    """The relevance model applied to the shortlist of one search."""

    def __init__(
        self, candidates: Candidates, places: Places, query: Query, index_query: IndexQuery, embedder: str
    ) -> None:
        self._model = relevance_model()
        self._vector = index_query.vector if embedder == self._model.embedder else None
        self._query = query_features(query, index_query)
        evidence, self._rows = candidate_features(candidates, places)
        self._columns = evidence.columns
        self._inputs = self._model.inputs(self._vector, self._query, self._rows, evidence)
        self._logits = self._model.logits(self._inputs)
        self._adjustments = {
            "successor": self._inherited(candidates, places),
            "keywords": self._keyword_bonus(index_query),
            "assistant asked": ASSISTANT * asks_assistant(query.text) * self._columns["assistant"],
            "outdated": np.zeros(len(places)) if candidates.over is None else -OUTDATED * candidates.over[places],
            "small talk": -SMALL_TALK * candidates.weak_kind[places],
            "left out": np.zeros(len(places))
            if candidates.left_out is None
            else -LEFT_OUT * candidates.left_out[places],
            "named time": np.zeros(len(places)) if candidates.time is None else TIME * candidates.time[places],
        }

        self.logits = self._model.calibrated(self._logits + sum(self._adjustments.values()))
        if candidates.over is not None:
            self.logits = np.where(candidates.over[places] > 0, np.minimum(self.logits, ENDED), self.logits)

    def scores(self) -> Floats:
        scores: Floats = 1 / (1 + np.exp(-self.logits))
        return scores

    def _inherited(self, candidates: Candidates, places: Places) -> Floats:
        """Raise the successor of an outdated statement to that statement's logit: it answers the same queries."""
        position = np.full(len(candidates), -1, np.intp)
        position[places] = np.arange(len(places))
        old, new = (position[some] for some in candidates.successions)
        both = (old >= 0) & (new >= 0)
        best = self._logits.copy()
        np.maximum.at(best, new[both], self._logits[old[both]])
        return best - self._logits

    def _keyword_bonus(self, index_query: IndexQuery) -> Floats:
        """Let words decide for queries that are a few keywords and no question."""
        columns = self._columns
        keywords = 0 < len(index_query.words) <= MAX_KEYWORDS and not self._query[: len(CUES)].any()
        if not keywords or columns["coverage"].max() < HELD:  # words that no candidate has decide nothing
            return np.zeros(len(self._logits))
        return KEYWORDS * (2 * columns["coverage"] - 1) - ASSISTANT * columns["assistant"]

    def clearest(self, firsts: Places, candidates: Candidates, places: Places) -> list[int]:
        """Return for each statement the member to show: the derived memory if it says all of it, else the message; of a
        message of which a part has ended, the best of the derived memories that still hold."""
        if candidates.derived is None:
            return list(firsts)
        derived, statement = candidates.derived[places], candidates.statement[places]
        over = None if candidates.partly_over is None else candidates.partly_over[places]
        words = np.expm1(5 * self._columns["length"])
        shown = []
        for first in firsts:
            members = np.flatnonzero(statement == statement[first])
            messages, parts = members[~derived[members]], members[derived[members]]
            if not len(messages):
                shown.append(int(first))
            elif len(parts) == 1 and words[parts[0]] >= WHOLE * words[messages[0]]:
                shown.append(int(parts[0]))
            elif over is not None and len(parts) and over[messages].any():
                shown.append(int(parts[np.argmax(self.logits[parts])]))
            else:
                shown.append(int(messages[0]))
        return shown

    def explain(self, place: int) -> tuple[ScorePart, ...]:
        """Return the evidence for and against one candidate, strongest first."""
        values = dict(zip(CANDIDATE_FEATURES, map(float, self._rows[place]), strict=True))
        changes = self._model.contributions(self._inputs[place])
        found = {name: (values.get(name, 1.0), change) for name, change in changes.items()}
        found |= {name: (1.0, float(change[place])) for name, change in self._adjustments.items() if change[place]}
        parts = [
            ScorePart(name=name, value=value, weight=1.0, contribution=contribution)
            for name, (value, contribution) in found.items()
        ]
        return tuple(sorted(parts, key=lambda part: -abs(part.contribution)))
