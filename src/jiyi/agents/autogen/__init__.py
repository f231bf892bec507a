"""Adapter for AutoGen: tools, a model context, the `Memory` protocol, and ready-made agents.

from jiyi.agents.autogen import build_agent

agent = build_agent("helper", model_client, memory, user_id="mei")
await agent.run(task="按照之前的配置再来一次")
"""

from ...errors import MissingExtra

try:
    import autogen_agentchat  # noqa: F401 - checks that it is installed
except ImportError as error:
    raise MissingExtra("autogen", "autogen-agentchat") from error

from ..tools import MEMORY_TOOLS_SYSTEM_PROMPT, MEMORY_TOOLS_SYSTEM_PROMPTS
from .agents import MemoryTool, MemoryToolConfig, MemRecallAgent, build_agent, memory_tools
from .binding import Binding, loading_into
from .context import MemoryContext, MemoryContextConfig
from .memory import JiyiMemory, JiyiMemoryConfig

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
