"""The verbs about keys, for administrators."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel

from .. import validation
from ..errors import AccessDenied, NotFound
from ..keys import ApiKey, AuditEntry, NewKey
from .connection import Connection


class KeyList(BaseModel):
    items: tuple[ApiKey, ...]


class AuditLog(BaseModel):
    items: tuple[AuditEntry, ...]


class Keys:
    _server: Connection

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
        """Make a key, at most for what our own opens. The server notes our key; `by` cannot be another."""
        _nobody_else(by)
        body = {
            "name": name,
            "scopes": scopes,
            "user_ids": validation.names("user_ids", user_ids, most=validation.MAX_LIMIT),
            "all_users": all_users,
            "expires_at": validation.optional_time("expires_at", expires_at),
        }
        return await self._server.ask("POST", "/v1/keys", NewKey, body=body)

    async def keys(self) -> Sequence[ApiKey]:
        """The keys within our own, the oldest first; those that do not open any more too."""
        return (await self._server.get("/v1/keys", KeyList)).items

    async def revoke_key(self, key_id: str, *, by: str | None = None) -> ApiKey:
        """Withdraw a key."""
        _nobody_else(by)
        if not (validation.name("key_id", key_id).isalnum() and key_id.isascii()):
            raise NotFound(f"there is no key {key_id!r}")
        return await self._server.ask("DELETE", f"/v1/keys/{key_id}", ApiKey)

    async def audit(self, *, limit: int = 100) -> Sequence[AuditEntry]:
        """What was done with keys, the newest first."""
        return (await self._server.get("/v1/audit", AuditLog, limit=limit)).items

    async def has_keys(self) -> bool:
        """Whether the server asks for a key."""
        return (await self._server.who()).keys_needed


def _nobody_else(by: str | None) -> None:
    if by is not None:
        raise AccessDenied("a server notes the key that asks: leave `by` out")
