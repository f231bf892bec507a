"""Keys, for administrators. Nobody can give away, see or withdraw more than their own key opens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from ... import validation
from ...errors import NotFound
from ...keys import ApiKey, AuditEntry, NewKey
from ...models import utc_now
from ..bodies import KeyBody, Limit
from ..callers import Admin, Caller, JsonRoute
from ..problems import Refused
from ..replies import Listing, reply

router = APIRouter(prefix="/v1", tags=["keys"], route_class=JsonRoute)
KeyId = Annotated[str, Path(min_length=1, max_length=validation.MAX_NAME)]


@router.get("/keys", response_model=Listing[ApiKey], summary="The keys within your own")
async def list_keys(caller: Admin) -> Response:
    return reply(Listing[ApiKey](items=await _visible(caller)))


@router.post("/keys", response_model=NewKey, status_code=201, summary="Make a key; it is shown this once")
async def create_key(caller: Admin, body: KeyBody) -> Response:
    own = caller.access.key
    if own is not None:
        wanted = ApiKey(
            id="",
            name=body.name,
            scopes=tuple(body.scopes),
            all_users=body.all_users,
            user_ids=tuple(body.user_ids),
            created_at=utc_now(),
            expires_at=body.expires_at,
            revoked_at=None,
        )
        if not wanted.within(own):
            raise Refused(403, "scope_missing", "a key cannot open more than the one that it is made with")
    made = await caller.memory.keys.create(
        body.name,
        scopes=body.scopes,
        user_ids=body.user_ids,
        all_users=body.all_users,
        expires_at=body.expires_at,
        by=caller.access.key_id,
    )
    return reply(made, 201, {"Location": f"/v1/keys/{made.id}"})


@router.delete("/keys/{key_id}", response_model=ApiKey, summary="Withdraw a key")
async def revoke_key(caller: Admin, key_id: KeyId) -> Response:
    if key_id not in [key.id for key in await _visible(caller)]:
        raise NotFound(f"there is no key {key_id!r}")
    return reply(await caller.memory.keys.revoke(key_id, by=caller.access.key_id))


@router.get("/audit", response_model=Listing[AuditEntry], summary="What was done with keys, the newest first")
async def audit(caller: Admin, limit: Limit = 100) -> Response:
    caller.access.need_all_users()
    return reply(Listing[AuditEntry](items=list(await caller.memory.keys.audit(limit=limit))))


async def _visible(caller: Caller) -> list[ApiKey]:
    own = caller.access.key
    return [key for key in await caller.memory.keys.list() if own is None or key.within(own)]
