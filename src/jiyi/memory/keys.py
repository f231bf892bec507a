"""The verbs about keys to a server over this memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic

from .. import validation
from ..ids import new_id
from ..keys import ApiKey, AuditEntry, NewKey, hashed, id_in, new_key, same
from ..models import utc_now
from .parts import Parts

AUDIT_KEPT = 10_000  # entries
FRESH_S = 1.0  # a key that another process withdrew opens at most this much longer


class Keys(Parts):
    _known_keys: dict[str, tuple[ApiKey, str]] | None = None
    _keys_read_at = 0.0

    async def create_key(
        self,
        name: str,
        *,
        scopes: Sequence[str] = ("read", "write"),
        user_ids: Sequence[str] = (),
        all_users: bool = False,
        expires_at: datetime | None = None,
        by: str | None = None,
    ) -> NewKey:
        """Make a key to the server, for the users named or for all. Its `key` is in this answer and nowhere else.

        made = await memory.create_key("mei's phone", scopes=["read"], user_ids=["mei"])
        """
        made = new_key(name, scopes=scopes, user_ids=user_ids, all_users=all_users, expires_at=expires_at)
        await self._store.add_key(made, hashed(made.key))
        self._known_keys = None
        await self.note_audit("key.create", target=made.id, detail=f"{made.name}: {', '.join(made.scopes)}", by=by)
        return made

    async def keys(self) -> Sequence[ApiKey]:
        """All keys that were ever made, the oldest first; those that do not open any more too."""
        return [key for key, _ in await self._store.keys()]

    async def revoke_key(self, key_id: str, *, by: str | None = None) -> ApiKey:
        """Withdraw a key. A server that runs takes notice within a second."""
        revoked = await self._store.revoke_key(validation.name("key_id", key_id), utc_now())
        self._known_keys = None
        await self.note_audit("key.revoke", target=revoked.id, detail=revoked.name, by=by)
        return revoked

    async def check_key(self, secret: str) -> ApiKey | None:
        """The key that this secret is, if it opens anything: not made up, not withdrawn, not expired."""
        found = (await self._all_keys()).get(id_in(secret) or "")
        if found is None or not same(secret, found[1]) or not found[0].valid(utc_now()):
            return None
        return found[0]

    async def has_keys(self) -> bool:
        """Whether a key was ever made. That all were withdrawn must not open a door, so those count too."""
        return bool(await self._all_keys())

    async def _all_keys(self) -> dict[str, tuple[ApiKey, str]]:
        if self._known_keys is None or monotonic() - self._keys_read_at > FRESH_S:
            began = monotonic()
            self._known_keys = {key.id: (key, key_hash) for key, key_hash in await self._store.keys()}
            self._keys_read_at = began
        return self._known_keys

    async def audit(self, *, limit: int = 100) -> Sequence[AuditEntry]:
        """What was done with keys, the newest first: keys made and withdrawn, deletions, and keys that were refused."""
        return await self._store.audit(validation.whole("limit", limit))

    async def note_audit(
        self, action: str, *, target: str | None = None, detail: str | None = None, by: str | None = None
    ) -> None:
        """Put an entry into the audit log; `by` is the id of a key."""
        entry = AuditEntry(id=new_id(), at=utc_now(), key_id=by, action=action, target=target, detail=detail)
        await self._store.note_audit([entry], AUDIT_KEPT)
