"""Stores of a trial: a SQLite file, and a temporary PostgreSQL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

from postgres_server import QUICK, Databases, Server, Unavailable

from .trial import Trial

ON_POSTGRES_FROM = 0.02  # smaller trials skip PostgreSQL
_numbers = count()


async def stores(trial: Trial) -> AsyncIterator[tuple[str, str | Path]]:
    """Yield a new store of each kind; note those that cannot be tried."""
    yield "SQLite", trial.scratch / f"store {next(_numbers)}.db"
    if trial.scale < ON_POSTGRES_FROM or trial.without is not None:
        return
    async for databases in server(trial):
        name = await databases.new()
        yield "PostgreSQL", databases.url(name)
        await databases.drop(name)


async def server(trial: Trial) -> AsyncIterator[Databases]:
    """Start a PostgreSQL; None if it is not available."""
    own = None
    try:
        if not os.environ.get("TEST_DATABASE_URL"):
            own = Server(*QUICK)
        databases = Databases(os.environ.get("TEST_DATABASE_URL") or own.url())
        await databases.prepare()
    except (Unavailable, ImportError, OSError) as error:
        trial.notes.append(f"NOT RUN on PostgreSQL: {error}")
        return
    try:
        yield databases
        await databases.cleanup()
    finally:
        if own is not None:
            own.stop()
