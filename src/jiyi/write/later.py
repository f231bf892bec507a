"""What `add` leaves to a worker: the job's payload, and the job itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, TypeAdapter

from ..models import ReceiptState
from ..store.contract import Addition, Lease, Stale
from .build import Context
from .flow import Flow, index, make

_CONTEXT = TypeAdapter(Context)


def payload(message_ids: Sequence[str], context: Context, actor: str) -> dict[str, JsonValue]:
    return {"messages": list(message_ids), "actor": actor, "context": _CONTEXT.dump_python(context, mode="json")}


async def do(lease: Lease, flow: Flow) -> None:
    """Work memories out of the messages that were accepted. Nothing is held meanwhile; all is written at its end, if
    the lease still holds."""
    left: dict[str, Any] = lease.payload
    context = _CONTEXT.validate_python(left["context"])
    extractors = flow.extractors if flow.slow_extractor is None else (flow.slow_extractor,)
    while True:
        messages = await flow.store.messages(lease.user_id, left["messages"])
        made = await make(messages, context, extractors, flow)
        memories, problem = await index(made.memories, lease.user_id, lease.accepted_at, flow)
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
            problems=(*made.problems, *([problem] if problem else [])),
            model=flow.embedder.id,
            messages=(),
            memories=memories,
            external_ids=made.external_ids,
            units=made.units,
        )
        try:
            return await flow.store.complete(lease, addition)
        except Stale:
            continue
