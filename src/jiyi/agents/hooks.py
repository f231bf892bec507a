"""Hooks for what surrounds an agent: summaries of its context, the end of a session, skills that worked.

Each can be handed to a framework as a callback. A failure of the memory is logged and gives None: it never breaks what
the hook was called from. Called twice for the same thing, a hook makes nothing new.
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
    """Hooks of one agent of one user."""

    def __init__(
        self, memory: Memory, *, user_id: str, agent_id: str | None = None, group_id: str | None = None
    ) -> None:
        self._memory = memory
        self._whose: dict[str, Any] = {
            "user_id": validation.name("user_id", user_id),
            "agent_id": validation.optional_name("agent_id", agent_id),
            "group_id": validation.optional_name("group_id", group_id),
        }

    async def on_summary_created(self, summary: str, *, session_id: str | None = None) -> Receipt | None:
        """The context was summarised: the summary becomes an `episode` of the session."""
        text = strip_context(summary).strip()
        if not text:
            return None
        return await self._take(
            "a summary", self._memory.sessions.add_summary(text, session_id=session_id, **self._whose)
        )

    async def on_session_end(
        self,
        session_id: str,
        messages: Sequence[Message | Mapping[str, Any]] | None = None,
        *,
        summary: str | None = None,
    ) -> Receipt | None:
        """A session is over: take in its messages, unless an agent has done so already, and its summary."""
        if summary is not None:
            made = await self.on_summary_created(summary, session_id=session_id)
            if not messages:
                return made
        if not messages:
            return None
        said = [dict(message) if isinstance(message, Mapping) else message.model_dump() for message in messages]
        key = _key(session_id, json.dumps(said, ensure_ascii=False, default=str, sort_keys=True))
        adding = self._memory.add(
            list(messages), session_id=session_id, idempotency_key=key, wait=False, actor="session", **self._whose
        )
        return await self._take("a session", adding)

    async def after_skill_success(
        self,
        skill_name: str,
        workflow: Sequence[Any],
        *,
        task: str | None = None,
        session_id: str | None = None,
    ) -> Receipt | None:
        """A skill worked: its workflow becomes a `skill` memory. A step is a name, or an object with a `tool`."""
        recording = self._memory.sessions.record_skill(
            skill_name, list(workflow), note=task, session_id=session_id, **self._whose
        )
        return await self._take("a skill", recording)

    async def _take(self, what: str, adding: Awaitable[Receipt]) -> Receipt | None:
        try:
            return await adding
        except JiyiError as error:
            logger.warning("%s could not be taken into the memory: %s", what, error)
            return None


def _key(session_id: str, said: str) -> str:
    return "session:" + hashlib.sha256(f"{session_id}\n{said}".encode()).hexdigest()
