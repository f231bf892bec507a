"""A part of a trial in a process of its own, which has no threads and can fork: `python -m torture.apart`.

A process that is to be killed is forked from one that has loaded everything already, so that a kill costs milliseconds.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from .trial import Trial
from .warm import share_statements, warm

ROOT = Path(__file__).parents[1]
FOREIGN = ("JIYI_", "LLM_", "EMBEDDING_")  # settings of the person who runs it


async def apart(trial: Trial, part: str, *, environment: dict[str, str] | None = None, **given: Any) -> None:
    """Run `module.function(trial, **given)` of this package in another process, and take over what it found."""
    told = trial.scratch / f"{part}.json"
    task = {
        "trial": [trial.name, trial.seed, trial.scale, str(trial.scratch), trial.without],
        "part": part,
        "given": given,
        "told": str(told),
    }
    ours = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ours |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **(environment or {})}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "torture.apart", json.dumps(task), cwd=ROOT, env=ours, stderr=subprocess.STDOUT
    )
    try:
        code = await process.wait()
    except BaseException:
        process.kill()
        raise
    if code != 0 or not told.exists():
        trial.breaks("other", f"{part} ended with {code}")
        return
    found = json.loads(told.read_text("utf-8"))
    trial.counts.update(found["counts"])
    trial.broken += found["broken"]
    trial.notes += found["notes"]


def main() -> None:
    task = json.loads(sys.argv[1])
    name, seed, scale, scratch, without = task["trial"]
    trial = Trial(name, seed, scale, Path(scratch), without)
    module, function = task["part"].split(".")
    load_everything(trial.scratch)
    getattr(importlib.import_module(f"torture.{module}"), function)(trial, **task["given"])
    told = {"broken": trial.broken, "notes": trial.notes, "counts": trial.counts}
    Path(task["told"]).write_text(json.dumps(told), "utf-8")


def load_everything(scratch: Path) -> None:
    """Do once all that is slow the first time; afterwards there is no thread and no open file."""
    from jiyi import Memory
    from jiyi.testing import WordEmbedder

    share_statements()

    async def once() -> None:
        async with Memory.open(scratch / "first.db", embedder=WordEmbedder(16), workspace=scratch / "first") as memory:
            made = await memory.add([{"role": "user", "content": "I moved to Oslo. 我喜欢喝茶。"}], user_id="u")
            await memory.update(made.memories[0].id, user_id="u", content="I moved to Bergen")
            await memory.maintenance.compress(user_id="u")
            await memory.delete(made.memories[0].id, user_id="u")
            await memory.maintenance.verify()

    warm(once)


def begun(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Begin something in a forked process. → its id"""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            asyncio.run(work())
            code = 0
        except BaseException:  # noqa: BLE001 - it is shown, and the process ends
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return process


def ended(process: int) -> int:
    """Wait for a process. → 0, its code, or minus the signal that ended it"""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def killed(process: int) -> bool:
    """Kill a process. → False if it had ended before"""
    os.kill(process, signal.SIGKILL)
    return ended(process) == -signal.SIGKILL


if __name__ == "__main__":
    main()
