"""A process that works on a store and kills itself at a chosen point of the store's work, as a power cut would."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from extractors import SpelledOut
from jiyi import Memory
from jiyi.settings import load_settings
from jiyi.testing import WordEmbedder
from jiyi.write import worker
from jiyi.write.worker import Worker


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_before(owner: Any, name: str) -> None:
    """The named step is never begun."""
    setattr(owner, name, die)


def dies_after(owner: Any, name: str) -> None:
    """The named step is done, and nothing after it."""
    step = getattr(owner, name)

    async def last(*args: Any, **kwargs: Any) -> None:
        await step(*args, **kwargs)
        die()

    setattr(owner, name, last)


class Dying(SpelledOut):
    async def __call__(self, unit: Any, /) -> Any:
        die()


async def main(path: str, stage: str) -> None:
    settings = load_settings(jobs={"lease_s": 0.3, "retry_delay_s": 0.01, "in_process": False})
    extractor = Dying() if stage == "extract" else SpelledOut()
    async with Memory.open(path, settings=settings, embedder=WordEmbedder(), extractor=extractor) as memory:
        store = memory._engine.store
        match stage:
            case "claimed":
                dies_after(store.jobs, "claim")
            case "loaded":
                dies_after(store.messages, "get")
            case "embed":
                dies_before(memory._engine.embedder, "embed_documents")
            case "index":
                dies_after(worker, "index")
            case "save":
                dies_before(store.additions, "complete")
            case "in the transaction":
                from jiyi.store.repositories import job_queue as jobs

                dies_before(jobs, "finish")  # all is written, and nothing is committed
            case "saved":
                dies_after(store.additions, "complete")
            case "failing":
                memory._engine.pipeline.slow_extractor.failures = 1  # type: ignore[union-attr]
                dies_before(Worker, "_note_failure")
        await memory.jobs.work()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
