"""Time and memory of the reranker, in a fresh process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

BOUND_MS = 25.0  # CPU time for the candidates of a search whose messages were read before
CANDIDATES = 20
QUESTIONS = (
    "Where does Mei live now?",
    "which train does Tom take to work",
    "小林对什么过敏？",
    "我姐姐什么时候生日？",
    "What did you suggest for dinner on Friday?",
)


@dataclass(frozen=True, slots=True)
class RerankTimes:
    """Seconds of CPU time for twenty candidates, and what the process holds."""

    load: float  # wall time
    cold: float  # messages that were never read
    warm: float  # new question, messages that were read before
    repeated: float  # the same question again
    rss_mb: float  # that loading and reading added
    cache_kb: float  # per message

    @property
    def passes(self) -> bool:
        return self.warm * 1000 <= BOUND_MS


def measure_reranking() -> RerankTimes:
    done = subprocess.run([sys.executable, "-m", "bench.rerank"], capture_output=True, check=True, text=True)
    return RerankTimes(**json.loads(done.stdout))


def main() -> None:
    from jiyi_rerank import Candidate, LocalReranker

    from .texts import statements

    before = _rss_mb()
    said = [Candidate("Mei", text, float(age)) for age, text in enumerate(statements("rerank", 10 * CANDIDATES))]
    reranker = LocalReranker()
    start = perf_counter()
    reranker.logits("ready?", said[:1])
    load = perf_counter() - start
    cold, warm, repeated = [], [], []
    for first in range(0, len(said), CANDIDATES):
        some = said[first : first + CANDIDATES]
        times = []
        for question in (*QUESTIONS, QUESTIONS[-1]):
            began = process_time()
            reranker.logits(question, some)
            times.append(process_time() - began)
        cold.append(times[0])
        warm += times[1:-1]
        repeated.append(times[-1])
    print(
        json.dumps(
            {
                "load": load,
                "cold": median(cold),
                "warm": median(warm),
                "repeated": median(repeated),
                "rss_mb": _rss_mb() - before,
                "cache_kb": reranker.cache_bytes / len(said) / 1000,
            }
        )
    )


def _rss_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


if __name__ == "__main__":
    main()
