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

from .. import checks
from ..errors import JiyiError
from ..memory import Memory
from ..models import CandidateMemory, Message, Receipt
from ..text.fence import strip_context
from ..text.language import language as language_of

logger = logging.getLogger(__name__)


class MemoryHooks:
    """Hooks of one agent of one user."""

    def __init__(
        self, memory: Memory, *, user_id: str, agent_id: str | None = None, group_id: str | None = None
    ) -> None:
        self._memory = memory
        self._user_id = checks.name("user_id", user_id)
        self._agent_id = checks.optional_name("agent_id", agent_id)
        self._group_id = checks.optional_name("group_id", group_id)

    async def on_summary_created(self, summary: str, *, session_id: str | None = None) -> Receipt | None:
        """The context was summarised: the summary becomes an `episode` of the session."""
        text = strip_context(summary).strip()
        if not text:
            return None
        episode = CandidateMemory(text=text, type="episode", importance=0.6, metadata={"trigger": "summary"})
        return await self._take("a summary", self._add(episode, session_id, _key("summary", session_id, text)))

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
        key = _key("session", session_id, json.dumps(said, ensure_ascii=False, default=str, sort_keys=True))
        return await self._take("a session", self._add(list(messages), session_id, key))

    async def after_skill_success(
        self,
        skill_name: str,
        workflow: Sequence[Any],
        *,
        task: str | None = None,
        session_id: str | None = None,
    ) -> Receipt | None:
        """A skill worked: its workflow becomes a `skill` memory. A step is a name, or an object with a `tool`."""
        checks.name("skill_name", skill_name)
        steps = [_step(step, at) for at, step in enumerate(workflow, 1)]
        way = " → ".join(str(step.get("tool", step)) for step in steps)
        chinese = language_of(task or skill_name) == "zh"
        purpose = (f"（{task}）" if chinese else f" ({task})") if task else ""
        worked = f"技能 '{skill_name}' 成功执行{purpose}：" if chinese else f"Skill '{skill_name}' worked{purpose}: "
        skill = CandidateMemory(
            text=worked + way,
            type="skill",
            importance=0.7,
            tags=(skill_name,),
            data=checks.json_object("workflow", {"skill_name": skill_name, "workflow": steps}),
        )
        return await self._take("a skill", self._add(skill, session_id, None))

    def _add(self, what: Any, session_id: str | None, idempotency_key: str | None) -> Awaitable[Receipt]:
        return self._memory.add(
            what,
            user_id=self._user_id,
            agent_id=self._agent_id,
            group_id=self._group_id,
            session_id=session_id,
            idempotency_key=idempotency_key,
            wait=False,
            actor=self._agent_id or "agent",
        )

    async def _take(self, what: str, adding: Awaitable[Receipt]) -> Receipt | None:
        try:
            return await adding
        except JiyiError as error:
            logger.warning("%s could not be taken into the memory: %s", what, error)
            return None


def _step(step: Any, at: int) -> dict[str, Any]:
    return {"step": at, **step} if isinstance(step, Mapping) else {"step": at, "tool": step}


def _key(kind: str, session_id: str | None, text: str) -> str:
    digest = hashlib.sha256(f"{session_id}\n{text}".encode()).hexdigest()
    return f"{kind}:{digest}"
