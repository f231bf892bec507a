"""The areas of a memory on a server."""

import asyncio
import gzip
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import IO, Any, cast

from pydantic import BaseModel

from .. import validation
from ..areas import jobs, keys, maintenance, sessions, synonyms, transfer, usage, workspace
from ..areas.transfer import FORMATS
from ..errors import AccessDenied, InvalidInput, NotFound, UserErased
from ..keep.compress import CompressPlan, CompressReport
from ..keep.maintain import MaintenanceReport
from ..keep.undo import UndoPlan, UndoReport
from ..keys import ApiKey, AuditEntry, NewKey
from ..metrics import Metrics
from ..models import ImportReport, Job, MemoryItem, Observed, Recall, Receipt, ReceiptState, Relation, Stats
from ..read.overview import ChangePage, ReviewItem, Subject, UserSize
from ..read.profile import Profile
from ..read.query import Expansion
from ..scope import accept_old_arguments
from ..settings import Settings
from ..store.units import MemUnitPage
from ..store.upkeep.export_records import EXPORT
from ..synonyms import GivenPair, Synonym, checked
from ..transfer.export import ExportReport, check_target, no_progress, open_new
from ..transfer.export import Progress as Advance
from ..transfer.imports import (
    Add,
    Count,
    MemoryImportReport,
    import_chats,
    import_memories,
    is_jiyi_export,
)
from ..transfer.selection import select
from .calls import like, safe_id, served, unsupported
from .connection import Connection

LONGEST_POLL_S = 20.0  # the server lets a request wait for 30 seconds
IMPORT_POLL_S = 0.3
CHUNK = 1024 * 1024
MAX_PAIRS = 2_000  # synonyms in one request
OWN_KEY = {"actor": "the server records the key of the request"}
OWN_PLAN = {"plan": "the server makes its own plan when it acts"}
OF_ALL = {"user_id": "a server has figures of all users only; `stats` has those of one"}
RELATIONS = "/v1/memories/{memory_id}/relations"
NO_WORKSPACE = "a workspace is a folder next to the store: run `jiyi workspace` there"


class Area:
    def __init__(self, server: Connection) -> None:
        self._server = server


class Jobs(Area):
    def __init__(self, server: Connection, settings: Settings) -> None:
        super().__init__(server)
        self._settings = settings.jobs

    epoch = served(jobs.Jobs.epoch, "GET", "/v1/epoch", str, field="epoch")
    list = served(jobs.Jobs.list, "GET", "/v1/jobs", tuple[Job, ...], field="items", all_users=True)
    get = served(jobs.Jobs.get, "GET", "/v1/jobs/{job_id}", Job)
    retry = served(jobs.Jobs.retry, "POST", "/v1/jobs/{job_id}/retry", Job)
    counts = unsupported(jobs.Jobs.counts, "`health` reports whether jobs get done")
    work = unsupported(jobs.Jobs.work, "the server does the jobs; for more workers run `jiyi worker` next to the store")
    cancel = served(jobs.Jobs.cancel, "POST", "/v1/jobs/{job_id}/cancel", Job, ignored=("actor",))

    @like(jobs.Jobs.status)
    async def status(self, receipt: Receipt | str, user_id: str) -> Receipt:
        return await self.wait(receipt, user_id=user_id, timeout=0)

    @like(jobs.Jobs.wait)
    async def wait(self, receipt: Receipt | str, user_id: str, timeout: float | None) -> Receipt:  # noqa: ASYNC109
        deadline = monotonic() + jobs.wait_seconds(timeout, self._settings.wait_timeout_s)
        job_id = safe_id("job_id", jobs.receipt_id(receipt), user_id)
        while True:
            left = max(0.0, deadline - monotonic())
            params = {"user_id": validation.name("user_id", user_id), "wait_s": min(left, LONGEST_POLL_S)}
            now = await self._server.get(f"/v1/jobs/{job_id}/receipt", Receipt, **params)
            if now.state is not ReceiptState.ACCEPTED or left <= LONGEST_POLL_S:
                return now


