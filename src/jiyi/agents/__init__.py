"""Agents in plain Python, over any chat model: one that remembers, one that recalls, and hooks around them."""

from __future__ import annotations

from .chat import Chat
from .recall import MemRecallAgent, PlannedSearch, Recall

__all__ = ["Chat", "MemRecallAgent", "PlannedSearch", "Recall"]
