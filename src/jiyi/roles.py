"""Roles and speakers of messages: only a person's words state facts about a person.

An unknown role is data from outside, whatever it claims to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .languages.words import normalise

Kind = Literal["person", "assistant", "tool", "instruction", "unknown"]

_ROLES: dict[Kind, str] = {
    "person": "user human",
    "assistant": "assistant ai model bot chatbot agent gpt claude gemini llm",
    "tool": "tool function tool_result tool_results tool_response tool_output tool_call_output function_call_output"
    " ipython observation environment",
    "instruction": "system developer",
}
_KINDS: dict[str, Kind] = {role: kind for kind, roles in _ROLES.items() for role in roles.split()}
THE_USER = frozenset({"", "user", "the user", "用户", "该用户", "我", "i"})  # names that mean the user


def role_kind(role: object) -> Kind:
    """Return the kind of a role, ignoring case.

    >>> role_kind("Assistant"), role_kind("human"), role_kind("web")
    ('assistant', 'person', 'unknown')
    """
    return _KINDS.get(role.strip().casefold(), "unknown") if isinstance(role, str) else "unknown"


def is_person(role: object) -> bool:
    return role_kind(role) == "person"


def is_instruction(role: object) -> bool:
    """Return True for messages to the agent, which are no memories of a user."""
    return role_kind(role) == "instruction"


def told_by(data: Mapping[str, object], user_id: str) -> str | None:
    """Return the normalised name or the kind of role of the one who said something; None: the user."""
    speaker, role = data.get("speaker"), data.get("role")
    name = normalise(speaker) if isinstance(speaker, str) else ""
    if name not in THE_USER and name != normalise(user_id):
        return name
    return None if role is None or is_person(role) else role_kind(role)
