"""Figures of scored questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LINE = 0.6
FIRST_HALF = {*(f"en-{n:02d}" for n in range(1, 11)), "zh-01", "zh-02"}  # stories of everyday-dev to tune on


@dataclass
class Scored:
    """A question with the probability of each of its candidates."""

    group: str
    kind: str
    answerable: bool
    scores: NDArray[Any]
    holds: NDArray[np.bool_]
    evidence: int = 1  # relevant messages in the whole store
    first: NDArray[np.float64] | None = None  # BM25 (scaled) and dense score of each candidate

    def prior(self) -> NDArray[np.float64]:
        """Return ½ BM25 + ½ dense, each scaled to 0–1 over the candidates."""
        assert self.first is not None
        low, high = self.first.min(0), self.first.max(0)
        return ((self.first - low) / np.maximum(high - low, 1e-9)).mean(1)

    @classmethod
    def from_list(cls, row: list[Any]) -> Scored:
        group, kind, answerable, scores, holds, evidence, first = row
        return cls(
            group,
            kind,
            answerable,
            np.array(scores),
            np.array(holds, bool),
            evidence,
            np.array(first) if first else None,
        )

    def as_list(self) -> list[Any]:
        first = [] if self.first is None else self.first.tolist()
        return [self.group, self.kind, self.answerable, self.scores.tolist(), self.holds.tolist(), self.evidence, first]


def everyday_figures(rows: Sequence[Scored], line: float = LINE) -> dict[str, float]:
    """Return top1, top3, AUC of answerability, RIGHT and answered at a line, in percent (AUC from 0 to 1)."""
    yes = [row for row in rows if row.answerable and row.holds.any()]
    no = [row for row in rows if not row.answerable]
    best = [row.holds[np.argsort(-row.scores)] for row in yes]
    high, low = np.array([row.scores.max() for row in yes]), np.array([row.scores.max() for row in no])
    sure = [(row.holds & (row.scores >= line))[np.argsort(-row.scores)[:3]].any() for row in yes]
    answered = [bool((row.scores >= line).any()) for row in no]
    return {
        "n": len(yes) + len(no),
        "top1": 100 * float(np.mean([holds[0] for holds in best])),
        "top3": 100 * float(np.mean([holds[:3].any() for holds in best])),
        "auc": float(np.mean(high[:, None] > low[None])) if no else float("nan"),
        "right": 100 * (sum(sure) + len(answered) - sum(answered)) / (len(yes) + len(no)),
        "answered": 100 * float(np.mean(answered)) if no else float("nan"),
    }


def everyday_line(figures: dict[str, float]) -> str:
    return (
        f"n {figures['n']:4.0f} top1 {figures['top1']:.1f} top3 {figures['top3']:.1f} AUC {figures['auc']:.3f} "
        f"RIGHT {figures['right']:.1f}, absent answered {figures['answered']:.0f} %"
    )


def best_line(rows: Sequence[Scored]) -> tuple[float, dict[str, float]]:
    """Return the line with the highest RIGHT and its figures."""
    lines = np.linspace(0.05, 0.95, 37)
    return max(
        ((float(line), everyday_figures(rows, float(line))) for line in lines), key=lambda found: found[1]["right"]
    )


def retrieval_figures(rows: Sequence[Scored]) -> dict[str, float]:
    """Return hit@3 and recall@10 of candidates in the order of their scores."""
    ranked = [row.holds[np.argsort(-row.scores, kind="stable")] for row in rows]
    return {
        "n": len(rows),
        "hit3": 100 * float(np.mean([holds[:3].any() for holds in ranked])),
        "recall10": 100
        * float(np.mean([holds[:10].sum() / row.evidence for holds, row in zip(ranked, rows, strict=True)])),
    }
