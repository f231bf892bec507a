"""Routes of administration: maintenance, synonyms, keys, and the state of the server."""

from fastapi import Response
from fastapi.responses import PlainTextResponse

from ... import __version__, errors
from ...engine import runtime
from ...errors import NotFound
from ...keep.compress import CompressPlan, CompressReport
from ...keep.maintain import MaintenanceReport
from ...keep.undo import UndoPlan, UndoReport
from ...keys import ApiKey, AuditEntry, NewKey
from ...metrics import prometheus
from ...models import Check, Health, Stats, utc_now
from ...synonyms import Synonym
from ..auth import (
    Admin,
    AllUsers,
    Anybody,
    Caller,
    Reader,
    UserCaller,
    UserEditor,
    UserId,
    UserReader,
    UserWriter,
)
from ..errors import HttpError
from ..json_body import json_response
from ..metrics import ServerMetrics
from ..middleware import MIB
from ..requests import ExpandBody, KeyBody, Limit, Name, SynonymsBody, UndoBody
from ..responses import Alive, Changed, ExpansionReply, KeyInfo, Listing, Removed, ServerLimits, Users, WhoAmI
from . import Id, make_router

maintenance = make_router("maintenance")
synonyms = make_router("synonyms")
keys = make_router("keys")
server = make_router("server", prefix="")


# A plan is only shown. The server makes it again when it acts: with a plan from outside, a client could write anything.


@maintenance.post("/compress/plan", summary="Plan a compression")
async def plan_compress(caller: UserReader) -> CompressPlan:
    return await caller.memory.maintenance.compress_plan(user_id=caller.user_id)


@maintenance.post("/compress", summary="Replace old, rarely used memories by a few")
async def compress(caller: UserEditor) -> CompressReport:
    return await caller.memory.maintenance.compress(user_id=caller.user_id, actor=caller.access.actor("compress"))


@maintenance.post("/maintenance/plan", summary="Count the memories to archive and to compress")
async def plan_maintenance(caller: UserReader) -> MaintenanceReport:
    return await caller.memory.maintenance.run(user_id=caller.user_id, dry_run=True)


@maintenance.post("/maintenance", summary="Archive expired memories, and compress")
async def run_maintenance(caller: UserWriter) -> MaintenanceReport:
    return await caller.memory.maintenance.run(user_id=caller.user_id)


@maintenance.post("/undo/plan", summary="Plan an undo")
async def plan_undo(caller: UserReader, body: UndoBody) -> UndoPlan:
    return await caller.memory.maintenance.undo_plan(user_id=caller.user_id, **dict(body))


@maintenance.post("/undo", summary="Undo a change, everything from a source, or everything since a time")
async def undo(caller: UserEditor, body: UndoBody) -> UndoReport:
    return await caller.memory.maintenance.undo(user_id=caller.user_id, actor=caller.access.actor(None), **dict(body))


@synonyms.post("/keywords/expand", summary="Synonyms and related words of keywords")
async def expand(caller: UserReader, body: ExpandBody) -> ExpansionReply:
    found = await caller.memory.synonyms.expand(body.keywords, user_id=caller.user_id)
    return ExpansionReply(
        original=found.original, synonyms=found.synonyms, related=found.related, by_word=dict(found.by_word)
    )


@synonyms.get("/synonyms", summary="The user's own pairs and the shared ones")
async def list_synonyms(caller: UserReader) -> Listing[Synonym]:
    return Listing(items=await caller.memory.synonyms.list(user_id=caller.user_id))


@synonyms.post("/synonyms", summary="Add synonyms")
async def add_synonyms(caller: UserWriter, body: SynonymsBody) -> Changed:
    pairs = [(pair.keyword, pair.synonym, pair.similarity) for pair in body.pairs]
    return Changed(changed=await caller.memory.synonyms.add(pairs, user_id=_user(caller, body.shared)))


@synonyms.delete("/synonyms", summary="Remove a pair, or all pairs of a word")
async def remove_synonyms(
    caller: UserWriter, keyword: Name, synonym: Name | None = None, shared: bool = False
) -> Removed:
    return Removed(removed=await caller.memory.synonyms.remove(keyword, synonym, user_id=_user(caller, shared)))


def _user(caller: UserCaller, shared: bool) -> str | None:
    """Return the user, or None for shared synonyms, which only an administrator of all users may change."""
    if not shared:
        return caller.user_id
    caller.access.need("admin")
    caller.access.need_all_users()
    return None


