"""`python -m bench`: measure speed against a floor, print tables, and exit with 1 if a bound is missed."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from jiyi.embed import BuiltinEmbedder

from . import report
from .add import AddTimes, measure_adds
from .cache import CacheTimes, measure_caching
from .fill import Advance, PerturbedEmbedder, Plan, fill
from .hostile_adds import HOSTILE as HOSTILE_TEXTS
from .hostile_adds import REPEATS, HostileAdds, measure_hostile_adds
from .hostile_queries import HOSTILE, HostileTimes, measure_hostile
from .reading import measure_reading
from .search import ADD_GROWTH, SearchTimes, measure_searches, searches_of
from .startup import Start, measure_starts


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, under a minute")
    parser.add_argument("--sizes", help="memories of the users that are searched (default 1000,10000,100000)")
    parser.add_argument("--queries", type=int, help="searches per size that are compared with the floor (default 100)")
    parser.add_argument("--bulk", type=int, help="statements added at once (default 10000)")
    parser.add_argument("--requests", type=int, help="searches of the repeated traffic (default 3000)")
    parser.add_argument("--seed", type=int, default=1, help="of texts, questions and vectors")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="fill the searched store there, or use it again")
    given = parser.parse_args()
    given.sizes = given.sizes or ("1000,5000" if given.quick else "1000,10000,100000")
    given.sizes = tuple(int(size) for size in given.sizes.split(","))
    given.queries = given.queries or (20 if given.quick else 100)
    given.bulk = given.bulk or (500 if given.quick else 10_000)
    given.requests = given.requests or (300 if given.quick else 3000)
    return given


async def measure(
    given: argparse.Namespace, temporary: Path, progress: Progress
) -> tuple[list[SearchTimes], AddTimes, CacheTimes, HostileTimes, HostileAdds, list[Start], report.Store]:
    def task(name: str, total: int) -> Advance:
        number = progress.add_task(name, total=total)
        return lambda steps: progress.advance(number, steps)

    embedder = BuiltinEmbedder()
    runs = 3 if given.quick else 7
    starts = measure_starts(runs, task("start", runs))
    adds = await measure_adds(
        temporary, given.bulk, embedder, seed=given.seed, advance=task("bulk add", 2 * given.bulk)
    )
    long_adds = await measure_hostile_adds(
        temporary, embedder, repeats=1 if given.quick else REPEATS, advance=task("hostile adds", len(HOSTILE_TEXTS) + 2)
    )
    plan = Plan(given.seed, given.sizes, others=10 if given.quick else 100)
    filler = await PerturbedEmbedder.make(embedder, given.seed)
    began = perf_counter()
    path = await fill(given.keep or temporary / "searched", plan, filler, task("fill", plan.memories))
    store = report.Store(plan.memories, len(plan.sizes) + plan.others, path.stat().st_size, perf_counter() - began)
    times = []
    for size in given.sizes:
        advance = task(f"search {size:,}", searches_of(given.queries))
        times.append(
            await measure_searches(path, size, embedder, queries=given.queries, seed=given.seed, advance=advance)
        )
    caching = await measure_caching(
        path, embedder, requests=given.requests, seed=given.seed, advance=task("repeated traffic", given.requests)
    )
    hostile = await measure_hostile(
        path, given.sizes[0], embedder, seed=given.seed, advance=task("hostile queries", len(HOSTILE))
    )
    return times, adds, caching, hostile, long_adds, starts, store


def main() -> int:
    given = arguments()
    os.environ["JIYI_SEARCH__READER"] = "false"  # the floor reads no candidates; the reader has lines of its own
    reading = measure_reading()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(prefix="jiyi-bench-") as temporary,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        times, adds, caching, hostile, long_adds, starts, store = asyncio.run(measure(given, Path(temporary), progress))
    report.print_searches(times, store)
    report.print_reading(reading)
    report.print_caching(caching)
    report.print_hostile(hostile)
    report.print_adds(adds)
    report.print_hostile_adds(long_adds)
    report.print_starts(starts)
    report.print_footprint(store, times, adds)
    if given.json:
        figures = report.as_json(times, adds, caching, hostile, long_adds, starts, store) | {"reading": asdict(reading)}
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    missed = [
        *(f"search at {each.size:,}" for each in times if not each.passes),
        *(f"add at {each.size:,}" for each in times if each.add > ADD_GROWTH * times[0].add),
        *(["reading"] if not reading.passes else []),
        *(["repeated traffic"] if not caching.passes else []),
        *(["hostile queries"] if not hostile.passes else []),
        *(f"add of {name}" for name in long_adds.times if not long_adds.kind_passes(name)),
        *(["bulk add"] if not adds.passes else []),
        *(each.name for each in starts if not each.passes),
    ]
    print(f"\nBounds missed: {', '.join(missed)}" if missed else "\nAll bounds are met.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
