"""Extraction jobs, and the worker that runs them, in the process that created them or as `jiyi worker`."""

import asyncio
import contextlib
import logging
import os
import random
import socket
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from .. import threads
from ..errors import JiyiError, LlmError, LlmOverBudget, StoreError, StoreUnavailable
from ..ids import new_id
from ..metrics import Meter
from ..models import ReceiptState, utc_now
from ..settings import JobSettings
from ..store.repositories.change_feed import NEVER
from ..store.store import Store
from ..store.write_set import OBSERVED, Addition, Lease, LeaseLost, NewMessage, Stale, StoredMessage
from .accept import Accepted, identify, looked_back, message_hashes
from .add import TRIES, Flow, Made, begun, check_arguments, derived_addition, divided, index, job_payload, make
from .build import CONTEXT, Context
from .changes import end_what_changed
from .drafts import Draft, Extracted, Extractor, Unit
from .repeats import merge_repeated
from .saved import judge_saved, read_summaries
from .similar import judge_similar

POLL_S = 1.0  # other processes create jobs too
MOST_DELAYED = 150.0  # times the first delay
MOST_JOBS = 100  # with kept answers of a model
LONGEST_WAIT_S = 3600.0  # even if a model asks for more

logger = logging.getLogger(__name__)


class Worker:
    """Claims jobs and runs several at once."""

    def __init__(
        self,
        store: Store,
        do: Callable[[Lease], Awaitable[bool]],
        settings: JobSettings,
        meter: Meter | None = None,
    ) -> None:
        self._store = store
        self._do = do
        self._settings = settings
        self._meter = meter or Meter()
        self.owner = f"{socket.gethostname()[:24]}:{os.getpid()}:{new_id()[-8:]}"
        self._more = asyncio.Event()
        self._is_cut_off = False  # the store did not answer when it was last asked
        self.done = 0

    def wake(self) -> None:
        """Look for jobs now."""
        self._more.set()

    async def run(self, *, until_idle: bool) -> None:
        """Run jobs until there are none, or for ever. When cancelled, unfinished jobs are released. With `until_idle` a
        store that does not answer is an error."""
        running: set[asyncio.Task[bool]] = set()
        try:
            while True:
                self._more.clear()
                lease = await self._claim() if len(running) < self._settings.concurrency else None
                if lease is not None:
                    task = asyncio.create_task(self.attempt(lease))
                    running.add(task)
                    task.add_done_callback(running.discard)
                    task.add_done_callback(lambda _: self._more.set())
                    continue
                idle = until_idle and not running and await self._store.jobs.next_due() is None
                if idle and not self._more.is_set():
                    return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(POLL_S):  # not wait_for, which in Python 3.11 can miss a cancellation
                        await self._more.wait()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _claim(self) -> Lease | None:
        now = utc_now()
        try:
            lease = await self._store.jobs.claim(self.owner, now, now + self.lease_time)
        except StoreError as error:
            if not self._is_cut_off:
                logger.warning("no job can be taken now: %s", error)
            self._is_cut_off = True
            return None
        self._is_cut_off = False
        return lease

    async def attempt(self, lease: Lease) -> bool:
        """Run a job once and store its outcome. Return True if no work is left of it."""
        heartbeat = asyncio.create_task(self._renew(lease))
        try:
            if lease.attempt > self._settings.max_attempts:
                died = f"its worker died at it, {lease.attempt - 1} times: `jiyi jobs retry {lease.job_id}` tries again"
                await self._store.jobs.fail(lease, utc_now(), died)
                self._meter.count("jobs_total", "failed")
                return False
            with self._meter.timing("job"):
                finished = await self._do(lease)
            self.done += 1
            self._meter.count("jobs_total", "done")
            return finished
        except LeaseLost:
            logger.info("job %s is not this worker's any more", lease.job_id)
            self._meter.count("jobs_total", "lost")
        except asyncio.CancelledError:
            with contextlib.suppress(LeaseLost, StoreError):  # then the lease runs out by itself
                await self._store.jobs.release(lease, utc_now())
            raise
        except Exception as error:  # noqa: BLE001 - the job stores any failure, and the worker goes on
            with contextlib.suppress(LeaseLost, StoreError):
                await self._note_failure(lease, error)
        finally:
            heartbeat.cancel()
        return False

    async def _note_failure(self, lease: Lease, error: Exception) -> None:
        known = isinstance(error, JiyiError)
        problem = str(error) if known else f"unexpected {type(error).__name__}: {error}"
        logger.warning("job %s, attempt %d: %s", lease.job_id, lease.attempt, problem, exc_info=not known)
        now = utc_now()
        waits = isinstance(error, LlmOverBudget)  # for the next hour, however often
        hopeless = isinstance(error, LlmError) and not error.temporary
        if hopeless or (lease.attempt >= _most_attempts(error, self._settings.max_attempts) and not waits):
            await self._store.jobs.fail(lease, now, problem)
            self._meter.count("jobs_total", "failed")
        else:
            asked_for = error.retry_after_s if isinstance(error, LlmError) else None
            pause = self.pause(lease.attempt) if asked_for is None else min(asked_for, LONGEST_WAIT_S)
            await self._store.jobs.postpone(lease, now, now + timedelta(seconds=pause), problem, counts=not waits)
            self._meter.count("jobs_total", "put_off")

    def pause(self, attempt: int) -> float:
        """Return the seconds before the next attempt: doubled each time, with jitter."""
        longest: float = self._settings.retry_delay_s * min(2.0 ** min(attempt - 1, 30), MOST_DELAYED)
        share: float = random.uniform(0.5, 1.0)  # noqa: S311 - spreads the crowd, no secret
        return longest * share

    async def _renew(self, lease: Lease) -> None:
        """Renew the lease while the job runs. If that fails for long, the lease expires."""
        while True:
            await asyncio.sleep(self._settings.lease_s / 3)
            now = utc_now()
            with contextlib.suppress(LeaseLost, StoreError):
                await self._store.jobs.renew(lease, now, now + self.lease_time)

    @property
    def lease_time(self) -> timedelta:
        return timedelta(seconds=self._settings.lease_s)


