"""Agents in plain Python, over any chat model: one that remembers, one that recalls, and hooks around them."""

from __future__ import annotations

from .chat import Chat
from .hooks import MemoryHooks
from .recall import MemRecallAgent, PlannedSearch, Recollection
from .with_memory import AgentReply, AgentWithMemory

__all__ = ["AgentReply", "AgentWithMemory", "Chat", "MemRecallAgent", "MemoryHooks", "PlannedSearch", "Recollection"]
