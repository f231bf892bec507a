"""Keys to a server: what one opens, how it looks, and how it is recognised without being kept."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from hmac import compare_digest
from typing import Literal, get_args

from pydantic import Field

from . import validation
from .errors import InvalidInput
from .ids import new_id
from .models import Value, utc_now

Scope = Literal["read", "write", "delete", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
MOST_USERS = 1_000  # of one key
_FORM = re.compile(r"jiyi_([0-9a-z]{26})_[A-Za-z0-9_-]{43}")


class ApiKey(Value):
    """What a key to the server opens, and until when."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    all_users: bool = Field(description="it opens every user's memory")
    user_ids: tuple[str, ...] = Field(description="otherwise: whose")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def valid(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def within(self, other: ApiKey) -> bool:
        """Whether it opens nothing that the other one does not."""
        if not set(self.scopes) <= set(other.scopes):
            return False
        return other.all_users or (not self.all_users and set(self.user_ids) <= set(other.user_ids))


class NewKey(ApiKey):
    """A key just made. `key` is the secret itself: it is shown this once and kept nowhere."""

    key: str


class AuditEntry(Value):
    """Something done with a key that cannot be undone, or that concerns keys."""

    id: str
    at: datetime
    key_id: str | None = Field(description="none: by the command line, or without a key")
    action: str
    target: str | None
    detail: str | None


def new_key(
    name: str, *, scopes: Sequence[str], user_ids: Sequence[str], all_users: bool, expires_at: datetime | None
) -> NewKey:
    wanted = {validation.choice(f"scopes[{at}]", scope, SCOPES) for at, scope in enumerate(scopes)}
    users = validation.names("user_ids", user_ids, most=MOST_USERS)
    if not wanted:
        raise InvalidInput("scopes", f"names nothing that the key may do: {', '.join(SCOPES)}")
    if all_users == bool(users):
        raise InvalidInput("user_ids", "say either which users the key is for, or that it is for all of them")
    now = utc_now()
    ends = validation.optional_time("expires_at", expires_at)
    if ends is not None and ends <= now:
        raise InvalidInput("expires_at", "is in the past")
    key_id = new_id()
    return NewKey(
        id=key_id,
        name=validation.text("name", name, longest=64),
        scopes=tuple(scope for scope in SCOPES if scope in wanted),
        all_users=all_users,
        user_ids=users,
        created_at=now,
        expires_at=ends,
        revoked_at=None,
        key=f"jiyi_{key_id}_{secrets.token_urlsafe(32)}",
    )


def id_in(secret: str) -> str | None:
    """The id that a key carries, if this looks like a key at all."""
    found = _FORM.fullmatch(secret)
    return None if found is None else found[1]


def hashed(secret: str) -> str:
    """What is kept of a key. Its 256 bits are random, so a quick hash is enough."""
    return sha256(secret.encode()).hexdigest()


def same(secret: str, key_hash: str) -> bool:
    return compare_digest(hashed(secret), key_hash)
