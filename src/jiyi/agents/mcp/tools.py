"""MCP tools, the `search` and `fetch` of ChatGPT connectors, resources (profile, memories), and the prompt."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from ...errors import NotFound
from ...models import Value
from ...read.context import render_context
from ...text.fence import harmless
from ..tools import MEMORY_TOOLS_SYSTEM_PROMPTS, MemoryTools, Tool, ToolLanguage, ToolResult
from ..tools.definitions import list_memories
from ..tools.inputs import ListMemoriesInput
from ..tools.outputs import PHRASES, GetMemoryDetailOutput

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
    data = output.model_dump(mode="json")
    return types.CallToolResult(
        content=[types.TextContent(text=json.dumps(data, ensure_ascii=False))], structured_content=data
    )


PROFILE, RECENT = "jiyi://profile", "jiyi://recent"
MARKDOWN = "text/markdown"
PROFILE_TOKENS = 2000
PROFILE_MEMORIES = 300
RECENT_MEMORIES = 20
USE_MEMORY = "use_memory"

TEXTS: dict[ToolLanguage, dict[str, str]] = {
    "en": {
        PROFILE: "The user's preferences, facts, habits and skills, the most important first.",
        RECENT: f"The user's last {RECENT_MEMORIES} memories.",
        MEMORIES: "The full text of one memory.",
        USE_MEMORY: "How to use the memory tools. language: en or zh.",
        "empty": "Nothing is stored yet.",
    },
    "zh": {
        PROFILE: "关于用户的已知信息：偏好、事实、习惯和技能，重要的在前。",
        RECENT: f"用户最近的 {RECENT_MEMORIES} 条记忆。",
        MEMORIES: "一条记忆的全文。",
        USE_MEMORY: "记忆工具的使用说明。language：en 或 zh。",
        "empty": "还没有任何记忆。",
    },
}


def resources(language: ToolLanguage) -> list[types.Resource]:
    texts = TEXTS[language]
    return [
        types.Resource(name=uri.removeprefix("jiyi://"), uri=uri, description=texts[uri], mime_type=MARKDOWN)
        for uri in (PROFILE, RECENT)
    ]


def resource_templates(language: ToolLanguage) -> list[types.ResourceTemplate]:
    uri = MEMORIES + "{memory_key}"
    return [
        types.ResourceTemplate(
            name="memory", uri_template=uri, description=TEXTS[language][MEMORIES], mime_type=MARKDOWN
        )
    ]


async def read_resource(uri: str, tools: MemoryTools) -> types.ReadResourceResult:
    if uri == PROFILE:
        text = await _profile(tools)
    elif uri == RECENT:
        text = await _recent(tools)
    elif uri.startswith(MEMORIES):
        text = await _memory(unquote(uri.removeprefix(MEMORIES)), tools)
    else:
        raise _unknown(uri)
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=MARKDOWN, text=text)])


def _unknown(uri: str) -> MCPError:
    known = f"{PROFILE}, {RECENT}, {MEMORIES}{{memory_key}}"
    return MCPError(types.INVALID_PARAMS, f"unknown resource {harmless(uri[:200])}: the resources are {known}")


async def _profile(tools: MemoryTools) -> str:
    conversation = tools.conversation
    page = await conversation.memory.list(
        user_id=conversation.user_id,
        layers=["semantic", "procedural"],
        limit=PROFILE_MEMORIES,
        **conversation.filters,
    )
    best = sorted(page.items, key=lambda memory: -memory.importance)  # stable: of equal ones, the newest first
    block = render_context(best, max_tokens=PROFILE_TOKENS, style="sections", language=tools.language)
    return block or TEXTS[tools.language]["empty"]


async def _recent(tools: MemoryTools) -> str:
    listed = await list_memories.run(tools.conversation, ListMemoriesInput(limit=RECENT_MEMORIES))
    found = listed.model_copy(update={"next_cursor": None})
    return found.text(PHRASES[tools.language]) if found.memories else TEXTS[tools.language]["empty"]


async def _memory(memory_key: str, tools: MemoryTools) -> str:
    try:
        memory = await tools.conversation.get(memory_key)
    except (NotFound, ValueError):
        raise _unknown(MEMORIES + memory_key) from None
    return GetMemoryDetailOutput.of(memory, 0).text(PHRASES[tools.language])


def prompts(language: ToolLanguage) -> list[types.Prompt]:
    argument = types.PromptArgument(name="language", description="en · zh", required=False)
    return [types.Prompt(name=USE_MEMORY, description=TEXTS[language][USE_MEMORY], arguments=[argument])]


def prompt(name: str, arguments: dict[str, str] | None, default: ToolLanguage) -> types.GetPromptResult:
    wanted = (arguments or {}).get("language", default)
    if name != USE_MEMORY:
        raise MCPError(types.INVALID_PARAMS, f"unknown prompt {harmless(name[:100])}: the prompt is {USE_MEMORY}")
    if wanted not in ("en", "zh"):
        raise MCPError(types.INVALID_PARAMS, f"language must be en or zh, not {harmless(wanted[:100])}")
    language: ToolLanguage = "zh" if wanted == "zh" else "en"
    text = types.TextContent(text=MEMORY_TOOLS_SYSTEM_PROMPTS[language])
    return types.GetPromptResult(
        description=TEXTS[language][USE_MEMORY], messages=[types.PromptMessage(role="user", content=text)]
    )
