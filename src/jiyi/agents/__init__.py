"""Agents with memory: agents in plain Python here, one module per framework beside them."""

from .agent import AgentReply, AgentWithMemory, MemoryHooks
from .conversation import Chat, Conversation
from .memory_folder import MemoryFolder
from .recall_agent import MemRecallAgent, PlannedSearch, Recollection

__all__ = [
    "AgentReply",
    "AgentWithMemory",
    "Chat",
    "Conversation",
    "MemRecallAgent",
    "MemoryFolder",
    "MemoryHooks",
    "PlannedSearch",
    "Recollection",
]
