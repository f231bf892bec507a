"""Maintenance commands: compress, maintain, undo, reindex, verify, vacuum."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InvalidInput
from . import options as opt
from .output import counted, err, show, warn
from .session import call

if TYPE_CHECKING:
    from pydantic import BaseModel

    from ..keep.maintain import MaintenanceReport

DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and change nothing.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Do exactly this: what --dry-run --json wrote.")
]
Session = Annotated[str | None, typer.Option("--session", metavar="NAME", help="What this session brought.")]
By = Annotated[str | None, typer.Option("--actor", metavar="NAME", help="What this actor did: import, an agent, …")]
Meta = Annotated[
    list[str] | None, typer.Option("--metadata", metavar="NAME=VALUE", help="What carries this metadata; repeatable.")
]
Since = Annotated[
    datetime | None, typer.Option("--since", metavar="TIME", parser=opt.parse_time, help="… and only from then on.")
]
To = Annotated[
    datetime | None, typer.Option("--to", metavar="TIME", parser=opt.parse_time, help="As it was at that moment.")
]


def compress(
    dry_run: DryRun = False,
    plan: PlanFile = None,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Let few memories take the place of many that are old and seldom used.

    Examples:
    $ jiyi compress --dry-run --user 林梅
    $ jiyi compress --plan plan.json --user mei

    Names, numbers and dates are kept, and the originals are archived: jiyi
    undo ID of a new memory brings them back.
    """
    from ..keep.compress import CompressPlan
    from .plan_tables import compress_plan, compressed

    if dry_run:
        found = call(lambda memory, user_id: memory.maintenance.compress_plan(user_id=user_id), store=store, user=user)
        show(found, compress_plan, as_json)
        return
    given = _read(CompressPlan, plan)
    who = given.user_id if given is not None and user is None else user
    done = call(lambda memory, user_id: memory.maintenance.compress(user_id=user_id, plan=given), store=store, user=who)
    show(done, compressed, as_json)
    warn(f"{memory_id} was changed meanwhile and stays as it is" for memory_id in done.left)


def maintain(
    dry_run: DryRun = False, user: opt.OneUser = None, store: opt.Store = None, as_json: opt.Json = False
) -> None:
    """Run maintenance once: archive expired memories, compress old ones.

    Examples:
    $ jiyi maintain
    $ jiyi maintain --dry-run
    $ jiyi maintain --user 林梅 --json

    jiyi worker runs it regularly (settings: maintenance). It can be stopped
    with Ctrl-C and resumes the next time.
    """
    with err().status("maintaining …"):
        done = call(lambda memory, _: memory.maintenance.run(user_id=user, dry_run=dry_run), store=store)
    show(done, _dry_run_report if dry_run else _report, as_json)
    warn(done.problems)


def _dry_run_report(found: MaintenanceReport) -> str:
    return (
        f"{counted(found.users, 'user', 'users')}: {found.expired:,} have expired,"
        f" {found.compressed:,} could become {found.made:,}; nothing was changed"
    )


def _report(done: MaintenanceReport) -> str:
    return (
        f"{counted(done.users, 'user', 'users')}: {done.expired:,} expired,"
        f" {done.compressed:,} compressed into {done.made:,}"
        + (f", {done.indexed:,} reindexed" if done.indexed else "")
    )


