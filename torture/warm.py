"""What is slow the first time is done before a process forks, so that a fork costs half as much: the figures of the
report are made of tens of thousands of them.

Jiyi is the same in all of this; only SQLAlchemy, which compiles each statement once for every engine, shares what it
has compiled between the engines of a process and those of its forks.
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
    """Engines of one kind of database compile for one another."""
    shared: Any = LRUCache(STATEMENTS)
    Engine._compiled_cache = property(lambda self: shared, lambda self, own: None)  # type: ignore[assignment]
    DefaultDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign,assignment]
    DefaultDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign,assignment]


def warm(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do something here that forks will do again; afterwards there is no thread and no open file."""
    asyncio.run(work())
    gc.collect()
    gc.freeze()
