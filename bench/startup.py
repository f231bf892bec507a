"""CPU time of imports and commands, each in fresh processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

LIBRARIES = "import sqlalchemy, pydantic, numpy"
COMMAND = "import sys; sys.argv = ['jiyi', *{arguments}]; from jiyi.cli import main; main()"


@dataclass(frozen=True, slots=True)
class Start:
    name: str
    seconds: float  # of CPU time
    libraries: float
    most: float  # bound

    @property
    def ratio(self) -> float:
        return self.seconds / self.libraries

    @property
    def passes(self) -> bool:
        return self.seconds <= self.most


def measure_starts(runs: int, advance: Callable[[int], None]) -> list[Start]:
    """Run everything once before it is measured, so that files are cached and the model is unpacked."""
    with tempfile.TemporaryDirectory(prefix="jiyi-bench-") as folder:
        store = str(Path(folder) / "start.db")
        cpu_time(command("add", "My dog is called Rex.", "--store", store))
        measured = {
            "import jiyi.Memory": ("import jiyi; jiyi.Memory", 0.8),
            "jiyi --help": (command("--help"), 0.25),
            "jiyi search": (command("search", "dog", "--store", store), 0.8),
        }
        taken: dict[str, list[float]] = {name: [] for name in [*measured, LIBRARIES]}
        for code, _ in measured.values():
            cpu_time(code)
        for _ in range(runs):
            taken[LIBRARIES].append(cpu_time(LIBRARIES))
            for name, (code, _) in measured.items():
                taken[name].append(cpu_time(code))
            advance(1)
    libraries = median(taken[LIBRARIES])
    return [Start(name, median(taken[name]), libraries, most) for name, (_, most) in measured.items()]


def command(*arguments: str) -> str:
    return COMMAND.format(arguments=list(arguments))


def cpu_time(code: str) -> float:
    """Run a program with bytecode caching, as in an installed package, and return its CPU time."""
    compiled = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = _used()
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=compiled)
    return _used() - before


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime
