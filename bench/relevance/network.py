"""The network of `jiyi.read.relevance` in jax: training, export, and the figures of a fit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jiyi.read.relevance import CANDIDATE_FEATURES

from .data import MOST, Question, hardest

QUESTIONS = 24  # in a batch
RATE = 2e-3
DROPOUT = 0.2
DECAY = 1e-3
STALE = 2.0  # weight of candidates that say what is no longer so
DIMENSIONS = {"match": 48, "before": 16, "kind_message": 12, "kind_query": 12, "hidden": 48}
WORDS = [
    CANDIDATE_FEATURES.index(name) for name in ("coverage", "previous_coverage", "rarest_word", "proper_words", "bm25")
]
MEANING = [at for at, name in enumerate(CANDIDATE_FEATURES) if name.endswith("cosine")]

Weights = dict[str, Any]


@dataclass(frozen=True)
class Standard:
    """Mean and spread of the features, by which inputs are standardised."""

    mean: np.ndarray
    spread: np.ndarray

    @classmethod
    def of(cls, questions: list[Question]) -> Standard:
        rows = np.vstack([question.rows for question in questions])
        return cls(rows.mean(0), rows.std(0) + 1e-2)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        return (rows - self.mean) / self.spread


def fit(questions: list[tuple[Question, ...]], standard: Standard, *, epochs: int, seed: int) -> Weights:
    """Train one network with Adam and a linear decay of the rate; of variants of a question, one is taken at random."""
    rng = np.random.default_rng(seed)
    weights = _initial(jax.random.PRNGKey(seed), len(standard.mean))
    first, second = jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights)
    steps = epochs * (len(questions) // QUESTIONS)
    step = 0
    for _ in range(epochs):
        order = rng.permutation(len(questions))
        for at in range(0, len(order) - QUESTIONS + 1, QUESTIONS):
            step += 1
            chosen = [questions[one][rng.integers(len(questions[one]))] for one in order[at : at + QUESTIONS]]
            batch = _batch(chosen, standard, rng)
            rate = RATE * min(1, step / 60) * max(0.0, 1 - step / steps)
            key = jax.random.PRNGKey(step + 100_000 * seed)
            weights, first, second = _update(weights, first, second, step, rate, batch, key)
        print(f"seed {seed}: {step} of {steps} steps", flush=True)
    return {name: np.asarray(value) for name, value in weights.items()}


def _initial(key: Any, features: int) -> Weights:
    keys = iter(jax.random.split(key, 8))

    def normal(rows: int, columns: int, scale: float) -> Any:
        return jax.random.normal(next(keys), (rows, columns)) * scale

    sizes = DIMENSIONS
    inputs = features + sizes["match"] + sizes["before"] + sizes["kind_message"] + sizes["kind_query"]
    return {
        "match_query": normal(512, sizes["match"], 0.5),
        "match_message": normal(512, sizes["match"], 0.06),
        "before_query": normal(512, sizes["before"], 0.5),
        "before_previous": normal(512, sizes["before"], 0.06),
        "kind_message": normal(512, sizes["kind_message"], 0.2),
        "kind_query": normal(512, sizes["kind_query"], 0.2),
        "hidden": normal(inputs, sizes["hidden"], inputs**-0.5),
        "hidden_bias": jnp.zeros(sizes["hidden"]),
        "output": normal(sizes["hidden"], 1, sizes["hidden"] ** -0.5),
        "direct": jnp.zeros((inputs, 1)),
        "bias": jnp.array([-2.5]),
    }


def _logits(weights: Weights, rows: Any, vectors: Any, previous: Any, query: Any, key: Any = None) -> Any:
    match = (query @ weights["match_query"])[:, None] * (vectors @ weights["match_message"])
    before = (query @ weights["before_query"])[:, None] * (previous @ weights["before_previous"])
    kind = vectors @ weights["kind_message"]
    asked = jnp.broadcast_to(
        (query @ weights["kind_query"])[:, None], (*rows.shape[:2], weights["kind_query"].shape[1])
    )
    inputs = jnp.concatenate([rows, match, before, kind, asked], -1)
    if key is not None:
        one, other = jax.random.split(key)
        inputs = _dropped(inputs, one)
    hidden = jax.nn.gelu(inputs @ weights["hidden"] + weights["hidden_bias"])
    if key is not None:
        hidden = _dropped(hidden, other)
    return (hidden @ weights["output"] + inputs @ weights["direct"])[..., 0] + weights["bias"]


def _dropped(values: Any, key: Any) -> Any:
    return values * jax.random.bernoulli(key, 1 - DROPOUT, values.shape) / (1 - DROPOUT)


def _loss(weights: Weights, batch: tuple[Any, ...], key: Any) -> Any:
    """Cross-entropy of each candidate, and of the choice among a question's candidates and "none of them"."""
    rows, vectors, previous, query, gold, counted, importance = batch
    logits = _logits(weights, rows, vectors, previous, query, key)
    each = -(2 * gold * jax.nn.log_sigmoid(logits) + (1 - gold) * jax.nn.log_sigmoid(-logits)) * counted
    choices = jnp.concatenate([jnp.zeros((len(logits), 1)), jnp.where(counted > 0, logits, -1e9)], 1)
    wanted = jnp.concatenate([(gold.sum(1, keepdims=True) == 0), gold], 1)
    wanted = wanted / wanted.sum(1, keepdims=True)
    choice = -(wanted * jnp.where(wanted > 0, jax.nn.log_softmax(choices), 0)).sum(1)
    size = sum((value**2).sum() for name, value in weights.items() if "bias" not in name)
    return ((each.sum(1) + choice) * importance).sum() / importance.sum() + DECAY * size


