"""`python -m bench.transfer`: peak memory of imports and exports, which must not grow with the size of the file.

Each step is a process of its own, through the command line, so that its peak RSS is that of the step. One user owns all
memories, which is the hardest case. It takes some minutes and is not part of `make bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import filecmp
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder

from .texts import statements

CHAT_SIZES = (2_000, 10_000)  # messages
EXPORT_SIZES = (10_000, 100_000)  # memories
TURNS = 40  # messages per conversation
BATCH = 1000
MAX_GROWTH = 1.15  # of the peak from the smallest to the largest size
JIYI = "from jiyi.cli import main; main()"


def write_chats(path: Path, messages: int, seed: str) -> None:
    """Write a file in the format of ChatGPT's export."""
    texts = list(statements(seed, messages))
    chats = []
    for number in range(messages // TURNS):
        mapping: dict[str, object] = {"root": {"message": None, "parent": None, "children": ["0"]}}
        for turn in range(TURNS):
            message = {
                "id": f"{number}-{turn}",
                "author": {"role": ("user", "assistant")[turn % 2]},
                "create_time": 1_600_000_000 + 86_400 * number + 60 * turn,
                "content": {"content_type": "text", "parts": [texts[number * TURNS + turn]]},
            }
            parent = "root" if turn == 0 else str(turn - 1)
            mapping[str(turn)] = {"message": message, "parent": parent, "children": [str(turn + 1)]}
        chats.append({"conversation_id": f"c{number}", "mapping": mapping, "current_node": str(TURNS - 1)})
    path.write_text(json.dumps(chats, ensure_ascii=False), encoding="utf-8")


async def fill(path: Path, number: int, seed: str) -> None:
    texts = list(statements(seed, number))
    settings = load_settings(extraction={"enabled": False})
    async with Memory.open(path, embedder=WordEmbedder(512), settings=settings) as memory:
        for at in range(0, number, BATCH):
            await memory.add(texts[at : at + BATCH], user_id="mei", session_id=f"s{at}")


def run_jiyi(*words: object) -> float:
    """Run a command, print its time, and return its peak RSS in MB."""
    began = perf_counter()
    process = subprocess.Popen([sys.executable, "-c", JIYI, *map(str, words)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"jiyi {words[0]} failed with {status}")
    peak = used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)
    print(f"  jiyi {words[0]}: {perf_counter() - began:.1f} s, peak RSS {peak:.1f} MB", flush=True)
    return peak


def measure_chats(folder: Path, seed: str) -> dict[str, list[float]]:
    peaks = []
    for size in CHAT_SIZES:
        print(f"{size:,} messages of chats")
        write_chats(folder / f"{size}.json", size, seed)
        peaks.append(run_jiyi("import", folder / f"{size}.json", "--store", folder / f"chats-{size}.db"))
    return {"import of chats": peaks}


def measure_exports(folder: Path, seed: str) -> dict[str, list[float]]:
    peaks: dict[str, list[float]] = {"export": [], "import of an export": []}
    for size in EXPORT_SIZES:
        print(f"{size:,} memories")
        store, copy = folder / f"{size}.db", folder / f"{size}-copy.db"
        first, second = folder / f"{size}.jsonl", folder / f"{size}-again.jsonl"
        # In its own process: a child's peak RSS begins with that of its parent.
        program = f"import sys; from bench.transfer import fill_store; fill_store({str(store)!r}, {size}, {seed!r})"
        subprocess.run([sys.executable, "-c", program], check=True)
        peaks["export"].append(run_jiyi("export", first, "--store", store))
        peaks["import of an export"].append(run_jiyi("import", first, "--store", copy))
        run_jiyi("export", second, "--store", copy)
        if not filecmp.cmp(first, second, shallow=False):
            raise SystemExit("export → import → export is not equal")
    return peaks


def fill_store(path: str, number: int, seed: str) -> None:
    asyncio.run(fill(Path(path), number, seed))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.transfer", description=__doc__)
    parser.add_argument("what", choices=("chats", "exports"))
    parser.add_argument("--seed", default="1", help="seed of the texts")
    given = parser.parse_args()
    measure = measure_chats if given.what == "chats" else measure_exports
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        peaks = measure(Path(folder), given.seed)
    growth = {step: largest / smallest for step, (smallest, *_, largest) in peaks.items()}
    for step, ratio in growth.items():
        print(f"{step}: {ratio:.2f} × (bound {MAX_GROWTH})")
    sys.exit(max(growth.values()) > MAX_GROWTH)


if __name__ == "__main__":
    main()
