"""Finding: search, context, and what was recalled."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...models import Recall, SearchResult, Time
from ..bodies import ContextBody, Limit, SearchBody
from ..callers import JsonRoute, UserReader
from ..replies import ContextReply, Listing, reply

router = APIRouter(prefix="/v1", tags=["finding"], route_class=JsonRoute)


@router.post("/search", response_model=SearchResult, summary="Find memories; `explain` shows every part of a score")
async def search(caller: UserReader, body: SearchBody) -> Response:
    return reply(await caller.memory.search(user_id=caller.user_id, **dict(body)))


@router.post("/context", response_model=ContextReply, summary="The best memories as one block for a prompt")
async def context(caller: UserReader, body: ContextBody) -> Response:
    return reply(ContextReply(context=await caller.memory.context(user_id=caller.user_id, **dict(body))))


@router.get("/recalls", response_model=Listing[Recall], summary="What was asked, and which memories came back")
async def recalls(caller: UserReader, since: Time | None = None, limit: Limit = 100) -> Response:
    found = await caller.memory.usage.recalls(user_id=caller.user_id, since=since, limit=limit)
    return reply(Listing[Recall](items=list(found)))
