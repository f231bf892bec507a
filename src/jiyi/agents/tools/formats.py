"""Tool definitions and tool results in the formats of the chat APIs, as plain dicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..chat import part
from .definitions import Tool
from .inputs import ToolLanguage

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
    """Return the tool messages that answer an assistant message; calls of other tools are ignored."""
    answers = []
    for call in part(message, "tool_calls") or ():
        function = part(call, "function")
        if function is not None and tools.has(part(function, "name")):
            result = await tools.call(part(function, "name"), part(function, "arguments"))
            answers.append({"role": "tool", "tool_call_id": part(call, "id"), "content": result.text})
    return answers


async def answer_openai_responses(tools: MemoryTools, response: Any) -> list[dict[str, Any]]:
    """Return the input items that answer the function calls of a response."""
    answers = []
    for item in _items(response, "output"):
        if part(item, "type") == "function_call" and tools.has(part(item, "name")):
            result = await tools.call(part(item, "name"), part(item, "arguments"))
            answers.append({"type": "function_call_output", "call_id": part(item, "call_id"), "output": result.text})
    return answers


async def answer_anthropic(tools: MemoryTools, message: Any) -> list[dict[str, Any]]:
    """Return the content blocks that answer the tool_use blocks of a message."""
    answers = []
    for block in _items(message, "content"):
        if part(block, "type") == "tool_use" and tools.has(part(block, "name")):
            result = await tools.call(part(block, "name"), part(block, "input"))
            answers.append(
                {
                    "type": "tool_result",
                    "tool_use_id": part(block, "id"),
                    "content": result.text,
                    "is_error": result.is_error,
                }
            )
    return answers


def _items(whole: Any, name: str) -> Iterable[Any]:
    """Return the list inside a reply, or the list itself."""
    return whole if isinstance(whole, list) else part(whole, name) or ()
