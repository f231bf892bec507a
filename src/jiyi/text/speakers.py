"""Speakers: who said the words of a memory."""

from __future__ import annotations

from collections.abc import Mapping

from ..languages.words import normalise
from ..roles import THE_USER, is_person, role_kind


def told_by(data: Mapping[str, object], user_id: str) -> str | None:
    """Return the normalised name or the kind of role of the one who said something; None: the user."""
    speaker, role = data.get("speaker"), data.get("role")
    name = normalise(speaker) if isinstance(speaker, str) else ""
    if name not in THE_USER and name != normalise(user_id):
        return name
    return None if role is None or is_person(role) else role_kind(role)
