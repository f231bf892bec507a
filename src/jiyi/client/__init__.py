"""A memory on a server: the same verbs and areas as `jiyi.Memory`, over HTTP.

    async with jiyi.client.Memory("https://memory.example.org", key="jiyi_…") as memory:
        await memory.add("我吃素，对花生过敏", user_id="mei")

`Memory.open("http://…")` returns one, also that of `jiyi.sync`.
"""

import re
from collections.abc import Generator, Sequence
from hashlib import sha256
from inspect import signature
from pathlib import Path
from typing import Any, Self, cast

from pydantic import BaseModel

from .. import memory as engine
from .. import validation
from ..areas.jobs import Jobs
from ..areas.recalls import RecallReport
from ..areas.sessions import MAX_WAIT_S, Sessions, TurnQueue
from ..embed import Embedder
from ..engine import Runtime
from ..errors import InvalidInput
from ..ids import new_id
from ..llm import LLM
from ..metrics import Meter
from ..models import (
    Answer,
    Deletion,
    Health,
    MemoryItem,
    MessagePage,
    Page,
    Receipt,
    ReceiptState,
    Revision,
    SearchResult,
    SourceMessage,
    Stats,
)
from ..reader import Reader
from ..scope import explain_arguments
from ..settings import Settings, load_settings
from ..text.fence import Fence
from ..write.accept import Accepted, What, accept
from ..write.change import changed_fields
from ..write.drafts import Extractor
from . import areas
from .calls import like, memory_id_of, served
from .connection import Connection, is_address

__all__ = ["Memory"]

ONE = "/v1/memories/{memory_id}"
COUNTED = {"limit": 1, "include_total": True}
RECALL_DEFAULTS = {name: one.default for name, one in signature(engine.Memory.recall).parameters.items()}
NO_MEMORIES = Page(items=(), next_cursor=None)


