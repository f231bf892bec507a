"""Memories as a Markdown document that people read: by user and type, a line for each. Messages are left out; what
was over or archived is, too. It is no backup."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..languages.normalise import normalise
from ..models import MemoryItem, utc_now
from ..scope import Filter
from .atomic_file import written
from .export import Advance

if TYPE_CHECKING:
    from ..store.base import Store

AT_ONCE = 200
VERBATIM = "message"
FRONT = b"---\ngenerator: jiyi\n---\n"  # importing knows by it that the lines say all in themselves
_NO_TAG = re.compile(r"[^\w-]+")


async def export_markdown(store: Store, path: Path, user_id: str | None, advance: Advance) -> dict[str, int]:
    """→ how many memories of each type were written"""
    users = [user_id] if user_id is not None else await store.users()
    counted: Counter[str] = Counter()
    with written(path) as file:
        file.write(FRONT)
        for user in users:
            await _user(store, file, user, counted, advance)
    return dict(counted)


async def _user(store: Store, file: IO[bytes], user_id: str, counted: Counter[str], advance: Advance) -> None:
    types = (await store.stats("", user_id)).by_type
    whole = sum(number for name, number in types.items() if name != VERBATIM)
    file.write(f"\n# {_plain(user_id)}\n".encode())
    done = 0
    for memory_type in sorted(types):
        if memory_type == VERBATIM:
            continue
        where = Filter(user_id=user_id, memory_types=(memory_type,), now=utc_now())
        cursor = None
        file.write(f"\n## {_plain(memory_type)}\n\n".encode())
        while True:
            page = await store.page(where, cursor=cursor, limit=AT_ONCE)
            await asyncio.to_thread(_write, file, page.items)
            counted[memory_type] += len(page.items)
            done += len(page.items)
            advance("exporting", done, whole)
            cursor = page.next_cursor
            if cursor is None:
                break


def _write(file: IO[bytes], memories: Sequence[MemoryItem]) -> None:
    file.writelines(line(memory).encode() for memory in memories)


def line(memory: MemoryItem) -> str:
    """As importing reads it: `- [type] text #tag (context)`, with the day it happened as the context."""
    tags = "".join(f" #{tag}" for tag in dict.fromkeys(_NO_TAG.sub("-", normalise(tag)) for tag in memory.tags))
    return f"- [{_plain(memory.memory_type)}] {_plain(memory.content)}{tags} ({memory.occurred_at:%Y-%m-%d})\n"


def _plain(text: str) -> str:
    """On one line."""
    return " ".join(text.split())
