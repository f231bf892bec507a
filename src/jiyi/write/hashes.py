"""Identities: when are two things handed in the same thing?"""

from __future__ import annotations

from hashlib import blake2b

from ..languages.terms import content_hash


def identity(*parts: str | None) -> str:
    """A hash of a list of values in which None, the empty string and any other division of the text differ."""
    digest = blake2b(digest_size=16)
    for part in parts:
        encoded = b"" if part is None else part.encode()
        digest.update(b"-" if part is None else f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


def apart(trust: float) -> tuple[str, ...]:
    """Return the part of an identity that separates less trusted memories from trusted ones."""
    return () if trust >= 1 else (f"trust {trust:g}",)


def statement_hash(
    text: str,
    memory_type: str,
    agent_id: str | None,
    group_id: str | None,
    memory_key: str | None = None,
    trust: float = 1.0,
) -> str:
    """Equal for statements that say the same. An agent's and a group's memories are apart: each must find its own.
    So is one with a key that the caller chose: it must be found under that key, whatever others say."""
    said = identity("statement", memory_type, agent_id, group_id, content_hash(text), *apart(trust))
    return said if memory_key is None else identity(said, memory_key)
