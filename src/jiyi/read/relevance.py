"""The relevance model: the probability that a candidate answers the query, from that candidate's own evidence.

A small network on the features of `features.py` and on the built-in embedder's vectors: the query's and the message's
vectors are projected and multiplied, which lets it learn what differences of wording and kinds of sentences mean. Its
output does not depend on filters, on the number of memories or on other candidates. Fitted by `bench/relevance.py`;
the score is calibrated so that 0.6 is the line from which on a memory should be used.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from ..index.query import Evidence, Floats
from .features import CANDIDATE_FEATURES, candidate_features

Matrix = NDArray[np.float32]


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

    def logits(self, query_vector: Matrix | None, query: Floats, evidence: Evidence) -> Floats:
        """Return one value per candidate; `query_vector` is None where vectors of the model's embedder are missing."""
        return self._forward(self._inputs(query_vector, query, evidence))

    def contributions(
        self, query_vector: Matrix | None, query: Floats, evidence: Evidence, place: int
    ) -> dict[str, tuple[float, float]]:
        """Explain one candidate: each feature's value, and how much the logit would fall if it were average."""
        row = self._inputs(query_vector, query, evidence)[place]
        groups = {name: [at] for at, name in enumerate(CANDIDATE_FEATURES)}
        groups["query"] = list(range(len(CANDIDATE_FEATURES), len(self.mean)))
        groups["meaning"] = list(range(len(self.mean), len(row)))
        variants = np.tile(row, (len(groups) + 1, 1))
        for at, columns in enumerate(groups.values(), 1):
            variants[at, columns] = 0  # inputs are standardised: 0 is the average
        logits = self._forward(variants)
        values = {name: float(evidence.columns[name][place]) for name in CANDIDATE_FEATURES}
        return {name: (values.get(name, 1.0), float(logits[0] - logits[at])) for at, name in enumerate(groups, 1)}

    def _inputs(self, query_vector: Matrix | None, query: Floats, evidence: Evidence) -> Matrix:
        scalars = np.hstack([candidate_features(evidence), np.tile(query, (len(evidence.vectors), 1))])
        return np.hstack([(scalars - self.mean) / self.spread, self._vector_features(query_vector, evidence)])

    def _forward(self, inputs: Matrix) -> Floats:
        hidden = _gelu(inputs @ self.hidden + self.hidden_bias)
        logits: Floats = (hidden @ self.output + inputs @ self.direct)[:, 0] + self.bias[0]
        return logits

    def _vector_features(self, query_vector: Matrix | None, evidence: Evidence) -> Matrix:
        width = sum(part.shape[1] for part in (self.match_query, self.before_query, self.kind_message, self.kind_query))
        rows = len(evidence.vectors)
        if query_vector is None or evidence.vectors.shape[1] != len(self.match_query):
            return np.zeros((rows, width), np.float32)
        match = (query_vector @ self.match_query) * (evidence.vectors @ self.match_message)
        before = (query_vector @ self.before_query) * (evidence.previous_vectors @ self.before_previous)
        kind = evidence.vectors @ self.kind_message
        return np.hstack([match, before, kind, np.tile(query_vector @ self.kind_query, (rows, 1))])

    def scores(self, logits: Floats) -> Floats:
        """Turn logits into scores between 0 and 1."""
        scores: Floats = 1 / (1 + np.exp(-(self.scale[0] * (logits - self.line[0]) + np.log(0.6 / 0.4))))
        return scores


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
    activated: Matrix = 0.5 * x * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x**3)))
    return activated
