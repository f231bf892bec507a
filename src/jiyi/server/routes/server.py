"""Routes about the server: permissions, users, statistics, metrics, health."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from ... import __version__
from ...engine import runtime
from ...metrics import prometheus
from ...models import Check, Health, Stats
from ..auth import Anybody, Reader, UserId
from ..metrics import ServerMetrics
from ..middleware import MIB
from ..requests import JsonRoute
from ..responses import KeyInfo, ServerLimits, Users, WhoAmI, json_response
from .jobs import AllUsers, one_or_all

router = APIRouter(tags=["server"], route_class=JsonRoute)


@router.get("/v1/whoami", response_model=WhoAmI, summary="The permissions of this request")
async def whoami(caller: Anybody) -> Response:
    access, key, settings = caller.access, caller.access.key, runtime(caller.memory).settings.server
    found = WhoAmI(
        key=None if key is None else KeyInfo(id=key.id, name=key.name, expires_at=key.expires_at),
        scopes=access.scopes,
        all_users=access.all_users,
        user_ids=() if key is None else key.user_ids,
        default_user=access.default_user,
        keys_needed=key is not None,
        version=__version__,
        limits=ServerLimits(body_bytes=int(settings.max_body_mb * MIB), upload_bytes=int(settings.max_upload_mb * MIB)),
    )
    return json_response(found)


@router.get("/v1/users", response_model=Users, summary="The users that the key may see")
async def users(caller: Reader) -> Response:
    return json_response(Users(users=[user for user in await caller.memory.users() if caller.access.may_see(user)]))


@router.get("/v1/stats", response_model=Stats, summary="Counts of the store, for one user or for all")
async def stats(caller: Reader, user_id: UserId = None, all_users: AllUsers = False) -> Response:
    found = await caller.memory.stats(one_or_all(caller, user_id, all_users))
    if not all_users:  # location, size and cache use concern all users
        found = found.model_copy(update={"store": "", "size_bytes": 0, "cache": None})
    return json_response(found)


@router.get("/v1/metrics", response_model=ServerMetrics, summary="Metrics of the server, for charts")
async def metrics(caller: Reader) -> Response:
    caller.access.need_all_users()
    return json_response(caller.app.metrics.summary(await caller.memory.usage.metrics()))


@router.get("/v1/health", response_model=Health, summary="Health checks with reasons")
async def health(caller: Reader) -> Response:
    caller.access.need_all_users()
    return json_response(await caller.memory.health())


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics in Prometheus' text format")
async def exposition(caller: Reader) -> Response:
    caller.access.need_all_users()
    own = prometheus(tuple(caller.app.metrics.samples(await caller.memory.jobs.counts())))
    return Response(await caller.memory.usage.prometheus() + own, media_type="text/plain; version=0.0.4")


def without_reasons(found: Health) -> Health:
    """Leave the reasons out, for requests without a key."""
    return Health(ready=found.ready, checks=tuple(Check(name=check.name, ok=check.ok) for check in found.checks))
