"""Warm-up before forking, so that a fork costs half as much: the report is made of tens of thousands of them.

Only SQLAlchemy differs from production: it shares compiled statements between the engines of a process and its forks.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.util import LRUCache

STATEMENTS = 4000


def share_statements() -> None:
    """Share compiled statements between engines of the same database."""
    shared: Any = LRUCache(STATEMENTS)
    Engine._compiled_cache = property(lambda self: shared, lambda self, own: None)  # type: ignore[assignment]
    DefaultDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign,assignment]
    DefaultDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign,assignment]


def warm(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run work here that forks will repeat; afterwards no thread and no file is open."""
    asyncio.run(work())
    gc.collect()
    gc.freeze()
