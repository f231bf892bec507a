"""The verbs that agents call while they work: end of a turn, end of a session, a summary, a skill that succeeded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from pydantic import JsonValue

from .. import validation
from ..errors import InvalidInput
from ..languages.script import language
from ..models import CandidateMemory, Observed, Receipt
from .writing import Writing

MOST_WAITING = 1_000  # turns; a store that is gone for longer than that loses them, and says so

logger = logging.getLogger(__name__)


class Observing(Writing):
    async def observe(
        self,
        user_text: str,
        assistant_text: str | None = None,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        metadata: dict[str, JsonValue] | None = None,
    ) -> None:
        """Take in a turn of a chat without making the chat wait, and without ever breaking it.

        It returns at once and raises nothing; turns are taken in one after the other, beside everything else. What
        goes wrong is logged and counted in `observed`. Closing the memory waits for what is still waiting.

            await memory.observe("我下周三去上海", "好的，需要订酒店吗？", user_id="mei", session_id="s1")
        """
        turn = [{"role": "user", "content": user_text}]
        if assistant_text:
            turn.append({"role": "assistant", "content": assistant_text})

        async def take_in() -> Receipt:
            return await self.add(
                turn,
                user_id=user_id,
                session_id=session_id,
                agent_id=agent_id,
                group_id=group_id,
                metadata=metadata,
                wait=False,
                actor="observe",
            )

        self._observe(take_in)

    async def observed(self) -> Observed:
        """How many observed turns were accepted, failed, and are still waiting."""
        return Observed(accepted=self._accepted, failed=self._failed, waiting=len(self._turns))

    async def flush(self) -> Observed:
        """Wait until every observed turn was accepted or has failed."""
        while self._observing is not None and not self._observing.done():
            await asyncio.wait([self._observing])
        return await self.observed()

    def _observe(self, take_in: Callable[[], Awaitable[Any]]) -> None:
        if len(self._turns) >= MOST_WAITING:
            self._failed += 1
            logger.error("an observed turn was dropped: %d are waiting already", len(self._turns))
            return
        self._turns.append(take_in)
        if self._observing is None or self._observing.done():
            self._observing = asyncio.create_task(self._take_in_turns(), name="jiyi-observe")

    async def _take_in_turns(self) -> None:
        while self._turns:
            try:
                await self._turns[0]()
                self._accepted += 1
            except Exception as error:  # noqa: BLE001 - it must not reach the chat; it is logged and counted
                self._failed += 1
                logger.warning("an observed turn was not taken in: %s", error)
            finally:
                self._turns.popleft()

    async def close(self) -> None:
        """Let go of the database. What was observed is taken in first; jobs that are not done stay in it."""
        await self.flush()
        await super().close()

    async def end_session(self, session_id: str, *, user_id: str) -> Sequence[Receipt]:
        """The end of a session: wait until all that was said in it has become memories. → the receipts of its jobs"""
        validation.name("session_id", session_id)
        await self.flush()
        mine = [job for job in await self.jobs(user_id=user_id, state="accepted") if job.session_id == session_id]
        return [await self.wait(job.id, user_id=user_id) for job in reversed(mine)]

    async def add_summary(
        self,
        summary: str,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
    ) -> Receipt:
        """A context summary was made: keep it as an episode of its session."""
        episode = CandidateMemory(text=summary, type="episode", importance=0.6, tags=("summary",))
        return await self.add(
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
        """A skill has succeeded: keep its workflow as a `skill` memory, so that it is found the next time.

        await memory.record_skill("deep research", ["web_search", "read_url", "summarize"], user_id="mei")
        """
        validation.name("name", name)
        if isinstance(workflow, (str, bytes)) or not workflow:
            raise InvalidInput("workflow", "must be a list of steps")
        steps = [_step(f"workflow[{at}]", step) for at, step in enumerate(workflow)]
        way = " → ".join(_named(step) for step in steps)
        if language(name) == "zh":
            text = f"{name}：{way}" + (f"（{note}）" if note else "")
        else:
            text = f"{name}: {way}" + (f" ({note})" if note else "")
        data: dict[str, JsonValue] = {
            "skill_name": name,
            "workflow": [{"step": at, **step} for at, step in enumerate(steps, 1)],
            "subject": name,
            "attribute": "workflow",
            "value": " ".join(_named(step) for step in steps)[:256],
            "single": True,
        }
        skill = CandidateMemory(text=text, type="skill", importance=0.7, data=data, metadata=metadata)
        return await self.add(
            skill, user_id=user_id, session_id=session_id, agent_id=agent_id, group_id=group_id, actor="skill"
        )


def _step(argument: str, step: object) -> dict[str, JsonValue]:
    if isinstance(step, str):
        return {"tool": validation.name(argument, step)}
    return validation.json_object(argument, step)


def _named(step: dict[str, JsonValue]) -> str:
    return str(step.get("tool") or step.get("name") or step.get("action") or next(iter(step.values()), ""))
