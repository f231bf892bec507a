"""API keys of the server: permissions, format and hashing."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Literal, Self, get_args

from pydantic import Field

from . import validation
from .errors import InvalidInput
from .ids import new_id
from .models import Value, utc_now

Permission = Literal["read", "write", "delete", "admin"]
PERMISSIONS: tuple[Permission, ...] = get_args(Permission)
MAX_KEY_USERS = 1_000
_FORM = re.compile(r"jiyi_([0-9a-z]{26})_[A-Za-z0-9_-]{43}")


class ApiKey(Value):
    """Description of an API key, without the secret."""

    id: str
    name: str
    scopes: tuple[Permission, ...]
    all_users: bool = Field(description="valid for every user")
    user_ids: tuple[str, ...] = Field(description="users it is valid for, unless `all_users`")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def valid(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def is_subset_of(self, other: Self) -> bool:
        """Return True if its scopes, users and time are within the other's."""
        if not set(self.scopes) <= set(other.scopes):
            return False
        if other.expires_at is not None and (self.expires_at is None or self.expires_at > other.expires_at):
            return False
        return other.all_users or (not self.all_users and set(self.user_ids) <= set(other.user_ids))


class NewKey(ApiKey):
    """A new key with its secret, `key`, which is shown once and not stored."""

    key: str


class AuditEntry(Value):
    """Audit log entry: a deletion, or a change of keys."""

    id: str
    at: datetime
    key_id: str | None = Field(description="none: the command line, or a server without keys")
    action: str
    target: str | None
    detail: str | None


def new_key(
    name: str, *, scopes: Sequence[str], user_ids: Sequence[str], all_users: bool, expires_at: datetime | None
) -> NewKey:
    wanted = {validation.choice(f"scopes[{at}]", scope, PERMISSIONS) for at, scope in enumerate(scopes)}
    users = validation.names("user_ids", user_ids, most=MAX_KEY_USERS)
    if not wanted:
        raise InvalidInput("scopes", f"is empty; choose from: {', '.join(PERMISSIONS)}")
    if all_users == bool(users):
        raise InvalidInput("user_ids", "give either user_ids or all_users")
    now = utc_now()
    ends = validation.optional_time("expires_at", expires_at)
    if ends is not None and ends <= now:
        raise InvalidInput("expires_at", "is in the past")
    key_id = new_id()
    return NewKey(
        id=key_id,
        name=validation.text("name", name, longest=64),
        scopes=tuple(scope for scope in PERMISSIONS if scope in wanted),
        all_users=all_users,
        user_ids=users,
        created_at=now,
        expires_at=ends,
        revoked_at=None,
        key=f"jiyi_{key_id}_{secrets.token_urlsafe(32)}",
    )


def key_id_of(secret: str) -> str | None:
    """Return the id inside a secret, or None if it does not have the form of a key."""
    found = _FORM.fullmatch(secret)
    return None if found is None else found[1]


def hash_key(secret: str) -> str:
    """Hash a secret for storage; its 256 bits are random, so a fast hash is enough."""
    return sha256(secret.encode()).hexdigest()


def matches_hash(secret: str, key_hash: str) -> bool:
    return compare_digest(hash_key(secret), key_hash)
