"""The relevance model: the probability that a candidate answers the query, from that candidate's own evidence.

A small network on the features below and on the built-in embedder's vectors: the query's and the message's vectors are
projected and multiplied, which lets it learn what differences of wording and kinds of sentences mean. Of other
candidates it sees only how similar the most similar earlier and later statements are. Fitted by `bench/relevance` on
exactly these functions; the score is calibrated so that a memory should be used from 0.6 on.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO
from typing import Self

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
UNSUPPORTED = 1.5  # subtracted from the logit of a model's memory that its messages may not support
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
OF_CANDIDATES = ("over", "succeeds", "derived", *LEGS)  # the others come from `Candidates.evidence`
_COLUMN = {name: at for at, name in enumerate(CANDIDATE_FEATURES)}
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
    for name, values in evidence.columns.items():
        rows[:, _COLUMN[name]] = values
    for name in OF_CANDIDATES:
        if (values := getattr(candidates, name)) is not None:
            rows[:, _COLUMN[name]] = values[places]
    legs = rows[:, _COLUMN[LEGS[0]] : _COLUMN[LEGS[-1]] + 1]
    np.minimum(legs, MOST, out=legs)
    return evidence, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceModel:
    """Weights. The columns of an input: features of the candidate, how the query matches it, its kind, how the query
    matches the message before, features of the query, its kind. Vectors are those of the built-in embedder."""

    of_query: Matrix  # projects its vector for both matches, and to its kind
    of_message: Matrix  # projects vectors for the match, and to the kind
    of_previous: Matrix
    match: int  # dimensions in which query and message are compared
    mean: Matrix  # of the features
    spread: Matrix
    layer: Matrix  # to the hidden units; the last column is added to the logit directly
    hidden_bias: Matrix
    output: Matrix
    bias: float
    scale: float  # calibration: score = sigmoid(scale · (logit − line) + log(0.6 / 0.4))
    line: float
    embedder: str

    @classmethod
    def of(cls, stored: Mapping[str, Matrix], embedder: str) -> Self:
        """Take the weights as `bench/relevance` writes them, with the features of candidate and query together."""
        parts = [stored[name].shape[1] for name in ("match_query", "before_query", "kind_message", "kind_query")]
        widths = [len(CANDIDATE_FEATURES), len(QUERY_FEATURES), *parts]
        candidate, query, match, before, kind, asked = np.split(np.arange(sum(widths)), np.cumsum(widths)[:-1])
        order = np.concatenate([candidate, match, kind, before, query, asked])
        return cls(
            of_query=np.hstack([stored["match_query"], stored["before_query"], stored["kind_query"]]),
            of_message=np.hstack([stored["match_message"], stored["kind_message"]]),
            of_previous=stored["before_previous"],
            match=len(match),
            mean=stored["mean"],
            spread=stored["spread"],
            layer=np.hstack([stored["hidden"], stored["direct"]])[order],
            hidden_bias=stored["hidden_bias"],
            output=stored["output"][:, 0],
            bias=float(stored["bias"][0]),
            scale=float(stored["scale"][0]),
            line=float(stored["line"][0]),
            embedder=embedder,
        )

    @property
    def own(self) -> int:
        """Number of columns about a message itself; they come first."""
        return len(CANDIDATE_FEATURES) + int(self.of_message.shape[1])

    def inputs(self, query_vector: Matrix | None, query: Floats, rows: Floats, evidence: Evidence) -> Matrix:
        """Return standardised features; `query_vector` is None where vectors of the model's embedder are missing."""
        features, own, match = rows.shape[1], self.own, self.match
        before = self.of_previous.shape[1]
        inputs = np.zeros((len(rows), len(self.layer)), np.float32)
        inputs[:, :features] = (rows - self.mean[:features]) / self.spread[:features]
        about_query = inputs[:, own + before :]
        about_query[:, : len(query)] = (query - self.mean[features:]) / self.spread[features:]
        if query_vector is None or evidence.vectors.shape[1] != len(self.of_query):
            return inputs
        of_query = query_vector @ self.of_query
        of_message = evidence.vectors @ self.of_message
        of_message[:, :match] *= of_query[:match]
        inputs[:, features:own] = of_message
        if evidence.previous_vectors is not None:
            of_previous = evidence.previous_vectors @ self.of_previous
            inputs[:, own : own + before] = of_previous * of_query[match : match + before]
        about_query[:, len(query) :] = of_query[match + before :]
        return inputs

    def contributions(self, row: Matrix) -> dict[str, float]:
        """Explain one candidate: how much the logit would fall if each feature were average."""
        groups = {name: [at] for at, name in enumerate(CANDIDATE_FEATURES)}
        about_query = self.own + self.of_previous.shape[1]
        groups["query"] = list(range(about_query, about_query + len(QUERY_FEATURES)))
        groups["meaning"] = [at for at in range(len(CANDIDATE_FEATURES), len(row)) if at not in groups["query"]]
        variants = np.tile(row, (len(groups) + 1, 1))
        for at, columns in enumerate(groups.values(), 1):
            variants[at, columns] = 0  # inputs are standardised: 0 is the average
        logits = self.logits(variants)
        return {name: float(logits[0] - logits[at]) for at, name in enumerate(groups, 1)}

    def logits(self, inputs: Matrix, differing: int | None = None) -> Floats:
        """Return a logit for each row; `differing`: rows differ only in so many columns, the first ones."""
        found = inputs[:, :differing] @ self.layer[:differing]
        if differing is not None:
            found += inputs[0, differing:] @ self.layer[differing:]
        hidden = _gelu(found[:, :-1] + self.hidden_bias)
        logits: Floats = hidden @ self.output + found[:, -1] + np.float32(self.bias)
        return logits

    def calibrated(self, logits: Floats) -> Floats:
        """Scale logits so that the score 0.6 is the line from which on a memory should be used."""
        calibrated: Floats = self.scale * (logits - self.line) + np.log(0.6 / 0.4)
        return calibrated


