"""Metrics of several workers: each writes its own to a folder every second, and reads and adds those of the others."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ValidationError

from ..engine import runtime
from ..memory import Memory
from ..metrics import MeterState
from .metrics import RequestMetrics, RequestState

logger = logging.getLogger("jiyi.server")

EVERY_S = 1.0


class WorkerState(BaseModel):
    memory: MeterState
    requests: RequestState


class SharedMetrics:
    """Exchanges metrics while it is open. The file of a worker stays after its end, so that no counter goes back."""

    def __init__(self, folder: Path, memory: Memory, requests: RequestMetrics) -> None:
        self._own = folder / f"{os.getpid()}.json"
        self._meter = runtime(memory).meter
        self._requests = requests
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._repeat(), name="jiyi-metrics")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None  # noqa: S101 - for types
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._exchange()

    async def _repeat(self) -> None:
        while True:
            self._exchange()
            await asyncio.sleep(EVERY_S)

    def _exchange(self) -> None:
        own = WorkerState(memory=self._meter.state(), requests=self._requests.state())
        try:
            part = self._own.with_suffix(".part")
            part.write_text(own.model_dump_json())
            part.replace(self._own)
            others = [
                WorkerState.model_validate_json(file.read_bytes())
                for file in sorted(self._own.parent.glob("*.json"))
                if file != self._own
            ]
        except (OSError, ValidationError) as error:  # the folder was removed: the parent has ended
            logger.warning("cannot share metrics with the other workers: %s", error)
            return
        self._meter.others = [one.memory.meter() for one in others]
        self._requests.others = [one.requests for one in others]
