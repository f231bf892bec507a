"""MCP resources (profile, recent memories, single memories) and the prompt."""

from urllib.parse import unquote

import mcp_types as types
from mcp.shared.exceptions import MCPError

from ...errors import NotFound
from ...read.context import context_block
from ...text.fence import harmless
from ..tools import MEMORY_TOOLS_SYSTEM_PROMPTS, MemoryTools, ToolLanguage
from ..tools.definitions import list_memories
from ..tools.inputs import ListMemoriesInput
from ..tools.outputs import PHRASES, GetMemoryDetailOutput
from .tools import MEMORIES

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
    fence = await conversation.fence()
    block = await context_block(best, fence=fence, max_tokens=PROFILE_TOKENS, style="sections", language=tools.language)
    return block or TEXTS[tools.language]["empty"]


async def _recent(tools: MemoryTools) -> str:
    listed = await list_memories.run(tools.conversation, ListMemoriesInput(limit=RECENT_MEMORIES))
    found = listed.model_copy(update={"next_cursor": None})
    if not found.memories:
        return TEXTS[tools.language]["empty"]
    return str(found.text(PHRASES[tools.language], await tools.conversation.fence()))


async def _memory(memory_key: str, tools: MemoryTools) -> str:
    try:
        memory = await tools.conversation.get(memory_key)
    except (NotFound, ValueError):
        raise _unknown(MEMORIES + memory_key) from None
    return GetMemoryDetailOutput.of(memory, 0).text(PHRASES[tools.language], await tools.conversation.fence())


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
