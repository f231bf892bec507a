"""Routes of agent sessions: turns, the end of a session, summaries, skills."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response

from ...models import Message, Receipt
from ..auth import UserWriter
from ..requests import JsonRoute, SessionEndBody, SkillBody, SummaryBody, TurnBody
from ..responses import Listing, json_response
from .memories import IdempotencyKey, receipt_response

router = APIRouter(prefix="/v1", tags=["sessions"], route_class=JsonRoute)
ACCEPTED: dict[int | str, dict[str, Any]] = {
    202: {"model": Receipt, "description": "Accepted: stored; extraction continues, see `Location`"}
}


@router.post("/turns", response_model=Receipt, status_code=201, responses=ACCEPTED, summary="Add a turn of a chat")
async def add_turn(caller: UserWriter, body: TurnBody, idempotency_key: IdempotencyKey = None) -> Response:
    """Unlike the engine's `observe`, it answers when the turn is stored."""
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
    return receipt_response(receipt)


@router.post("/sessions/end", response_model=Listing[Receipt], summary="End a session: wait for its jobs")
async def end_session(caller: UserWriter, body: SessionEndBody) -> Response:
    receipts = await caller.memory.sessions.end(body.session_id, user_id=caller.user_id)
    return json_response(Listing[Receipt](items=list(receipts)))


@router.post(
    "/summaries", response_model=Receipt, status_code=201, responses=ACCEPTED, summary="Store a context summary"
)
async def add_summary(caller: UserWriter, body: SummaryBody) -> Response:
    receipt = await caller.memory.sessions.add_summary(
        body.summary, user_id=caller.user_id, session_id=body.session_id, agent_id=body.agent_id
    )
    return receipt_response(receipt)


@router.post(
    "/skills",
    response_model=Receipt,
    status_code=201,
    responses=ACCEPTED,
    summary="Store the workflow of a successful skill",
)
async def record_skill(caller: UserWriter, body: SkillBody) -> Response:
    receipt = await caller.memory.sessions.record_skill(
        body.name,
        body.workflow,
        user_id=caller.user_id,
        agent_id=body.agent_id,
        note=body.note,
        metadata=body.metadata,
    )
    return receipt_response(receipt)
