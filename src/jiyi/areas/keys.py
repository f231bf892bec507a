"""API keys of the server, and its audit log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic

from .. import validation
from ..engine import Engine
from ..ids import new_id
from ..keys import ApiKey, AuditEntry, NewKey, hash_key, key_id_of, matches_hash, new_key
from ..models import utc_now
from ..scope import accept_old_arguments

AUDIT_LIMIT = 10_000  # entries kept
CACHE_S = 1.0  # a key revoked by another process is accepted for at most this long


@accept_old_arguments
class Keys:
    def __init__(self, engine: Engine) -> None:
        self._store = engine.store
        self._cached: dict[str, tuple[ApiKey, str]] | None = None  # keys and their hashes, by id
        self._cached_at = 0.0

    async def create(
        self,
        name: str,
        *,
        scopes: Sequence[str] = ("read", "write"),
        user_ids: Sequence[str] = (),
        all_users: bool = False,
        expires_at: datetime | None = None,
        actor: str | None = None,
    ) -> NewKey:
        """Create a key for some users or for all. The secret, `key`, is only in this answer.

        made = await memory.keys.create("mei's phone", scopes=["read"], user_ids=["mei"])
        """
        made = new_key(name, scopes=scopes, user_ids=user_ids, all_users=all_users, expires_at=expires_at)
        await self._store.keys.add(made, hash_key(made.key))
        self._cached = None
        await self.log("key.create", target=made.id, detail=f"{made.name}: {', '.join(made.scopes)}", actor=actor)
        return made

    async def list(self) -> Sequence[ApiKey]:
        """List all keys, oldest first, including expired and revoked ones."""
        return [key for key, _ in await self._store.keys.list()]

    async def revoke(self, key_id: str, *, actor: str | None = None) -> ApiKey:
        """Revoke a key. Running servers refuse it within a second."""
        revoked = await self._store.keys.revoke(validation.name("key_id", key_id), utc_now())
        self._cached = None
        await self.log("key.revoke", target=revoked.id, detail=revoked.name, actor=actor)
        return revoked

    async def check(self, secret: str) -> ApiKey | None:
        """Return the key that belongs to a secret, or None if it is unknown, revoked or expired."""
        found = (await self._all()).get(key_id_of(secret) or "")
        if found is None or not matches_hash(secret, found[1]) or not found[0].valid(utc_now()):
            return None
        return found[0]

    async def exist(self) -> bool:
        """Return True if any key was ever created. Revoked ones count: revoking all keys must not open the server."""
        return bool(await self._all())

    async def audit(self, *, limit: int = 100) -> Sequence[AuditEntry]:
        """List audit entries, newest first: created and revoked keys, deletions, refused keys."""
        return await self._store.keys.audit(validation.whole("limit", limit))

    async def log(
        self, action: str, *, target: str | None = None, detail: str | None = None, actor: str | None = None
    ) -> None:
        """Add an entry to the audit log; `actor` is the id of a key."""
        entry = AuditEntry(id=new_id(), at=utc_now(), key_id=actor, action=action, target=target, detail=detail)
        await self._store.keys.add_audit([entry], AUDIT_LIMIT)

    async def _all(self) -> dict[str, tuple[ApiKey, str]]:
        if self._cached is None or monotonic() - self._cached_at > CACHE_S:
            began = monotonic()
            self._cached = {key.id: (key, key_hash) for key, key_hash in await self._store.keys.list()}
            self._cached_at = began
        return self._cached
