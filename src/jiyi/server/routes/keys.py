"""Routes of API keys, for administrators. A key manages only keys with at most its own permissions."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from ... import validation
from ...errors import NotFound
from ...keys import ApiKey, AuditEntry, NewKey
from ...models import utc_now
from ..auth import Admin, Caller
from ..errors import HttpError
from ..requests import JsonRoute, KeyBody, Limit
from ..responses import Listing, json_response

router = APIRouter(prefix="/v1", tags=["keys"], route_class=JsonRoute)
KeyId = Annotated[str, Path(min_length=1, max_length=validation.MAX_NAME)]


@router.get("/keys", response_model=Listing[ApiKey], summary="The keys with at most the permissions of yours")
async def list_keys(caller: Admin) -> Response:
    return json_response(Listing[ApiKey](items=await _visible(caller)))


@router.post("/keys", response_model=NewKey, status_code=201, summary="Create a key; its secret is shown only now")
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
        if not wanted.is_subset_of(own):
            raise HttpError(403, "scope_missing", "a key cannot have more permissions than the one that creates it")
    made = await caller.memory.keys.create(
        body.name,
        scopes=body.scopes,
        user_ids=body.user_ids,
        all_users=body.all_users,
        expires_at=body.expires_at,
        by=caller.access.key_id,
    )
    return json_response(made, 201, {"Location": f"/v1/keys/{made.id}"})


@router.delete("/keys/{key_id}", response_model=ApiKey, summary="Revoke a key")
async def revoke_key(caller: Admin, key_id: KeyId) -> Response:
    if key_id not in [key.id for key in await _visible(caller)]:
        raise NotFound(f"there is no key {key_id!r}")
    return json_response(await caller.memory.keys.revoke(key_id, by=caller.access.key_id))


@router.get("/audit", response_model=Listing[AuditEntry], summary="The audit log, newest first")
async def audit(caller: Admin, limit: Limit = 100) -> Response:
    caller.access.need_all_users()
    return json_response(Listing[AuditEntry](items=list(await caller.memory.keys.audit(limit=limit))))


async def _visible(caller: Caller) -> list[ApiKey]:
    own = caller.access.key
    return [key for key in await caller.memory.keys.list() if own is None or key.is_subset_of(own)]
