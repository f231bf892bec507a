"""Make the relevance model smaller: fit one network to the logits of the networks that `bench.relevance` has merged.

    python -m bench.relevance.distill FITTED.npz bench/data/everyday-train.json.gz [--retrieval SET.json.gz …]

Of the dimensions in which vectors are compared, those that change the logit most are kept; the hidden layer is fitted
anew. A search reads half of the weights, and its scores move by about 0.01. Needs only numpy.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

import numpy as np

from jiyi.index.query import Evidence
from jiyi.read.relevance import CANDIDATE_FEATURES, QUERY_FEATURES, RelevanceModel

from .data import CachedEmbedder, Question, hardest, retrieval, stories

KEPT = {"match": 128, "kind": 28, "before": 32, "asked": 28}
HIDDEN = 96
BATCH = 1024
RATE, DECAY = 2e-3, 1e-4
HELD_OUT = 12  # every so many questions one is not trained on

Arrays = dict[str, np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.relevance.distill", description=__doc__.split("\n")[0])
    parser.add_argument("fitted", type=Path)
    parser.add_argument("stories", type=Path)
    parser.add_argument("--retrieval", type=Path, nargs="*", default=[], help="sets with messages and queries")
    parser.add_argument("--out", type=Path, default=Path("src/jiyi/read/relevance.npz"))
    parser.add_argument("--embeddings", type=Path, default=Path("bench/out/embeddings.npz"), help="cache of vectors")
    parser.add_argument("--epochs", type=int, default=40)
    args = parser.parse_args()
    with np.load(args.fitted) as stored:
        fitted = dict(stored)
    weights = {name: value.astype(np.float32) for name, value in fitted.items() if value.dtype.kind == "f"}
    model = RelevanceModel.of(weights, str(fitted["embedder"]))
    questions = asyncio.run(_questions(args))
    rng = np.random.default_rng(0)
    rows = [_inputs(model, question, rng) for question in questions]
    kept = chosen_columns(model, np.vstack(rows[::7]))
    inputs = np.vstack([some[:, kept["all"]].astype(np.float16) for some in rows])
    wanted = np.concatenate([model.logits(some) for some in rows])
    held_out = np.repeat(np.arange(len(rows)) % HELD_OUT == 0, [len(some) for some in rows])
    student = Student.of(model, kept["all"], inputs)
    student.fit(inputs, wanted, ~held_out, _importance(model, wanted), args.epochs, rng)
    error = np.abs(_score(model, student(inputs[held_out])) - _score(model, wanted[held_out]))
    print(f"{held_out.sum():,} held out: scores differ by {error.mean():.4f} (p95 {np.quantile(error, 0.95):.4f})")
    np.savez_compressed(args.out, **fitted | student.stored(fitted, kept))
    print(f"wrote {args.out} ({args.out.stat().st_size:,} bytes)")


async def _questions(args: argparse.Namespace) -> list[Question]:
    embedder = CachedEmbedder(args.embeddings)
    found = await stories(args.stories, embedder, asked_before=0.35, held_out=False)
    for path in args.retrieval:
        found += await retrieval(path, embedder)
    embedder.save()
    return found


def _inputs(model: RelevanceModel, question: Question, rng: np.random.Generator) -> np.ndarray:
    """Return what the network sees of a question's candidates; of large stores, of the hardest ones."""
    chosen, features = hardest(question, rng), len(CANDIDATE_FEATURES)
    evidence = Evidence(
        columns={},
        vectors=question.vectors[chosen].astype(np.float32),
        previous_vectors=question.previous[chosen].astype(np.float32),
    )
    about_query = question.rows[0, features:]
    return model.inputs(question.query.astype(np.float32), about_query, question.rows[chosen, :features], evidence)


def chosen_columns(model: RelevanceModel, inputs: np.ndarray) -> Arrays:
    """Return for each group of columns which of them change the logit most, and all columns that are kept."""
    through_hidden = (model.layer[:, :-1] ** 2 * model.output**2).sum(1)
    weight = inputs.std(0) * np.sqrt(through_hidden + model.layer[:, -1] ** 2)
    widths = {"candidate": len(CANDIDATE_FEATURES), "match": model.match}
    widths |= {"kind": model.of_message.shape[1] - model.match, "before": model.of_previous.shape[1]}
    widths |= {"query": len(QUERY_FEATURES)}
    widths["asked"] = len(model.layer) - sum(widths.values())
    start, found = 0, {}
    columns = []
    for name, width in widths.items():
        best = np.argsort(-weight[start : start + width])[: KEPT.get(name, width)]
        found[name] = np.sort(best)
        columns.append(start + found[name])
        start += width
    return found | {"all": np.concatenate(columns)}


def _score(model: RelevanceModel, logits: np.ndarray) -> np.ndarray:
    found: np.ndarray = 1 / (1 + np.exp(-model.calibrated(logits)))
    return found


