"""Agents in plain Python, over any chat model: one that remembers, one that recalls, hooks around them,
and a folder for models that keep files."""

from __future__ import annotations

from .chat import Chat
from .folder import MemoryFolder
from .hooks import MemoryHooks
from .recall import MemRecallAgent, PlannedSearch, Recollection
from .with_memory import AgentReply, AgentWithMemory

__all__ = [
    "AgentReply",
    "AgentWithMemory",
    "Chat",
    "MemRecallAgent",
    "MemoryFolder",
    "MemoryHooks",
    "PlannedSearch",
    "Recollection",
]
