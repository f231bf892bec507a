"""Fit the relevance model and write its weights. Needs jax (dependency group `fit`).

    python -m bench.relevance bench/data/everyday-train.json.gz --plain bench/data/plain-facts.tsv \\
        [--retrieval SET.json.gz …] [--out src/jiyi/read/relevance.npz]

Stories name the messages that answer each question (`gold`); questions without one are unanswerable. First the stories
are divided into three parts, and each part is scored by networks that were fitted on the others: the report and the
line are from these. Then networks are fitted on everything.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from pathlib import Path

import numpy as np

from jiyi.read.relevance import CANDIDATE_FEATURES

from .data import MODEL, CachedEmbedder, Question, plain_facts, retrieval, stories
from .network import Standard, Weights, fit, logits, merged

FOLDS = 3
Variants = tuple[Question, ...]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.relevance", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("stories", type=Path)
    parser.add_argument("--plain", type=Path, help="tab-separated facts and questions in both languages")
    parser.add_argument("--retrieval", type=Path, nargs="*", default=[], help="sets with messages and queries")
    parser.add_argument("--out", type=Path, default=Path("src/jiyi/read/relevance.npz"))
    parser.add_argument("--embeddings", type=Path, default=Path("bench/out/embeddings.npz"), help="cache of vectors")
    parser.add_argument("--epochs", type=int, default=11)
    parser.add_argument("--networks", type=int, default=4, help="networks whose mean is the model")
    parser.add_argument(
        "--answered", type=float, default=0.43, help="share of held-out unanswerable questions above 0.6"
    )
    args = parser.parse_args()
    told, others = asyncio.run(_data(args))
    standard = Standard.of([variants[0] for variants in told])
    line = _cross_validated(told, others, standard, args)
    networks = [fit([*told, *others], standard, epochs=args.epochs, seed=100 + seed) for seed in range(args.networks)]
    save(args.out, merged(networks, len(standard.mean)), standard, line)


async def _data(args: argparse.Namespace) -> tuple[list[Variants], list[Variants]]:
    embedder = CachedEmbedder(args.embeddings)
    first = await stories(args.stories, embedder)
    again = await stories(args.stories, embedder, asked_before=0.35)
    others = [one for path in args.retrieval for one in await retrieval(path, embedder)]
    others += await plain_facts(args.plain, embedder, weight=0.6) if args.plain else []
    embedder.save()
    return list(zip(first, again, strict=True)), [(one,) for one in others]


def _cross_validated(
    told: list[Variants], others: list[Variants], standard: Standard, args: argparse.Namespace
) -> float:
    """Report on stories that were not trained on; return the line above which the given share is answered."""
    names = sorted({variants[0].story for variants in told})
    random.Random(11).shuffle(names)
    fold = {name: at % FOLDS for at, name in enumerate(names)}
    questions, scored = [], []
    for number in range(FOLDS):
        seen = [variants for variants in told if fold[variants[0].story] != number]
        weights = fit([*seen, *others], standard, epochs=args.epochs, seed=number)
        held_out = [variants[0] for variants in told if fold[variants[0].story] == number]
        questions += held_out
        scored += [_inherited(one, logits(weights, standard, one)) for one in held_out]
    report(questions, scored)
    highest = sorted(values.max() for one, values in zip(questions, scored, strict=True) if not one.answerable)
    return float(highest[-max(1, round(args.answered * len(highest)))])


def _inherited(question: Question, values: np.ndarray) -> np.ndarray:
    old, new = question.successions
    best = values.copy()
    np.maximum.at(best, new, values[old])
    return best


def report(questions: list[Question], scored: list[np.ndarray]) -> None:
    pairs = list(zip(questions, scored, strict=True))
    yes = [(one, one.statement[np.argsort(-values)]) for one, values in pairs if one.answerable]
    best_yes = np.array([values.max() for one, values in pairs if one.answerable])
    best_no = np.array([values.max() for one, values in pairs if not one.answerable])
    shares = []
    for count in (1, 3):
        found = [np.isin(one.statement[one.gold > 0], list(dict.fromkeys(order))[:count]).any() for one, order in yes]
        shares.append(100 * np.mean(found))
    auc = np.mean(best_yes[:, None] > best_no[None]) if len(best_no) else np.nan
    print(f"{len(questions)} held out, top1 {shares[0]:.1f}, top3 {shares[1]:.1f}, answerability AUC {auc:.3f}")


def save(path: Path, weights: Weights, standard: Standard, line: float) -> None:
    stored = {name: value.astype(np.float16 if value.size > 3000 else np.float32) for name, value in weights.items()}
    np.savez_compressed(
        path,
        **stored,
        mean=standard.mean.astype(np.float32),
        spread=standard.spread.astype(np.float32),
        scale=np.ones(1, np.float32),
        line=np.array([line], np.float32),
        features=np.array(CANDIDATE_FEATURES),
        embedder=np.array(MODEL),
    )
    print(f"wrote {path} ({path.stat().st_size:,} bytes), line {line:.2f}")


if __name__ == "__main__":
    main()
