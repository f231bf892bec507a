"""While an agent works: turns, the end of a session, summaries, skills."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from ...models import Message, Receipt
from ..bodies import SessionEndBody, SkillBody, SummaryBody, TurnBody
from ..callers import JsonRoute, UserWriter
from ..replies import Listing, reply
from .memories import IdempotencyKey, reply_receipt

router = APIRouter(prefix="/v1", tags=["agents"], route_class=JsonRoute)
LATER: dict[int | str, dict[str, Any]] = {
    202: {"model": Receipt, "description": "Accepted: it is durable, and work goes on at `Location`"}
}


@router.post("/turns", response_model=Receipt, status_code=201, responses=LATER, summary="A turn of a chat")
async def add_turn(caller: UserWriter, body: TurnBody, idempotency_key: IdempotencyKey = None) -> Response:
    """Unlike the engine's `observe` it answers when the turn is durable: an answer over the network is a promise."""
    turn = [Message(text=body.user_text)]
    if body.assistant_text is not None:
        turn.append(Message(text=body.assistant_text, role="assistant"))
    receipt = await caller.memory.add(
        turn,
        user_id=caller.user_id,
        session_id=body.session_id,
        agent_id=body.agent_id,
        group_id=body.group_id,
        metadata=body.metadata,
        idempotency_key=idempotency_key,
        wait=False,
        actor=caller.access.actor("observe"),
    )
    return reply_receipt(receipt)


@router.post("/sessions/end", response_model=Listing[Receipt], summary="The end of a session: wait for its jobs")
async def end_session(caller: UserWriter, body: SessionEndBody) -> Response:
    receipts = await caller.memory.sessions.end(body.session_id, user_id=caller.user_id)
    return reply(Listing[Receipt](items=list(receipts)))


@router.post("/summaries", response_model=Receipt, status_code=201, responses=LATER, summary="Keep a context summary")
async def add_summary(caller: UserWriter, body: SummaryBody) -> Response:
    receipt = await caller.memory.sessions.add_summary(
        body.summary, user_id=caller.user_id, session_id=body.session_id, agent_id=body.agent_id
    )
    return reply_receipt(receipt)


@router.post("/skills", response_model=Receipt, status_code=201, responses=LATER, summary="A skill has succeeded")
async def record_skill(caller: UserWriter, body: SkillBody) -> Response:
    receipt = await caller.memory.sessions.record_skill(
        body.name,
        body.workflow,
        user_id=caller.user_id,
        agent_id=body.agent_id,
        note=body.note,
        metadata=body.metadata,
    )
    return reply_receipt(receipt)
