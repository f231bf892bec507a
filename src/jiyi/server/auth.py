"""Authentication and permissions: the API key of a request decides what it may do, and for whom."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query, Request

from .. import validation
from ..engine import runtime
from ..keys import PERMISSIONS, ApiKey, Permission
from ..memory import Memory
from .errors import HttpError
from .events import Streams
from .metrics import RequestMetrics
from .uploads import Uploads


@dataclass(frozen=True, slots=True)
class Access:
    """The permissions of a request. Without a key (on this machine only): everything."""

    key: ApiKey | None
    default_user: str | None

    @property
    def scopes(self) -> tuple[Permission, ...]:
        return PERMISSIONS if self.key is None else self.key.scopes

    @property
    def all_users(self) -> bool:
        return self.key is None or self.key.all_users

    @property
    def key_id(self) -> str | None:
        return None if self.key is None else self.key.id

    def need(self, scope: Permission) -> None:
        if scope not in self.scopes:
            raise HttpError(403, "scope_missing", f"this key may not {scope}: its scopes are {', '.join(self.scopes)}")

    def need_all_users(self) -> None:
        if not self.all_users:
            raise HttpError(403, "scope_missing", "this concerns all users: it needs a key for all of them")

    def may_see(self, user_id: str) -> bool:
        return self.all_users or (self.key is not None and user_id in self.key.user_ids)

    def user(self, user_id: str | None) -> str:
        """Return the user of a request, if the key is for them. Other users do not exist for this key."""
        if user_id is None:
            if self.default_user is None:
                raise HttpError(422, "user_needed", "name the user: ?user_id=…", argument="user_id")
            return self.default_user
        validation.name("user_id", user_id)
        if not self.may_see(user_id):
            raise HttpError(404, "not_found", f"there is no user {user_id!r}")
        return user_id

    def one_or_all(self, user_id: str | None, all_users: bool) -> str | None:
        """Return the user, or None for all of them."""
        if not all_users:
            return self.user(user_id)
        self.need_all_users()
        return None

    def actor(self, given: str | None) -> str:
        """Return the actor for the history: the name of the key, after the caller's own word if there is one."""
        if self.key is None:
            return given or "user"
        return f"{given} (key {self.key.name})" if given else f"key {self.key.name}"


async def authenticate(memory: Memory, secret: str | None, *, keyless: bool) -> Access | None:
    """Return the permissions of a key, or None if it is not valid. `keyless`: no key is needed before the first one."""
    if keyless and not await memory.keys.exist():
        return Access(key=None, default_user=runtime(memory).settings.user)
    key = None if secret is None else await memory.keys.check(secret)
    if key is None:
        return None
    only = key.user_ids[0] if len(key.user_ids) == 1 and not key.all_users else None
    return Access(key=key, default_user=only)


USER_ID = "the user; may be left out if the key is for one user only"
AllUsers = Annotated[bool, Query(description="of all users; needs a key for all users")]
UserId = Annotated[str | None, Query(min_length=1, max_length=validation.MAX_NAME, description=USER_ID)]


@dataclass(frozen=True, slots=True)
class AppState:
    """The parts that all requests share."""

    memory: Memory
    uploads: Uploads
    streams: Streams
    metrics: RequestMetrics


@dataclass(frozen=True, slots=True)
class Caller:
    """An authorised request."""

    app: AppState
    access: Access

    @property
    def memory(self) -> Memory:
        return self.app.memory


@dataclass(frozen=True, slots=True)
class UserCaller(Caller):
    """An authorised request about one user."""

    user_id: str


class Requires:
    """Dependency of a route that is not about a single user."""

    def __init__(self, *scopes: Permission) -> None:
        self.scopes = scopes

    async def __call__(self, request: Request) -> Caller:
        access: Access = request.scope["access"]
        for scope in self.scopes:
            access.need(scope)
        return Caller(request.app.state.shared, access)


class RequiresForUser(Requires):
    """Dependency of a route about one user."""

    async def __call__(self, request: Request, user_id: UserId = None) -> UserCaller:
        return self.admit(request.app.state.shared, request.scope["access"], user_id)

    def admit(self, shared: AppState, access: Access, user_id: str | None) -> UserCaller:
        for scope in self.scopes:
            access.need(scope)
        return UserCaller(shared, access, access.user(user_id))


Anybody = Annotated[Caller, Depends(Requires())]
Reader = Annotated[Caller, Depends(Requires("read"))]
Writer = Annotated[Caller, Depends(Requires("write"))]
Admin = Annotated[Caller, Depends(Requires("admin"))]
UserReader = Annotated[UserCaller, Depends(RequiresForUser("read"))]
UserWriter = Annotated[UserCaller, Depends(RequiresForUser("write"))]
UserEditor = Annotated[UserCaller, Depends(RequiresForUser("write", "read"))]  # the reply holds what was stored
UserDeleter = Annotated[UserCaller, Depends(RequiresForUser("delete"))]
