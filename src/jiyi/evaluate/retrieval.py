"""`jiyi bench retrieval`: fill a store, ask it, write down what came out."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import InvalidInput
from ..memory import Memory
from ..models import SearchMode
from ..settings import Settings
from .data import BenchSet
from .journal import Journal
from .plot import plot
from .results import RunResult, rankings, summarise, summarise_run
from .run import Asked, Progress, ask, code_digest, fill

ANSWERS = "answers.jsonl"
FILLED_BY = "filled-by"
OTHER_CODE = (
    "{out} was filled by another version of Jiyi's code: searches are measured as they are now, what happens when"
    " memories are written as it was then; a new --out measures both"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    mode: SearchMode
    budgets: tuple[int, ...]
    seed: int
    is_it_in_there: bool


async def measure(
    sets: Sequence[BenchSet], plan: Plan, *, settings: Settings, out: Path | None, progress: Progress
) -> tuple[RunResult, tuple[str, ...]]:
    """The figures, and notes on what a reader should know. With `out`, the files are there too.

    The store in `out` and the answers there make a second run go on where the first was stopped.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
            result, _ = await _measure(sets, plan, settings, Path(folder), progress)
        return result, ()
    notes = _prepare(out)
    result, asked = await _measure(sets, plan, settings, out, progress)
    _write(out, result, asked)
    return result, notes


async def _measure(
    sets: Sequence[BenchSet], plan: Plan, settings: Settings, folder: Path, progress: Progress
) -> tuple[RunResult, list[Asked]]:
    journal = Journal(folder / ANSWERS)
    results = []
    everything: list[Asked] = []
    # A question must not change the answers to the next one, nor one run those of another.
    settings = settings.model_copy(update={"recalls": settings.recalls.model_copy(update={"record": False})})
    async with Memory.open(folder / "memory.db", settings=settings) as memory:
        for one in sets:
            await fill(memory, one, progress)
        if plan.mode != "keyword":  # the store may have been filled with another embedder
            await memory.reindex(
                progress=lambda done, whole: progress("embedding anew", done, whole) if whole else None
            )
        for one in sets:
            asked = await ask(
                memory, one, mode=plan.mode, is_it_in_there=plan.is_it_in_there, journal=journal, progress=progress
            )
            results.append(summarise(one, asked, budgets=plan.budgets, seed=plan.seed))
            everything += asked
        embedder = (await memory.stats()).embedder
    return (
        summarise_run(results, embedder=embedder, mode=plan.mode, seed=plan.seed, budgets=plan.budgets),
        everything,
    )


def _prepare(out: Path) -> tuple[str, ...]:
    """Make the folder, and say so if other code filled the store in it, which is remembered beside it."""
    mark = out / FILLED_BY
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            mark.write_text(code_digest(), encoding="utf-8")
        return () if mark.read_text(encoding="utf-8") == code_digest() else (OTHER_CODE.format(out=out),)
    except OSError as error:
        raise InvalidInput("--out", f"{out} cannot be used: {error.strerror}") from error


def _write(out: Path, result: RunResult, asked: Sequence[Asked]) -> None:
    for name, value in (("results.json", asdict(result)), ("rankings.json", rankings(asked))):
        (out / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    (out / "plot.svg").write_text(plot(result), encoding="utf-8")
