"""Either kind of memory behind an adapter: the asynchronous one, or the synchronous one with its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from .. import sync
from ..memory import Memory

T = TypeVar("T")


def engine_of(memory: Memory | sync.Memory) -> Memory:
    return memory._memory if isinstance(memory, sync.Memory) else memory


async def await_in(memory: Memory | sync.Memory, work: Coroutine[Any, Any, T]) -> T:
    """A synchronous Memory's engine lives in a thread of its own, and so must all that calls it."""
    if isinstance(memory, sync.Memory):
        return await asyncio.wrap_future(memory._begin(work))
    return await work
