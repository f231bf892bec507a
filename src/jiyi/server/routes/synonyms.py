"""Routes of synonyms."""

from __future__ import annotations

from fastapi import APIRouter, Response

from ...synonyms import Synonym
from ..auth import UserCaller, UserReader, UserWriter
from ..requests import ExpandBody, JsonRoute, Name, SynonymsBody
from ..responses import Changed, ExpansionReply, Listing, Removed, json_response

router = APIRouter(prefix="/v1", tags=["synonyms"], route_class=JsonRoute)


@router.post("/keywords/expand", response_model=ExpansionReply, summary="Synonyms and related words of keywords")
async def expand(caller: UserReader, body: ExpandBody) -> Response:
    found = await caller.memory.synonyms.expand(body.keywords, user_id=caller.user_id)
    expansion = ExpansionReply(
        original=found.original, synonyms=found.synonyms, related=found.related, by_word=dict(found.by_word)
    )
    return json_response(expansion)


@router.get("/synonyms", response_model=Listing[Synonym], summary="The user's own pairs and the shared ones")
async def list_synonyms(caller: UserReader) -> Response:
    return json_response(Listing[Synonym](items=list(await caller.memory.synonyms.list(user_id=caller.user_id))))


@router.post("/synonyms", response_model=Changed, summary="Add synonyms")
async def add_synonyms(caller: UserWriter, body: SynonymsBody) -> Response:
    pairs = [(pair.keyword, pair.synonym, pair.similarity) for pair in body.pairs]
    return json_response(Changed(changed=await caller.memory.synonyms.add(pairs, user_id=_user(caller, body.shared))))


@router.delete("/synonyms", response_model=Removed, summary="Remove a pair, or all pairs of a word")
async def remove_synonyms(
    caller: UserWriter, keyword: Name, synonym: Name | None = None, shared: bool = False
) -> Response:
    removed = await caller.memory.synonyms.remove(keyword, synonym, user_id=_user(caller, shared))
    return json_response(Removed(removed=removed))


def _user(caller: UserCaller, shared: bool) -> str | None:
    """Return the user, or None for shared synonyms, which only an administrator of all users may change."""
    if not shared:
        return caller.user_id
    caller.access.need("admin")
    caller.access.need_all_users()
    return None
