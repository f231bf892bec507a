"""Sessions of agents: observed turns, summaries, skills, and the end of a session."""

from __future__ import annotations

import asyncio
import logging
import sys
import weakref
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain, repeat
from time import monotonic
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from .. import threads, validation
from ..errors import ConnectionLost, InvalidInput, JiyiError, StoreUnavailable, UserErased
from ..forks import Owner
from ..ids import new_id, time_of
from ..languages.words import language
from ..models import CandidateMemory, Message, Observed, Receipt, utc_now

if TYPE_CHECKING:
    from .jobs import Jobs

MAX_WAITING = 1_000  # turns; further ones wait for room
MAX_AT_ONCE = 8  # turns of different users
KEEPING_S = 3.0  # longest wait of the caller until a turn is stored, which takes milliseconds
MAX_WAIT_S = 3.0  # longest wait in all, until memories are made of it, which loads the models the first time
RETRY_PAUSES_S = (0.2, 1.0, 5.0)
LAST_PAUSE_S = 30.0  # between the attempts of a client, whose server may be away for long
CLOSING_S = 5.0  # longest wait of a client for its turns at the end
DERIVING_S = 30.0  # longest wait at the end for memories of stored turns; the next process continues what takes longer
LONGEST_READ, PIECE = 24_000, 12_000  # characters of a message that is read whole, and of the parts of a longer one
MAX_EPOCH_WAIT_S = 0.05  # for the erasure epoch, which is read as long as it takes

Add = Callable[..., Awaitable[Receipt]]
Derive = Callable[[], Awaitable[None]]
Keep = Callable[..., Awaitable[Derive | None]]  # stores a turn; returns what makes memories of it
EpochOf = Callable[[str], Awaitable[str]]

logger = logging.getLogger(__name__)


