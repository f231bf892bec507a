"""Anthropic's memory tool over a workspace: files that Claude writes to `/memories` become memories.

from jiyi.agents.anthropic import AsyncMemoryTool

async with Memory.open(workspace="notes", workspace_user="mei") as memory:
    runner = client.beta.messages.tool_runner(tools=[AsyncMemoryTool(memory, user_id="mei")], …)
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from .. import sync
from ..errors import InvalidInput, JiyiError, MissingExtra
from ..memory import Memory
from .memory_folder import MemoryFolder

try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
except ImportError as error:
    raise MissingExtra("anthropic", "anthropic") from error


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """For `AsyncAnthropic` and an asynchronous `Memory`."""

    def __init__(self, memory: Memory, *, user_id: str, **options: Any) -> None:
        super().__init__(**options)
        self._folder = MemoryFolder(memory, user_id=user_id)

    async def call(self, input: object) -> str:  # noqa: A002 - the name is Anthropic's
        try:
            return await self._folder.run(_command(input))
        except JiyiError as error:
            raise ToolError(str(error)) from error

    async def _do(self, command: BaseModel) -> str:
        return await self.call(command.model_dump())

    view = create = str_replace = insert = delete = rename = _do


class MemoryTool(BetaAbstractMemoryTool):
    """For `Anthropic` and a synchronous `jiyi.sync.Memory`."""

    def __init__(self, memory: sync.Memory, *, user_id: str, **options: Any) -> None:
        super().__init__(**options)
        self._memory = memory
        self._folder = MemoryFolder(memory._memory, user_id=user_id)

    def call(self, input: object) -> str:  # noqa: A002 - the name is Anthropic's
        try:
            return self._memory._run(self._folder.run(_command(input)))
        except JiyiError as error:
            raise ToolError(str(error)) from error

    def _do(self, command: BaseModel) -> str:
        return self.call(command.model_dump())

    view = create = str_replace = insert = delete = rename = _do


def _command(given: object) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidInput("input", "must be an object with a command")
    return given