@explain_arguments
class Memory:
    """A memory on a server."""

    def __init__(self, url: str, *, key: str | None = None, settings: Settings | None = None) -> None:
        """Nothing is sent before it is opened or used. Without `key`, the setting `client.key` counts."""
        settings = settings or load_settings()
        secret = settings.client.key
        key = key or (None if secret is None else secret.get_secret_value())
        # The store's secret stays on the server. Without a key, blocks differ between processes.
        fence = Fence() if key is None else Fence.derived(key)
        self._runtime = Runtime(settings=settings, where=url, meter=Meter(), fence=fence, is_remote=True)
        self._server = Connection(url, key, settings.client)
        self.jobs = areas.Jobs(self._server, settings)
        self.keys = areas.Keys(self._server)
        self.synonyms = areas.Synonyms(self._server, settings)
        self.relations = areas.Relations(self._server)
        self.workspace = areas.Workspace(self._server)
        self.maintenance = areas.Maintenance(self._server)
        self.transfer = areas.Transfer(self._server, self.add, self.count, self.jobs, settings)
        owner = self._server.owner
        self._turns = TurnQueue(self._send_turn, lambda user_id: self.jobs.epoch(user_id=user_id), owner, remote=True)
        self.sessions = Sessions(self.add, cast("Jobs", self.jobs), self._turns)
        self.usage = areas.Usage(self._server, self._turns)

    @classmethod
    def open(
        cls,
        where: str | Path | None = None,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        llm: LLM | None = None,
        extractor: Extractor | None = None,
        extractors: Sequence[Extractor] = (),
        reader: Reader | None = None,
        workspace: str | Path | None = None,
        workspace_user: str | None = None,
        key: str | None = None,
    ) -> Self:
        """Return the memory of the server at this address."""
        settings = settings or load_settings()
        address = str(where or settings.url or "")
        if not is_address(address):
            raise InvalidInput("where", f"must be the address of a server (http://… or https://…), not {address!r}")
        of_server = {
            "embedder": embedder,
            "llm": llm,
            "extractor": extractor,
            "extractors": extractors or None,
            "reader": reader,
            "workspace": workspace,
            "workspace_user": workspace_user,
        }
        for name, given in of_server.items():
            if given is not None:
                raise InvalidInput(name, "is set on the server")
        return cls(address, key=key, settings=settings)

    async def close(self) -> None:
        """Store observed turns and close the connections."""
        if not self._server.owner.is_forked:  # its own process closes it
            await self._turns.close()
            await self._server.close()

    async def __aenter__(self) -> Self:
        await self._server.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    search = served(engine.Memory.search, "POST", "/v1/search", SearchResult, repeatable=True)
    answer = served(engine.Memory.answer, "POST", "/v1/answer", Answer)
    _context = served(engine.Memory.context, "POST", "/v1/context", str, field="context", repeatable=True)
    get = served(engine.Memory.get, "GET", ONE, MemoryItem)
    get_many = served(
        engine.Memory.get_many, "POST", "/v1/fetch", tuple[MemoryItem, ...], field="memories", repeatable=True
    )
    list = served(engine.Memory.list, "GET", "/v1/memories", Page, empty=NO_MEMORIES)
    messages = served(engine.Memory.messages, "GET", "/v1/messages", MessagePage)
    count = served(engine.Memory.count, "GET", "/v1/memories", int, field="total", empty=0, extra=COUNTED)
    timeline = served(engine.Memory.timeline, "GET", "/v1/timeline", Page, empty=NO_MEMORIES)
    history = served(engine.Memory.history, "GET", f"{ONE}/history", tuple[Revision, ...], field="items")
    sources = served(engine.Memory.sources, "GET", f"{ONE}/sources", tuple[SourceMessage, ...], field="items")
    users = served(engine.Memory.users, "GET", "/v1/users", tuple[str, ...], field="users")
    stats = served(engine.Memory.stats, "GET", "/v1/stats", Stats, all_users=True)
    health = served(engine.Memory.health, "GET", "/v1/health", Health)
    restore = served(engine.Memory.restore, "POST", f"{ONE}/restore", MemoryItem)
    delete = served(engine.Memory.delete, "DELETE", ONE, Deletion)
    update_many = served(
        engine.Memory.update_many, "POST", "/v1/memories/update", tuple[MemoryItem, ...], field="items"
    )
    delete_many = served(engine.Memory.delete_many, "POST", "/v1/memories/delete", Deletion)
    delete_all = served(engine.Memory.delete_all, "DELETE", "/v1/memories", Deletion, extra={"all": True})

    async def standing(
        self,
        *,
        user_id: str,
        session_id: str | None = None,
        agent_id: str | None = None,
        group_id: str | None = None,
    ) -> Sequence[MemoryItem]:
        """List the wishes and limits of a user that apply to every answer, newest first. The server keeps them, because
        a client cannot follow the change feed."""
        scope = {"session_id": session_id, "agent_id": agent_id, "group_id": group_id}
        params = {"user_id": validation.name("user_id", user_id), **scope}
        return (await self._server.get("/v1/standing", _Standing, **params)).items

    @like(engine.Memory.add)
    async def add(
        self,
        what: What,
        user_id: str,
        idempotency_key: str | None,
        epoch: str | None,
        wait: bool,
        actor: str,
        **fields: Any,
    ) -> Receipt:
        accepted = accept(what)
        if epoch is not None:  # which older servers do not know
            fields["epoch"] = epoch
        if fields["on_conflict"] == "error":  # which older servers do anyway
            del fields["on_conflict"]
        for name in ("own_only", "instructions", "categories"):  # the same
            if not fields[name]:
                del fields[name]
        for name in ("occurred_at", "expires_at"):
            fields[name] = validation.optional_time(name, fields[name])
        own = (*self._runtime.settings.user_names, *(fields["user_names"] or ()))
        fields["user_names"] = validation.names("user_names", own) or None
        receipt = await self._server.ask(
            "POST",
            "/v1/memories",
            Receipt,
            params={"user_id": validation.name("user_id", user_id)},
            body={
                **fields,
                "messages": accepted.messages or None,
                "candidates": accepted.candidates or None,
                "wait": False,  # waiting is done from here, in short requests
                "actor": validation.name("actor", actor),
            },
            headers={"Idempotency-Key": _header_key(idempotency_key)},
            repeatable=True,  # thanks to the idempotency key
        )
        if receipt.state is ReceiptState.ACCEPTED and wait:
            receipt = await self.jobs.wait(receipt, user_id=user_id)
        return _with_own_numbers(receipt, accepted)

    @like(engine.Memory.context)
    async def context(self, user_id: str, **options: Any) -> str:
        await self._turns.settle(user_id)
        return await self._context(user_id=user_id, **options)

    @like(engine.Memory.recall)
    async def recall(self, user_id: str, **options: Any) -> RecallReport:
        settings = self._runtime.settings
        late = await self._turns.settle(user_id, min(MAX_WAIT_S, settings.tools.recall_timeout_s / 2))
        report = await self._server.ask(
            "POST",
            "/v1/recall",
            RecallReport,
            params={"user_id": validation.name("user_id", user_id)},
            body={name: value for name, value in options.items() if value != RECALL_DEFAULTS[name]},
            repeatable=True,
            retry_timeout_s=min(settings.client.retry_timeout_s, settings.tools.recall_timeout_s),
        )
        problem = ("the last turns are not stored yet",) * late
        return report.model_copy(update={"problems": (*problem, *report.problems)})

    @like(engine.Memory.observe)
    async def observe(self, user_text: str, assistant_text: str | None, **options: Any) -> None:
        await self._turns.put_texts(user_text, assistant_text, **options)

    async def _send_turn(self, messages: Sequence[Any], **options: Any) -> None:
        await self.add(messages, wait=False, **options)

    @like(engine.Memory.update)
    async def update(
        self, memory_id: str, user_id: str, expected_version: int | None, actor: str, reason: str | None, **changes: Any
    ) -> MemoryItem:
        body = {**changed_fields(**changes), "reason": reason, "actor": validation.name("actor", actor)}
        params = {"user_id": validation.name("user_id", user_id)}
        if expected_version is not None:
            validation.whole("expected_version", expected_version, highest=10**9)
        return await self._server.ask(
            "PATCH",
            f"/v1/memories/{await memory_id_of(self._server, memory_id, user_id)}",
            MemoryItem,
            params=params,
            body=body,
            headers={} if expected_version is None else {"If-Match": f'"{expected_version}"'},
            repeatable=expected_version is not None,  # the version makes a second request fail
        )


class _Standing(BaseModel):
    items: tuple[MemoryItem, ...]


def _header_key(key: str | None) -> str:
    """Return an idempotency key for a header, which takes ASCII only: others are hashed."""
    if key is None:
        return new_id()
    ascii_only = re.fullmatch("[!-~]+", validation.name("idempotency_key", key))
    return key if ascii_only else f"sha256:{sha256(key.encode()).hexdigest()}"


def _with_own_numbers(receipt: Receipt, accepted: Accepted) -> Receipt:
    """Number the problems by the caller's list: the server has not seen the entries skipped here."""
    if not accepted.problems:
        return receipt
    numbered_there = accept(accepted.messages or accepted.candidates).problems
    others = tuple(problem for problem in receipt.problems if problem not in numbered_there)
    return receipt.model_copy(update={"problems": (*accepted.problems, *others)})
