"""Maintenance commands: compress, maintain, undo, reindex, verify, rebuild, vacuum, migrate."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput
from . import options as opt
from .edit import ask
from .session import (
    ALL_USERS,
    JSON,
    STORE,
    call,
    counted,
    err,
    general,
    need_store,
    options,
    plain,
    progress,
    show,
    warn,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ..engines.verify import EngineReport
    from ..keep.maintain import MaintenanceReport
    from ..keep.verify import VerifyReport
    from ..store.schema.migrate import SchemaPlan

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")]
PLAN = "Carry out this plan: the output of --dry-run --json."
PlanFile = Annotated[Path | None, typer.Option("--plan", metavar="FILE", help=PLAN)]
UndoId = Annotated[
    str | None, typer.Argument(metavar="ID", help="The memory whose last change is undone.", show_default=False)
]
Session = Annotated[str | None, typer.Option("--session", metavar="NAME", help="Changes from this session.")]
BY = "Changes by this actor: import, an agent, …"
By = Annotated[str | None, typer.Option("--source-actor", "--actor", metavar="NAME", help=BY)]
META = "Changes of memories with this metadata; repeatable."
Meta = Annotated[list[str] | None, typer.Option("--metadata", metavar="NAME=VALUE", help=META)]
SINCE = "Only changes since that time."
Since = Annotated[datetime | None, typer.Option("--since", metavar="TIME", parser=opt.parse_time, help=SINCE)]
TO = "Restore the state at that time."
To = Annotated[datetime | None, typer.Option("--to", metavar="TIME", parser=opt.parse_time, help=TO)]
Repair = Annotated[bool, typer.Option("--repair", help="Repair errors.")]
InEngines = Annotated[bool, typer.Option("--engines", help="Check the external engines instead.")]
FULL = "With --engines: compare everything that is stored, not of a sample only."
Full = Annotated[bool, typer.Option("--full", help=FULL)]
EngineName = Annotated[
    str, typer.Argument(metavar="ENGINE", help="milvus, elasticsearch or mongodb.", show_default=False)
]
Revision = Annotated[
    str | None, typer.Option("--to", metavar="REVISION", help="Up or down to this revision. Default: the newest.")
]
Check = Annotated[bool, typer.Option("--check", help="Show what would be done. Exit code 1 if there is anything.")]
Deep = Annotated[bool, typer.Option("--vectors", help="Embed every text again and compare; slow.")]


@general()
def compress(dry_run: DryRun = False, plan: PlanFile = None) -> None:
    """Replace old, rarely used memories by a few.

    Examples:
    $ jiyi compress --dry-run --user 林梅
    $ jiyi compress --plan plan.json --user mei

    Names, numbers and dates are kept, and the originals are archived: jiyi
    undo ID of a new memory restores them.
    """
    from ..keep.compress import CompressPlan
    from .render import compress_plan, compressed

    if dry_run:
        show(call(lambda memory, user_id: memory.maintenance.compress_plan(user_id=user_id), reads=True), compress_plan)
        return
    given, user = _read_plan(CompressPlan, plan)
    done = call(lambda memory, user_id: memory.maintenance.compress(user_id=user_id, plan=given), user=user)
    show(done, compressed)
    warn(f"{memory_id} was changed meanwhile and was not compressed" for memory_id in done.left)


@general(ALL_USERS, STORE, JSON)
def maintain(dry_run: DryRun = False) -> None:
    """Run maintenance once: archive expired memories, compress old ones.

    Examples:
    $ jiyi maintain
    $ jiyi maintain --dry-run
    $ jiyi maintain --user 林梅 --json

    jiyi worker runs it regularly (settings: maintenance). It can be stopped
    with Ctrl-C and resumes the next time.
    """

    def report(done: MaintenanceReport) -> str:
        users = counted(done.users, "user", "users")
        if dry_run:
            could = f"{done.compressed:,} could become {done.made:,}"
            return f"{users}: {done.expired:,} have expired, {could}; nothing was changed"
        reindexed = f", {done.indexed:,} reindexed" if done.indexed else ""
        return f"{users}: {done.expired:,} expired, {done.compressed:,} compressed into {done.made:,}{reindexed}"

    with err().status("maintaining …"):
        done = call(lambda memory, user_id: memory.maintenance.run(user_id=user_id, dry_run=dry_run), reads=dry_run)
    show(done, report)
    warn(done.problems)


@general()
def undo(
    memory_id: UndoId = None,
    session_id: Session = None,
    source_actor: By = None,
    metadata: Meta = None,
    since: Since = None,
    to: To = None,
    dry_run: DryRun = False,
    plan: PlanFile = None,
) -> None:
    """Undo a change, all changes from a source, or all since a time.

    Examples:
    $ jiyi undo ID
    $ jiyi undo --session 周一的会 --dry-run
    $ jiyi undo --source-actor import --since 2026-03-02
    $ jiyi undo --metadata document=notes.pdf
    $ jiyi undo --to 2026-03-02T09:00

    Nothing is deleted: an undo is in the history and can be undone.
    """
    from ..keep.undo import UndoPlan
    from .render import undo_plan, undone

    what: dict[str, Any] = {
        "session_id": session_id,
        "source_actor": source_actor,
        "metadata": dict(_pair(entry) for entry in metadata) if metadata else None,
        "since": since,
        "to": to,
    }
    if dry_run:
        show(
            call(lambda memory, user_id: memory.maintenance.undo_plan(memory_id, user_id=user_id, **what), reads=True),
            undo_plan,
        )
        return
    given, user = _read_plan(UndoPlan, plan)
    done = call(
        lambda memory, user_id: memory.maintenance.undo(memory_id, user_id=user_id, plan=given, **what), user=user
    )
    show(done, undone)
    warn(done.left)


def _pair(entry: str) -> tuple[str, str]:
    name, mark, value = entry.partition("=")
    if not (name and mark and value):
        raise InvalidInput("--metadata", f"{entry!r} is not NAME=VALUE, such as document=notes.pdf")
    return name, value


def _read_plan(kind: type[BaseModel], path: Path | None) -> tuple[Any, str | None]:
    """Return the plan in a file, and the user of the options or of the plan."""
    user = options().user
    if path is None:
        return None, user
    try:
        plan: Any = kind.model_validate_json(opt.read_file("--plan", path))
    except InvalidInput:
        raise
    except ValueError:
        raise InvalidInput("--plan", f"{path} is not a plan of this command: make one with --dry-run --json") from None
    return plan, plan.user_id if user is None else user


@general(STORE, JSON)
def reindex(embeddings: opt.Embeddings = False) -> None:
    """Embed memories again after a change of the embedding model.

    Examples:
    $ jiyi reindex --embeddings
    $ jiyi reindex --embeddings --store ./记忆.db

    It can be stopped with Ctrl-C and resumes the next time.
    """
    if not embeddings:
        raise InvalidInput("--embeddings", "is required: jiyi reindex --embeddings")
    with progress("embedding") as advance:
        embedded = call(
            lambda memory, _: memory.maintenance.reindex(progress=lambda done, total: advance("embedding", done, total))
        )
    said = f"{counted(embedded, 'memory', 'memories')} embedded" if embedded else "all memories are embedded already"
    show({"embedded": embedded}, lambda _: said)


@general(ALL_USERS, STORE, JSON)
def verify(repair: Repair = False, vectors: Deep = False, engines: InEngines = False, full: Full = False) -> None:
    """Check the search index against the memories.

    Examples:
    $ jiyi verify
    $ jiyi verify --repair
    $ jiyi verify --user 林梅 --vectors
    $ jiyi verify --engines --repair

    Exit code 1 if errors were found and not repaired. The store stays usable
    meanwhile.
    """
    if engines:
        with progress("verifying") as advance:
            reports = call(
                lambda memory, _: memory.maintenance.verify_engines(full=full, repair=repair, progress=advance),
                reads=not repair,
            )
        show(list(reports), lambda some: "\n".join(map(_engine_report, some)))
        raise typer.Exit(0 if all(report.sound for report in reports) else 1)
    with progress("verifying") as advance:
        found = call(
            lambda memory, user_id: memory.maintenance.verify(
                user_id=user_id, repair=repair, vectors=vectors, progress=advance
            ),
            reads=not repair,
        )
    show(found, _verification)
    raise typer.Exit(0 if found.sound else 1)


@general(STORE, JSON)
def rebuild(engine: EngineName) -> None:
    """Load an external engine anew from the store.

    Examples:
    $ jiyi rebuild milvus
    $ jiyi rebuild elasticsearch --store ./记忆.db

    It is loaded beside the present documents, compared, and then takes their
    place; searches and writes go on. If it is interrupted, run it again: it
    continues where it was.
    """
    with progress("loading") as advance:
        done = call(lambda memory, _: memory.maintenance.rebuild(engine, progress=advance))
    show(done, _engine_report)
    raise typer.Exit(0 if done.sound else 1)


@general(STORE, JSON)
def vacuum() -> None:
    """Rewrite the database file to remove traces of deleted data.

    Examples:
    $ jiyi vacuum
    $ jiyi vacuum --store ./记忆.db

    SQLite can leave deleted text in unused parts of a large file, and
    PostgreSQL keeps deleted rows until they are vacuumed. Other processes
    wait meanwhile. It reports what it could not remove.
    """
    with err().status("rewriting …"):
        left = call(lambda memory, _: memory.maintenance.vacuum())
    warn(left)
    show({"left": list(left)}, lambda _: "rewritten" + (", but not everything could be removed" if left else ""))


@general(STORE, JSON)
def migrate(to: Revision = None, check: Check = False, yes: opt.Yes = False) -> None:
    """Migrate the tables of the store to this version, or back to an older one.

    Examples:
    $ jiyi migrate --check
    $ jiyi migrate --store postgresql://owner@db.example.org/jiyi
    $ jiyi migrate --to 0006 --store ./记忆.db

    Back it up first. All steps are one transaction. Before an older version
    of Jiyi can use the store, go back to its revision: what that cannot keep
    is named first. Processes of another version stop writing.
    """
    from asyncio import run

    from ..settings import load_settings
    from ..transfer.schema_change import migrate_schema, plan_schema

    settings, where = load_settings(), options().store
    need_store(where or settings.url)
    plan = run(plan_schema(where, to, settings))
    if plan.is_done or check:
        show(_plan_values(plan, done=plan.is_done), lambda _: _schema_plan(plan))
        raise typer.Exit(0 if plan.is_done else 1)
    if plan.lost and not yes:
        typer.echo(plain(_schema_plan(plan)), err=True)
        if not sys.stdin.isatty():
            raise InvalidInput("--yes", "is needed without a terminal, because something is lost; nothing was done")
        if ask("Migrate? [y/N] ").strip().lower() not in ("y", "yes", "是"):
            typer.echo("nothing was done", err=True)
            raise typer.Exit(1)
    with err().status("migrating …"):
        run(migrate_schema(where, plan, settings))
    show(_plan_values(plan, done=True), lambda _: f"{plain(plan.store)}: schema {plan.target}")


def _plan_values(plan: SchemaPlan, *, done: bool) -> dict[str, Any]:
    steps = [{"revision": step.revision, "what": step.what} for step in plan.steps]
    return {
        "store": plan.store,
        "found": plan.found,
        "target": plan.target,
        "steps": steps,
        "lost": plan.lost,
        "done": done,
    }


def _verification(found: VerifyReport) -> str:
    covered = found.coverage
    active = covered.memories or 1
    lines = [
        f"{counted(found.memories, 'memory', 'memories')} checked",
        f"{covered.embedded / active:.1%} of active ones have vectors, {covered.with_keywords / active:.1%} keywords",
        *(
            f"{kind}: {number:,} wrong, {found.repaired.get(kind, 0):,} repaired"
            for kind, number in found.drift.items()
        ),
        *(f"  {plain(example)}" for example in found.examples),
    ]
    if not found.drift:
        lines.append("no errors")
    elif not found.sound:
        lines.append("to repair them: jiyi verify --repair")
    return "\n".join(lines)


def _engine_report(found: EngineReport) -> str:
    counts = f"{found.missing:,} missing, {found.extra:,} extra, {found.different:,} different"
    notes = [
        f"; {found.hashed:,} compared whole",
        f"; {found.repaired:,} repaired" if found.repaired else "",
        f"; {counted(found.foreign, 'document', 'documents')} of other programs" if found.foreign else "",
        f"; {counted(found.behind, 'user', 'users')} behind" if found.behind else "",
    ]
    lines = [f"{found.engine}: {counted(found.documents, 'document', 'documents')}, {counts}{''.join(notes)}"]
    lines += [f"  {plain(example)}" for example in found.examples]
    if not found.sound:
        lines.append("to repair them: jiyi verify --engines --repair")
    return "\n".join(lines)


def _schema_plan(plan: SchemaPlan) -> str:
    """Describe the migrations to come, and what they cannot keep."""
    if plan.is_done:
        return plain(f"{plan.store}: schema {plan.target}, nothing to do")
    way = "down" if plan.goes_down else "up"
    lines = [f"{plan.store}: schema {plan.found or 'none'} → {plan.target}"]
    lines += [f"  {step.revision} {way}: {step.what}" for step in plan.steps]
    return plain("\n".join([*lines, *(f"  lost: {loss}" for loss in plan.lost)]))