@keys.get("/keys", summary="The keys with at most the permissions of yours")
async def list_keys(caller: Admin) -> Listing[ApiKey]:
    return Listing(items=await _visible(caller))


@keys.post("/keys", response_model=NewKey, status_code=201, summary="Create a key; its secret is shown only now")
async def create_key(caller: Admin, body: KeyBody) -> Response:
    own = caller.access.key
    wanted = ApiKey(id="", created_at=utc_now(), revoked_at=None, **body.model_dump())
    if own is not None and not wanted.is_subset_of(own):
        raise HttpError(403, "scope_missing", "a key cannot have more permissions than the one that creates it")
    made = await caller.memory.keys.create(**dict(body), actor=caller.access.key_id)
    return await json_response(made, 201, {"Location": f"/v1/keys/{made.id}"})


@keys.delete("/keys/{key_id}", summary="Revoke a key")
async def revoke_key(caller: Admin, key_id: Id) -> ApiKey:
    if key_id not in [key.id for key in await _visible(caller)]:
        raise NotFound(f"there is no key {key_id!r}")
    return await caller.memory.keys.revoke(key_id, actor=caller.access.key_id)


@keys.get("/audit", summary="The audit log, newest first")
async def audit(caller: Admin, limit: Limit = 100) -> Listing[AuditEntry]:
    caller.access.need_all_users()
    return Listing(items=await caller.memory.keys.audit(limit=limit))


async def _visible(caller: Caller) -> list[ApiKey]:
    own = caller.access.key
    return [key for key in await caller.memory.keys.list() if own is None or key.is_subset_of(own)]


@server.get("/livez", summary="Liveness: the process answers")
async def livez() -> Alive:
    return Alive()


@server.get("/v1/whoami", summary="The permissions of this request")
async def whoami(caller: Anybody) -> WhoAmI:
    access, key, settings = caller.access, caller.access.key, runtime(caller.memory).settings.server
    return WhoAmI(
        key=None if key is None else KeyInfo(id=key.id, name=key.name, expires_at=key.expires_at),
        scopes=access.scopes,
        all_users=access.all_users,
        user_ids=() if key is None else key.user_ids,
        default_user=access.default_user,
        keys_needed=key is not None,
        version=__version__,
        answers=runtime(caller.memory).llm is not None,
        limits=ServerLimits(body_bytes=int(settings.max_body_mb * MIB), upload_bytes=int(settings.max_upload_mb * MIB)),
    )


@server.get("/v1/users", summary="The users that the key may see")
async def users(caller: Reader) -> Users:
    return Users(users=[user for user in await caller.memory.users() if caller.access.may_see(user)])


@server.get("/v1/stats", summary="Counts of the store, for one user or for all")
async def stats(caller: Reader, user_id: UserId = None, all_users: AllUsers = False) -> Stats:
    found = await caller.memory.stats(caller.access.one_or_all(user_id, all_users))
    if all_users:
        return found
    return found.model_copy(update={"store": "", "size_bytes": 0, "cache": None})  # these concern all users


@server.get("/v1/metrics", summary="Metrics of the server, for charts")
async def metrics(caller: Reader) -> ServerMetrics:
    caller.access.need_all_users()
    return caller.app.metrics.whole().summary(await caller.memory.usage.metrics())


@server.get("/metrics", response_class=PlainTextResponse, summary="Metrics in Prometheus' text format")
async def exposition(caller: Reader) -> Response:
    caller.access.need_all_users()
    own = prometheus(tuple(caller.app.metrics.whole().samples()))
    return Response(await caller.memory.usage.prometheus() + own, media_type="text/plain; version=0.0.4")


@server.get("/v1/health", summary="Health checks with reasons")
async def health(caller: Reader) -> Health:
    caller.access.need_all_users()
    return await caller.memory.health()


def for_anybody(found: Health) -> Health:
    """Leave out what names places and numbers, for requests without a key: of a reason only the kind of error stays."""
    return Health(ready=found.ready, checks=tuple(map(_for_anybody, found.checks)))


def _for_anybody(check: Check) -> Check:
    kind = None if check.error is None else getattr(errors, check.error).__doc__
    problem = kind or ("no answer in time" if check.required else "see jiyi doctor, or /v1/health with a key")
    return Check(
        name=check.name,
        ok=check.ok,
        required=check.required,
        error=check.error,
        problem=None if check.ok else problem,
    )
