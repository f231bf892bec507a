"""Score validation stories with a PyTorch model and print their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from jiyi_rerank.inputs import UNKNOWN_AGE, age_bucket, message_ids, newer_ids, question_ids, rank_buckets
from jiyi_rerank.wordpiece import WordPiece

from .batches import changes_of
from .metrics import FIRST_HALF, Scored, best_line, everyday_figures, everyday_line, retrieval_figures
from .model import Reranker

BATCH = 2048


@torch.no_grad()
def scored(model: Reranker, pieces: WordPiece, stories: Sequence[Any], previous: bool) -> list[Scored]:
    """Return questions with the probabilities of their candidates (of everyday stories, all messages)."""
    model.eval()
    pairs: list[tuple[list[int], list[int], int, int]] = []
    rows: list[tuple[Any, Any, list[int], int]] = []
    for story in stories:
        cached: dict[int, list[int]] = {}
        for question in story["questions"]:
            chosen = question["hard"]
            rows.append((story, question, chosen, len(pairs)))
            times = [story["messages"][at]["at"] for at in chosen]
            asked = question_ids(pieces, question["text"])
            for at, when, rank in zip(chosen, times, rank_buckets(times), strict=True):
                if at not in cached:
                    cached[at] = _message(story, at, pieces, previous)
                pairs.append(
                    (
                        asked,
                        cached[at],
                        age_bucket(story["asked_at"] - when) if when else UNKNOWN_AGE,
                        rank if when else UNKNOWN_AGE,
                    )
                )
    scores = _probabilities(model, pairs)
    return [
        Scored(
            _group(story),
            question["kind"],
            question["answerable"],
            scores[start : start + len(chosen)],
            np.isin(chosen, question["positive"]),
            max(len(set(question["positive"])), 1),
            np.array(question["scores"]),
        )
        for story, question, chosen, start in rows
    ]


def replaced_report(model: Reranker, pieces: WordPiece, stories: Sequence[Any], name: str) -> str:
    """Return how well older messages that a newer one replaces are told from similar ones that stay true."""
    model.eval()
    pairs, labels = [], []
    for change in (change for story in stories for change in changes_of(story)):
        messages, newer = change.story["messages"], change.story["messages"][change.newer]
        older = change.replaced + change.near
        asked = newer_ids(pieces, newer["text"])
        for at in older:
            age = age_bucket(newer["at"] - messages[at]["at"])
            pairs.append((asked, _message(change.story, at, pieces, False), age, UNKNOWN_AGE))
        labels += [True] * len(change.replaced) + [False] * len(change.near)
    if not any(labels):
        return ""
    with torch.no_grad():
        scores, holds = _probabilities(model, pairs), np.array(labels)
    high, low = scores[holds], scores[~holds]
    auc = float(np.mean(high[:, None] > low[None]))
    lines = [
        f"at {line}: recall {100 * np.mean(high >= line):.0f} precision {100 * holds[scores >= line].mean():.0f}"
        for line in (0.3, 0.5, 0.7, 0.9)
    ]
    return f"{name} | replaced {len(high)} of {len(labels)} AUC {auc:.3f} " + ", ".join(lines)


def replaced_pairs(model: Reranker, pieces: WordPiece, story: Any) -> Any:
    """Return the probability that message i replaces the older message j, for all messages of users."""
    messages = story["messages"]
    users = [at for at, message in enumerate(messages) if message["speaker"] != "assistant"]
    ids = {at: _message(story, at, pieces, False) for at in users}
    places = [(newer, older) for newer in users for older in users if older < newer]
    pairs = [
        (
            newer_ids(pieces, messages[newer]["text"]),
            ids[older],
            age_bucket(messages[newer]["at"] - messages[older]["at"]),
            UNKNOWN_AGE,
        )
        for newer, older in places
    ]
    found = np.zeros((len(messages), len(messages)), np.float16)
    for (newer, older), score in zip(places, _probabilities(model, pairs), strict=True):
        found[newer, older] = score
    return found


def _message(story: Any, at: int, pieces: WordPiece, previous: bool) -> list[int]:
    message = story["messages"][at]
    before = story["messages"][message["previous"]]["text"] if previous and message["previous"] >= 0 else ""
    return message_ids(pieces, message["speaker"], message["text"], before)


def _probabilities(model: Reranker, pairs: list[tuple[list[int], list[int], int, int]]) -> Any:
    from .train import padded

    order = sorted(range(len(pairs)), key=lambda at: len(pairs[at][1]))
    scores = np.zeros(len(pairs), np.float32)
    device = next(model.parameters()).device
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        question, message = (padded([pairs[at][side] for at in part]).to(device) for side in (0, 1))
        age, rank = (torch.tensor([pairs[at][side] for at in part], device=device) for side in (2, 3))
        scores[part] = torch.sigmoid(model(question, message, age, rank)[0].double()).cpu().numpy()
    return scores


def _group(story: Any) -> str:
    if story["source"] != "everyday":
        return str(story["source"])
    half = "first" if story["id"] in FIRST_HALF else "last"
    return f"{half} {story['language']}"


def report(rows: Sequence[Scored], name: str) -> str:
    groups: dict[str, list[Scored]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    lines = []
    everyday = [group for group in groups if group.startswith(("first", "last"))]
    merged = {
        "first": [r for g in everyday if g.startswith("first") for r in groups[g]],
        "all": [r for g in everyday for r in groups[g]],
    }
    for language in ("en", "zh", "mixed"):
        merged[language] = [r for g in everyday if g.endswith(language) for r in groups[g]]
    merged["last"] = [r for g in everyday if g.startswith("last") for r in groups[g]]
    for group, found in merged.items():
        if found:
            figures, (line, best) = everyday_figures(found), best_line(found)
            best_right = f"best {best['right']:.1f} ({best['answered']:.0f} %) at {line:.2f}"
            lines.append(f"{name} | {group:6s} {everyday_line(figures)}; {best_right}")
    for group, found in groups.items():
        if group not in everyday:
            figures = retrieval_figures(found)
            before = retrieval_figures([replace(row, scores=row.prior()) for row in found])
            mixed = retrieval_figures([replace(row, scores=row.prior() + row.scores) for row in found])
            three = " ".join(
                f"{way} {f['hit3']:.1f} {f['recall10']:.1f}"
                for way, f in (("before", before), ("reranked", figures), ("together", mixed))
            )
            lines.append(f"{name} | {group} n {figures['n']} hit@3 R@10 {three}")
    return "\n".join(lines)
