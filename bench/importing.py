"""`python -m bench.importing`: does an import of 10,000 messages need more memory than one of 2,000?

Each import is a process of its own, through the command line, so that its peak RSS is that of the import. It takes some
minutes and is no part of `make bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from .corpus import statements

SIZES = (2_000, 10_000)
TURNS = 40
RUN = "from jiyi.cli import main; main()"
BOUND = 1.15  # times the memory of the smaller one


def export(path: Path, messages: int, seed: str) -> None:
    """A file as ChatGPT exports it."""
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


def measured(file: Path, store: Path) -> tuple[float, float]:
    """Seconds, and the peak RSS in MB of the process."""
    began = perf_counter()
    words = [sys.executable, "-c", RUN, "import", str(file), "--store", str(store)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"jiyi import failed with {status}")
    return perf_counter() - began, used.ru_maxrss / (1024 if sys.platform != "darwin" else 1024 * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.importing", description=__doc__)
    parser.add_argument("--seed", default="1", help="of the texts")
    seed = parser.parse_args().seed
    peaks = []
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        for size in SIZES:
            file = Path(folder) / f"{size}.json"
            export(file, size, seed)
            seconds, peak = measured(file, Path(folder) / f"{size}.db")
            peaks.append(peak)
            print(f"{size:>6,} messages: {seconds:6.1f} s, peak RSS {peak:6.1f} MB")
    flat = peaks[-1] <= BOUND * peaks[0]
    print(f"{peaks[-1] / peaks[0]:.2f} × (bound {BOUND}): {'flat' if flat else 'NOT flat'}")
    sys.exit(not flat)


if __name__ == "__main__":
    main()
