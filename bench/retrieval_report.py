"""Turn answers into figures, and figures into tables."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from rich.table import Table
from rich.text import Text

from jiyi import __version__
from jiyi.models import SearchMode

from .answers import HITS, Asked
from .console import plural, printable, stdout, table
from .datasets import BenchSet
from .measures import RELEVANT_FROM, Figure, auc, evidence_within, figures, question_measures

ALL = "all"
UNSURE = "unsure"  # share of questions whose best hit scores below the threshold
COLUMNS = {
    "R@1": "recall@1",
    "R@3": "recall@3",
    "R@5": "recall@5",
    "R@10": "recall@10",
    "R@25": "recall@25",
    "hit@3": "hit@3",
    "MRR": "mrr",
    "NDCG": "ndcg@10",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Figures of one category; a separate group is not part of `all`."""

    category: str
    questions: int
    separate: bool
    figures: Mapping[str, Figure]

    @property
    def label(self) -> str:
        return printable(self.category) + (" (separate)" if self.separate else "")

    @property
    def style(self) -> str:
        return "dim" if self.separate else "bold" if self.category == ALL else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerability:
    """Separation of a store's own questions from foreign ones by their best score."""

    own: int
    foreign: int
    auc: float
    own_above: float
    foreign_below: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReport:
    name: str
    stores: int
    messages: int
    questions: int
    skipped: int
    groups: tuple[Group, ...]
    p50_ms: float
    p95_ms: float
    answerability: Answerability | None
    degraded: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalReport:
    jiyi: str
    python: str
    embedder: str
    mode: SearchMode
    seed: int
    hits: int
    budgets: tuple[int, ...]
    sets: tuple[SetReport, ...]


def summarise(
    sets: Sequence[SetReport], *, embedder: str, mode: SearchMode, seed: int, budgets: Sequence[int]
) -> RetrievalReport:
    return RetrievalReport(
        jiyi=__version__,
        python=platform.python_version(),
        embedder=embedder,
        mode=mode,
        seed=seed,
        hits=HITS,
        budgets=tuple(budgets),
        sets=tuple(sets),
    )


def summarise_set(one: BenchSet, asked: Sequence[Asked], *, budgets: Sequence[int], seed: int) -> SetReport:
    own = [each for each in asked if each.own]
    p50, p95 = np.percentile([each.answer.took_ms for each in own], (50, 95))
    return SetReport(
        name=one.name,
        stores=len(one.stores),
        messages=sum(len(store.messages) for store in one.stores),
        questions=len(own),
        skipped=one.skipped,
        groups=_groups(own, budgets, seed),
        p50_ms=float(p50),
        p95_ms=float(p95),
        answerability=_answerability(asked),
        degraded=Counter(problem for each in own for problem in each.answer.degraded),
    )


def rankings(asked: Sequence[Asked]) -> dict[str, list[str]]:
    """Ranked source messages of each question."""
    return {each.query.id: each.answer.ranking for each in asked if each.own}


def _groups(own: Sequence[Asked], budgets: Sequence[int], seed: int) -> tuple[Group, ...]:
    """Figures by category name, then `all`, then the separate categories."""
    by_category: dict[tuple[bool, str], list[Asked]] = {}
    for each in own:
        by_category.setdefault((each.query.separate, each.query.category), []).append(each)
    parts = [(category, separate, by_category[separate, category]) for separate, category in sorted(by_category)]
    counted = [each for each in own if not each.query.separate]
    if counted:
        parts.insert(sum(not separate for _, separate, _ in parts), (ALL, False, counted))
    return tuple(
        Group(
            category=category,
            questions=len(part),
            separate=separate,
            figures=figures([_measures(each, budgets) for each in part], seed),
        )
        for category, separate, part in parts
    )


def _measures(each: Asked, budgets: Sequence[int]) -> dict[str, float]:
    gold = set(each.query.gold)
    if not gold:
        return {UNSURE: float(each.answer.top < RELEVANT_FROM)}
    evidence = {f"evidence@{budget}": evidence_within(each.answer.hits, gold, budget) for budget in budgets}
    return {**question_measures(each.answer.ranking, gold), **evidence}


def _answerability(asked: Sequence[Asked]) -> Answerability | None:
    own = [each.answer.top for each in asked if each.own and not each.query.separate]
    foreign = [each.answer.top for each in asked if not each.own]
    if not own or not foreign:
        return None
    return Answerability(
        own=len(own),
        foreign=len(foreign),
        auc=auc(own, foreign),
        own_above=sum(score >= RELEVANT_FROM for score in own) / len(own),
        foreign_below=sum(score < RELEVANT_FROM for score in foreign) / len(foreign),
    )


# -- tables ---------------------------------------------------------------------------------------------------------


def print_report(report: RetrievalReport, *, answerability: bool) -> None:
    console = stdout()
    console.print(printable(f"{report.mode} · {report.embedder} · first {report.hits} memories · figures in %"))
    for one in report.sets:
        console.print()
        console.print(Text(printable(one.name), style="bold cyan"))
        console.print(_ranking_table(one))
        console.print()
        console.print(_interval_table(one, report.budgets))
        console.print(_notes(one, answerability), soft_wrap=True)


def _ranking_table(one: SetReport) -> Table:
    shown = table("category", "n", *COLUMNS)
    for group in one.groups:
        if "recall@10" in group.figures:
            shares = (f"{100 * group.figures[name].value:.1f}" for name in COLUMNS.values())
            shown.add_row(group.label, str(group.questions), *shares, style=group.style)
    return shown


def _interval_table(one: SetReport, budgets: tuple[int, ...]) -> Table:
    """Intervals of the two main figures, and the evidence within each token budget."""
    shown = table("category", "R@10 95 %", "hit@3 95 %", *(f"in {budget}" for budget in budgets))
    for group in one.groups:
        if "recall@10" in group.figures:
            main = (_interval(group.figures[name]) for name in ("recall@10", "hit@3"))
            evidence = (f"{100 * group.figures[f'evidence@{budget}'].value:.1f}" for budget in budgets)
            shown.add_row(group.label, *main, *evidence, style=group.style)
    return shown


def _interval(figure: Figure) -> str:
    return f"{100 * figure.low:.1f}–{100 * figure.high:.1f}"


def _notes(one: SetReport, answerability: bool) -> str:
    counts = f"{plural(one.stores, 'store')}, {plural(one.messages, 'message')}"
    lines = [f"{counts} · search p50 {one.p50_ms:.1f} ms, p95 {one.p95_ms:.1f} ms"]
    if one.skipped:
        lines.append(f"skipped: {plural(one.skipped, 'question')} without evidence in the file")
    lines += [
        f"{group.category}: {100 * group.figures[UNSURE].value:.1f} % of {group.questions} score below {RELEVANT_FROM}"
        for group in one.groups
        if UNSURE in group.figures
    ]
    found = one.answerability
    if found is not None:
        lines.append(
            f"answerability: AUC {found.auc:.3f} · own ≥ {RELEVANT_FROM}: {100 * found.own_above:.1f} % of {found.own}"
            f" · foreign < {RELEVANT_FROM}: {100 * found.foreign_below:.1f} % of {found.foreign}"
        )
    elif answerability:
        lines.append("answerability: needs a file with two stores or more")
    return "\n".join(map(printable, lines))
