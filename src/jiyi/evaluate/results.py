"""From answers to figures: what `jiyi bench` prints and writes."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .. import __version__
from ..models import SearchMode
from .data import BenchSet
from .measures import USE_FROM, Figure, auc, figures, of_one, percentile, within
from .run import HITS, Asked

ALL = "all"
UNSURE = "unsure"  # the share of questions whose best hit stays below the line


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The figures of one category. A group that stands apart is not part of `all`."""

    category: str
    questions: int
    apart: bool
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """Whether the best score tells a store's own questions from another's."""

    own: int
    foreign: int
    auc: float
    own_above: float
    foreign_below: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetResult:
    name: str
    stores: int
    messages: int
    questions: int
    left_out: int
    groups: tuple[Group, ...]
    p50_ms: float
    p95_ms: float
    is_it_in_there: Separation | None
    degraded: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    jiyi: str
    python: str
    embedder: str
    mode: SearchMode
    seed: int
    hits: int
    budgets: tuple[int, ...]
    sets: tuple[SetResult, ...]


def summarise_run(
    sets: Sequence[SetResult], *, embedder: str, mode: SearchMode, seed: int, budgets: Sequence[int]
) -> RunResult:
    return RunResult(
        jiyi=__version__,
        python=platform.python_version(),
        embedder=embedder,
        mode=mode,
        seed=seed,
        hits=HITS,
        budgets=tuple(budgets),
        sets=tuple(sets),
    )


def summarise(one: BenchSet, asked: Sequence[Asked], *, budgets: Sequence[int], seed: int) -> SetResult:
    own = [each for each in asked if each.own]
    times = [each.answer.took_ms for each in own]
    return SetResult(
        name=one.name,
        stores=len(one.stores),
        messages=sum(len(store.messages) for store in one.stores),
        questions=len(own),
        left_out=one.left_out,
        groups=_groups(own, budgets, seed),
        p50_ms=percentile(times, 0.5),
        p95_ms=percentile(times, 0.95),
        is_it_in_there=_separation(asked),
        degraded=Counter(problem for each in own for problem in each.answer.degraded),
    )


def rankings(asked: Sequence[Asked]) -> dict[str, list[str]]:
    """What `score.py` of the development sets reads: for each question its messages, the best first."""
    return {each.query.id: each.answer.ranking for each in asked if each.own}


def _groups(own: Sequence[Asked], budgets: Sequence[int], seed: int) -> tuple[Group, ...]:
    """The categories in order of their names, then `all`, then those that stand apart."""
    by_category: dict[tuple[bool, str], list[Asked]] = {}
    for each in own:
        by_category.setdefault((each.query.apart, each.query.category), []).append(each)
    parts = [(category, apart, by_category[apart, category]) for apart, category in sorted(by_category)]
    counted = [each for each in own if not each.query.apart]
    if counted:
        parts.insert(sum(not apart for _, apart, _ in parts), (ALL, False, counted))
    return tuple(
        Group(
            category=category,
            questions=len(part),
            apart=apart,
            figures=figures([_row(each, budgets) for each in part], seed),
        )
        for category, apart, part in parts
    )


def _row(each: Asked, budgets: Sequence[int]) -> dict[str, float]:
    if not each.query.gold:
        return {UNSURE: float(each.answer.top < USE_FROM)}
    hits, short = each.answer.hits, each.answer.short
    evidence = {f"evidence@{budget}": within(hits, short, each.query.gold, budget) for budget in budgets}
    return {**of_one(each.answer.ranking, set(each.query.gold)), **evidence}


def _separation(asked: Sequence[Asked]) -> Separation | None:
    own = [each.answer.top for each in asked if each.own and not each.query.apart]
    foreign = [each.answer.top for each in asked if not each.own]
    if not own or not foreign:
        return None
    return Separation(
        own=len(own),
        foreign=len(foreign),
        auc=auc(own, foreign),
        own_above=sum(score >= USE_FROM for score in own) / len(own),
        foreign_below=sum(score < USE_FROM for score in foreign) / len(foreign),
    )
