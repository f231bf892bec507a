"""For whom a component works, and how it finds its memory again when it is loaded from a configuration.

A configuration holds the address of a memory, never the memory. A loaded component uses the memory that the host names
with `loading_into`, or else opens the address when it is first used; components with one address share one memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict

from ...errors import SettingsError
from ...memory import Memory
from ..tools import MemoryTools, ToolLanguage

_given: ContextVar[Memory | None] = ContextVar("jiyi_memory_for_loading", default=None)


class Binding(BaseModel):
    """For whom, and where: the part of a configuration that all components share."""

    model_config = ConfigDict(frozen=True)

    where: str | None = None
    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    group_id: str | None = None
    private: bool = False
    language: ToolLanguage = "en"


class Source:
    """A memory that is there, or one that is opened when it is first needed."""

    def __init__(self, memory: Memory, *, opened_here: bool) -> None:
        self.memory = memory
        self._to_start = self._opened_here = opened_here
        self._starting = asyncio.Lock()

    async def get(self) -> Memory:
        async with self._starting:
            if self._to_start:
                await self.memory
                self._to_start = False
        return self.memory

    async def close(self) -> None:
        """Close what was opened here; a memory that the host opened stays open."""
        async with self._starting:
            if self._opened_here and not self._to_start:
                self._to_start = True
                await self.memory.close()


_sources: WeakValueDictionary[str | None, Source] = WeakValueDictionary()
_desks: WeakValueDictionary[tuple[int, Binding], MemoryTools] = WeakValueDictionary()


@contextmanager
def loading_into(memory: Memory) -> Iterator[None]:
    """Components that are loaded inside use this memory.

    with loading_into(memory):
        agent = AssistantAgent.load_component(configuration)
    """
    token = _given.set(memory)
    try:
        yield
    finally:
        _given.reset(token)


def source_of(memory: Memory | Source | str | None) -> Source:
    if isinstance(memory, Source):
        return memory
    if isinstance(memory, Memory):
        return Source(memory, opened_here=False)
    given = _given.get()
    if given is not None:
        return Source(given, opened_here=False)
    source = _sources.get(memory)
    if source is None:
        _sources[memory] = source = Source(Memory.open(memory), opened_here=True)
    return source


def desk_of(source: Source, binding: Binding) -> MemoryTools:
    """The tools of a conversation. Components of one session share them, so that a turn counts for all."""
    key = (id(source.memory), binding)
    desk = _desks.get(key) if binding.session_id else None
    if desk is None:
        about = binding.model_dump(exclude={"where"})
        desk = MemoryTools(source.memory, **about)
        _desks[key] = desk
    return desk


def bound_to(source: Source, **about: Any) -> Binding:
    return Binding(where=source.memory.where, **about)


def to_write_down(binding: Binding) -> Binding:
    """The binding for a configuration, which is no place for a password."""
    if binding.where and urlsplit(binding.where).password:
        raise SettingsError(
            "the address of the memory has a password and is not written into a configuration: "
            "set it as JIYI_URL and open the memory without an address"
        )
    return binding
