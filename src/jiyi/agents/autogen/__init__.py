"""AutoGen agents that remember: tools, a context, AutoGen's memory protocol, and a helper that puts them together.

from jiyi.agents.autogen import build_agent

agent = build_agent("helper", model_client, memory, user_id="mei")
await agent.run(task="按照之前的配置再来一次")
"""

from __future__ import annotations

from ...errors import MissingExtra

try:
    import autogen_agentchat  # noqa: F401 - looked for only
except ImportError as error:
    raise MissingExtra("autogen", "autogen-agentchat") from error

from ..tools import MEMORY_TOOLS_SYSTEM_PROMPT, MEMORY_TOOLS_SYSTEM_PROMPTS
from .binding import Binding, loading_into
from .builder import build_agent
from .context import MemoryContext, MemoryContextConfig
from .protocol import JiyiMemory, JiyiMemoryConfig
from .recall import MemRecallAgent
from .tools import MemoryTool, MemoryToolConfig, memory_tools

__all__ = [
    "MEMORY_TOOLS_SYSTEM_PROMPT",
    "MEMORY_TOOLS_SYSTEM_PROMPTS",
    "Binding",
    "JiyiMemory",
    "JiyiMemoryConfig",
    "MemRecallAgent",
    "MemoryContext",
    "MemoryContextConfig",
    "MemoryTool",
    "MemoryToolConfig",
    "build_agent",
    "loading_into",
    "memory_tools",
]
