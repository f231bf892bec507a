"""Who asks, and for whom: the key decides. What a key is not for is as if it were not there."""

from __future__ import annotations

from dataclasses import dataclass

from .. import validation
from ..keys import SCOPES, ApiKey, Scope
from ..memory import Memory
from .problems import Refused


@dataclass(frozen=True, slots=True)
class Access:
    """What a request may do. Without a key (on this machine only): everything."""

    key: ApiKey | None
    default_user: str | None

    @property
    def scopes(self) -> tuple[Scope, ...]:
        return SCOPES if self.key is None else self.key.scopes

    @property
    def all_users(self) -> bool:
        return self.key is None or self.key.all_users

    @property
    def key_id(self) -> str | None:
        return None if self.key is None else self.key.id

    def need(self, scope: Scope) -> None:
        if scope not in self.scopes:
            raise Refused(403, "scope_missing", f"this key may not {scope}: its scopes are {', '.join(self.scopes)}")

    def need_all_users(self) -> None:
        if not self.all_users:
            raise Refused(403, "scope_missing", "this is about all users: it needs a key for all of them")

    def may_see(self, user_id: str) -> bool:
        return self.all_users or (self.key is not None and user_id in self.key.user_ids)

    def user(self, user_id: str | None) -> str:
        """The user that is meant, if the key is for them."""
        if user_id is None:
            if self.default_user is None:
                raise Refused(422, "user_needed", "say which user: ?user_id=…", argument="user_id")
            return self.default_user
        validation.name("user_id", user_id)
        if not self.may_see(user_id):
            raise Refused(404, "not_found", f"there is no user {user_id!r}")
        return user_id

    def actor(self, given: str | None) -> str:
        """Who is written into the history. A caller can add a word of its own, but not leave the key out."""
        if self.key is None:
            return given or "user"
        return f"{given} (key {self.key.name})" if given else f"key {self.key.name}"


async def admit(memory: Memory, secret: str | None, *, keyless: bool) -> Access | None:
    """What a key opens; None: nothing. As long as no key was ever made, `keyless` says whether none is needed."""
    if keyless and not await memory.keys.exist():
        return Access(key=None, default_user=memory.settings.user)
    key = None if secret is None else await memory.keys.check(secret)
    if key is None:
        return None
    only = key.user_ids[0] if len(key.user_ids) == 1 and not key.all_users else None
    return Access(key=key, default_user=only)
