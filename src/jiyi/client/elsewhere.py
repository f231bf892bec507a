"""The verbs that only work where the store is. A client says so, and where to go."""

from __future__ import annotations

from functools import wraps
from typing import Any

from .. import memory as engine
from ..errors import AccessDenied

NOT_SERVED = {
    "work": "the server does the jobs; for more of them run `jiyi worker` where the store is",
    "reindex": "run `jiyi reindex` where the store is",
    "vacuum": "run `jiyi vacuum` where the store is",
    "backup": "run `jiyi backup` where the store is",
    "verify": "run `jiyi verify` where the store is",
    "hot": "`recalls` tells what is recalled, `list` what is there",
    "job_counts": "`health` tells whether jobs get done",
    "check_key": "open a client with that key: it is refused if it opens nothing",
    "note_audit": "the server writes its audit log itself",
    "sync_workspace": "a workspace is a folder where the store is: see `jiyi workspace` there",
    "watch_workspace": "a workspace is a folder where the store is: see `jiyi workspace` there",
    "workspace_status": "a workspace is a folder where the store is: see `jiyi workspace` there",
    "verify_workspace": "a workspace is a folder where the store is: see `jiyi workspace` there",
    "rebuild_workspace": "a workspace is a folder where the store is: see `jiyi workspace` there",
}


class Elsewhere:
    """Its verbs are put in below, each with the signature that it has in the engine."""


def _refusing(verb: str, instead: str) -> Any:
    @wraps(getattr(engine.Memory, verb))
    async def refuse(self: object, *args: object, **kwargs: object) -> None:
        raise _refusal(verb, instead)

    return refuse


def _refusal(verb: str, instead: str) -> AccessDenied:
    return AccessDenied(f"{verb} is not served to clients: {instead}")


for _verb, _instead in NOT_SERVED.items():
    setattr(Elsewhere, _verb, _refusing(_verb, _instead))
