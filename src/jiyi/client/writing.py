"""The verbs that write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from pydantic import JsonValue

from .. import validation
from ..ids import new_id
from ..models import UNSET, Deletion, MemoryItem, Receipt, ReceiptState, Status, Unset
from ..write.accept import Accepted, What, accept
from .finding import Addressing
from .working import Working


class Writing(Addressing, Working):
    async def add(
        self,
        what: What,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        memory_type: str | None = None,
        importance: float | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, JsonValue] | None = None,
        occurred_at: datetime | None = None,
        expires_at: datetime | None = None,
        trust: float = 1.0,
        idempotency_key: str | None = None,
        wait: bool = True,
        actor: str = "user",
    ) -> Receipt:
        """Take in a statement, a message, a conversation, or ready candidates; see `jiyi.Memory.add`.

        Each call carries an idempotency key, one of its own if none is given, so that it can be sent again when the
        connection breaks off.
        """
        accepted = accept(what)
        body = {
            "messages": accepted.messages or None,
            "candidates": accepted.candidates or None,
            "session_id": session_id,
            "agent_id": agent_id,
            "group_id": group_id,
            "memory_type": memory_type,
            "importance": importance,
            "tags": tags,
            "metadata": metadata,
            "occurred_at": validation.optional_time("occurred_at", occurred_at),
            "expires_at": validation.optional_time("expires_at", expires_at),
            "trust": trust,
            "wait": False,  # waiting is done from here, in requests that do not take long
            "actor": validation.name("actor", actor),
        }
        receipt = await self._server.ask(
            "POST",
            "/v1/memories",
            Receipt,
            params={"user_id": validation.name("user_id", user_id)},
            body=body,
            headers={"Idempotency-Key": _key(idempotency_key)},
            repeatable=True,
        )
        if receipt.state is ReceiptState.ACCEPTED and wait:
            receipt = await self.wait(receipt, user_id=user_id)
        return _with_own_numbers(receipt, accepted)

    async def update(
        self,
        memory_id: str,
        *,
        user_id: str,
        version: int | None = None,
        content: str | None = None,
        summary: str | None = None,
        memory_type: str | None = None,
        importance: float | None = None,
        tags: Sequence[str] | None = None,
        metadata: dict[str, JsonValue] | None = None,
        occurred_at: datetime | None = None,
        valid_to: datetime | Unset | None = UNSET,
        expires_at: datetime | Unset | None = UNSET,
        status: Status | None = None,
        actor: str = "user",
        reason: str | None = None,
    ) -> MemoryItem:
        """Change some fields of a memory; see `jiyi.Memory.update`.

        Only with `version` it is sent again when the connection breaks off: it cannot be done twice then.
        """
        given: dict[str, Any] = {
            "content": content,
            "summary": summary,
            "memory_type": memory_type,
            "importance": importance,
            "tags": tags,
            "metadata": metadata,
            "occurred_at": validation.optional_time("occurred_at", occurred_at),
            "status": status,
            "reason": reason,
        }
        body = {name: value for name, value in given.items() if value is not None}
        body["actor"] = validation.name("actor", actor)
        if not isinstance(valid_to, Unset):
            body["valid_to"] = validation.optional_time("valid_to", valid_to)
        if not isinstance(expires_at, Unset):
            body["expires_at"] = validation.optional_time("expires_at", expires_at)
        if version is not None:
            validation.whole("version", version, highest=10**9)
        return await self._server.ask(
            "PATCH",
            await self._address(memory_id, user_id),
            MemoryItem,
            params={"user_id": validation.name("user_id", user_id)},
            body=body,
            headers={} if version is None else {"If-Match": f'"{version}"'},
            repeatable=version is not None,
        )

    async def restore(
        self,
        memory_id: str,
        *,
        user_id: str,
        version: int | None = None,
        actor: str = "user",
        reason: str | None = None,
    ) -> MemoryItem:
        """Bring a memory back to an earlier version, by default to the one before its last change."""
        return await self._server.ask(
            "POST",
            f"{await self._address(memory_id, user_id)}/restore",
            MemoryItem,
            params={"user_id": validation.name("user_id", user_id)},
            body={"version": version, "reason": reason, "actor": validation.name("actor", actor)},
        )

    async def delete(self, memory_id: str, *, user_id: str, with_sources: bool = False) -> Deletion:
        """Remove a memory and all that belongs to it, its history included. This cannot be undone."""
        address = await self._address(memory_id, user_id)
        params = {"user_id": validation.name("user_id", user_id), "with_sources": bool(with_sources)}
        return await self._server.ask("DELETE", address, Deletion, params=params)

    async def delete_all(self, user_id: str) -> Deletion:
        """Remove everything of exactly this user. This cannot be undone."""
        everything = {"user_id": validation.name("user_id", user_id), "all": True}
        return await self._server.ask("DELETE", "/v1/memories", Deletion, params=everything)


def _key(given: str | None) -> str:
    """A header carries plain letters only: a key with others becomes one without, the same each time."""
    if given is None:
        return new_id()
    plain = re.fullmatch("[!-~]+", validation.name("idempotency_key", given))
    return given if plain else f"sha256:{sha256(given.encode()).hexdigest()}"


def _with_own_numbers(receipt: Receipt, accepted: Accepted) -> Receipt:
    """What was left out here, and where it stood in the caller's list: the server has seen the rest only."""
    if not accepted.problems:
        return receipt
    counted_there = accept(accepted.messages or accepted.candidates).problems
    others = tuple(told for told in receipt.problems if told not in counted_there)
    return receipt.model_copy(update={"problems": (*accepted.problems, *others)})