@accept_old_arguments
class Keys(Area):
    list = served(keys.Keys.list, "GET", "/v1/keys", tuple[ApiKey, ...], field="items")
    audit = served(keys.Keys.audit, "GET", "/v1/audit", tuple[AuditEntry, ...], field="items")
    create = served(keys.Keys.create, "POST", "/v1/keys", NewKey, refused=OWN_KEY)
    revoke = served(keys.Keys.revoke, "DELETE", "/v1/keys/{key_id}", ApiKey, refused=OWN_KEY)
    check = unsupported(keys.Keys.check, "open a client with that key: it is refused if it is not valid")
    log = unsupported(keys.Keys.log, "the server writes its audit log itself")

    async def exist(self) -> bool:
        """Return True if the server asks for a key."""
        return (await self._server.who()).keys_needed


class Relations(Area):
    list = served(synonyms.Relations.list, "GET", RELATIONS, tuple[Relation, ...], field="items")
    add = served(synonyms.Relations.add, "POST", RELATIONS, Relation, repeatable=True)
    remove = served(synonyms.Relations.remove, "DELETE", RELATIONS, int, field="removed")


class Synonyms(Area):
    def __init__(self, server: Connection, settings: Settings) -> None:
        super().__init__(server)
        self._default_user = settings.user

    expand = served(synonyms.Synonyms.expand, "POST", "/v1/keywords/expand", Expansion, repeatable=True)

    @like(synonyms.Synonyms.add)
    async def add(self, pairs: Iterable[GivenPair], user_id: str | None) -> int:
        given = [
            {"keyword": one, "synonym": other, "similarity": similarity}
            for (one, other), similarity in checked(pairs).items()
        ]
        params = {"user_id": await self._user(user_id)}
        changed = 0
        for start in range(0, len(given), MAX_PAIRS):
            body = {"pairs": given[start : start + MAX_PAIRS], "shared": user_id is None}
            # Not repeatable: a second request would count nothing as new.
            done = await self._server.ask("POST", "/v1/synonyms", dict[str, int], params=params, body=body)
            changed += done["changed"]
        return changed

    @like(synonyms.Synonyms.list)
    async def list(self, user_id: str | None) -> Sequence[Synonym]:
        found = await self._server.get("/v1/synonyms", _Synonyms, user_id=await self._user(user_id))
        return [pair for pair in found.items if user_id is not None or pair.shared]

    @like(synonyms.Synonyms.remove)
    async def remove(self, keyword: str, synonym: str | None, user_id: str | None) -> int:
        params = {
            "user_id": await self._user(user_id),
            "keyword": validation.name("keyword", keyword),
            "synonym": validation.optional_name("synonym", synonym),
            "shared": user_id is None,
        }
        return (await self._server.ask("DELETE", "/v1/synonyms", dict[str, int], params=params))["removed"]

    async def _user(self, user_id: str | None) -> str:
        """Return the user of a request. Requests about shared synonyms name one, too."""
        if user_id is not None:
            return validation.name("user_id", user_id)
        return (await self._server.who()).default_user or self._default_user


class _Synonyms(BaseModel):
    items: tuple[Synonym, ...]


class Workspace(Area):
    sync = unsupported(workspace.Workspace.sync, NO_WORKSPACE)
    status = unsupported(workspace.Workspace.status, NO_WORKSPACE)
    verify = unsupported(workspace.Workspace.verify, NO_WORKSPACE)
    rebuild = unsupported(workspace.Workspace.rebuild, NO_WORKSPACE)
    watch = unsupported(workspace.Workspace.watch, NO_WORKSPACE)


