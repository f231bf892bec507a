"""Start-up times of imports and the command line, each in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

FACTOR = 1.3  # bound: times the import of the libraries alone

LIBRARIES = "import sqlalchemy, pydantic, numpy"
PACKAGE = "import jiyi"
ENGINE = "import jiyi; jiyi.Memory"
HELP = "import sys; sys.argv = ['jiyi', '--help']; from jiyi.cli import main; main()"
TIMED = "from time import perf_counter as now; start = now(); exec({code!r}); print(now() - start)"


@dataclass(frozen=True, slots=True)
class Start:
    name: str
    seconds: float
    libraries: float

    @property
    def ratio(self) -> float:
        return self.seconds / self.libraries

    @property
    def passes(self) -> bool:
        return self.ratio <= FACTOR


def measure_starts(runs: int, advance: Callable[[int], None]) -> list[Start]:
    """Time imports inside their process, and the command line as a whole process."""
    measured: dict[str, list[tuple[float, float]]] = {PACKAGE: [], ENGINE: [], "jiyi --help": []}
    _run(ENGINE), _run(HELP)
    for _ in range(runs):
        libraries = _inside(LIBRARIES)
        measured[PACKAGE].append((_inside(PACKAGE), libraries))
        measured[ENGINE].append((_inside(ENGINE), libraries))
        measured["jiyi --help"].append((_outside(HELP), _outside(LIBRARIES)))
        advance(1)
    return [
        Start(name, median(mine for mine, _ in pairs), median(theirs for _, theirs in pairs))
        for name, pairs in measured.items()
    ]


def _inside(code: str) -> float:
    return float(_run(TIMED.format(code=code)).stdout)


def _outside(code: str) -> float:
    start = perf_counter()
    _run(code)
    return perf_counter() - start


def _run(code: str) -> subprocess.CompletedProcess[str]:
    """Run with bytecode caching, as in an installed package."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, env=compiled)