def undo(
    memory_id: Annotated[
        str | None, typer.Argument(metavar="ID", help="A memory, whose last change is undone.", show_default=False)
    ] = None,
    session_id: Session = None,
    actor: By = None,
    metadata: Meta = None,
    since: Since = None,
    to: To = None,
    dry_run: DryRun = False,
    plan: PlanFile = None,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Take back a change, what came from somewhere, or all since a moment.

    Examples:
    $ jiyi undo ID
    $ jiyi undo --session 周一的会 --dry-run
    $ jiyi undo --actor import --since 2026-03-02
    $ jiyi undo --metadata document=notes.pdf
    $ jiyi undo --to 2026-03-02T09:00

    Nothing is deleted: an undo is in the history and can be undone.
    """
    from ..keep.undo import UndoPlan
    from .plan_tables import undo_plan, undone

    what: dict[str, Any] = {
        "session_id": session_id,
        "actor": actor,
        "metadata": dict(_pair(entry) for entry in metadata) if metadata else None,
        "since": since,
        "to": to,
    }
    if dry_run:
        found = call(
            lambda memory, user_id: memory.maintenance.undo_plan(memory_id, user_id=user_id, **what),
            store=store,
            user=user,
        )
        show(found, undo_plan, as_json)
        return
    given = _read(UndoPlan, plan)
    who = given.user_id if given is not None and user is None else user
    done = call(
        lambda memory, user_id: memory.maintenance.undo(memory_id, user_id=user_id, plan=given, **what),
        store=store,
        user=who,
    )
    show(done, undone, as_json)
    warn(done.left)


def _pair(entry: str) -> tuple[str, str]:
    name, mark, value = entry.partition("=")
    if not (name and mark and value):
        raise InvalidInput("--metadata", f"{entry!r} is not NAME=VALUE, such as document=notes.pdf")
    return name, value


def _read(kind: type[BaseModel], path: Path | None) -> Any:
    """A plan from a file."""
    if path is None:
        return None
    try:
        return kind.model_validate_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidInput("--plan", f"{path} cannot be read: {error.strerror}") from error
    except ValueError:
        raise InvalidInput("--plan", f"{path} is no plan of this command: make one with --dry-run --json") from None


def reindex(
    embeddings: opt.Embeddings = False,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Embed memories again after a change of the embedding model.

    Examples:
    $ jiyi reindex --embeddings
    $ jiyi reindex --embeddings --store ./记忆.db

    It can be stopped with Ctrl-C and resumes the next time.
    """
    if not embeddings:
        raise InvalidInput("--embeddings", "is required: jiyi reindex --embeddings")
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err()) as bar:
        task = bar.add_task("embedding", total=None)
        embedded = call(
            lambda memory, _: memory.maintenance.reindex(
                progress=lambda done, whole: bar.update(task, completed=done, total=whole)
            ),
            store=store,
        )
    said = f"{embedded:,} memories embedded" if embedded else "all memories are embedded already"
    show({"embedded": embedded}, lambda _: said, as_json)


REPAIR = "Repair errors."
DEEP = "Embed every text again and compare; slow."
Repair = Annotated[bool, typer.Option("--repair", help=REPAIR)]
Deep = Annotated[bool, typer.Option("--vectors", help=DEEP)]


def verify(
    repair: Repair = False,
    vectors: Deep = False,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Check the search index against the memories.

    Examples:
    $ jiyi verify
    $ jiyi verify --repair
    $ jiyi verify --user 林梅 --vectors

    Exit code 1 if errors were found and not repaired. The store stays usable
    meanwhile.
    """
    from .render import verification
    from .transfer import progress

    with progress("verifying") as advance:
        found = call(
            lambda memory, _: memory.maintenance.verify(user_id=user, repair=repair, vectors=vectors, progress=advance),
            store=store,
        )
    show(found, verification, as_json)
    raise typer.Exit(0 if found.sound else 1)


def vacuum(store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Rewrite the database file to remove traces of deleted data.

    Examples:
    $ jiyi vacuum
    $ jiyi vacuum --store ./记忆.db

    On SQLite scraps of deleted text can lie in unused corners of a large
    file; on PostgreSQL deleted rows keep their bytes until then. Others wait
    meanwhile. It says what it could not reach, and what would.
    """
    with err().status("rewriting …"):
        left = call(lambda memory, _: memory.maintenance.vacuum(), store=store)
    warn(left)
    show({"left": list(left)}, lambda _: "rewritten" + (", but not everything was reached" if left else ""), as_json)
