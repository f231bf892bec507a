"""Faults on purpose: what `docs/reliability.md` reports is measured by these trials.

A trial is a module with `async def run(trial: Trial) -> None`; `trials.py` names them. Each draws all its chances from
`trial.seed`, counts what it did into `trial.counts` and every broken promise into `trial.broken`, with enough said to
replay it: `python -m torture NAME --seed SEED`.

A module may name its `PROTECTIONS`: what keeps the promise → how `--without` switches it off (`trial.without` says
which one is off). A trial that notices nothing then proves nothing.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))  # servers that misbehave, and a PostgreSQL, are there