class Sessions:
    def __init__(self, add: Add, jobs: Jobs, turns: TurnQueue, *, has_model: bool = False) -> None:
        self._add = add
        self._has_model = has_model
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
        """Store a context summary as an episode of its session, and what it states of "the user", as in a message of
        the user; a language model finds that in a job. A model wrote it: what it states ends nothing that the user
        said, and is no wish of the user."""
        from ..write.saved import stated_in_summary, summary_episode

        validation.content("summary", summary)
        found = (
            [] if self._has_model else await threads.run(len(summary), stated_in_summary, summary, user_id, utc_now())
        )
        return await self._add(
            [summary_episode(summary), *found],
            user_id=user_id,
            session_id=session_id,
            agent_id=agent_id,
            group_id=group_id,
            actor="summary",
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
        skill = CandidateMemory(content=text, memory_type="skill", importance=0.7, data=data, metadata=metadata)
        return await self._add(
            skill, user_id=user_id, session_id=session_id, agent_id=agent_id, group_id=group_id, actor="skill"
        )

    async def observe(
        self,
        messages: Sequence[Message | Mapping[str, Any]],
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
        metadata: dict[str, JsonValue] | None = None,
        user_names: Sequence[str] | None = None,
    ) -> None:
        """Add the messages of a turn; like `Memory.observe`, for turns of any form."""
        scope = {"session_id": session_id, "agent_id": agent_id, "group_id": group_id}
        await self._turns.put(messages, user_id=user_id, **scope, metadata=metadata, user_names=user_names)

    async def flush(self, *, user_id: str | None = None) -> Observed:
        """Wait until every observed turn, or those of one user, was stored or has failed."""
        return await self._turns.flush(user_id)


def _turn_of(user_text: str, assistant_text: str | None) -> list[dict[str, str]]:
    """Return the messages of a turn."""
    for name, text in (("user_text", user_text), ("assistant_text", assistant_text or "")):
        if not isinstance(text, str):
            raise InvalidInput(name, "must be a text; `sessions.observe` takes the messages of a turn")
    validation.text("user_text", user_text, longest=sys.maxsize)  # a longer one is divided
    turn = [{"role": "user", "content": user_text}]
    return [*turn, {"role": "assistant", "content": assistant_text}] if assistant_text else turn


def _pieces(given: Any) -> list[Any]:
    """Divide a very long message, of which only the beginning would be read, at empty lines or ends of lines and
    sentences."""
    try:
        message = given if isinstance(given, Message) else Message.model_validate(dict(given))
    except (TypeError, ValueError):
        return [given]  # it is refused when it is stored
    text = message.text
    if len(text) <= LONGEST_READ:
        return [given]
    pieces: list[Message] = []
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            cuts = (text.rfind(mark, start + PIECE // 2, end) + len(mark) for mark in ("\n\n", "\n", "。", ". ", " "))
            end = next((cut for cut in cuts if cut > start + PIECE // 2), end)
        number, piece = len(pieces) + 1, text[start:end].strip()
        start = end
        if piece:
            name = message.id if number == 1 or message.id is None else f"{message.id}#{number}"
            pieces.append(message.model_copy(update={"text": piece, "id": name}))
    return pieces


@dataclass(eq=False, slots=True)
class ObservedTurn:
    user_id: str
    epoch: asyncio.Task[str | None]  # erasure epoch of the user when it was observed; None: it could not be read
    keep: Keep
    before: ObservedTurn | None  # the turn of the same user that has to be stored first
    observed_at: datetime = field(default_factory=utc_now)
    kept: asyncio.Event = field(default_factory=asyncio.Event)  # it is stored, or was refused
    done: asyncio.Event = field(default_factory=asyncio.Event)  # and memories were made of it
    is_late: bool = False  # the caller no longer waits for it
    has_failed: bool = False  # it was refused once, and is tried again


class TurnQueue:
    """Stores observed turns at once, and then makes memories of them: those of one user one after the other, those of
    several users at the same time.

    Turns for a server (`remote`) are never waited for; they are sent again until the server takes them. If too many
    wait, further ones are dropped, logged and counted."""

    def __init__(self, keep: Keep, epoch_of: EpochOf, owner: Owner, *, remote: bool = False) -> None:
        self._keep = keep
        self._remote = remote
        self._owner = owner
        self._epoch_of = epoch_of
        self._waiting: dict[ObservedTurn, asyncio.Task[None]] = {}
        self._latest: dict[str, ObservedTurn] = {}
        self._keeping, self._deriving = asyncio.Semaphore(MAX_AT_ONCE), asyncio.Semaphore(MAX_AT_ONCE)
        self._accepted = self._failed = 0
        weakref.finalize(self, _warn_at_exit, self._waiting, owner)

    async def put_texts(self, user_text: str, assistant_text: str | None, **options: Any) -> None:
        """Store a turn of two texts, as `put` does."""
        try:
            messages = _turn_of(user_text, assistant_text)
        except InvalidInput as error:
            self._refuse(error)
            return
        await self.put(messages, **options)

    def _refuse(self, error: Exception | str | None) -> None:
        self._failed += 1
        logger.warning("an observed turn was not stored: %s", error)

    async def put(self, messages: Sequence[Any], *, user_id: str, **options: Any) -> None:
        """Store the messages of a turn. Return when memories were made of them, or after some seconds, when that goes
        on; if very many turns wait, wait some seconds until one is done."""
        self._owner.check()
        if not isinstance(messages, Sequence) or isinstance(messages, str) or not messages:
            self._refuse(InvalidInput("messages", "must be a list of messages; `observe` takes the texts of a turn"))
            return
        messages = [piece for message in messages for piece in _pieces(message)]
        if self._remote and len(self._waiting) >= MAX_WAITING:
            self._failed += 1
            logger.warning("an observed turn is dropped, because %s turns wait for the server", f"{MAX_WAITING:,}")
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_WAIT_S):
                while len(self._waiting) >= MAX_WAITING:
                    await next(iter(self._waiting)).done.wait()
        options |= {"user_id": user_id, "actor": "observe"}
        if self._remote:
            options["idempotency_key"] = new_id()  # it may be sent again
        began = asyncio.create_task(self._began(user_id))
        user_id = user_id if isinstance(user_id, str) else ""  # anything else fails later
        before = self._latest.get(user_id)
        turn = ObservedTurn(user_id, began, partial(self._keep, list(messages), **options), before)
        self._latest[user_id] = turn
        self._waiting[turn] = asyncio.create_task(self._run(turn), name="jiyi-observe")
        if self._remote:
            turn.is_late = True
            await asyncio.sleep(0)
            return
        await asyncio.wait({began}, timeout=MAX_EPOCH_WAIT_S)
        held_up = before is not None and before.is_late  # what holds up one turn holds up those behind it
        until = monotonic() + MAX_WAIT_S
        with suppress(TimeoutError):
            if before is None or not held_up or before.kept.is_set():
                async with asyncio.timeout(KEEPING_S):
                    await turn.kept.wait()
            if not held_up:
                async with asyncio.timeout(until - monotonic()):
                    await turn.done.wait()
        turn.is_late = not turn.done.is_set()

    async def _began(self, user_id: str) -> str | None:
        """Return the user's erasure epoch; None if it cannot be read now."""
        try:
            return await self._epoch_of(user_id)
        except JiyiError as error:
            logger.info("the erasure epoch of an observed turn is not known: %s", type(error).__name__)
            return None

    def counts(self) -> Observed:
        return Observed(accepted=self._accepted, failed=self._failed, waiting=len(self._waiting))

    async def flush(self, user_id: str | None = None) -> Observed:
        """Wait until the waiting turns, or those of one user, were stored or have failed."""
        self._owner.check()
        for turn in [turn for turn in self._waiting if user_id in (None, turn.user_id)]:
            await turn.done.wait()
        return self.counts()

    async def settle(self, user_id: str, timeout_s: float = MAX_WAIT_S) -> bool:
        """Wait a moment for the waiting turns of a user, so that a search sees them; return True if some are late. A
        turn that was refused is not waited for."""
        turns = [turn for turn in self._waiting if turn.user_id == user_id]
        if turns and not any(turn.has_failed for turn in turns):
            with suppress(TimeoutError):
                await asyncio.wait_for(turns[-1].done.wait(), timeout_s)
        return any(not turn.done.is_set() for turn in turns)

    async def close(self) -> None:
        """Wait some time for the waiting turns. What is late stays in the store, to be continued; a turn that is not
        stored by then is lost."""
        self._owner.check()
        tasks = list(self._waiting.values())
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=CLOSING_S if self._remote else DERIVING_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, turn: ObservedTurn) -> None:
        try:
            if turn.before is not None:
                await turn.before.kept.wait()
            async with self._keeping:
                derive = await self._store(turn)
            turn.kept.set()
            if turn.before is not None:
                await turn.before.done.wait()
                turn.before = None
            if derive is not None:
                async with self._deriving:
                    await derive()
            self._accepted += 1
        except asyncio.CancelledError:  # the event loop ends
            if not turn.kept.is_set():
                self._failed += 1
            _warn_of_lost(self._waiting)
            raise
        except Exception as error:  # noqa: BLE001 - it must not reach the chat; it is logged and counted
            self._refuse(type(error).__doc__ if isinstance(error, UserErased) else error)  # which would name the user
        finally:
            self._waiting.pop(turn, None)
            if self._latest.get(turn.user_id) is turn:
                del self._latest[turn.user_id]
            turn.kept.set()
            turn.done.set()

    async def _store(self, turn: ObservedTurn) -> Derive | None:
        """Store a turn; repeat that while the store is locked or full, because then nothing was written. A server is
        asked until it answers: the idempotency key makes sure that it stores the turn once."""
        pauses = chain(RETRY_PAUSES_S, repeat(LAST_PAUSE_S) if self._remote else ())
        temporary = (StoreUnavailable, ConnectionLost) if self._remote else (StoreUnavailable,)
        for pause in pauses:
            try:
                return await self._keep_now(turn)
            except temporary as error:
                logger.warning("an observed turn is stored in %s s: %s", pause, error)
                turn.has_failed = True
                await asyncio.sleep(pause)
        return await self._keep_now(turn)

    async def _keep_now(self, turn: ObservedTurn) -> Derive | None:
        """Store a turn, unless its user was deleted since it was observed."""
        epoch = await turn.epoch
        if epoch is None:
            epoch = await self._epoch_of(turn.user_id)
            deleted_at = time_of(epoch)
            if deleted_at is not None and deleted_at > turn.observed_at:
                raise UserErased(user_id=turn.user_id)
        return await turn.keep(epoch=epoch)


def _warn_of_lost(waiting: dict[ObservedTurn, Any]) -> None:
    """Say once how many turns are lost: those that are not stored yet."""
    if lost := sum(not turn.kept.is_set() for turn in waiting):
        logger.warning(
            "%s observed turns are lost, because the program ended without `close`: use `async with Memory.open()`",
            f"{lost:,}",
        )
    waiting.clear()


def _warn_at_exit(waiting: dict[ObservedTurn, Any], owner: Owner) -> None:
    if not owner.is_forked:  # its own process stores them
        _warn_of_lost(waiting)


def _step(argument: str, step: object) -> dict[str, JsonValue]:
    if isinstance(step, str):
        return {"tool": validation.name(argument, step)}
    return validation.json_object(argument, step)


def _label(step: dict[str, JsonValue]) -> str:
    return str(step.get("tool") or step.get("name") or step.get("action") or next(iter(step.values()), ""))
