"""Ids: ULIDs, and hashes that identify equal things. A ULID has 26 lower-case characters. They sort by creation time
and strictly increase within a process."""

import os
import time
from datetime import UTC, datetime, timedelta
from hashlib import blake2b, sha256
from uuid import UUID

from .forks import new_lock

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_RANDOM_BITS = 80
_lock = new_lock()
_last = 0


def new_id() -> str:
    global _last  # noqa: PLW0603 - one counter per process is what makes the ids increase
    fresh = (time.time_ns() // 1_000_000 << _RANDOM_BITS) | int.from_bytes(os.urandom(_RANDOM_BITS // 8))
    with _lock:
        # Within one millisecond, or when the clock steps back, continue from the last id by a random step: processes
        # forked from one share `_last` and must still diverge.
        if fresh >> _RANDOM_BITS <= _last >> _RANDOM_BITS:
            fresh = _last + 1 + int.from_bytes(os.urandom(5))
        _last = value = fresh
    return "".join([_PAIRS[value >> shift & 1023] for shift in range(120, -1, -10)])


def time_of(made: str) -> datetime | None:
    """Return the creation time of an id, or None if it is not a ULID of ours."""
    value = 0
    for letter in made:
        at = _ALPHABET.find(letter)
        if at < 0:
            return None
        value = value << 5 | at
    if len(made) != 26 or value >> 128:
        return None
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value >> _RANDOM_BITS)
    except OverflowError:
        return None


def identity(*parts: str | None) -> str:
    """Hash a list of values; None, the empty string and other divisions of the same text give other hashes."""
    digest = blake2b(digest_size=16)
    for part in parts:
        encoded = b"" if part is None else part.encode()
        digest.update(b"-" if part is None else f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()


def trust_parts(trust: float) -> tuple[str, ...]:
    """Return the parts of an identity that separate less trusted memories from trusted ones."""
    return () if trust >= 1 else (f"trust {trust:g}",)


MARKS = "erased:"  # begins the names of deleted users in the change feed


def erased(user_id: str) -> str:
    """Return the name under which the change feed records that a user was deleted, without keeping the user's id."""
    return MARKS + sha256(user_id.encode()).hexdigest()


def to_uuid(made: str) -> str:
    """Write a ULID as a UUID, for protocols whose ids are UUIDs; other ids stay as they are."""
    if time_of(made) is None:
        return made
    value = 0
    for letter in made:
        value = value << 5 | _ALPHABET.index(letter)
    return str(UUID(int=value))


def from_uuid(name: str) -> str:
    """Return the ULID that `to_uuid` wrote as this UUID; raise ValueError if it is none."""
    value = UUID(name).int
    return "".join([_ALPHABET[value >> shift & 31] for shift in range(125, -1, -5)])
