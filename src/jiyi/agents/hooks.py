"""Callbacks around an agent: a summary was made, a session ended, a skill worked.

A failing memory is logged and gives None: it never breaks the caller. Calling a hook twice with the same data stores
nothing new.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from .. import validation
from ..errors import JiyiError
from ..memory import Memory
from ..models import Message, Receipt
from ..text.fence import strip_context

logger = logging.getLogger(__name__)


class MemoryHooks:
    """Callbacks for one agent of one user."""

    def __init__(
        self, memory: Memory, *, user_id: str, agent_id: str | None = None, group_id: str | None = None
    ) -> None:
        self._memory = memory
        self._scope: dict[str, Any] = {
            "user_id": validation.name("user_id", user_id),
            "agent_id": validation.optional_name("agent_id", agent_id),
            "group_id": validation.optional_name("group_id", group_id),
        }

    async def on_summary_created(self, summary: str, *, session_id: str | None = None) -> Receipt | None:
        """Store a summary of the context as an `episode` of the session."""
        text = strip_context(summary).strip()
        if not text:
            return None
        return await self._store(
            "a summary", self._memory.sessions.add_summary(text, session_id=session_id, **self._scope)
        )

    async def on_session_end(
        self,
        session_id: str,
        messages: Sequence[Message | Mapping[str, Any]] | None = None,
        *,
        summary: str | None = None,
    ) -> Receipt | None:
        """Store the messages of a session, unless an agent has done so already, and its summary."""
        if summary is not None:
            stored = await self.on_summary_created(summary, session_id=session_id)
            if not messages:
                return stored
        if not messages:
            return None
        said = [dict(message) if isinstance(message, Mapping) else message.model_dump() for message in messages]
        text = json.dumps(said, ensure_ascii=False, default=str, sort_keys=True)
        key = "session:" + hashlib.sha256(f"{session_id}\n{text}".encode()).hexdigest()
        adding = self._memory.add(
            list(messages), session_id=session_id, idempotency_key=key, wait=False, actor="session", **self._scope
        )
        return await self._store("a session", adding)

    async def after_skill_success(
        self,
        skill_name: str,
        workflow: Sequence[Any],
        *,
        task: str | None = None,
        session_id: str | None = None,
    ) -> Receipt | None:
        """Store the workflow of a skill that worked. A step is a name, or an object with a `tool`."""
        recording = self._memory.sessions.record_skill(
            skill_name, list(workflow), note=task, session_id=session_id, **self._scope
        )
        return await self._store("a skill", recording)

    async def _store(self, what: str, adding: Awaitable[Receipt]) -> Receipt | None:
        try:
            return await adding
        except JiyiError as error:
            logger.warning("%s could not be stored: %s", what, error)
            return None
