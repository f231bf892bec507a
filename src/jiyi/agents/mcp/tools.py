"""MCP tools, and the `search` and `fetch` of ChatGPT connectors."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import mcp_types as types

from ...models import Value
from ..tools import MemoryTools, Tool, ToolLanguage, ToolResult
from ..tools.outputs import GetMemoryDetailOutput, harmless_json

MEMORIES = "jiyi://memories/"


def uri_of(memory_key: str) -> str:
    return MEMORIES + quote(memory_key, safe="")


def mcp_tool(tool: Tool, language: ToolLanguage) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title[language],
        description=tool.description[language],
        input_schema=tool.schema(language),
        output_schema=tool.output_model.model_json_schema(mode="serialization"),
        annotations=types.ToolAnnotations(
            title=tool.title[language],
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


def tool_result(result: ToolResult) -> types.CallToolResult:
    """Return text and data. An error has no data: it would not fit the output schema of the tool."""
    return types.CallToolResult(
        content=[types.TextContent(text=result.text)],
        structured_content=None if result.is_error else result.data,
        is_error=result.is_error,
    )


class SearchHit(Value):
    id: str
    title: str
    url: str


class SearchAnswer(Value):
    results: list[SearchHit]


class Document(Value):
    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, str]


SEARCH: dict[ToolLanguage, str] = {
    "en": "Search the user's memories; each result has an id for fetch.",
    "zh": "搜索用户的记忆，每条结果带有可供 fetch 使用的 id。",
}
FETCH: dict[ToolLanguage, str] = {
    "en": "Get the full text of a memory by an id from search.",
    "zh": "按 search 返回的 id 获取一条记忆的全文。",
}


def connector_tools(language: ToolLanguage) -> list[types.Tool]:
    """Return `search` and `fetch`, each with one argument."""
    shapes: list[tuple[str, str, str, type[Value]]] = [
        ("search", "query", SEARCH[language], SearchAnswer),
        ("fetch", "id", FETCH[language], Document),
    ]
    return [
        types.Tool(
            name=name,
            title=name.title(),
            description=description,
            input_schema={
                "type": "object",
                "properties": {argument: {"type": "string"}},
                "required": [argument],
                "additionalProperties": False,
            },
            output_schema=shape.model_json_schema(mode="serialization"),
            annotations=types.ToolAnnotations(
                read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
            ),
        )
        for name, argument, description, shape in shapes
    ]


async def search(tools: MemoryTools, arguments: Mapping[str, Any]) -> types.CallToolResult:
    result = await tools.call("search_memories", arguments)
    if result.is_error:
        return tool_result(result)
    results: Any = result.data["results"]
    found = [SearchHit(id=one["memory_key"], title=one["summary"], url=uri_of(one["memory_key"])) for one in results]
    return _as_json(SearchAnswer(results=found))


async def fetch(tools: MemoryTools, arguments: Mapping[str, Any]) -> types.CallToolResult:
    """Return a whole memory, which the tools return in parts."""
    result = await tools.call("get_memory_detail", arguments)
    if result.is_error:
        return tool_result(result)
    part = GetMemoryDetailOutput.model_validate(result.data)
    texts = [part.content]
    memory = await tools.conversation.get(part.memory_key)
    while part.next_offset is not None:
        part = GetMemoryDetailOutput.of(memory, part.next_offset)
        texts.append(part.content)
    return _as_json(
        Document(
            id=part.memory_key,
            title=part.summary,
            text="".join(texts),
            url=uri_of(part.memory_key),
            metadata={
                "memory_type": part.memory_type,
                "occurred_at": part.occurred_at.isoformat(),
                "created_at": part.created_at.isoformat(),
                "tags": ", ".join(part.tags),
            },
        )
    )


def _as_json(output: Value) -> types.CallToolResult:
    data = harmless_json(output.model_dump(mode="json"))
    return types.CallToolResult(
        content=[types.TextContent(text=json.dumps(data, ensure_ascii=False))], structured_content=data
    )
