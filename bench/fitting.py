"""Fits the numbers of `read/presets.py` and `read/relevance.py` on retrieval benchmarks, and cross-validates them.

    python -m bench.fitting FILE|DIR … [--keep FOLDER]

The sets' messages are taken in through the public API, every question is asked, and what the legs say of each memory is
the material. Ranking: a listwise logistic fit (softmax over one question's memories, gold against the rest), all sets
with the same weight. Relevance: a logistic fit of "this store holds the answer" on the best hit's signs, each set's own
questions against questions that belong to another store. Figures are those of five folds over questions.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from jiyi import Memory
from jiyi.index.query import Candidates
from jiyi.languages.words import language
from jiyi.models import SearchMode
from jiyi.read.presets import PRESETS
from jiyi.read.query import asks_assistant, interpret
from jiyi.read.rank import LEGS, best, parts_of, score
from jiyi.read.relevance import STEEPNESS, signs
from jiyi.read.search import question_of
from jiyi.scope import Filter

from .answers import fill, user_of
from .datasets import BenchQuery, BenchSet, BenchStore, load

Array = NDArray[np.float64]
FOLDS = 5
RIDGE = 3e-3
# There is nothing in these sets by which they could be fitted.
BY_HAND = ("recency", "importance", "uses", "priority", "phrase", "keyword", "held", "derived")
LOGITS = 2 * STEEPNESS  # a weight of 1 in the fit's units; what is behind by 1 loses STEEPNESS, half of it


@dataclass(frozen=True, slots=True)
class Ranked:
    """One question: the parts of every memory's score, and which of them are gold."""

    of: str
    parts: dict[str, Array]
    gold: NDArray[np.intp]
    wanted: int


@dataclass(frozen=True, slots=True)
class Signed:
    """One question put to a store: the signs at its best hit, and whether it belongs there."""

    of: str
    mode: SearchMode
    own: bool
    signs: tuple[float, ...]


async def main(paths: Sequence[Path], folder: Path) -> None:
    sets, _ = load(paths)
    async with Memory.open(folder / "fitting.db") as memory:
        for one in sets:
            print(f"taking in {one.name}", flush=True)
            await fill(memory, one, lambda what, done, whole: None)
        ranked = [row async for row in rank_rows(memory, sets)]
        show_ranking(ranked)
        signed = [row async for row in sign_rows(memory, sets)]
        show_relevance(signed)


async def rank_rows(memory: Memory, sets: Sequence[BenchSet]) -> AsyncIterator[Ranked]:
    for one in sets:
        for store in one.stores:
            sources = await sources_of(memory, user_of(one, store))
            for query in store.queries:
                if query.separate:
                    continue
                candidates, _ = await asked(memory, one, store, query, "hybrid", own=True)
                weights = PRESETS["measured"]
                unasked = not asks_assistant(query.text)
                parts = parts_of(candidates, weights, LEGS["hybrid"], unasked)
                # What was worked out of messages lends to them, but has no gold of its own.
                said = slice(None) if candidates.derived is None else ~candidates.derived
                held = [bool(sources[memory_id] & set(query.gold)) for memory_id in candidates.ids[said]]
                known = {
                    name: np.asarray(value, np.float64)[said]
                    for name, value in parts
                    if value is not None and name not in BY_HAND
                }
                yield Ranked(one.name, known, np.flatnonzero(held), len(query.gold))


async def sign_rows(memory: Memory, sets: Sequence[BenchSet]) -> AsyncIterator[Signed]:
    """Every question is asked where it belongs, and where it does not."""
    for one in sets:
        for at, store in enumerate(one.stores):
            strange = strangers(sets, one, at)
            for number, query in enumerate(query for query in store.queries if not query.separate):
                places = [(one, store, True), (*strange[number % len(strange)], False)]
                for mode in LEGS:
                    for where, place, own in places:
                        candidates, first = await asked(memory, where, place, query, mode, own=own)
                        if first is not None:
                            _, words, meaning, dialogue = signs(candidates, first)
                            words = 0.0 if mode == "semantic" else words
                            yield Signed(one.name, mode, own, (1.0, words, meaning, dialogue))


