"""The evidence for some candidates of a search, as the relevance model takes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..models import to_micros
from .legs import VectorLeg
from .query import Evidence, Floats, IndexQuery, Mask, Scope, Slots
from .relations import Episodes, similar_statements
from .words import WordScores

STATED = 0.45  # salience from which on a message counts as a statement
DAY = 86_400_000_000  # microseconds
COLUMNS = ("assistant", "asks", "kind", "length", "occurred_at", "salience")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSource:
    """Describes the candidates at some positions. It holds the arrays of one search: the index may change meanwhile."""

    query: IndexQuery
    scope: Scope  # slots of the candidates
    columns: Mapping[str, NDArray[Any]]
    episodes: Episodes
    statements: NDArray[np.intp]
    vectors: VectorLeg
    kinds: Mapping[str, Mask]  # by group of kinds of sentences: whether the kind with a code is one of them
    scores: WordScores
    cosine: Floats
    said: Floats | None

    def __call__(self, places: NDArray[np.intp]) -> Evidence:
        chosen = places if isinstance(self.scope, slice) else self.scope[places]
        columns = {name: self.columns[name][chosen] for name in COLUMNS}
        coverage, rarest = self.scores.coverage(self.query.words, self.said)
        cosine, own_coverage = self.cosine[chosen], coverage[chosen]
        is_kind = {name: is_kind[columns["kind"]] for name, is_kind in self.kinds.items()}
        vectors = self.vectors.rows(chosen)
        similar, changed = similar_statements(
            vectors,
            self.statements[chosen],
            ~columns["assistant"] & (columns["salience"] > STATED),
            is_kind["change"],
            columns["occurred_at"],
        )
        age = (to_micros(self.query.filter.now) - columns["occurred_at"]) / DAY
        found = {
            "cosine": cosine,
            "episode_cosine": self.episodes.mean(self.cosine, chosen),
            "coverage": own_coverage,
            "rarest_word": rarest[chosen],
            "bm25": self.scores.bm25(self.query.terms)[chosen],
            "assistant": columns["assistant"].astype(np.float32),
            "asks": columns["asks"],
            "length": np.log1p(columns["length"]) / 5,
            "age": np.log1p(np.maximum(age, 0)) / 6,
            "salience": columns["salience"],
            **is_kind,
            **similar,
        }
        if self.query.proper:
            found["proper_words"] = self.scores.coverage(self.query.proper, None)[0][chosen]
        if self.said is not None:
            found["speaker"] = self.said[chosen]
        if is_kind["change"].any():
            found |= {"changed_cosine": _at(cosine, changed), "changed_coverage": _at(own_coverage, changed)}
        previous = self.episodes.previous[chosen] if len(self.episodes.first) else None
        if previous is None:
            return Evidence(columns=found, vectors=vectors)
        found |= {
            "previous_cosine": _at(self.cosine, previous),
            "next_cosine": _at(self.cosine, self.episodes.following[chosen]),
            "previous_coverage": _at(coverage, previous),
            "previous_assistant": _at(self.columns["assistant"], previous),
            "previous_asks": _at(self.columns["asks"], previous),
        }
        if not (previous >= 0).any():
            return Evidence(columns=found, vectors=vectors)
        ids = self.columns["id"]
        return Evidence(
            columns=found,
            vectors=vectors,
            previous_vectors=self.vectors.rows(previous),
            previous=[ids[slot] if slot >= 0 else None for slot in previous.tolist()],
        )


def _at(values: NDArray[Any], places: Slots) -> Floats:
    """Return the values at some places; 0 at those below 0."""
    return np.where(places >= 0, values[places], np.float32(0))