def _importance(model: RelevanceModel, logits: np.ndarray) -> np.ndarray:
    """Weigh candidates near the line most, and hits more than the many that nobody sees."""
    score = _score(model, logits)
    weight = 0.15 + 4 * score * (1 - score) + 0.5 * score
    return (weight / weight.mean()).astype(np.float32)


class Student:
    """The small network: a hidden layer, its output, and what the inputs add directly."""

    def __init__(self, weights: Arrays) -> None:
        self._weights = weights

    @classmethod
    def of(cls, model: RelevanceModel, columns: np.ndarray, inputs: np.ndarray) -> Student:
        """Begin with the hidden units that change the logit most."""
        some = inputs[::50].astype(np.float32) @ model.layer[columns, :-1] + model.hidden_bias
        units = np.argsort(-(_gelu(some)[0].std(0) * np.abs(model.output)))[:HIDDEN]
        weights = {
            "layer": model.layer[np.ix_(columns, units)],
            "hidden_bias": model.hidden_bias[units],
            "output": model.output[units] * len(model.output) / len(units),
            "direct": model.layer[columns, -1],
            "bias": np.array([model.bias], np.float32),
        }
        return cls({name: value.astype(np.float32) for name, value in weights.items()})

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        parts = range(0, len(inputs), 20_000)
        return np.concatenate([self._forward(inputs[at : at + 20_000].astype(np.float32))[0] for at in parts])

    def fit(
        self,
        inputs: np.ndarray,
        wanted: np.ndarray,
        trained: np.ndarray,
        importance: np.ndarray,
        epochs: int,
        rng: np.random.Generator,
    ) -> None:
        """Least squares with Adam and a linear decay of the rate."""
        rows, weights = np.flatnonzero(trained), self._weights
        first, second = ({name: np.zeros_like(value) for name, value in weights.items()} for _ in range(2))
        step, steps = 0, epochs * (len(rows) // BATCH)
        for epoch in range(epochs):
            order = rng.permutation(rows)
            for at in range(0, len(order) - BATCH + 1, BATCH):
                step += 1
                chosen = order[at : at + BATCH]
                gradient = self._gradient(inputs[chosen].astype(np.float32), wanted[chosen], importance[chosen])
                rate = RATE * min(1, step / 200) * (1 - step / (steps + 1))
                for name, slope in gradient.items():
                    first[name] = 0.9 * first[name] + 0.1 * slope
                    second[name] = 0.999 * second[name] + 0.001 * slope**2
                    move = first[name] / (1 - 0.9**step) / (np.sqrt(second[name] / (1 - 0.999**step)) + 1e-8)
                    decay = DECAY if name in ("layer", "output") else 0.0
                    weights[name] = (weights[name] - rate * (move + decay * weights[name])).astype(np.float32)
            print(f"{epoch + 1} of {epochs} epochs", flush=True)

    def _forward(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        weights = self._weights
        hidden, slope = _gelu(inputs @ weights["layer"] + weights["hidden_bias"])
        return hidden @ weights["output"] + inputs @ weights["direct"] + weights["bias"], hidden, slope

    def _gradient(self, inputs: np.ndarray, wanted: np.ndarray, importance: np.ndarray) -> Arrays:
        logits, hidden, slope = self._forward(inputs)
        error = (logits - wanted) * importance * 2 / len(inputs)
        inner = error[:, None] * self._weights["output"] * slope
        return {
            "layer": inputs.T @ inner,
            "hidden_bias": inner.sum(0),
            "output": hidden.T @ error,
            "direct": inputs.T @ error,
            "bias": error.sum(keepdims=True),
        }

    def stored(self, fitted: Arrays, kept: Arrays) -> Arrays:
        """Return the arrays that differ from those of the fitted networks, in the order in which they are stored."""
        sizes = [len(kept[name]) for name in ("candidate", "match", "kind", "before", "query")]
        layer = np.column_stack([self._weights["layer"], self._weights["direct"]])
        candidate, match, kind, before, query, asked = np.split(layer, np.cumsum(sizes))
        layer = np.vstack([candidate, query, match, before, kind, asked])
        parts = {
            "match": ("match_query", "match_message"),
            "before": ("before_query", "before_previous"),
            "kind": ("kind_message",),
            "asked": ("kind_query",),
        }
        projections = {name: fitted[name][:, kept[group]] for group, names in parts.items() for name in names}
        return projections | {
            "hidden": layer[:, :-1].astype(np.float16),
            "direct": layer[:, -1:],
            "hidden_bias": self._weights["hidden_bias"],
            "output": self._weights["output"][:, None],
            "bias": self._weights["bias"],
        }


def _gelu(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the function's values and slopes."""
    inner = np.tanh(0.7978845608 * (inputs + 0.044715 * inputs**3))
    slope = (1 - inner**2) * 0.7978845608 * (1 + 3 * 0.044715 * inputs**2)
    return 0.5 * inputs * (1 + inner), 0.5 * (1 + inner) + 0.5 * inputs * slope


if __name__ == "__main__":
    main()