@accept_old_arguments
class Maintenance(Area):
    compress_plan = served(
        maintenance.Maintenance.compress_plan, "POST", "/v1/compress/plan", CompressPlan, repeatable=True
    )
    undo_plan = served(maintenance.Maintenance.undo_plan, "POST", "/v1/undo/plan", UndoPlan, repeatable=True)
    reindex = unsupported(maintenance.Maintenance.reindex, "run `jiyi reindex` next to the store")
    verify = unsupported(maintenance.Maintenance.verify, "run `jiyi verify` next to the store")
    verify_engines = unsupported(
        maintenance.Maintenance.verify_engines, "run `jiyi verify --engines` next to the store"
    )
    rebuild = unsupported(maintenance.Maintenance.rebuild, "run `jiyi rebuild` next to the store")
    vacuum = unsupported(maintenance.Maintenance.vacuum, "run `jiyi vacuum` next to the store")
    compress = served(
        maintenance.Maintenance.compress, "POST", "/v1/compress", CompressReport, ignored=("actor",), refused=OWN_PLAN
    )
    undo = served(maintenance.Maintenance.undo, "POST", "/v1/undo", UndoReport, ignored=("actor",), refused=OWN_PLAN)

    @like(maintenance.Maintenance.run)
    async def run(self, user_id: str | None, dry_run: bool, progress: object) -> MaintenanceReport:
        if user_id is None:
            raise AccessDenied("maintenance of all users is not served: run `jiyi worker` next to the store")
        params = {"user_id": validation.name("user_id", user_id)}
        path = "/v1/maintenance/plan" if dry_run else "/v1/maintenance"
        return await self._server.ask("POST", path, MaintenanceReport, params=params, repeatable=dry_run)


class Usage(Area):
    def __init__(self, server: Connection, turns: sessions.TurnQueue) -> None:
        super().__init__(server)
        self._turns = turns

    recalls = served(usage.Usage.recalls, "GET", "/v1/recalls", tuple[Recall, ...], field="items")
    groups = served(usage.Usage.groups, "GET", "/v1/groups", dict[str, int], field="groups", empty={})
    metrics = served(usage.Usage.metrics, "GET", "/v1/metrics", Metrics, field="memory", refused=OF_ALL)
    changes = served(usage.Usage.changes, "GET", "/v1/changes", ChangePage)
    profile = served(usage.Usage.profile, "GET", "/v1/profile", Profile)
    units = served(usage.Usage.units, "GET", "/v1/units", MemUnitPage)
    subjects = served(usage.Usage.subjects, "GET", "/v1/subjects", tuple[Subject, ...], field="items")
    mentions = served(usage.Usage.mentions, "GET", "/v1/mentions", tuple[MemoryItem, ...], field="items")
    review = served(usage.Usage.review, "GET", "/v1/review", tuple[ReviewItem, ...], field="items")
    sizes = served(usage.Usage.sizes, "GET", "/v1/sizes", tuple[UserSize, ...], field="items")
    most_used = unsupported(usage.Usage.most_used, "`usage.recalls` lists what is recalled, `list` all memories")

    async def observed(self) -> Observed:
        """Count the observed turns that were stored, failed, or are still queued."""
        return self._turns.counts()

    async def prometheus(self) -> str:
        """Return all metrics of the server in Prometheus' text format."""
        answer = await self._server.answer("GET", "/metrics", headers={"Accept": "text/plain"}, repeatable=True)
        return answer.text


