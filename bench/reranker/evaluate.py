"""Evaluate a shipped model (numpy) on everyday-dev and the retrieval sets.

    python -m bench.reranker.evaluate --model FILE --data DIR [--only everyday locomo-dev …] [--save FILE]

Everyday: every message of a story is scored. Retrieval sets: the best 30 by ½ BM25 + ½ dense are reranked. "alone": by
the model's score; "fused": with the similarity of the built-in embedder; "combined": with time and role too
(combine.py); "blended": with the similarity and the order before."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jiyi_rerank.inputs import UNKNOWN_AGE, age_bucket, rank_buckets

from .combine import Candidate, combined
from .files import read_json
from .metrics import FIRST_HALF, Scored, everyday_figures, everyday_line, retrieval_figures
from .numpy_model import Message, NumpyReranker

WAYS = ("alone", "fused", "combined")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", nargs="*", help="sources to evaluate")
    parser.add_argument("--save", type=Path, help="write logits as JSON")
    options = parser.parse_args()
    model = NumpyReranker(options.model)
    stories = read_json(options.data / "validation.json.gz")
    stories = [story for story in stories if not options.only or story["source"] in options.only]
    rows = [row for story in stories for row in score_story(model, story)]
    print_everyday([row for row in rows if row["source"] == "everyday"])
    print_retrieval([row for row in rows if row["source"] != "everyday"])
    if options.save:
        options.save.write_text(json.dumps(rows))


def score_story(model: NumpyReranker, story: Any) -> list[dict[str, Any]]:
    known: dict[int, Message] = {}
    rows = []
    for question in story["questions"]:
        chosen = question["hard"]
        new = [at for at in chosen if at not in known]
        said = [(story["messages"][at]["speaker"], story["messages"][at]["text"]) for at in new]
        known.update(zip(new, model.encode(said), strict=True))
        logits = model.logits(question["text"], [known[at] for at in chosen], ages(story, chosen))
        similar = np.array(question["scores"])[:, 1]
        alone = 1 / (1 + np.exp(-(model.scale * logits + model.shift)))
        fused = 1 / (1 + np.exp(-(model.fusion[0] * logits + model.fusion[1] * similar + model.fusion[2])))
        all_of_it = combined(question["text"], logits, candidates_of(story, chosen, similar), model.fusion)
        rows.append(
            {
                "source": story["source"],
                "story": story["id"],
                "language": story["language"],
                "question": question["text"],
                "kind": question["kind"],
                "answerable": question["answerable"],
                "logits": logits.tolist(),
                "alone": alone.tolist(),
                "fused": fused.tolist(),
                "combined": all_of_it.tolist(),
                "chosen": chosen,
                "scores": question["scores"],
                "holds": np.isin(chosen, question["positive"]).tolist(),
                "stale": np.isin(chosen, question["stale"]).tolist(),
                "evidence": max(len(set(question["positive"])), 1),
            }
        )
    return rows


def ages(story: Any, chosen: Sequence[int]) -> list[tuple[int, int]]:
    times = [story["messages"][at]["at"] for at in chosen]
    if not times or not times[0]:
        return [(UNKNOWN_AGE, UNKNOWN_AGE)] * len(times)
    return list(zip([age_bucket(story["asked_at"] - time) for time in times], rank_buckets(times), strict=True))


def candidates_of(story: Any, chosen: Sequence[int], similar: NDArray[Any]) -> list[Candidate]:
    messages = [story["messages"][at] for at in chosen]
    return [
        Candidate(message["text"], float(cosine), message["speaker"] == "assistant", message["at"] or None)
        for message, cosine in zip(messages, similar, strict=True)
    ]


def as_scored(row: dict[str, Any], scores: NDArray[Any]) -> Scored:
    return Scored(row["source"], row["kind"], row["answerable"], scores, np.array(row["holds"], bool), row["evidence"])


def print_everyday(rows: list[dict[str, Any]]) -> None:
    groups = {"all": rows}
    groups["first half"] = [row for row in rows if row["story"] in FIRST_HALF]
    groups["last half"] = [row for row in rows if row["story"] not in FIRST_HALF]
    groups |= {language: [row for row in rows if row["language"] == language] for language in ("en", "zh", "mixed")}
    for name, found in groups.items():
        for way in WAYS if found else ():
            figures = everyday_figures([as_scored(row, np.array(row[way])) for row in found])
            print(f"everyday {name:10s} {way:8s} {everyday_line(figures)}")


def print_retrieval(rows: list[dict[str, Any]]) -> None:
    for source in dict.fromkeys(row["source"] for row in rows):
        found = [row for row in rows if row["source"] == source]
        ways = {"before": [-np.arange(len(row["chosen"]), dtype=float) for row in found]}
        ways |= {way: [np.array(row[way]) for row in found] for way in WAYS}
        ways["blended"] = [blended(row) for row in found]
        for way, scores in ways.items():
            figures = retrieval_figures([as_scored(row, part) for row, part in zip(found, scores, strict=True)])
            print(f"{source:20s} {way:9s} n {figures['n']} hit@3 {figures['hit3']:.1f} R@10 {figures['recall10']:.1f}")


def blended(row: dict[str, Any]) -> NDArray[Any]:
    """Return a score that trusts the order before too, for questions unlike those of training."""
    place = np.arange(len(row["chosen"]))
    scores: NDArray[Any] = np.array(row["logits"]) + 10 * np.array(row["scores"])[:, 1] + 12 / (2 + place)
    return scores


if __name__ == "__main__":
    main()
