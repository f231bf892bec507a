"""Join int8 weights, vocabulary and calibration into the file that is shipped.

    python -m bench.reranker.export --model FILE --vocabulary base.vocab.txt --folds fold*.json --out FILE

The calibration is fitted on the scores of stories that were held out of training (--fold of bench.reranker.train): its
slope by logistic regression, its shift such that the line of 0.6 lets 43 % of their unanswerable questions pass. (Those
of everyday-train are harder than those of everyday-dev, of which about 20 % pass.) It is fitted twice: for the model's
score alone, and for the score with the cosine similarity of the built-in embedder."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .metrics import LINE, Scored, everyday_figures

CANDIDATES = 5  # of each question, for the slope
PASSING = 0.43
NOT_NEEDED = ("kind.weight", "kind.bias")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--folds", type=Path, nargs="+", required=True)
    parser.add_argument("--separate", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = [Scored.from_list(row) for path in options.folds for row in json.loads(path.read_text())["rows"]]
    arrays: dict[str, Any] = {name: value for name, value in np.load(options.model).items() if name not in NOT_NEEDED}
    arrays["vocabulary"] = np.frombuffer(options.vocabulary.read_text(encoding="utf-8").rstrip("\n").encode(), np.uint8)
    arrays["calibration"] = np.array(calibration(rows, [features(row)[:, :1] for row in rows]), np.float32)
    arrays["fusion"] = np.array(calibration(rows, [features(row) for row in rows]), np.float32)
    arrays["separate"] = np.array(options.separate, np.float32)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez(options.out, **arrays)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB")


def features(row: Scored) -> NDArray[Any]:
    """Return the logit of each candidate and its similarity by the built-in embedder."""
    assert row.first is not None
    return np.c_[logits(row.scores), row.first[:, 1]]


def calibration(rows: list[Scored], of: list[NDArray[Any]]) -> list[float]:
    """Return the weights of the features and the shift of a logistic model."""
    best = [np.argsort(-(values.sum(1)))[:CANDIDATES] for values in of]
    weights = logistic(
        np.concatenate([values[chosen] for values, chosen in zip(of, best, strict=True)]),
        np.concatenate([row.holds[chosen] for row, chosen in zip(rows, best, strict=True)]).astype(float),
    )[:-1]
    highest = sorted((values @ weights).max() for row, values in zip(rows, of, strict=True) if not row.answerable)
    line = highest[-round(PASSING * len(highest))]
    shift = float(np.log(LINE / (1 - LINE)) - line)
    calibrated = [
        replace(row, scores=1 / (1 + np.exp(-(values @ weights + shift)))) for row, values in zip(rows, of, strict=True)
    ]
    print(f"weights {weights} shift {shift:.3f}; held out:", everyday_figures(calibrated))
    return [*map(float, weights), shift]


def logits(probabilities: NDArray[Any]) -> NDArray[Any]:
    clipped = np.clip(probabilities.astype(np.float64), 1e-7, 1 - 1e-7)
    return np.log(clipped / (1 - clipped))


def logistic(x: NDArray[Any], y: NDArray[Any], steps: int = 50) -> NDArray[np.float64]:
    """Fit P(y) = sigmoid(x · weights + shift) by Newton's method; return weights and shift."""
    design = np.c_[x, np.ones(len(x))]
    found = np.zeros(design.shape[1])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-np.clip(design @ found, -30, 30)))
        hessian = design.T @ (design * (p * (1 - p))[:, None]) + 1e-4 * np.eye(len(found))
        found = found - np.linalg.solve(hessian, design.T @ (p - y))
    return found


if __name__ == "__main__":
    main()
