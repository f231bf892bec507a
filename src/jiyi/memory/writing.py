"""The verbs that write."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from .. import validation
from ..errors import InvalidInput
from ..models import UNSET, MemoryItem, Receipt, ReceiptState, Status, Unset
from ..write.accept import What, accept
from ..write.add import add
from ..write.build import Context
from ..write.change import earlier_state
from .erasing import Erasing
from .jobs import Jobs


class Writing(Erasing, Jobs):
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
        """Take in a statement, a message, a conversation, or ready candidates.

        When it returns, everything is durable. Adding the same again makes nothing new; with an `idempotency_key`
        a repeated call returns the first one's receipt. With a language model, memories are worked out after `add` has
        accepted the messages; `wait=False` does not wait for that, and `status` and `wait` follow it.

        `trust` says how far the source is trusted, a web page less than the user. What is trusted less never confirms,
        ends or grows what is trusted more, and `min_trust` leaves it out of a search.

            await memory.add("I moved to Berlin in May", user_id="mei")
            await memory.add([{"role": "user", "content": "下周三去上海出差"}], user_id="mei", session_id="s1")
        """
        context = Context(
            user_id=validation.name("user_id", user_id),
            session_id=validation.optional_name("session_id", session_id),
            agent_id=validation.optional_name("agent_id", agent_id),
            group_id=validation.optional_name("group_id", group_id),
            memory_type=None if memory_type is None else validation.memory_type("memory_type", memory_type),
            importance=None if importance is None else validation.share("importance", importance),
            tags=() if tags is None else validation.tags("tags", tags),
            metadata={} if metadata is None else validation.json_object("metadata", metadata),
            occurred_at=validation.optional_time("occurred_at", occurred_at),
            expires_at=validation.optional_time("expires_at", expires_at),
            trust=validation.share("trust", trust),
        )
        accepted = accept(what)
        if accepted.messages and memory_type is not None:
            raise InvalidInput("memory_type", "is for statements; messages are kept verbatim, as type message")
        key, who = validation.optional_name("idempotency_key", idempotency_key), validation.name("actor", actor)
        with self.meter.timing("add"):
            receipt = await add(accepted, context, idempotency_key=key, actor=who, flow=self._flow)
        self.meter.count("memories_made_total", by=receipt.created)
        if receipt.state is ReceiptState.ACCEPTED:
            self._work()
            if wait:
                receipt = await self.wait(receipt, user_id=user_id)
        return receipt

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
        """Change some fields of a memory; what it was stays in its history.

        With `version`, only that version of it is changed; if somebody was faster, `VersionConflict` is raised.
        """
        given: dict[str, Any] = {}
        if content is not None:
            given["content"] = validation.text("content", content)
        if summary is not None:
            given["summary"] = validation.text("summary", summary)
        if memory_type is not None:
            given["memory_type"] = validation.memory_type("memory_type", memory_type)
        if importance is not None:
            given["importance"] = validation.share("importance", importance)
        if tags is not None:
            given["tags"] = list(validation.tags("tags", tags))
        if metadata is not None:
            given["metadata"] = validation.json_object("metadata", metadata)
        if occurred_at is not None:
            given["occurred_at"] = validation.time("occurred_at", occurred_at)
        if not isinstance(valid_to, Unset):
            given["valid_to"] = validation.optional_time("valid_to", valid_to)
        if not isinstance(expires_at, Unset):
            given["expires_at"] = validation.optional_time("expires_at", expires_at)
        if status is not None:
            given["status"] = validation.status("status", status)
        if not given:
            raise InvalidInput("update", "names nothing to change")
        action = "archive" if status == "archived" else "update"
        return await self._change(
            memory_id, given, user_id=user_id, version=version, action=action, actor=actor, reason=reason
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
        changes = await self.history(memory_id, user_id=user_id)
        wanted = None if version is None else validation.whole("version", version, highest=10**9)
        number, given = earlier_state(changes, wanted)
        return await self._change(
            memory_id,
            given,
            user_id=user_id,
            version=changes[-1].version,
            action="restore",
            actor=actor,
            reason=reason or f"back to version {number}",
        )
