"""Agents with memory: agents in plain Python here, one module per framework beside them."""

from __future__ import annotations

from .agent import AgentReply, AgentWithMemory
from .chat import Chat
from .hooks import MemoryHooks
from .memory_folder import MemoryFolder
from .recall import Conversation
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