@jax.jit
def _update(
    weights: Weights, first: Weights, second: Weights, step: Any, rate: Any, batch: tuple[Any, ...], key: Any
) -> tuple[Weights, Weights, Weights]:
    gradient = jax.grad(_loss)(weights, batch, key)
    first = jax.tree.map(lambda mean, new: 0.9 * mean + 0.1 * new, first, gradient)
    second = jax.tree.map(lambda mean, new: 0.999 * mean + 0.001 * new * new, second, gradient)

    def moved(value: Any, mean: Any, square: Any) -> Any:
        return value - rate * (mean / (1 - 0.9**step)) / (jnp.sqrt(square / (1 - 0.999**step)) + 1e-8)

    return jax.tree.map(moved, weights, first, second), first, second


def _batch(questions: list[Question], standard: Standard, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Pad a batch. Some questions lose their words, their meaning or their vectors, as in other search modes."""
    features, size = len(standard.mean), len(questions)
    rows = np.zeros((size, MOST, features), np.float32)
    vectors, previous = np.zeros((size, MOST, 512), np.float32), np.zeros((size, MOST, 512), np.float32)
    gold, counted = np.zeros((size, MOST), np.float32), np.zeros((size, MOST), np.float32)
    query = np.zeros((size, 512), np.float32)
    for at, one in enumerate(questions):
        chosen = hardest(one, rng)
        end = len(chosen)
        raw = one.rows[chosen].copy()
        loses = rng.random()
        if loses < 0.06:
            raw[:, WORDS] = 0
        elif loses < 0.12:
            raw[:, MEANING] = 0
        rows[at, :end] = standard(raw)
        gold[at, :end] = one.gold[chosen]
        counted[at, :end] = ~one.ignored[chosen] * np.where(one.stale[chosen] & (one.gold[chosen] == 0), STALE, 1)
        if not 0.06 <= loses < 0.22:
            vectors[at, :end], previous[at, :end], query[at] = one.vectors[chosen], one.previous[chosen], one.query
    return rows, vectors, previous, query, gold, counted, np.array([one.weight for one in questions], np.float32)


def merged(networks: list[Weights], features: int) -> Weights:
    """Join several networks into one that gives the mean of their logits."""
    count, parts = len(networks), ("match", "before", "kind_message", "kind_query")
    first = networks[0]
    sizes = [first[name if name in first else f"{name}_query"].shape[1] for name in parts]
    width = first["hidden"].shape[1]
    hidden = np.zeros((features + count * sum(sizes), count * width))
    direct = np.zeros((len(hidden), 1))
    for number, network in enumerate(networks):
        columns = slice(number * width, (number + 1) * width)
        hidden[:features, columns] = network["hidden"][:features]
        direct[:features] += network["direct"][:features] / count
        start, taken = features, features
        for size in sizes:
            rows = slice(start + number * size, start + (number + 1) * size)
            hidden[rows, columns] = network["hidden"][taken : taken + size]
            direct[rows] = network["direct"][taken : taken + size] / count
            start, taken = start + count * size, taken + size
    joined = {
        name: np.hstack([network[name] for network in networks])
        for name in first
        if name.endswith(("_query", "_message", "_previous"))
    }
    return joined | {
        "hidden": hidden,
        "hidden_bias": np.concatenate([network["hidden_bias"] for network in networks]),
        "output": np.vstack([network["output"] for network in networks]) / count,
        "direct": direct,
        "bias": np.mean([network["bias"] for network in networks], axis=0),
    }


def logits(weights: Weights, standard: Standard, question: Question) -> np.ndarray:
    """Score all candidates of one question."""
    arrays = (standard(question.rows), question.vectors.astype(np.float32), question.previous.astype(np.float32))
    return np.asarray(_scored(weights, *(array[None] for array in arrays), question.query[None]))[0]


_scored = jax.jit(partial(_logits, key=None))