@cache
def relevance_model() -> RelevanceModel:
    """Load the weights that come with the package."""
    with np.load(BytesIO((files(__package__) / "relevance.npz").read_bytes())) as stored:
        known = tuple(str(name) for name in stored["features"])
        if known != CANDIDATE_FEATURES:
            raise RuntimeError("relevance.npz was fitted on other features: run `python -m bench.relevance`")
        arrays = {name: stored[name].astype(np.float32) for name in stored.files if stored[name].dtype.kind == "f"}
        return RelevanceModel.of(arrays, str(stored["embedder"]))


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
        before = 0 if evidence.previous_vectors is None else self._model.of_previous.shape[1]
        self._logits = self._model.logits(self._inputs, self._model.own + before)
        self._adjustments = {"keywords": self._keyword_bonus(index_query)}
        if len(candidates.successions[0]):
            self._adjustments["successor"] = self._inherited(candidates, places)
        if asks_assistant(query.text):
            self._adjustments["assistant asked"] = ASSISTANT * self._columns["assistant"]
        for name, amount, values in (
            ("outdated", -OUTDATED, candidates.over),
            ("small talk", -SMALL_TALK, candidates.weak_kind),
            ("left out", -LEFT_OUT, candidates.left_out),
            ("unsupported", -UNSUPPORTED, candidates.unsure),
            ("named time", TIME, candidates.time),
        ):
            if values is not None:
                self._adjustments[name] = amount * values[places]
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

    def clearest(self, statements: Sequence[list[int]], candidates: Candidates, places: Places) -> list[int]:
        """Return for each statement, given by its members, the one to show: the derived memory if it says all of it,
        else the message; of a message of which a part has ended, the best of the derived memories that still hold."""
        if candidates.derived is None:
            return [some[0] for some in statements]
        derived = candidates.derived[places]
        over = None if candidates.partly_over is None else candidates.partly_over[places]
        words = np.expm1(5 * self._columns["length"])
        shown = []
        for some in statements:
            messages, parts = ([at for at in sorted(some) if derived[at] == is_part] for is_part in (False, True))
            if not messages:
                shown.append(some[0])
            elif len(parts) == 1 and words[parts[0]] >= WHOLE * words[messages[0]]:
                shown.append(parts[0])
            elif over is not None and parts and over[messages].any():
                shown.append(max(parts, key=lambda at: self.logits[at]))
            else:
                shown.append(messages[0])
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
