"""Time and memory of the reader, in a fresh process: statements that were never read before."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

BOUND_MS = 100.0  # CPU time for the statements of one search, on a processor with instructions for 8-bit numbers
SLOWER_MS = 300.0  # without those
STATEMENTS = 20
QUESTIONS = {
    "en": (
        "Where does Mei live now?",
        "which train does Tom take to work",
        "What did you suggest for dinner?",
    ),
    "zh": ("小林对什么过敏？", "我姐姐什么时候生日？", "周五晚上吃什么"),
}


@dataclass(frozen=True, slots=True)
class ReadingTimes:
    """Seconds of CPU time for twenty statements, and what the process holds."""

    load: float  # wall time
    en: float
    zh: float
    rss_mb: float  # that loading and reading added

    @property
    def most_ms(self) -> float:
        fast = Path("/proc/cpuinfo")
        return BOUND_MS if fast.exists() and "vnni" in fast.read_text() else SLOWER_MS

    @property
    def passes(self) -> bool:
        return max(self.en, self.zh) * 1000 <= self.most_ms


def measure_reading() -> ReadingTimes:
    done = subprocess.run([sys.executable, "-m", "bench.reading"], capture_output=True, check=True, text=True)
    return ReadingTimes(**json.loads(done.stdout))


def main() -> None:
    from jiyi.reader import WEIGHTS, Passage
    from jiyi.reader.onnx_reader import OnnxReader

    from .texts import statements

    texts = list(statements("reading", 40 * STATEMENTS))
    by_language = {
        "en": [text for text in texts if text.isascii()],
        "zh": [text for text in texts if not text.isascii()],
    }
    before = _rss_mb()
    reader = OnnxReader(WEIGHTS)
    start = perf_counter()
    reader.answers("ready?", [Passage("I am ready."), Passage("准备好了")])
    found = {"load": perf_counter() - start}
    for language, questions in QUESTIONS.items():
        times = []
        for number in range(9):
            some = by_language[language][number * STATEMENTS :][:STATEMENTS]
            began = process_time()
            reader.answers(questions[number % len(questions)], [Passage(text) for text in some])
            times.append(process_time() - began)
        found[language] = median(times)
    print(json.dumps({**found, "rss_mb": _rss_mb() - before}))


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


if __name__ == "__main__":
    main()
