"""Fit the weights with which a search joins the logits of the relevance model and of the reranker.

    python -m bench.reranker.fusion --data DATA --folds fold0.json fold1.json fold2.json --base FILE
    python -m bench.reranker.fusion --stories everyday-dev.json.gz

The first form prints the weights, fitted on scores of stories held out of training: `--folds` are written by
`bench.reranker.train --fold`, `--base` is a pickle {(story, question): logits of the story's messages}. They go to
`jiyi/read/rerank.py`. The second form then runs the first twelve stories through the product and prints the shift with
which 20 % of their unanswerable questions get a hit at 0.6."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import pickle
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .files import read_json
from .metrics import FIRST_HALF, LINE, Scored, everyday_figures

SHORTLIST = 25
PASSING = 0.2
EACH = 0.3  # weight of each candidate's own probability beside the choice among them
STEPS, RATE = 300, 0.05

Floats = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--folds", type=Path, nargs="*", default=[])
    parser.add_argument("--base", type=Path)
    parser.add_argument("--stories", type=Path)
    options = parser.parse_args()
    if options.base:
        print_weights(held_out(options.data, options.folds, pickle.loads(options.base.read_bytes())))
    if options.stories:
        print(f"shift {asyncio.run(shift(options.stories)):.2f}")


def held_out(data: Path, folds: Sequence[Path], base: Mapping[tuple[str, str], Floats]) -> list[tuple[Scored, Floats]]:
    """Return questions with (base, reranker) logits of all messages."""
    stories = [story for story in read_json(data / "train.json.gz") if story["source"] == "everyday"]
    found = []
    for number, path in enumerate(folds):
        rows = iter(json.loads(path.read_text())["rows"])
        for story in stories[number :: len(folds)]:
            for question, row in zip(story["questions"], rows, strict=False):
                scored = Scored.from_list(row)
                scores = np.clip(scored.scores, 1e-7, 1 - 1e-7)
                both = np.c_[base[story["id"], question["text"]][question["hard"]], np.log(scores / (1 - scores))]
                found.append((scored, both))
    return found


def print_weights(questions: Sequence[tuple[Scored, Floats]]) -> None:
    for name, weights in (("base", (1.0, 0.0)), ("reranker", (0.0, 1.0)), ("fused", fitted(questions))):
        rows = [
            Scored(row.group, row.kind, row.answerable, both @ np.array(weights), row.holds) for row, both in questions
        ]
        figures = everyday_figures(rows)
        three = " ".join(f"{key} {figures[key]:.3g}" for key in ("top1", "top3", "auc"))
        print(f"{name}: weights {weights[0]:.2f} {weights[1]:.2f}, held out: {three}")


def fitted(questions: Sequence[tuple[Scored, Floats]]) -> tuple[float, float]:
    """Maximise the likelihood of the choice among a question's candidates and "none", and of each candidate."""
    inputs, labels = np.zeros((len(questions), SHORTLIST, 3)), np.zeros((len(questions), SHORTLIST))
    known = np.zeros(labels.shape, bool)
    for at, (row, both) in enumerate(questions):
        best = np.argsort(-both[:, 0])[:SHORTLIST]
        if row.answerable and not row.holds[best].any():
            continue
        inputs[at, : len(best)] = np.c_[both[best], np.ones(len(best))]
        labels[at, : len(best)], known[at, : len(best)] = row.holds[best], True
    spread = np.array([*inputs[known][:, :2].std(0), 1.0])
    inputs /= spread
    wanted = labels / np.maximum(labels.sum(1, keepdims=True), 1)
    weights, mean, square = np.zeros(3), np.zeros(3), np.zeros(3)
    for step in range(1, STEPS + 1):
        logits = np.where(known, inputs @ weights, -1e9)
        largest = np.maximum(logits.max(1, keepdims=True), 0)
        choice = np.exp(logits - largest)
        choice /= choice.sum(1, keepdims=True) + np.exp(-largest)
        each = 1 / (1 + np.exp(-np.clip(logits, -30, 30)))
        errors = np.where(known, choice - wanted + EACH * (each - labels), 0)
        gradient = np.einsum("ij,ijk->k", errors, inputs) / len(questions)
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        step_size = RATE * (1 - step / STEPS) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights = weights - step_size * mean / (1 - 0.9**step)
    weights /= spread
    return float(weights[0]), float(weights[1])


async def shift(path: Path) -> float:
    """Return the shift that gives the line of 0.6 to the unanswerable questions of the first stories."""
    from jiyi import Memory
    from jiyi.read.rerank import SHIFT

    highest: list[float] = []
    for story in read_json(path)["stories"]:
        if story["id"] not in FIRST_HALF:
            continue
        with tempfile.TemporaryDirectory() as folder:
            async with Memory.open(Path(folder) / "memory.db") as memory:
                await add_story(memory, story)
                for question in story["questions"]:
                    if not question["must"]:
                        asked_at = datetime.fromisoformat(story["asked_at"])
                        found = await memory.search(question["q"], user_id="u", limit=1, asked_at=asked_at)
                        highest.append(max((hit.relevance_score for hit in found.hits), default=0.0))
    line = min(max(sorted(highest)[-1 - round(PASSING * len(highest))], 1e-6), 1 - 1e-6)
    return SHIFT + math.log(LINE / (1 - LINE)) - math.log(line / (1 - line))


async def add_story(memory: Any, story: Any) -> None:
    for number, session in enumerate(story["sessions"]):
        began = datetime.fromisoformat(session["at"])
        messages = [
            {
                "role": message["role"],
                "content": message["text"],
                "sent_at": began + timedelta(seconds=40 * at),
                "name": message.get("name") or (story["user"] if message["role"] == "user" else None),
            }
            for at, message in enumerate(session["messages"])
        ]
        await memory.add(
            [{key: value for key, value in message.items() if value is not None} for message in messages],
            user_id="u",
            session_id=str(number),
        )


if __name__ == "__main__":
    main()
