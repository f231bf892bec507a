"""`jiyi bench`: how well memories are made and found, on data that the user has on disk."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from . import options as opt
from .bench_extraction import extraction
from .bench_parts import bars, table
from .output import counted, emit, out, plain, warn

if TYPE_CHECKING:
    from rich.table import Table

    from ..evaluate.measures import Figure
    from ..evaluate.results import Group, RunResult, SetResult
    from ..evaluate.retrieval import Plan

What = Annotated[str, typer.Argument(metavar="WHAT", help="What to measure: retrieval or extraction.")]
DATA = "A benchmark's file, or a folder of them; repeatable."
Data = Annotated[list[Path], typer.Option("--data", metavar="FILE|DIR", help=DATA, show_default=False)]
EMBEDDER = "builtin, openai:MODEL or sentence-transformers:MODEL. Default: the setting."
Embedder = Annotated[str | None, typer.Option("--embedder", metavar="NAME", help=EMBEDDER)]
Budgets = Annotated[str, typer.Option("--budget", metavar="N,N,…", help="Tokens of context to look for evidence in.")]
OUT = "Keep the store, answers, rankings, results and a plot here. Default: nothing is kept."
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help=OUT)]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Of the resampling for the intervals.")]
LIMIT = "Only the first N stores of each file."
LimitStores = Annotated[int | None, typer.Option("--limit-stores", metavar="N", min=1, help=LIMIT)]
IN_THERE = "Also ask each store another one's questions, and see whether the score tells."
SHOW = "extraction: also list what was missed, what is false, and what holds at the wrong time."
ShowMistakes = Annotated[bool, typer.Option("--show", help=SHOW)]
InThere = Annotated[bool, typer.Option("--is-it-in-there", help=IN_THERE)]


def bench(
    what: What,
    data: Data,
    embedder: Embedder = None,
    mode: opt.Mode = None,
    budget: Budgets = "500,1500,3000",
    out_folder: Out = None,
    seed: Seed = 0,
    limit_stores: LimitStores = None,
    is_it_in_there: InThere = False,
    show: ShowMistakes = False,
    as_json: opt.Json = False,
) -> None:
    """Measure how well memories are found, or how well they are made.

    retrieval reads LoCoMo, LongMemEval or a file of yours; extraction reads
    conversations that say what should be remembered of them.

    Examples:
    $ jiyi bench retrieval --data locomo10.json --out results
    $ jiyi bench retrieval --data 评测/ --mode keyword --is-it-in-there
    $ jiyi bench retrieval --data longmemeval_s.json --limit-stores 20
    $ jiyi bench extraction --data tests/corpus/dev --show

    Your own memories are not touched. With --out it can be stopped with
    Ctrl-C and goes on from there the next time.
    """
    from ..settings import load_settings

    settings = load_settings(**({} if embedder is None else {"embedder": embedder}))
    if what == "extraction":
        extraction(data, settings, show=show, as_json=as_json)
        return
    from ..evaluate.data import load
    from ..evaluate.retrieval import measure

    plan = _plan(what, mode or settings.search.default_mode, budget, seed, is_it_in_there)
    sets, passed_over = load(data, limit_stores=limit_stores)
    warn(passed_over)
    with bars() as progress:
        result, notes = asyncio.run(measure(sets, plan, settings=settings, out=out_folder, progress=progress))
    warn(notes)
    for one in result.sets:
        warn(f"{one.name}: {counted(n, 'answer', 'answers')}: {why}" for why, n in one.degraded.items())
    if as_json:
        emit(asdict(result))
    else:
        _show(result, is_it_in_there)
    if out_folder is not None:
        typer.echo(f"results.json, rankings.json and plot.svg are in {out_folder}", err=True)


def _plan(what: str, mode: str, budget: str, seed: int, is_it_in_there: bool) -> Plan:
    from .. import validation
    from ..evaluate.retrieval import Plan

    validation.choice("WHAT", what, ("retrieval", "extraction"))
    validation.choice("--mode", mode, ("hybrid", "keyword", "semantic"))
    return Plan(
        mode=mode,  # type: ignore[arg-type]  # checked above
        budgets=_budgets(budget),
        seed=seed,
        is_it_in_there=is_it_in_there,
    )


def _budgets(written: str) -> tuple[int, ...]:
    try:
        found = tuple(dict.fromkeys(int(part) for part in written.split(",")))
    except ValueError:
        raise InvalidInput("--budget", f"must be numbers of tokens, such as 500,1500, not {written!r}") from None
    if min(found) < 1:
        raise InvalidInput("--budget", "must be more than 0 tokens")
    return found


# -- what is shown --------------------------------------------------------------------------------------------------

RANKS = {
    "R@1": "recall@1",
    "R@3": "recall@3",
    "R@5": "recall@5",
    "R@10": "recall@10",
    "R@25": "recall@25",
    "hit@3": "hit@3",
    "MRR": "mrr",
    "NDCG": "ndcg@10",
}


def _show(result: RunResult, is_it_in_there: bool) -> None:
    from rich.text import Text

    console = out()
    console.print(plain(f"{result.mode} · {result.embedder} · the first {result.hits} memories · figures in %"))
    for one in result.sets:
        console.print()
        console.print(Text(plain(one.name), style="bold cyan"))
        console.print(_ranks(one))
        console.print()
        console.print(_intervals(one, result.budgets))
        console.print(_facts(one, is_it_in_there), soft_wrap=True)


def _ranks(one: SetResult) -> Table:
    shown = table("category", "n", *RANKS)
    for group in one.groups:
        if "recall@10" in group.figures:
            shares = (f"{100 * group.figures[name].value:.1f}" for name in RANKS.values())
            shown.add_row(_name(group), str(group.questions), *shares, style=_style(group))
    return shown


def _intervals(one: SetResult, budgets: tuple[int, ...]) -> Table:
    """How sure the two main figures are, and the evidence within a context of so many tokens."""
    shown = table("category", "R@10 95 %", "hit@3 95 %", *(f"in {budget}" for budget in budgets))
    for group in one.groups:
        if "recall@10" in group.figures:
            main = (_interval(group.figures[name]) for name in ("recall@10", "hit@3"))
            evidence = (f"{100 * group.figures[f'evidence@{budget}'].value:.1f}" for budget in budgets)
            shown.add_row(_name(group), *main, *evidence, style=_style(group))
    return shown


def _facts(one: SetResult, is_it_in_there: bool) -> str:
    from ..evaluate.measures import USE_FROM
    from ..evaluate.results import UNSURE

    stores, messages = counted(one.stores, "store", "stores"), counted(one.messages, "message", "messages")
    lines = [f"{stores}, {messages} · search p50 {one.p50_ms:.1f} ms, p95 {one.p95_ms:.1f} ms"]
    if one.left_out:
        lines.append(
            f"left out: {counted(one.left_out, 'question', 'questions')} whose evidence the file does not name"
        )
    lines += [
        f"{group.category}: {100 * group.figures[UNSURE].value:.1f} % of {group.questions} score below {USE_FROM}"
        for group in one.groups
        if UNSURE in group.figures
    ]
    told = one.is_it_in_there
    if told is not None:
        lines.append(
            f"is it in there? AUC {told.auc:.3f} · own ≥ {USE_FROM}: {100 * told.own_above:.1f} % of {told.own}"
            f" · foreign < {USE_FROM}: {100 * told.foreign_below:.1f} % of {told.foreign}"
        )
    elif is_it_in_there:
        lines.append("is it in there? needs a file with two stores or more")
    return "\n".join(map(plain, lines))


def _name(group: Group) -> str:
    return plain(group.category) + (" (apart)" if group.apart else "")


def _style(group: Group) -> str:
    return "dim" if group.apart else "bold" if group.category == "all" else ""


def _interval(figure: Figure) -> str:
    return f"{100 * figure.low:.1f}–{100 * figure.high:.1f}"
