"""The user and the memory of a component, and their form in a configuration. A configuration holds the address of a
memory. A loaded component uses the memory given with `loading_into`, or opens the address when it is first used;
components with the same address share one memory."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Required, TypedDict, Unpack
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from pydantic import BaseModel, ConfigDict

from ...engine import runtime
from ...errors import SettingsError
from ...memory import Memory
from ..tools import MemoryTools, ToolLanguage

_given: ContextVar[Memory | None] = ContextVar("jiyi_memory_for_loading", default=None)


class ScopeOptions(TypedDict, total=False):
    """Keyword arguments of all components: the user, the marks of saved memories, and the language."""

    user_id: Required[str]
    agent_id: str | None
    session_id: str | None
    group_id: str | None
    private: bool
    user_names: tuple[str, ...]
    language: ToolLanguage | None


class Binding(BaseModel):
    """The part of a configuration that all components share: the user, the scope and the memory's address."""

    model_config = ConfigDict(frozen=True)

    where: str | None = None
    user_id: str
    agent_id: str | None = None
    session_id: str | None = None
    group_id: str | None = None
    private: bool = False
    user_names: tuple[str, ...] = ()
    language: ToolLanguage | None = None  # that of the user's words


class Source:
    """An open memory, or one that is opened when it is first needed."""

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
        """Close the memory if it was opened here."""
        async with self._starting:
            if self._opened_here and not self._to_start:
                self._to_start = True
                await self.memory.close()


_sources: WeakValueDictionary[str | None, Source] = WeakValueDictionary()
_tools: WeakValueDictionary[tuple[int, Binding], MemoryTools] = WeakValueDictionary()


@contextmanager
def loading_into(memory: Memory) -> Iterator[None]:
    """Use this memory for components that are loaded inside the block.

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
    if memory is not None and not isinstance(memory, str):
        return Source(memory, opened_here=False)  # of this process or on a server
    given = _given.get()
    if given is not None:
        return Source(given, opened_here=False)
    source = _sources.get(memory)
    if source is None:
        _sources[memory] = source = Source(Memory.open(memory), opened_here=True)
    return source


def tools_of(source: Source, binding: Binding) -> MemoryTools:
    """Return the tools of a conversation; components of one session share them and their turns."""
    key = (id(source.memory), binding)
    tools = _tools.get(key) if binding.session_id else None
    if tools is None:
        tools = MemoryTools(source.memory, **binding.model_dump(exclude={"where"}))
        _tools[key] = tools
    return tools


def bind(source: Source, **scope: Unpack[ScopeOptions]) -> Binding:
    return Binding(where=runtime(source.memory).where, **scope)


def for_config(binding: Binding) -> Binding:
    """Return the binding for a configuration; raise if its address has a password."""
    if binding.where and urlsplit(binding.where).password:
        raise SettingsError(
            "the address of the memory has a password, which a configuration must not contain: "
            "set it as JIYI_URL and open the memory without an address"
        )
    return binding
