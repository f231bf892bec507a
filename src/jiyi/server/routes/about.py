"""About the server: who asks, whom it knows, how it is doing."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from ... import __version__
from ...metrics import prometheus
from ...models import Check, Health, Stats
from ..callers import Anybody, JsonRoute, Reader, UserId
from ..guards import MIB
from ..measures import ServerMetrics
from ..replies import KeyShown, ServerLimits, Users, WhoAmI, reply
from .jobs import AllUsers, one_or_all

router = APIRouter(tags=["server"], route_class=JsonRoute)


@router.get("/v1/whoami", response_model=WhoAmI, summary="What the key of this request opens")
async def whoami(caller: Anybody) -> Response:
    access, key, settings = caller.access, caller.access.key, caller.memory.settings.server
    told = WhoAmI(
        key=None if key is None else KeyShown(id=key.id, name=key.name, expires_at=key.expires_at),
        scopes=access.scopes,
        all_users=access.all_users,
        user_ids=() if key is None else key.user_ids,
        default_user=access.default_user,
        keys_needed=key is not None,
        version=__version__,
        limits=ServerLimits(body_bytes=int(settings.max_body_mb * MIB), upload_bytes=int(settings.max_upload_mb * MIB)),
    )
    return reply(told)


@router.get("/v1/users", response_model=Users, summary="The users that have memories and that you may see")
async def users(caller: Reader) -> Response:
    return reply(Users(users=[user for user in await caller.memory.users() if caller.access.may_see(user)]))


@router.get("/v1/stats", response_model=Stats, summary="What the store holds, of one user or of all")
async def stats(caller: Reader, user_id: UserId = None, all_users: AllUsers = False) -> Response:
    found = await caller.memory.stats(one_or_all(caller, user_id, all_users))
    if not all_users:  # where it lies, how large it is and how it is used is about everybody
        found = found.model_copy(update={"store": "", "size_bytes": 0, "cache": None})
    return reply(found)


@router.get("/v1/metrics", response_model=ServerMetrics, summary="How the server is doing, for charts")
async def metrics(caller: Reader) -> Response:
    caller.access.need_all_users()
    return reply(caller.house.measures.figures(await caller.memory.usage.metrics()))


@router.get("/v1/health", response_model=Health, summary="What works and what does not, with reasons")
async def health(caller: Reader) -> Response:
    caller.access.need_all_users()
    return reply(await caller.memory.health())


@router.get("/metrics", response_class=PlainTextResponse, summary="The same for Prometheus")
async def exposition(caller: Reader) -> Response:
    caller.access.need_all_users()
    own = prometheus(tuple(caller.house.measures.samples(await caller.memory.jobs.counts())))
    return Response(await caller.memory.usage.prometheus() + own, media_type="text/plain; version=0.0.4")


def without_reasons(found: Health) -> Health:
    """For those without a key: what is wrong, not why."""
    return Health(ready=found.ready, checks=tuple(Check(name=check.name, ok=check.ok) for check in found.checks))