class Answers:
    """Answers of a model for jobs that are not finished, so that another attempt asks only for what failed."""

    def __init__(self) -> None:
        self._by_job: OrderedDict[str, dict[object, Any]] = OrderedDict()

    def of(self, job_id: str) -> dict[object, Any]:
        found = self._by_job.setdefault(job_id, {})
        self._by_job.move_to_end(job_id)
        if len(self._by_job) > MOST_JOBS:
            self._by_job.popitem(last=False)
        return found

    def forget(self, job_id: str) -> None:
        self._by_job.pop(job_id, None)


async def keep_turn(accepted: Accepted, context: Context, *, actor: str, flow: Flow, worker: Worker) -> Lease:
    """Store the messages of a turn with a job of this worker that makes memories of them. Raise `UserErased` if the
    user is deleted meanwhile."""
    check_arguments(accepted, context)
    at = utc_now()
    size = sum(len(text) for text in accepted.texts())
    hashes = await threads.run(size, message_hashes, accepted.messages, context.place)
    for _ in range(TRIES):
        start = await flow.store.additions.start(
            context.place,
            request=None,
            message_hashes=list(filter(None, hashes)),
            tail=looked_back(hashes),
            memory_hashes=(),
            now=at,
        )
        messages, follows = await identify(accepted.messages, hashes, at, start)
        payload = job_payload(messages, context, actor) | {"observed": True, "problems": [*accepted.problems]}
        addition = Addition(
            id=new_id(),
            user_id=context.user_id,
            epoch=context.epoch or start.epoch,
            session_id=context.session_id,
            agent_id=context.agent_id,
            group_id=context.group_id,
            actor=actor,
            at=at,
            state=ReceiptState.ACCEPTED,
            problems=accepted.problems,
            model=flow.embedder.id,
            messages=tuple(message for message in messages if not isinstance(message, StoredMessage)),
            memories=(),
            follows=follows,
            payload=payload,
            kind=OBSERVED,
            leased_by=worker.owner,
            leased_until=utc_now() + worker.lease_time,
        )
        try:
            await flow.store.additions.save(addition)
        except Stale:
            continue
        return Lease(
            user_id=context.user_id,
            job_id=addition.id,
            session_id=context.session_id,
            owner=worker.owner,
            attempt=1,
            payload=payload,
            accepted_at=at,
            epoch=addition.epoch,
            messages=tuple(messages),
        )
    raise StoreUnavailable(f"others keep writing into this session of user {context.user_id!r}: try again")


async def _run_turn(lease: Lease, context: Context, flow: Flow) -> bool:
    """Make memories of the messages of a turn. Return False if work is left for a language model."""
    left: dict[str, Any] = lease.payload
    messages: Sequence[NewMessage] = lease.messages
    while True:
        messages = messages or await flow.store.messages.get(lease.user_id, left["messages"])
        addition = await derived_addition(messages, (), context, lease.accepted_at, flow, actor=left["actor"])
        problems = (*left["problems"], *addition.problems)
        addition = replace(addition, id=lease.job_id, messages=(), problems=problems)
        try:
            finished = await flow.store.additions.complete(lease, addition)
        except Stale:
            messages = ()  # some of them may have been deleted
            continue
        await flow.index.keep_up(lease.user_id, len(addition.memories))
        return finished


