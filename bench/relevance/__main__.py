"""Fit the relevance model and write its weights. Needs jax (dependency group `fit`).

    python -m bench.relevance bench/data/everyday-train.json.gz --plain bench/data/plain-facts.tsv \\
        [--retrieval SET.json.gz …] [--check everyday.json.gz] --out src/jiyi/read/relevance.npz

Stories name the messages that answer each question (`gold`); questions without one are unanswerable. Stories are also
used with some of their questions asked before and not answered. `--check` reports a set that is not trained on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from jiyi.read.relevance import CANDIDATE_FEATURES

from .data import MODEL, Embeddings, Question, plain_facts, retrieval, stories
from .network import Standard, Weights, fit, logits, merged


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.relevance", description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("stories", type=Path)
    parser.add_argument("--plain", type=Path, help="tab-separated facts and questions in both languages")
    parser.add_argument("--retrieval", type=Path, nargs="*", default=[], help="sets in the shape of docs/evaluation.md")
    parser.add_argument("--check", type=Path, help="stories to report on")
    parser.add_argument("--out", type=Path, default=Path("src/jiyi/read/relevance.npz"))
    parser.add_argument("--embeddings", type=Path, default=Path("bench/out/embeddings.npz"), help="cache of vectors")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--line", type=float, default=-0.95, help="logit that gets the score 0.6")
    args = parser.parse_args()

    embeddings = Embeddings(args.embeddings)
    told = stories(args.stories, embeddings, weight=0.5)
    found = [one for path in args.retrieval for one in retrieval(path, embeddings, 0.5)]
    more = stories(args.stories, embeddings, asked_before=0.35, weight=0.6)
    more += plain_facts(args.plain, embeddings, weight=0.5) if args.plain else []
    embeddings.save()
    standard = Standard.of(told)
    # The mixes err differently: the first tells best whether there is an answer, the others find it in larger stores.
    mixes = [told, [*told, *found], [*told, *more, *found]]
    networks = [fit(mix, standard, epochs=args.epochs, seed=seed) for seed, mix in enumerate(mixes)]
    weights = merged(networks, len(standard.mean))
    if args.check:
        checked = stories(args.check, embeddings)
        report(checked, [logits(weights, standard, one) for one in checked])
    save(args.out, weights, standard, args.line)


def report(questions: list[Question], scored: list[np.ndarray]) -> None:
    pairs = list(zip(questions, scored, strict=True))
    yes = [(one, np.argsort(-values)) for one, values in pairs if one.must]
    best_yes = np.array([values.max() for one, values in pairs if one.must])
    best_no = np.array([values.max() for one, values in pairs if not one.gold.any()])
    first, three = (
        100 * np.mean([any(int(at) in one.must for at in order[:count]) for one, order in yes]) for count in (1, 3)
    )
    auc = np.mean(best_yes[:, None] > best_no[None]) if len(best_no) else np.nan
    print(f"{len(questions)} questions, top1 {first:.1f}, top3 {three:.1f}, answerability AUC {auc:.3f}")


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
