"""Open the memory for a command, call it, close it."""

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
    """Call a function with the memory and user of the options, or of the settings if there are none.

    Ctrl-C cancels the work and closes the database in order.
    """
    from ..memory import Memory
    from ..settings import load_settings

    settings = load_settings()

    async def work() -> T:
        async with Memory.open(store, settings=settings, workspace=workspace) as memory:
            return await verb(memory, settings.user if user is None else user)

    return asyncio.run(work())
