"""Roles and speakers of messages: only a person's words state facts about a person, and only the user's are the user's.

An unknown role is data from outside, whatever it claims to be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
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
USER_SUBJECTS = frozenset({"", "user", "the user", "用户", "该用户", "我", "i"})  # how extractors call the user
BY_USER = "by_user"  # in the data of a memory: its speaker is one of the user's names


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


def is_the_user(role: object, speaker: str | None, user_id: str, user_names: Collection[str] = ()) -> bool:
    """Return True if the user says a message: it has a person's role, and no name or exactly one of the user's.

    Names are not normalised: whoever chooses a name that looks like the user's is somebody else.

    >>> is_the_user("user", None, "mei"), is_the_user("user", "Mei", "mei"), is_the_user("user", "Mei", "mei", ["Mei"])
    (True, False, True)
    """
    return is_person(role) and (speaker is None or speaker == user_id or speaker in user_names)


@dataclass(frozen=True, slots=True)
class Teller:
    """Somebody other than the user who said something."""

    kind: Kind
    name: str | None


def teller_of(data: Mapping[str, object], user_id: str) -> Teller | None:
    """Return who told a memory, by its data; None: the user."""
    role, speaker = data.get("role"), data.get("speaker")
    role, name = "user" if role is None else role, speaker if isinstance(speaker, str) else None
    own = (name,) if name is not None and data.get(BY_USER) is True else ()
    return None if is_the_user(role, name, user_id, own) else Teller(role_kind(role), name)


def told_by(data: Mapping[str, object], user_id: str) -> str | None:
    """Return the part of a statement's hash that tells its teller apart; None: the user."""
    teller = teller_of(data, user_id)
    return None if teller is None else teller.kind if teller.name is None else normalise(teller.name)


def subject_text(data: Mapping[str, object]) -> str | None:
    """Return whom a memory is about, to be shown and searched: "Mei: husband" for a relative of Mei's."""
    subject, owner = data.get("subject"), data.get("owner")
    if not isinstance(subject, str):
        return None
    return f"{owner}: {subject}" if isinstance(owner, str) else subject
