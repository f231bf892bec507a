"""CPU time of `jiyi search` by size of the store, each in a fresh process: `python -m bench.cold`.

A process that answers one question loads libraries, networks and the index of the user. The first two cost the same
whatever is stored, so the time is also told as a ratio to a store of a few memories. The store is filled by SQL-fast
substitutes for embeddings, and the user's index is packed by the first search, which is not measured.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from statistics import median

from jiyi.embed import BuiltinEmbedder

from .fill import PerturbedEmbedder, Plan, fill, user_of
from .startup import command, cpu_time

FEW = 20  # memories; as many as the reader reads for one question, or nearly
BOUNDS = {5_000: 1.6, 50_000: 2.0}  # most that it may take, as a multiple of the time for few memories
QUESTION = "where did we eat?"


def measure(folder: Path, runs: int) -> dict[int, float]:
    """Return seconds of CPU time by the number of memories; 0 for a user without any."""
    store = asyncio.run(_filled(folder))
    users = {0: "nobody", **{size: user_of(size) for size in (FEW, *BOUNDS)}}
    taken: dict[int, list[float]] = {size: [] for size in users}
    for run in range(runs + 1):
        for size, user in users.items():  # in turn, so that other work on the machine slows all of them
            seconds = cpu_time(command("search", QUESTION, "--store", str(store), "--user", user))
            if run:
                taken[size].append(seconds)
    return {size: median(some) for size, some in taken.items()}


async def _filled(folder: Path) -> Path:
    embedder = await PerturbedEmbedder.make(BuiltinEmbedder(), 1)
    return await fill(folder, Plan(1, (FEW, *BOUNDS), 0), embedder, lambda _: None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where the store is kept for the next time")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        measured = measure(given.folder or Path(folder), given.runs)
    passes = True
    for size, seconds in measured.items():
        ratio = seconds / measured[FEW]
        most = BOUNDS.get(size)
        passes = passes and (most is None or ratio <= most)
        bound = "" if most is None else f", at most {most}: {'passed' if ratio <= most else 'FAILED'}"
        sys.stdout.write(f"{size:>7,} memories: {seconds:.2f} s of CPU time, {ratio:.2f} × that of {FEW}{bound}\n")
    return 0 if passes else 1


if __name__ == "__main__":
    sys.exit(main())
