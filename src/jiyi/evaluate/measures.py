"""The measures, as plain functions of what was found and what should have been. docs/evaluation.md explains them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

KS = (1, 3, 5, 10, 25)
RESAMPLES = 2_000
Priced = Sequence[tuple[Sequence[str], int]]  # of each memory, the best first: its messages and its tokens
USE_FROM = 0.6  # the engine's line: what scores below is no answer


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions, and the interval that holds 95 % of the means of resampled questions."""

    value: float
    low: float
    high: float


def ranking(sources: Iterable[Sequence[str]]) -> list[str]:
    """The messages behind ranked memories. A memory made from several counts as those, in order, each once."""
    return list(dict.fromkeys(message_id for source_ids in sources for message_id in source_ids))


def of_one(ranked: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """The measures of one question: how much of its evidence is among the first, and how far up."""
    relevant = [message_id in gold for message_id in ranked]
    found = {f"recall@{k}": sum(relevant[:k]) / len(gold) for k in KS}
    found["hit@3"] = float(any(relevant[:3]))
    found["mrr"] = next((1 / place for place, is_gold in enumerate(relevant, 1) if is_gold), 0.0)
    gains = [1 / math.log2(place + 1) for place in range(1, 11)]
    ideal = sum(gains[: len(gold)])
    found["ndcg@10"] = sum(gain for gain, is_gold in zip(gains, relevant, strict=False) if is_gold) / ideal
    return found


def within(hits: Priced, short: Priced, gold: Collection[str], budget: int) -> float:
    """The share of the evidence in the memories that fit into a budget of tokens, taken in order until one does not; if
    not all fit, in short."""
    left = budget
    seen: set[str] = set()
    fit = sum(tokens for _, tokens in hits) <= budget
    for source_ids, tokens in hits if fit else short:
        left -= tokens
        if left < 0:
            break
        seen.update(source_ids)
    return len(seen.intersection(gold)) / len(gold)


def figures(rows: Sequence[Mapping[str, float]], seed: int) -> dict[str, Figure]:
    """The mean of each measure over questions, with its bootstrap interval. The seed decides it entirely."""
    names = list(rows[0])
    values = np.array([[row[name] for name in names] for row in rows])
    drawn = np.random.default_rng(seed).multinomial(len(rows), [1 / len(rows)] * len(rows), RESAMPLES)
    low, high = np.percentile(drawn @ values / len(rows), (2.5, 97.5), axis=0)
    means = values.mean(axis=0)
    return {name: Figure(float(means[at]), float(low[at]), float(high[at])) for at, name in enumerate(names)}


def auc(own: Sequence[float], foreign: Sequence[float]) -> float:
    """How often a question of the store scores higher than a foreign one; a draw counts half."""
    ordered = np.sort(foreign)
    below = np.searchsorted(ordered, own, side="left")
    not_above = np.searchsorted(ordered, own, side="right")
    return float((below + not_above).sum() / (2 * len(own) * len(foreign)))


def percentile(values: Sequence[float], share: float) -> float:
    return float(np.percentile(values, 100 * share))
