"""`python -m bench.retrieval`: measure search on LoCoMo, LongMemEval or your own files.

Your own memories are not touched. With --out, an interrupted run resumes the next time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from jiyi import Memory
from jiyi.errors import InvalidInput
from jiyi.models import SearchMode
from jiyi.settings import Settings, load_settings

from .answers import Asked, Journal, ask, code_digest, fill
from .console import Report, plural, print_json, progress_bars, run, warn
from .datasets import BenchSet, load
from .retrieval_report import RetrievalReport, print_report, rankings, summarise, summarise_set

FILLED_BY = "filled-by"  # file in --out with the digest of the code that filled the store
OTHER_CODE = (
    "{out} was filled by another version of the code: search is measured as it is now, writing as it was then;"
    " use a new --out to measure both"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    mode: SearchMode
    budgets: tuple[int, ...]
    seed: int
    answerability: bool


async def measure(
    sets: Sequence[BenchSet], options: Options, *, settings: Settings, out: Path | None, report: Report
) -> tuple[RetrievalReport, tuple[str, ...]]:
    """Return the figures and notes for the reader; with `out`, also write them to files there."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
            result, _ = await _measure(sets, options, settings, Path(folder), report)
        return result, ()
    notes = _prepare(out)
    result, asked = await _measure(sets, options, settings, out, report)
    for name, value in (("results.json", asdict(result)), ("rankings.json", rankings(asked))):
        (out / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return result, notes


async def _measure(
    sets: Sequence[BenchSet], options: Options, settings: Settings, folder: Path, report: Report
) -> tuple[RetrievalReport, list[Asked]]:
    journal = Journal(folder / "answers.jsonl")
    reports = []
    everything: list[Asked] = []
    # Recorded recalls would let one question change the answer to the next.
    settings = settings.model_copy(update={"recalls": settings.recalls.model_copy(update={"enabled": False})})
    async with Memory.open(folder / "memory.db", settings=settings) as memory:
        for one in sets:
            await fill(memory, one, report)
        if options.mode != "keyword":  # the store may have been filled with another embedder
            await memory.maintenance.reindex(
                progress=lambda done, total: report("re-embedding", done, total) if total else None
            )
        for one in sets:
            asked = await ask(
                memory, one, mode=options.mode, answerability=options.answerability, journal=journal, report=report
            )
            reports.append(summarise_set(one, asked, budgets=options.budgets, seed=options.seed))
            everything += asked
        embedder = (await memory.stats()).embedder
    result = summarise(reports, embedder=embedder, mode=options.mode, seed=options.seed, budgets=options.budgets)
    return result, everything


def _prepare(out: Path) -> tuple[str, ...]:
    """Create the folder, and warn if other code filled the store in it."""
    mark = out / FILLED_BY
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not mark.exists():
            mark.write_text(code_digest(), encoding="utf-8")
        return () if mark.read_text(encoding="utf-8") == code_digest() else (OTHER_CODE.format(out=out),)
    except OSError as error:
        raise InvalidInput("--out", f"{out} cannot be used: {error.strerror}") from error


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=__doc__)
    add = parser.add_argument
    add("--data", action="append", required=True, type=Path, metavar="FILE|DIR", help="benchmark file; repeatable")
    add("--embedder", metavar="NAME", help="builtin, openai:MODEL or sentence-transformers:MODEL (default: settings)")
    add("--mode", choices=("hybrid", "keyword", "semantic"), help="search mode (default: settings)")
    add("--budget", default="500,1500,3000", metavar="N,N,…", help="token budgets for evidence (default %(default)s)")
    add("--out", type=Path, metavar="DIR", help="keep the store, answers, rankings and results here")
    add("--seed", type=int, default=0, metavar="N", help="seed of the bootstrap intervals")
    add("--limit-stores", type=int, metavar="N", help="only the first N stores of each file")
    add("--answerability", action="store_true", help="also ask each store the questions of another one")
    add("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    return run(lambda: _run(given))


def _run(given: argparse.Namespace) -> None:
    settings = load_settings(**({} if given.embedder is None else {"embedder": given.embedder}))
    options = Options(
        mode=cast(SearchMode, given.mode or settings.search.default_mode),
        budgets=_budgets(given.budget),
        seed=given.seed,
        answerability=given.answerability,
    )
    sets, skipped = load(given.data, limit_stores=given.limit_stores)
    for note in skipped:
        warn(note)
    with progress_bars() as report:
        result, notes = asyncio.run(measure(sets, options, settings=settings, out=given.out, report=report))
    for note in notes:
        warn(note)
    for one in result.sets:
        for problem, count in one.degraded.items():
            warn(f"{one.name}: {plural(count, 'answer')}: {problem}")
    if given.json:
        print_json(asdict(result))
    else:
        print_report(result, answerability=given.answerability)
    if given.out is not None:
        print(f"results.json and rankings.json are in {given.out}", file=sys.stderr)


def _budgets(written: str) -> tuple[int, ...]:
    try:
        found = tuple(dict.fromkeys(int(part) for part in written.split(",")))
    except ValueError:
        raise InvalidInput("--budget", f"must be numbers of tokens, such as 500,1500, not {written!r}") from None
    if min(found) < 1:
        raise InvalidInput("--budget", "must be more than 0 tokens")
    return found


if __name__ == "__main__":
    sys.exit(main())