class Transfer(Area):
    def __init__(self, server: Connection, add: Add, count: Count, jobs: Jobs, settings: Settings) -> None:
        super().__init__(server)
        self._add = add
        self._count = count
        self._jobs = jobs
        self._default_user = settings.user

    backup = unsupported(transfer.Transfer.backup, "run `jiyi backup` next to the store")

    @like(transfer.Transfer.export)
    async def export(
        self,
        path: str | Path,
        user_id: str | None,
        format: str,  # noqa: A002 - the engine's name
        overwrite: bool,
        progress: Advance | None,
    ) -> ExportReport:
        if user_id is None:
            raise AccessDenied("export of all users is not served: run `jiyi export` next to the store")
        validation.choice("format", format, FORMATS)
        params = {"user_id": validation.name("user_id", user_id)}
        target = check_target("path", Path(path), overwrite=overwrite)
        with open_new(target) as file:
            await self._server.download("/v1/export", {**params, "format": format}, file.write)
        if format == "jsonl":
            records = await asyncio.to_thread(_record_counts, target)
        else:
            held = await self._server.get("/v1/stats", Stats, **params)
            records = {name: number for name, number in held.by_type.items() if name != "message"}
        if progress is not None:
            total = sum(records.values())
            progress("exporting", total, total)
        return ExportReport(path=str(target), format=format, records=records, size_bytes=target.stat().st_size)

    @like(transfer.Transfer.import_chats)
    async def import_chats(self, path: str | Path, user_id: str, epoch: str | None, **options: Any) -> ImportReport:
        epoch = await self._jobs.epoch(user_id=user_id) if epoch is None else epoch
        return await import_chats(Path(path), self._add, self._count, user_id=user_id, epoch=epoch, **options)

    @like(transfer.Transfer.import_memories)
    async def import_memories(
        self, path: str | Path, user_id: str | None, epoch: str | None, progress: Advance | None, actor: str
    ) -> MemoryImportReport:
        validation.optional_name("user_id", user_id)
        validation.name("actor", actor)
        advance = progress or no_progress
        if user_id is not None:
            epoch = await self._jobs.epoch(user_id=user_id) if epoch is None else epoch
        elif epoch is not None:
            raise InvalidInput("epoch", "is one user's: name the user_id")
        selected = await asyncio.to_thread(select, Path(path), "memories")
        if is_jiyi_export(selected):
            return await self._upload(selected.files[0][0].path, user_id, epoch, advance)
        return await import_memories(
            selected,
            self._add,
            self._count,
            user_id=user_id,
            default_user=self._default_user,
            epoch_of=lambda _: epoch,  # None for a file of several users: each batch begins by itself
            actor=actor,
            progress=advance,
        )

    async def _upload(self, path: Path, user_id: str | None, epoch: str | None, advance: Advance) -> MemoryImportReport:
        user_id = user_id or await asyncio.to_thread(_user_of, path)
        if user_id is None:
            raise AccessDenied("an export of all users is not taken by a server: name one, with user_id")
        params = {"user_id": validation.name("user_id", user_id)}
        epoch = await self._jobs.epoch(user_id=user_id) if epoch is None else epoch
        given = {**params, "filename": path.name, "epoch": epoch}
        now = await self._server.upload("/v1/imports", given, _chunks(path), _Import)
        while now.state == "running":
            await asyncio.sleep(IMPORT_POLL_S)
            try:
                now = await self._server.get(f"/v1/imports/{now.id}", _Import, **params)
            except NotFound:
                if await self._jobs.epoch(user_id=user_id) != epoch:
                    raise UserErased(user_id=user_id) from None
                raise
            advance("importing", now.done, now.total or now.done)
        if now.memories is None:
            raise InvalidInput(str(path), (now.problem or "was not imported").removeprefix(f"{path.name}: "))
        return now.memories


class _Import(BaseModel):
    id: str
    state: str
    done: int
    total: int | None
    memories: MemoryImportReport | None
    problem: str | None


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.name.endswith(".gz") else path.open("rb")


def _record_counts(path: Path) -> dict[str, int]:
    with _open(path) as lines:
        counted = Counter(str(json.loads(line)["kind"]) for line in lines)
    return {kind: number for kind, number in counted.items() if kind not in (EXPORT, "end")}


def _user_of(path: Path) -> str | None:
    """Return the user named in the first line of an export; None if it is of all users."""
    try:
        with _open(path) as lines:
            found = json.loads(lines.readline()).get("user_id")
    except (OSError, ValueError, AttributeError):
        return None
    return found if isinstance(found, str) else None


async def _chunks(path: Path) -> AsyncIterator[bytes]:
    with await asyncio.to_thread(path.open, "rb") as file:
        while chunk := await asyncio.to_thread(file.read, CHUNK):
            yield chunk
