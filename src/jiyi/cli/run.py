"""From a command to the engine: open the memory, call a verb, close it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ..memory import Memory

T = TypeVar("T")


def call(
    verb: Callable[[Memory, str], Awaitable[T]],
    *,
    store: str | None,
    user: str | None = None,
    workspace: Path | None = None,
) -> T:
    """Run something with the memory and the user that the options name; the settings stand in for what they don't.

    Ctrl-C cancels the work and closes the database in order.
    """
    from ..memory import Memory
    from ..settings import load_settings

    settings = load_settings()

    async def work() -> T:
        async with Memory.open(store, settings=settings, workspace=workspace) as memory:
            return await verb(memory, settings.user if user is None else user)

    return asyncio.run(work())