async def run_job(lease: Lease, flow: Flow, *, max_attempts: int, answers: Answers) -> bool:
    """Make memories of accepted messages, or judge saved texts, without a lock; write the result if the lease still
    holds. Return True if no work is left."""
    left: dict[str, Any] = lease.payload
    # The epoch is read before the messages: if the user was deleted before that, there are none.
    context = replace(CONTEXT.validate_python(left["context"]), epoch=lease.epoch)
    context, at = await begun(context, flow.store), lease.accepted_at
    if left.get("observed"):
        return await _run_turn(lease, context, flow)
    known = answers.of(lease.job_id)
    slow = _once(_since(flow.slow_extractor, context.epoch), lambda unit: ("unit", _said_in(unit)), known)
    judge = None if flow.judge is None else partial(flow.judge, epoch=context.epoch)
    flow = replace(flow, slow_extractor=slow, judge=_once(judge, repr, {}))
    while True:
        if left.get("summaries"):
            made = await read_summaries(left["summaries"], context, at, flow, is_last=lease.attempt >= max_attempts)
        elif left.get("saved"):
            judged = await judge_saved(left["saved"], context, at, flow)
            made = Made(memories=judged.memories, effects=judged.effects, problems=judged.problems)
        else:
            messages = await flow.store.messages.get(lease.user_id, left["messages"])
            made = await _made(messages, context, at, flow, lease.attempt, max_attempts)
        memories, problem = await index((), (), made, lease.user_id, at, flow)
        memories, effects, unread = await end_what_changed(memories, made.effects, context.place, at, flow)
        memories, effects, same = await merge_repeated(memories, made.repeats, effects, context.place, at, flow)
        memories, effects, met, unjudged = await judge_similar(memories, effects, context.place, at, flow)
        memories, effects = await divided(memories, effects, (), context.place, at, flow)
        addition = Addition(
            id=lease.job_id,
            user_id=lease.user_id,
            epoch=context.epoch or NEVER,
            session_id=lease.session_id,
            agent_id=context.agent_id,
            group_id=context.group_id,
            actor=left["actor"],
            at=at,
            state=ReceiptState.EXTRACTED if problem else ReceiptState.INDEXED,
            problems=(*made.problems, *([problem] if problem else []), *unread, *unjudged),
            model=flow.embedder.id,
            memories=memories,
            external_ids=made.external_ids,
            units=made.units,
            met=(*made.met, *same, *met),
            effects=effects,
        )
        try:
            await flow.store.additions.complete(lease, addition)
        except Stale:
            continue
        await flow.index.keep_up(lease.user_id, len(memories))
        answers.forget(lease.job_id)
        return True


def _once(ask: Callable[..., Awaitable[Any]] | None, key_of: Callable[[Any], object], known: dict[object, Any]) -> Any:
    """Cache the answers of a model in `known`, so that a second try does not ask again."""
    if ask is None:
        return None

    async def asked(what: Any, **more: Any) -> Any:
        key = key_of(what)
        if key not in known:
            known[key] = await ask(what, **more)
        return known[key]

    return asked


def _since(extract: Extractor | None, epoch: str | None) -> Callable[[Unit], Awaitable[Any]] | None:
    """Tell an extractor when the work began: it asks a model for nothing once the user was deleted."""
    return None if extract is None else lambda unit: extract(replace(unit, epoch=epoch))


def _said_in(unit: Unit) -> object:
    return tuple(said.id for said in (*unit.history, *unit.messages))


def _most_attempts(error: Exception, allowed: int) -> int:
    wanted = error.most_attempts if isinstance(error, LlmError) else None
    return allowed if wanted is None else min(wanted, allowed)


async def _made(
    messages: Sequence[NewMessage], context: Context, at: datetime, flow: Flow, attempt: int, max_attempts: int
) -> Made:
    """Run the language model's extractor; for units for which it fails for good, the others."""
    slow = flow.slow_extractor
    if slow is None:
        return await make(messages, (), context, (*flow.extractors, *flow.own_extractors), at, flow)

    async def either(unit: Unit, /) -> Extracted:
        try:
            found = await slow(unit)
            return found if isinstance(found, Extracted) else Extracted(drafts=tuple(found))
        except LlmError as error:
            last = attempt >= _most_attempts(error, max_attempts) and not isinstance(error, LlmOverBudget)
            hopeless = not error.temporary or last
            if not (hopeless and flow.extractors and flow.settings.fallback and unit.instructions is None):
                raise
            drafts = [draft for extract in flow.extractors for draft in _drafts(await extract(unit))]
            problem = f"the language model failed, the built-in extractor did without it: {error}"
            return Extracted(drafts=tuple(drafts), problems=(problem,))

    extractor = cast("Extractor", either)
    run = (extractor, *flow.own_extractors)
    made = await make(messages, (), context, run, at, replace(flow, slow_extractor=extractor))
    return replace(made, problems=tuple(dict.fromkeys(made.problems)))


def _drafts(found: Extracted | Sequence[Draft]) -> Sequence[Draft]:
    return found.drafts if isinstance(found, Extracted) else found
