"""The tools and their answers in the shapes of the chat APIs. These are plain dicts: no client is needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .definitions import Tool
from .schema import ToolLanguage

if TYPE_CHECKING:
    from . import MemoryTools


def openai_chat(tool: Tool, language: ToolLanguage, *, strict: bool) -> dict[str, Any]:
    return {"type": "function", "function": _function(tool, language, strict=strict)}


def openai_responses(tool: Tool, language: ToolLanguage, *, strict: bool) -> dict[str, Any]:
    return {"type": "function", **_function(tool, language, strict=strict)}


def _function(tool: Tool, language: ToolLanguage, *, strict: bool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description[language],
        "parameters": tool.schema(language, strict=strict),
        "strict": strict,
    }


def anthropic(tool: Tool, language: ToolLanguage) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description[language], "input_schema": tool.schema(language)}


# -- calls ------------------------------------------------------------------------------------------------------------


async def answer_openai_chat(tools: MemoryTools, message: Any) -> list[dict[str, Any]]:
    """The tool messages that follow an assistant message. Calls of other tools are left to their owners."""
    answers = []
    for call in _part(message, "tool_calls") or ():
        function = _part(call, "function")
        if function is not None and tools.has(_part(function, "name")):
            result = await tools.call(_part(function, "name"), _part(function, "arguments"))
            answers.append({"role": "tool", "tool_call_id": _part(call, "id"), "content": result.text})
    return answers


async def answer_openai_responses(tools: MemoryTools, response: Any) -> list[dict[str, Any]]:
    """The input items that answer the function calls of a response."""
    answers = []
    for item in _items(response, "output"):
        if _part(item, "type") == "function_call" and tools.has(_part(item, "name")):
            result = await tools.call(_part(item, "name"), _part(item, "arguments"))
            answers.append({"type": "function_call_output", "call_id": _part(item, "call_id"), "output": result.text})
    return answers


async def answer_anthropic(tools: MemoryTools, message: Any) -> list[dict[str, Any]]:
    """The content blocks of the user message that answers a message with tool_use blocks."""
    answers = []
    for block in _items(message, "content"):
        if _part(block, "type") == "tool_use" and tools.has(_part(block, "name")):
            result = await tools.call(_part(block, "name"), _part(block, "input"))
            answers.append(
                {
                    "type": "tool_result",
                    "tool_use_id": _part(block, "id"),
                    "content": result.text,
                    "is_error": result.is_error,
                }
            )
    return answers


def _items(whole: Any, name: str) -> Iterable[Any]:
    """The list inside a reply, or the list itself."""
    return whole if isinstance(whole, list) else _part(whole, name) or ()


def _part(value: Any, name: str) -> Any:
    """Clients give objects, stored conversations give dicts."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
