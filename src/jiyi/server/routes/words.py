"""Words that mean the same."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...synonyms import Synonym
from ..bodies import ExpandBody, Name, SynonymsBody
from ..callers import JsonRoute, UserCaller, UserReader, UserWriter
from ..replies import Changed, ExpansionReply, Listing, Removed, reply

router = APIRouter(prefix="/v1", tags=["words"], route_class=JsonRoute)


@router.post("/keywords/expand", response_model=ExpansionReply, summary="Other words for these")
async def expand(caller: UserReader, body: ExpandBody) -> Response:
    found = await caller.memory.synonyms.expand(body.keywords, user_id=caller.user_id)
    told = ExpansionReply(
        original=found.original, synonyms=found.synonyms, related=found.related, by_word=dict(found.by_word)
    )
    return reply(told)


@router.get("/synonyms", response_model=Listing[Synonym], summary="The user's own pairs and the shared ones")
async def list_synonyms(caller: UserReader) -> Response:
    return reply(Listing[Synonym](items=list(await caller.memory.synonyms.list(user_id=caller.user_id))))


@router.post("/synonyms", response_model=Changed, summary="Teach it words that mean the same")
async def add_synonyms(caller: UserWriter, body: SynonymsBody) -> Response:
    pairs = [(pair.keyword, pair.synonym, pair.similarity) for pair in body.pairs]
    return reply(Changed(changed=await caller.memory.synonyms.add(pairs, user_id=_whose(caller, body.shared))))


@router.delete("/synonyms", response_model=Removed, summary="Remove a pair, or all pairs of a word")
async def remove_synonyms(
    caller: UserWriter, keyword: Name, synonym: Name | None = None, shared: bool = False
) -> Response:
    removed = await caller.memory.synonyms.remove(keyword, synonym, user_id=_whose(caller, shared))
    return reply(Removed(removed=removed))


def _whose(caller: UserCaller, shared: bool) -> str | None:
    """None is everybody: that takes an administrator of everybody."""
    if not shared:
        return caller.user_id
    caller.access.need("admin")
    caller.access.need_all_users()
    return None
