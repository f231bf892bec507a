"""Run a part of a trial in a separate process without threads, which can fork: `python -m torture.forks`.

Processes to be killed are forked from one that has loaded everything, so that a kill costs milliseconds.
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
FOREIGN = ("JIYI_", "LLM_", "EMBEDDING_")  # settings of the caller
UNREAD = {"JIYI_SEARCH__READER": "false"}  # a reader takes numbered texts for changes of each other


async def in_process(trial: Trial, part: str, *, environment: dict[str, str] | None = None, **given: Any) -> None:
    """Run `module.function(trial, **given)` of this package in another process, and merge its results."""
    told = trial.scratch / f"{part}.json"
    task = {
        "trial": [trial.name, trial.seed, trial.scale, str(trial.scratch), trial.without],
        "part": part,
        "given": given,
        "told": str(told),
    }
    ours = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    ours |= UNREAD | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **(environment or {})}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "torture.forks", json.dumps(task), cwd=ROOT, env=ours, stderr=subprocess.STDOUT
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
    """Warm up everything that is slow the first time; afterwards no thread and no file is open."""
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


def fork(work: Callable[[], Coroutine[Any, Any, None]]) -> int:
    """Start a coroutine in a forked process; return its id."""
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


def wait(process: int) -> int:
    """Wait for a process; return its exit code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def kill(process: int) -> bool:
    """Kill a process; return False if it had ended before."""
    os.kill(process, signal.SIGKILL)
    return wait(process) == -signal.SIGKILL


if __name__ == "__main__":
    main()
