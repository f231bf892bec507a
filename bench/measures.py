"""Retrieval measures of a ranking and its gold messages, explained in docs/internals/evaluation.md."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

KS = (1, 3, 5, 10, 25)
RESAMPLES = 2_000
RELEVANT_FROM = 0.6  # hits that score below are not used as answers
PricedHits = Sequence[tuple[Sequence[str], int]]  # source message ids and token count of each hit, best first


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over questions with its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def ranking(sources: Iterable[Sequence[str]]) -> list[str]:
    """Flatten ranked memories into their source messages, each once."""
    return list(dict.fromkeys(message_id for source_ids in sources for message_id in source_ids))


def question_measures(ranked: Sequence[str], gold: Collection[str]) -> dict[str, float]:
    """Recall@k, hit@3, MRR and NDCG@10 of one question."""
    relevant = [message_id in gold for message_id in ranked]
    found = {f"recall@{k}": sum(relevant[:k]) / len(gold) for k in KS}
    found["hit@3"] = float(any(relevant[:3]))
    found["mrr"] = next((1 / rank for rank, is_gold in enumerate(relevant, 1) if is_gold), 0.0)
    gains = [1 / math.log2(rank + 1) for rank in range(1, 11)]
    ideal = sum(gains[: len(gold)])
    found["ndcg@10"] = sum(gain for gain, is_gold in zip(gains, relevant, strict=False) if is_gold) / ideal
    return found


def evidence_within(hits: PricedHits, gold: Collection[str], budget: int) -> float:
    """Share of the gold messages covered by the first hits that fit into a token budget."""
    left = budget
    seen: set[str] = set()
    for source_ids, tokens in hits:
        left -= tokens
        if left < 0:
            break
        seen.update(source_ids)
    return len(seen.intersection(gold)) / len(gold)


def figures(rows: Sequence[Mapping[str, float]], seed: int) -> dict[str, Figure]:
    """Mean of each measure over questions, with its bootstrap interval. Deterministic for a seed."""
    names = list(rows[0])
    values = np.array([[row[name] for name in names] for row in rows])
    drawn = np.random.default_rng(seed).multinomial(len(rows), [1 / len(rows)] * len(rows), RESAMPLES)
    low, high = np.percentile(drawn @ values / len(rows), (2.5, 97.5), axis=0)
    means = values.mean(axis=0)
    return {name: Figure(float(means[at]), float(low[at]), float(high[at])) for at, name in enumerate(names)}


def auc(own: Sequence[float], foreign: Sequence[float]) -> float:
    """Probability that a store's own question scores higher than a foreign one; a tie counts half."""
    ordered = np.sort(foreign)
    below = np.searchsorted(ordered, own, side="left")
    not_above = np.searchsorted(ordered, own, side="right")
    return float((below + not_above).sum() / (2 * len(own) * len(foreign)))
