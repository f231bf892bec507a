"""Sessions of agents: observed turns, summaries, skills, and the end of a session."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import JsonValue

from .. import validation
from ..errors import InvalidInput
from ..languages.words import language
from ..models import CandidateMemory, Observed, Receipt
from .jobs import Jobs

MAX_QUEUED = 1_000  # turns; further ones are dropped and counted as failed

Add = Callable[..., Awaitable[Receipt]]

logger = logging.getLogger(__name__)


class Sessions:
    def __init__(self, add: Add, jobs: Jobs, turns: TurnQueue) -> None:
        self._add = add
        self._jobs = jobs
        self._turns = turns

    async def end(self, session_id: str, *, user_id: str) -> Sequence[Receipt]:
        """Wait until everything said in a session has become memories. Returns the receipts of its jobs."""
        validation.name("session_id", session_id)
        await self.flush()
        jobs = await self._jobs.list(user_id=user_id, state="accepted")
        pending = [job for job in jobs if job.session_id == session_id]
        return [await self._jobs.wait(job.id, user_id=user_id) for job in reversed(pending)]

    async def add_summary(
        self,
        summary: str,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
    ) -> Receipt:
        """Store a context summary as an episode of its session."""
        episode = CandidateMemory(text=summary, type="episode", importance=0.6, tags=("summary",))
        return await self._add(
            episode, user_id=user_id, session_id=session_id, agent_id=agent_id, group_id=group_id, actor="summary"
        )

    async def record_skill(
        self,
        name: str,
        workflow: Sequence[str | dict[str, JsonValue]],
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        note: str | None = None,
        metadata: dict[str, JsonValue] | None = None,
    ) -> Receipt:
        """Store the workflow of a skill that succeeded as a `skill` memory.

        await memory.sessions.record_skill("deep research", ["web_search", "read_url", "summarize"], user_id="mei")
        """
        validation.name("name", name)
        if isinstance(workflow, (str, bytes)) or not workflow:
            raise InvalidInput("workflow", "must be a list of steps")
        steps = [_step(f"workflow[{at}]", step) for at, step in enumerate(workflow)]
        path = " → ".join(_label(step) for step in steps)
        if language(name) == "zh":
            text = f"{name}：{path}" + (f"（{note}）" if note else "")
        else:
            text = f"{name}: {path}" + (f" ({note})" if note else "")
        data: dict[str, JsonValue] = {
            "skill_name": name,
            "workflow": [{"step": at, **step} for at, step in enumerate(steps, 1)],
            "subject": name,
            "attribute": "workflow",
            "value": " ".join(_label(step) for step in steps)[:256],
            "single": True,
        }
        skill = CandidateMemory(text=text, type="skill", importance=0.7, data=data, metadata=metadata)
        return await self._add(
            skill, user_id=user_id, session_id=session_id, agent_id=agent_id, group_id=group_id, actor="skill"
        )

    async def flush(self) -> Observed:
        """Wait until every observed turn was stored or has failed."""
        return await self._turns.flush()


class TurnQueue:
    """Observed turns, stored one after the other in the background."""

    def __init__(self, add: Add) -> None:
        self._add = add
        self._queue: deque[Callable[[], Awaitable[Any]]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._accepted = self._failed = 0

    def put(self, user_text: str, assistant_text: str | None, **options: Any) -> None:
        turn = [{"role": "user", "content": user_text}]
        if assistant_text:
            turn.append({"role": "assistant", "content": assistant_text})
        if len(self._queue) >= MAX_QUEUED:
            self._failed += 1
            logger.error("an observed turn was dropped: %d are queued already", len(self._queue))
            return
        self._queue.append(lambda: self._add(turn, **options, wait=False, actor="observe"))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="jiyi-observe")

    def counts(self) -> Observed:
        return Observed(accepted=self._accepted, failed=self._failed, waiting=len(self._queue))

    async def flush(self) -> Observed:
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
        return self.counts()

    async def _run(self) -> None:
        while self._queue:
            try:
                await self._queue[0]()
                self._accepted += 1
            except Exception as error:  # noqa: BLE001 - it must not reach the chat; it is logged and counted
                self._failed += 1
                logger.warning("an observed turn was not stored: %s", error)
            finally:
                self._queue.popleft()


def _step(argument: str, step: object) -> dict[str, JsonValue]:
    if isinstance(step, str):
        return {"tool": validation.name(argument, step)}
    return validation.json_object(argument, step)


def _label(step: dict[str, JsonValue]) -> str:
    return str(step.get("tool") or step.get("name") or step.get("action") or next(iter(step.values()), ""))
