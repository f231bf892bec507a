"""Extraction jobs: their payload, and running one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import JsonValue, TypeAdapter

from ..errors import LlmError, LlmOverBudget
from ..models import ReceiptState
from ..store.contract import Addition, Lease, NewMessage, Stale
from .alike import judge_alike
from .build import Context
from .drafts import Unit
from .flow import Flow, Made, index, make

_CONTEXT = TypeAdapter(Context)


def payload(message_ids: Sequence[str], context: Context, actor: str) -> dict[str, JsonValue]:
    return {"messages": list(message_ids), "actor": actor, "context": _CONTEXT.dump_python(context, mode="json")}


async def do(lease: Lease, flow: Flow, *, max_attempts: int) -> None:
    """Work memories out of the messages that were accepted. Nothing is held meanwhile; all is written at its end, if
    the lease still holds."""
    left: dict[str, Any] = lease.payload
    context = _CONTEXT.validate_python(left["context"])
    flow = replace(flow, slow_extractor=_once(flow.slow_extractor, _said_in), judge=_once(flow.judge, repr))
    while True:
        messages = await flow.store.messages.get(lease.user_id, left["messages"])
        made = await _made(messages, context, lease.accepted_at, flow, last=lease.attempt >= max_attempts)
        memories, effects, problem = await index((), (), made, lease.user_id, lease.accepted_at, flow)
        memories, effects, met, unjudged = await judge_alike(memories, effects, context.place, lease.accepted_at, flow)
        addition = Addition(
            id=lease.job_id,
            user_id=lease.user_id,
            session_id=lease.session_id,
            agent_id=context.agent_id,
            group_id=context.group_id,
            idempotency_key=None,
            request_hash="",
            actor=left["actor"],
            at=lease.accepted_at,
            state=ReceiptState.EXTRACTED if problem else ReceiptState.INDEXED,
            problems=(*made.problems, *([problem] if problem else []), *unjudged),
            model=flow.embedder.id,
            messages=(),
            memories=memories,
            external_ids=made.external_ids,
            units=made.units,
            met=(*made.met, *met),
            effects=effects,
        )
        try:
            return await flow.store.additions.complete(lease, addition)
        except Stale:
            continue


def _once(ask: Callable[..., Awaitable[Any]] | None, key_of: Callable[[Any], object]) -> Any:
    """A model is asked the same thing once, however often what it says has to be settled anew."""
    if ask is None:
        return None
    known: dict[object, Any] = {}

    async def asked(what: Any, *more: Any) -> Any:
        key = key_of(what)
        if key not in known:
            known[key] = await ask(what, *more)
        return known[key]

    return asked


def _said_in(unit: Unit) -> object:
    return tuple(said.id for said in (*unit.history, *unit.messages))


async def _made(messages: Sequence[NewMessage], context: Context, at: datetime, flow: Flow, *, last: bool) -> Made:
    """By the language model, or, when it fails for good, by the extractors that need none."""
    if flow.slow_extractor is None:
        return await make(messages, (), context, flow.extractors, at, flow)
    try:
        return await make(messages, (), context, (flow.slow_extractor,), at, flow)
    except LlmError as error:
        hopeless = not error.temporary or (last and not isinstance(error, LlmOverBudget))
        if not (hopeless and flow.extractors and flow.settings.fallback):
            raise
        made = await make(messages, (), context, flow.extractors, at, flow)
        problem = f"the language model failed, the built-in extractor did without it: {error}"
        return replace(made, problems=(problem, *made.problems))