def strangers(sets: Sequence[BenchSet], one: BenchSet, at: int) -> list[tuple[BenchSet, BenchStore]]:
    """Stores that know nothing of a store's questions: others of its set; if those are few, of sets in its language."""
    if len(one.stores) > 2:
        return [(one, store) for other, store in enumerate(one.stores) if other != at]
    spoken = language(one.stores[at].messages[0].text)
    others = [(other, store) for other in sets if other is not one for store in other.stores]
    kind = one.name.partition("-")[0]  # the same conversations may be there in two languages
    return [
        (other, store)
        for other, store in others
        if language(store.messages[0].text) == spoken and not other.name.startswith(kind)
    ]


async def asked(
    memory: Memory, one: BenchSet, store: BenchStore, query: BenchQuery, mode: SearchMode, *, own: bool
) -> tuple[Candidates, int | None]:
    """Return the candidates and the index of the best one."""
    where = Filter.parse(user_id=user_of(one, store), asked_at=(query.asked_at if own else None) or store.last_at)
    inquiry = interpret(
        query.text, where, mode=mode, keywords=None, min_score=0, limit=1, explain=False, with_synonyms=True
    )
    question = await question_of(
        inquiry, memory._engine.store, memory._engine.embedder, memory._engine.searcher._ranking, []
    )
    candidates = await memory._engine.index.gather(question)
    scores = score(candidates, PRESETS["measured"], LEGS[mode], unasked=not asks_assistant(query.text))
    places = best(candidates, scores, 1)
    return candidates, int(places[0]) if len(places) else None


