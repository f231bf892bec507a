"""Agents with memory: agents in plain Python here, one module per framework beside them."""

from .agent import AgentReply, AgentWithMemory, MemoryHooks
from .chat import Chat
from .memory_folder import MemoryFolder
from .recall import Conversation, Recalled, observe, recall
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
    "Recalled",
    "Recollection",
    "observe",
    "recall",
]
