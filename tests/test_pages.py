"""Pages of every listing: together they hold everything once, and a page that is exactly full is the last."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from jiyi import Memory

Listing = Callable[..., Awaitable[Any]]
LISTINGS: dict[str, Callable[[Memory], Listing]] = {
    "list": lambda memory: memory.list,
    "messages": lambda memory: memory.messages,
    "timeline": lambda memory: memory.timeline,
    "changes": lambda memory: memory.usage.changes,
}


@pytest.mark.parametrize("listing", LISTINGS.values(), ids=LISTINGS)
async def test_pages_of_any_size_hold_everything_once(memory: Memory, listing: Callable[[Memory], Listing]) -> None:
    for at in range(4):
        await memory.add([{"role": "user", "content": f"message {at}"}], user_id="mei", session_id=f"s{at % 2}")
        await memory.add(f"note {at}", user_id="mei", session_id=f"s{at % 2}")
    whole = (await listing(memory)(user_id="mei", limit=50)).items
    assert len(whole) >= 4
    for limit in range(1, len(whole) + 2):
        seen: list[Any] = []
        cursor, pages = None, 0
        while pages == 0 or cursor is not None:
            page = await listing(memory)(user_id="mei", limit=limit, cursor=cursor)
            seen += page.items
            cursor, pages = page.next_cursor, pages + 1
        assert tuple(seen) == tuple(whole)
        fewest = -(-len(whole) // limit)
        assert pages == fewest or (listing is LISTINGS["changes"] and pages == fewest + 1)
