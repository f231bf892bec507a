"""`python -m bench.exporting`: do an export and an import of 100,000 memories need more memory than those of 10,000?

Each is a process of its own, through the command line, so that its peak RSS is that of the work. The memories belong to
one user, which is the hardest case. It takes some minutes and is no part of `make bench`.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

from .corpus import statements

SIZES = (10_000, 100_000)
CHUNK = 1000
RUN = "from jiyi.cli import main; main()"
BOUND = 1.15  # times the memory of the smaller one


async def fill(path: Path, number: int, seed: str) -> None:
    texts = list(statements(seed, number))
    settings = load_settings(extraction={"enabled": False})
    async with Memory.open(path, embedder=WordEmbedder(512), settings=settings) as memory:
        for at in range(0, number, CHUNK):
            await memory.add(texts[at : at + CHUNK], user_id="mei", session_id=f"s{at}")


def filled(path: Path, number: int, seed: str) -> None:
    """In a process of its own: a child's peak RSS begins with that of the process that started it."""
    program = (
        f"import asyncio; from bench.exporting import *; asyncio.run(fill(Path({str(path)!r}), {number}, {seed!r}))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def measured(*words: object) -> tuple[float, float]:
    """Seconds, and the peak RSS in MB of the process."""
    began = perf_counter()
    process = subprocess.Popen([sys.executable, "-c", RUN, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"jiyi {words[0]} failed with {status}")
    return perf_counter() - began, used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.exporting", description=__doc__)
    parser.add_argument("--seed", default="1", help="of the texts")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="how many memories, smallest first")
    options = parser.parse_args()
    peaks: dict[str, list[float]] = {"export": [], "import": []}
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        for size in map(int, options.sizes.split(",")):
            store, copy = Path(folder) / f"{size}.db", Path(folder) / f"{size}-copy.db"
            first, second = Path(folder) / f"{size}.jsonl", Path(folder) / f"{size}-again.jsonl"
            filled(store, size, options.seed)
            for what, words in (
                ("export", ("export", first, "--store", store)),
                ("import", ("import", first, "--store", copy)),
            ):
                seconds, peak = measured(*words)
                peaks[what].append(peak)
                print(f"{what} {size:>7,} memories: {seconds:6.1f} s, peak RSS {peak:6.1f} MB", flush=True)
            measured("export", second, "--store", copy)
            same = filecmp.cmp(first, second, shallow=False)
            print(f"export → import → export: {first.stat().st_size / 1e6:,.0f} MB, {'equal' if same else 'NOT EQUAL'}")
            if not same:
                sys.exit(1)
    flat = True
    for what, (smallest, *_, largest) in peaks.items():
        flat &= largest <= BOUND * smallest
        print(f"{what}: {largest / smallest:.2f} × (bound {BOUND})")
    sys.exit(not flat)


if __name__ == "__main__":
    main()
