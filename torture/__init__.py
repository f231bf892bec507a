"""Fault injection: the trials that measure what `docs/internals/reliability.md` reports.

A trial is a module with `async def run(trial: Trial) -> None`; `trials.py` lists them. Each draws its random numbers
from `trial.seed`, counts its work in `trial.counts`, and adds every broken promise to `trial.broken` with what replays
it: `python -m torture NAME --seed SEED`.

A module may define `PROTECTIONS`, which `--without` switches off by name (`trial.without`). A trial that then finds no
broken promise proves nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # faulty model servers and a PostgreSQL
