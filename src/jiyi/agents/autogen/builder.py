"""An AutoGen agent with memory, put together in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ChatCompletionClient

from ...ids import new_id
from ...memory import Memory
from ..tools import ToolLanguage
from .binding import source_of
from .context import MemoryContext
from .tools import memory_tools


def build_agent(
    name: str,
    model_client: ChatCompletionClient,
    memory: Memory | str | None,
    *,
    user_id: str,
    session_id: str | None = None,
    group_id: str | None = None,
    private: bool = False,
    language: ToolLanguage = "en",
    tools: Sequence[Any] = (),
    only: Sequence[str] | None = None,
    memory_model_client: ChatCompletionClient | None = None,
    enable_proactive_search: bool | None = None,
    proactive_search_threshold: float | None = None,
    observe: bool = True,
    offload_over: int | None = None,
    buffer_size: int | None = None,
    max_tool_iterations: int = 5,
    **more: Any,
) -> AssistantAgent:
    """An `AssistantAgent` with the memory tools and a `MemoryContext`, in a session of its own unless one is named.

    `only` names the memory tools to offer, `tools` are yours, `more` goes to `AssistantAgent`.
    """
    source = source_of(memory)
    binding: dict[str, Any] = {
        "user_id": user_id,
        "agent_id": name,
        "session_id": session_id or new_id(),
        "group_id": group_id,
        "private": private,
        "language": language,
    }
    context = MemoryContext(
        source,
        **binding,
        memory_model_client=memory_model_client,
        enable_proactive_search=enable_proactive_search,
        proactive_search_threshold=proactive_search_threshold,
        observe=observe,
        offload_over=offload_over,
        buffer_size=buffer_size,
    )
    return AssistantAgent(
        name,
        model_client,
        tools=[*memory_tools(source, **binding, only=only), *tools],
        model_context=context,
        max_tool_iterations=max_tool_iterations,
        **more,
    )