async def sources_of(memory: Memory, user_id: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    cursor = None
    while True:
        page = await memory.list(user_id=user_id, limit=1000, cursor=cursor)
        found |= {item.id: set(item.source_ids) for item in page.items}
        if (cursor := page.next_cursor) is None:
            return found


# -- ranking --------------------------------------------------------------------------------------------------------


def show_ranking(rows: Sequence[Ranked]) -> None:
    names = sorted({name for row in rows for name in row.parts})
    matrices = [
        np.stack([row.parts.get(name, np.zeros(len(row.parts["asks"]))) for name in names], axis=1) for row in rows
    ]
    fold = folds([row.of for row in rows])
    measured: list[tuple[float, float]] = [(0.0, 0.0)] * len(rows)
    for number in range(FOLDS):
        train = np.flatnonzero(fold != number)
        weights = fit_ranking([matrices[at] for at in train], [rows[at] for at in train])
        for at in np.flatnonzero(fold == number):
            measured[at] = measures(matrices[at] @ weights, rows[at])
    everything = fit_ranking(matrices, rows)
    fitted = [measures(matrix @ everything, row) for matrix, row in zip(matrices, rows, strict=True)]
    print("\nranking              five folds: R@10 hit@3    fitted on all: R@10 hit@3")
    for of in dict.fromkeys(row.of for row in rows):
        at = [number for number, row in enumerate(rows) if row.of == of]
        folded, whole = (100 * np.mean([some[number] for number in at], axis=0) for some in (measured, fitted))
        print(f"{of:20} {folded[0]:17.1f} {folded[1]:6.1f} {whole[0]:20.1f} {whole[1]:6.1f}")
    print(
        "weights: " + ", ".join(f"{name} {value / LOGITS:+.2f}" for name, value in zip(names, everything, strict=True))
    )


def measures(total: Array, row: Ranked) -> tuple[float, float]:
    """Recall at 10 and hit at 3."""
    top = np.isin(np.argsort(-total, kind="stable")[:10], row.gold)
    return float(top.sum()) / row.wanted, float(top[:3].any())


def fit_ranking(matrices: Sequence[Array], rows: Sequence[Ranked]) -> Array:
    """Half the mean over gold of -log softmax, half -log of gold's summed softmax."""
    sizes = [len(matrix) for matrix in matrices]
    starts = np.cumsum([0, *sizes])[:-1]
    owner = np.repeat(np.arange(len(rows)), sizes)
    count = Counter(row.of for row in rows)
    share = np.zeros(len(owner))
    for start, row in zip(starts, rows, strict=True):
        if len(row.gold):
            share[start + row.gold] = 1 / len(row.gold) / count[row.of]
    everything = np.concatenate(list(matrices))
    spread = everything.std(axis=0) + 1e-9
    everything = everything / spread
    of_question = np.add.reduceat(share, starts)
    gold = share > 0

    def loss(weights: Array) -> tuple[float, Array]:
        total = everything @ weights
        total -= np.maximum.reduceat(total, starts)[owner]
        mass = np.exp(total)
        whole = np.add.reduceat(mass, starts)
        chance = mass / whole[owner]
        of_gold = np.where(gold, chance, 0)
        gold_chance = np.add.reduceat(of_gold, starts) + 1e-30
        value = -0.5 * (share * (total - np.log(whole)[owner])).sum() - 0.5 * (of_question * np.log(gold_chance)).sum()
        pull = 0.5 * share + (0.5 * of_gold / gold_chance[owner] - chance) * of_question[owner]
        return value + RIDGE * weights @ weights, -(everything.T @ pull) + 2 * RIDGE * weights

    found = minimize(loss, np.zeros(everything.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 150})
    return np.asarray(found.x / spread)


# -- relevance ------------------------------------------------------------------------------------------------------


def show_relevance(rows: Sequence[Signed]) -> None:
    for mode in LEGS:
        some = [row for row in rows if row.mode == mode]
        matrix = np.array([row.signs for row in some])
        own = np.array([row.own for row in some])
        fold = folds([f"{row.of} {row.own}" for row in some])
        level = np.zeros(len(some))
        for number in range(FOLDS):
            train = fold != number
            weights = fit_relevance(matrix[train], [row for row, known in zip(some, train, strict=True) if known])
            level[fold == number] = matrix[fold == number] @ weights
        print(f"\nrelevance, {mode}: AUC, own questions at 0.6 or more, foreign ones below (five folds)")
        for of in dict.fromkeys(row.of for row in some):
            here = np.array([row.of == of for row in some])
            mine, others = level[here & own], level[here & ~own]
            auc = float(np.mean(mine[:, None] > others[None, :]))
            line = np.log(0.6 / 0.4)
            print(f"{of:20} {auc:.3f} {100 * np.mean(mine >= line):5.0f} % {100 * np.mean(others < line):5.0f} %")
        weights = fit_relevance(matrix, some)
        named = zip(("start", "words", "meaning", "dialogue"), weights, strict=True)
        print("weights: " + ", ".join(f"{name} {value:+.2f}" for name, value in named))


def fit_relevance(matrix: Array, rows: Sequence[Signed]) -> Array:
    """A logistic fit, every set's own and foreign questions with the same weight; the even point is moved to 0.6."""
    own = np.array([row.own for row in rows], np.float64)
    count = Counter((row.of, row.own) for row in rows)
    weight = np.array([1 / count[row.of, row.own] for row in rows])
    used = matrix.any(axis=0)

    def loss(given: Array) -> tuple[float, Array]:
        weights = np.where(used, given, 0)
        level = matrix @ weights
        chance = 1 / (1 + np.exp(-level))
        value = (weight * (np.logaddexp(0, level) - own * level)).sum() + RIDGE * weights[1:] @ weights[1:]
        pull = matrix.T @ (weight * (chance - own)) + 2 * RIDGE * np.concatenate(([0], weights[1:]))
        return value, np.where(used, pull, 0)

    found = minimize(loss, np.zeros(matrix.shape[1]), jac=True, method="L-BFGS-B").x
    found[0] += np.log(0.6 / 0.4)
    return np.asarray(found)


def folds(kinds: Sequence[str]) -> NDArray[np.intp]:
    """A number of a fold for each row, every kind spread evenly over them."""
    rng = np.random.default_rng(0)
    fold = np.zeros(len(kinds), np.intp)
    for kind in dict.fromkeys(kinds):
        at = [number for number, other in enumerate(kinds) if other == kind]
        fold[at] = rng.permutation(np.arange(len(at)) % FOLDS)
    return fold


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(prog="python -m bench.fitting", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="+", type=Path, metavar="FILE|DIR")
    parser.add_argument("--keep", type=Path, help="folder for the filled store, to be used again")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        folder = given.keep or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(main(given.data, folder))
