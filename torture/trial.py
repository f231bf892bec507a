"""The inputs and results of one trial."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

Promise = Literal["lost", "twice", "leak", "false success", "torn", "other"]


@dataclass(slots=True)
class Trial:
    """One run of one kind of fault. Scale 1.0 is the size in the report; `make test` runs a small part."""

    name: str
    seed: int
    scale: float
    scratch: Path
    without: str | None = None  # protection that is switched off
    counts: Counter[str] = field(default_factory=Counter)  # work done, by name
    broken: list[str] = field(default_factory=list)  # broken promises, with what replays them
    notes: list[str] = field(default_factory=list)  # remarks for the report
    series: dict[str, list[float]] = field(default_factory=dict)  # samples by name
    seconds: float = 0.0
    ended_at: str = ""

    def chances(self, *part: object) -> random.Random:
        """Random numbers for one part of the trial, independent of other parts."""
        return random.Random(":".join(map(str, (self.name, self.seed, *part))))

    def times(self, whole: int, least: int = 1) -> int:
        """Scale a number of repetitions."""
        return max(least, round(whole * self.scale))

    def breaks(self, promise: Promise, what: str) -> None:
        self.broken.append(f"{promise}: {what} (--seed {self.seed})")

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        told = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "scratch"}
        name = self.name if self.without is None else f"{self.name} without {self.without.replace('/', ' ')}"
        (folder / f"{name}.json").write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", "utf-8")
