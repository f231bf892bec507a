"""The public API against a dictionary: after any operations in any order, on SQLite or PostgreSQL, through crashes,
moves to another store and undo, the store contains what the dictionary contains.

One hypothesis state machine (`machine.py`). A crash is a rule: the memory is dropped without closing, its connections
are severed, and the store is opened again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import hypothesis
from hypothesis.stateful import run_state_machine_as_test

from jiyi.store.repositories.revisions import Edits
from postgres_server import Databases

from .machine import Machine
from .stores import ON_POSTGRES_FROM, server
from .trial import Trial

EXAMPLES, STEPS = 120, 30  # machines per database at scale 1, and steps of each
PROTECTIONS = {"the check of versions": "`Edits.update` changes a memory whatever its version is by then"}


async def run(trial: Trial) -> None:
    number = iter(range(10**9))

    async def file() -> Path:
        return trial.scratch / f"model {next(number)}.db"

    async def nothing(where: Any) -> None:
        """A process that is gone leaves its file as it is."""

    with ExitStack() as off:
        if trial.without is not None:
            off.enter_context(patch.object(Edits, "update", _whatever_version))
        await _tried(trial, "SQLite", file, nothing)
    if trial.scale < ON_POSTGRES_FROM or trial.without is not None:
        return
    async for databases in server(trial):
        await _on_postgres(trial, databases)


RIGHTLY = Edits.update  # with the protection


async def _whatever_version(self: Edits, user_id: str, memory_id: str, change: Any, version: int | None) -> None:
    await RIGHTLY(self, user_id, memory_id, change, None)


async def _on_postgres(trial: Trial, databases: Databases) -> None:
    async def database() -> str:
        return databases.url(await databases.new())

    async def severed(where: str) -> None:
        name = where.rpartition("/")[2]
        await databases._admin(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")

    await _tried(trial, "PostgreSQL", database, severed)


async def _tried(trial: Trial, kind: str, place: Any, sever: Any) -> None:
    counts: Counter[str] = Counter()
    machine = type(
        "Machine", (Machine,), {"place": staticmethod(place), "sever": staticmethod(sever), "counts": counts}
    )
    settings = hypothesis.settings(
        max_examples=trial.times(EXAMPLES),
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
        phases=[hypothesis.Phase.generate],
        print_blob=False,
    )
    try:
        await asyncio.to_thread(run_state_machine_as_test, hypothesis.seed(trial.seed)(machine), settings=settings)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        steps = " ".join(getattr(error, "__notes__", []))
        trial.breaks("other", f"{kind}: {type(error).__name__} {str(error)[:200]} after {steps[-300:]}")
    for what, count in counts.items():
        trial.counts[f"{what} on {kind}"] += count
