"""Values in the RAM of this process; the one asked for least recently leaves first."""

from __future__ import annotations

import time
from collections import OrderedDict


class LocalCache:
    name = "process"
    problem: str | None = None

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[tuple[str, str], tuple[bytes, float]] = OrderedDict()

    async def get(self, user_id: str, key: str) -> bytes | None:
        found = self._values.get((user_id, key))
        if found is None:
            return None
        value, until = found
        if time.monotonic() >= until:
            del self._values[user_id, key]
            return None
        self._values.move_to_end((user_id, key))
        return value

    async def put(self, user_id: str, key: str, value: bytes, seconds: float) -> None:
        self._values[user_id, key] = value, time.monotonic() + seconds
        self._values.move_to_end((user_id, key))
        while len(self._values) > self._most:
            self._values.popitem(last=False)

    async def forget(self, user_id: str) -> int:
        mine = [entry for entry in self._values if entry[0] == user_id]
        for entry in mine:
            del self._values[entry]
        return len(mine)

    async def close(self) -> None:
        self._values.clear()
