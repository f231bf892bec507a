"""Routes of search, context and recalls."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...models import Recall, SearchResult, Time
from ..auth import UserReader
from ..requests import ContextBody, JsonRoute, Limit, SearchBody
from ..responses import ContextReply, Listing, json_response

router = APIRouter(prefix="/v1", tags=["search"], route_class=JsonRoute)


@router.post("/search", response_model=SearchResult, summary="Search memories; `explain` adds the parts of each score")
async def search(caller: UserReader, body: SearchBody) -> Response:
    return json_response(await caller.memory.search(user_id=caller.user_id, **dict(body)))


@router.post("/context", response_model=ContextReply, summary="The best memories as one block for a prompt")
async def context(caller: UserReader, body: ContextBody) -> Response:
    return json_response(ContextReply(context=await caller.memory.context(user_id=caller.user_id, **dict(body))))


@router.get("/recalls", response_model=Listing[Recall], summary="Recent searches and the memories they returned")
async def recalls(caller: UserReader, since: Time | None = None, limit: Limit = 100) -> Response:
    found = await caller.memory.usage.recalls(user_id=caller.user_id, since=since, limit=limit)
    return json_response(Listing[Recall](items=list(found)))
