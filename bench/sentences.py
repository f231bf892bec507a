"""Fit and evaluate the sentence classifier of `jiyi.write.classify`.

    python -m bench.sentences evaluate    five-fold cross-validation by story: accuracy, AUC of salience
    python -m bench.sentences fit         train on everything and write src/jiyi/write/classify.npz

Training data: the labelled stories of `data/everyday-train.json.gz`, the sentences of `data/sentences.tsv` and the
short plain ones of `data/plain-sentences.tsv`: in stories, short messages are mostly small talk; and sentences of
summaries, about "the user", of `data/summary-sentences.tsv`.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jiyi.write import classify
from jiyi.write.classify import ABOUT, FEATURES, KINDS, SALIENT, features

DATA = Path(__file__).parent / "data"
EPOCHS = 10
LEARNING_RATE = 0.12
DECAY = 2e-4  # of the weights of present features, after each example

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled message; `story` groups those that must not be split between training and test."""

    text: str
    role: str
    kind: int
    about: int
    story: str

    @property
    def salient(self) -> bool:
        return self.kind < len(SALIENT)


def examples() -> list[Example]:
    with gzip.open(DATA / "everyday-train.json.gz", "rt", encoding="utf-8") as file:
        stories = json.load(file)["stories"]
    found = [
        Example(message["text"], message["role"], KINDS.index(message["kind"]), _about(message), story["id"])
        for story in stories
        for session in story["sessions"]
        for message in session["messages"]
    ]
    for name in ("sentences", "plain-sentences", "summary-sentences"):
        with (DATA / f"{name}.tsv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        found += [
            Example(text, row["role"], KINDS.index(row["kind"]), _about(row), f"{name}-{at % 40}")
            for at, row in enumerate(rows)
            for text in dict.fromkeys((row["text"], row["text"].rstrip(".。")))  # people leave stops out
        ]
    return found


def _about(row: dict[str, str]) -> int:
    said = row.get("about") or "none"
    return ABOUT.index(said if said in ABOUT else "other")


def fit(data: Sequence[Example], seed: int = 0) -> tuple[Matrix, Matrix]:
    """Two softmax regressions, for kind and about, on sparse features; AdaGrad."""
    outputs = len(KINDS) + len(ABOUT)
    weights, bias = np.zeros((FEATURES, outputs), np.float32), np.zeros(outputs, np.float32)
    squares, bias_squares = np.full_like(weights, 1e-2), np.full_like(bias, 1e-2)
    sparse = [features(one.text, one.role) for one in data]
    order = list(range(len(data)))
    shuffle = random.Random(seed)
    for epoch in range(EPOCHS):
        shuffle.shuffle(order)
        rate = LEARNING_RATE * (1 - epoch / EPOCHS)
        for at in order:
            columns, values = sparse[at]
            rows = weights[columns]
            error = _probabilities(values @ rows + bias)
            error[data[at].kind] -= 1
            error[len(KINDS) + data[at].about] -= 1
            gradient = values[:, None] * error + DECAY * rows
            squares[columns] += gradient * gradient
            weights[columns] = rows - rate * gradient / np.sqrt(squares[columns])
            bias_squares += error * error
            bias -= rate * error / np.sqrt(bias_squares)
    return weights, bias


def _probabilities(scores: Matrix) -> Matrix:
    found = np.concatenate([_softmax(scores[: len(KINDS)]), _softmax(scores[len(KINDS) :])])
    return found.astype(np.float32)


def _softmax(scores: Matrix) -> Matrix:
    shares: Matrix = np.exp(scores - scores.max())
    return shares / shares.sum()


def predict(data: Sequence[Example], weights: Matrix, bias: Matrix) -> Matrix:
    rows = []
    for one in data:
        columns, values = features(one.text, one.role)
        rows.append(_probabilities(values @ weights[columns] + bias))
    return np.stack(rows)


def cross_validated(data: Sequence[Example], folds: int = 5) -> Matrix:
    """Predictions for every example by a model that has not seen its story."""
    stories = sorted({one.story for one in data})
    random.Random(7).shuffle(stories)
    fold = {story: at % folds for at, story in enumerate(stories)}
    found = np.zeros((len(data), len(KINDS) + len(ABOUT)), np.float32)
    for at in range(folds):
        weights, bias = fit([one for one in data if fold[one.story] != at])
        held_out = [place for place, one in enumerate(data) if fold[one.story] == at]
        found[held_out] = predict([data[place] for place in held_out], weights, bias)
    return found


def auc(labels: NDArray[np.bool_], scores: Matrix) -> float:
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores)] = np.arange(len(scores))
    positive = int(labels.sum())
    return float((ranks[labels].sum() - positive * (positive - 1) / 2) / (positive * (len(labels) - positive)))


def evaluate(data: Sequence[Example]) -> None:
    found = cross_validated(data)
    kind, about = found[:, : len(KINDS)].argmax(1), found[:, len(KINDS) :].argmax(1)
    salience = found[:, : len(SALIENT)].sum(1)
    right = kind == np.array([one.kind for one in data])
    right_about = about == np.array([one.about for one in data])
    salient = np.array([one.salient for one in data])
    user = np.array([one.role == "user" for one in data])
    chinese = np.array([any("\u4e00" <= letter <= "\u9fff" for letter in one.text) for one in data])
    own = np.array(["sentences-" in one.story for one in data])
    print(f"{'':22s}{'n':>6s}   kind  about  AUC of salience")
    groups = {"all": right | True, "user, English": user & ~chinese & ~own, "user, Chinese": user & chinese & ~own}
    for name, rows in {**groups, "own sentences": own}.items():
        shares = right[rows].mean(), right_about[rows].mean(), auc(salient[rows], salience[rows])
        print(f"{name:22s}{rows.sum():6d}  {shares[0]:5.3f}  {shares[1]:5.3f}  {shares[2]:5.3f}")
    for at, name in enumerate(KINDS):
        expected, given = np.array([one.kind == at for one in data]), kind == at
        both = (expected & given).sum()
        print(f"  {name:12s} recall {both / expected.sum():.2f}  precision {both / max(1, given.sum()):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("fit", "evaluate"))
    action = parser.parse_args().action
    data = examples()
    if action == "evaluate":
        evaluate(data)
        return
    weights, bias = fit(data)
    path = Path(classify.__file__).with_suffix(".npz")
    np.savez_compressed(path, weights=weights.astype(np.float16), bias=bias)
    print(f"{path}: {path.stat().st_size / 1024:.0f} KiB from {len(data)} examples")


if __name__ == "__main__":
    main()
