"""`python -m torture [NAME …]`: run trials, print their counts, and exit with 1 if a promise was broken.

With `--without PROTECTION` a protection is switched off, and the trial must find a broken promise.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import random
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from .forks import UNREAD
from .trial import Trial
from .trials import TRIALS

OUT = Path(__file__).parent / "out"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*TRIALS, []], help="which trials (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is what the report promises; 0.01 takes minutes")
    parser.add_argument("--seed", type=int, help="replays a run (default: a new one, printed)")
    parser.add_argument(
        "--without", help="switch a protection of the trial off: `PROTECTIONS` in its module names them"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="where the figures go, a JSON file for each trial")
    return parser.parse_args()


def run(name: str, seed: int, scale: float, without: str | None = None) -> Trial:
    module = importlib.import_module(f"torture.{name}")
    if without is not None and without not in getattr(module, "PROTECTIONS", {}):
        sys.exit(f"{name} knows no protection {without!r}: {', '.join(getattr(module, 'PROTECTIONS', {})) or 'none'}")
    with tempfile.TemporaryDirectory(prefix="jiyi-torture-", ignore_cleanup_errors=True) as scratch:
        trial = Trial(name, seed, scale, Path(scratch), without)
        began = perf_counter()
        asyncio.run(module.run(trial))
        trial.seconds = perf_counter() - began
        trial.ended_at = datetime.now(UTC).isoformat(timespec="minutes")
        return trial


def main() -> int:
    given = arguments()
    os.environ.update(UNREAD)
    seed = random.SystemRandom().randrange(10**6) if given.seed is None else given.seed
    broken = 0
    for name in given.names or TRIALS:
        print(f"{name}: {TRIALS[name]}, --seed {seed}", flush=True)
        trial = run(name, seed, given.scale, given.without)
        trial.write(given.out)
        told = ", ".join(f"{count:,} {what}" for what, count in trial.counts.items())
        print(f"  {told} in {trial.seconds:.0f} s")
        for line in (*trial.notes, *(f"BROKEN {each}" for each in trial.broken)):
            print(f"  {line}")
        broken += len(trial.broken)
    print("no promise was broken" if not broken else f"{broken} promises were broken", flush=True)
    return min(broken, 1) if given.without is None else int(not broken)


if __name__ == "__main__":
    sys.exit(main())
