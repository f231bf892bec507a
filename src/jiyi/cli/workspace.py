"""The commands about files that people edit: workspace init, sync, watch, status, verify,
rebuild."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from . import options as opt
from .output import counted, err, out, plain, show, warn
from .session import call

if TYPE_CHECKING:
    from ..files.report import Drift, SyncReport, WorkspaceStatus
    from ..files.workspace import Workspace

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

Folder = Annotated[
    Path | None,
    typer.Argument(metavar="DIR", help="The workspace. Default: JIYI_WORKSPACE__PATH, else this folder."),
]
NewFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that becomes a workspace.")]
EachUser = Annotated[bool, typer.Option("--each-user", help="For all users, each in a folder of their own.")]
Language = Annotated[str, typer.Option("--lang", metavar="auto|en|zh", help="The language of headings.")]
Daily = Annotated[bool, typer.Option("--daily-notes", help="Episodes and events too, in a file for each day.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Change nothing; tell what would be done.")]
Confirm = Annotated[bool, typer.Option("--confirm", help="Lines that are gone are meant to be gone, however many.")]
Vectors = Annotated[bool, typer.Option("--vectors", help="Embed every text again, to compare that too.")]
Restore = Annotated[bool, typer.Option("--restore", help="Write lines that are gone anew.")]


@app.callback()
def workspace() -> None:
    """Memories as files that a person edits: memory.md and learnings.md.

    Examples:
    $ jiyi workspace init notes
    $ jiyi workspace sync notes --dry-run
    $ jiyi workspace watch 笔记
    """


@app.command("init")
def init(
    folder: NewFolder,
    each_user: EachUser = False,
    lang: Language = "auto",
    daily_notes: Daily = False,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Make a folder a workspace and write the memories into it.

    Examples:
    $ jiyi workspace init notes
    $ jiyi workspace init 笔记 --lang zh --user 林梅
    """
    from ..files.workspace import MARKER, init_workspace
    from ..settings import load_settings

    if lang not in ("auto", "en", "zh"):
        raise InvalidInput("--lang", f"must be auto, en or zh, not {lang!r}")
    whose = None if each_user else user or load_settings().user
    made = init_workspace(folder, user=whose, language=lang, daily_notes=daily_notes)  # type: ignore[arg-type]
    if (daily_notes and not made.daily_notes) or lang not in ("auto", made.language):
        raise InvalidInput("DIR", f"{folder} is a workspace already: change its settings in {made.root / MARKER}")
    _sync(folder, None, store, as_json)


@app.command("sync")
def sync(
    folder: Folder = None,
    dry_run: DryRun = False,
    confirm: Confirm = False,
    restore: Restore = False,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Bring files and memories to agree: edits go in, what is new comes out.

    Examples:
    $ jiyi workspace sync notes
    $ jiyi workspace sync 笔记 --dry-run

    Exit code 1 if something was left alone or withheld.
    """
    _sync(folder, user, store, as_json, dry_run=dry_run, confirm=confirm, restore=restore)


@app.command("watch")
def watch(folder: Folder = None, store: opt.Store = None) -> None:
    """Keep files and memories in agreement until Ctrl-C.

    Examples:
    $ jiyi workspace watch notes
    $ jiyi workspace watch 笔记 --store ./记忆.db
    """
    found = _opened(folder)
    err().print(f"watching {found.root}; Ctrl-C ends it")
    try:
        call(lambda memory, _: memory.workspace.watch(report=_show_report), store=store, workspace=found.root)
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise typer.Exit(0) from None


@app.command("status")
def status(
    folder: Folder = None,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Say what stands in the files, and what a sync would do.

    Examples:
    $ jiyi workspace status notes
    $ jiyi workspace status 笔记 --json
    """
    found = _opened(folder)
    states = call(lambda memory, _: memory.workspace.status(user_id=user), store=store, workspace=found.root)
    show(list(states), lambda _: "\n".join(map(_state, states)) or "nobody has files or memories yet", as_json)


@app.command("verify")
def verify(
    folder: Folder = None,
    vectors: Vectors = False,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Compare every line with its memory, and every memory with its index.

    Examples:
    $ jiyi workspace verify notes
    $ jiyi workspace verify 笔记 --vectors

    Nothing is changed. Exit code 1 if something does not agree.
    """
    found = _opened(folder)
    drifts = call(
        lambda memory, _: memory.workspace.verify(user_id=user, vectors=vectors), store=store, workspace=found.root
    )
    show(list(drifts), lambda _: "\n".join(map(_drift, drifts)) or "files and index agree", as_json)
    raise typer.Exit(1 if drifts else 0)


@app.command("rebuild")
def rebuild(
    folder: Folder = None,
    confirm: Confirm = False,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Work the index out anew, from the files alone.

    Examples:
    $ jiyi workspace rebuild notes
    $ jiyi workspace rebuild 笔记 --store ./记忆.db

    Where files and index differ, the files are right.
    """
    found = _opened(folder)
    done = call(
        lambda memory, _: memory.workspace.rebuild(user_id=user, confirm=confirm), store=store, workspace=found.root
    )
    indexed = sum(report.indexed for report in done)
    _show_reports(done, f"{counted(indexed, 'memory', 'memories')} indexed anew", as_json)


def _opened(folder: Path | None) -> Workspace:
    """The workspace that is named, set or here; no command but `init` begins one."""
    from ..files.workspace import open_workspace
    from ..settings import load_settings

    return open_workspace((folder or load_settings().workspace.path or Path()).expanduser().resolve())


def _sync(
    folder: Path | None,
    user: str | None,
    store: str | None,
    as_json: bool,
    *,
    dry_run: bool = False,
    confirm: bool = False,
    restore: bool = False,
) -> None:
    found = _opened(folder)
    done = call(
        lambda memory, _: memory.workspace.sync(user_id=user, dry_run=dry_run, confirm=confirm, restore=restore),
        store=store,
        workspace=found.root,
    )
    _show_reports(done, None if any(report.steps for report in done) else "files and memories agree", as_json)


def _show_reports(done: Sequence[SyncReport], last: str | None, as_json: bool) -> None:
    if as_json:
        show(list(done), str, True)
    else:
        for report in done:
            _show_report(report)
        if last:
            out().print(last)
    if any(report.problems for report in done):
        raise typer.Exit(1)


def _show_report(report: SyncReport) -> None:
    for step in report.steps:
        where = step.path if step.line is None else f"{step.path}:{step.line}"
        out().print(f"{step.action:<9} {where}  {plain(step.text)}", soft_wrap=True)
    if report.steps:
        counts = Counter(step.action for step in report.steps)
        would = "would be: " if report.dry_run else ""
        err().print(f"{report.user_id}: {would}{', '.join(f'{number} {name}' for name, number in counts.items())}")
    warn([*report.conflicts, *report.problems])


def _drift(drift: Drift) -> str:
    where = drift.path or ""
    where += f":{drift.line}" if drift.line else ""
    return "  ".join(plain(part) for part in (f"{drift.kind:<9}", where, drift.memory_id or "", drift.problem) if part)


def _state(state: WorkspaceStatus) -> str:
    lines = [f"{plain(state.user_id)}  {plain(state.root)}"]
    for file in state.files:
        told = counted(file.lines, "memory", "memories") if file.exists else "not there yet"
        lines.append(f"  {file.path}  {file.problem or told}")
    waiting = len(state.pending.steps)
    lines.append(f"  {counted(waiting, 'change', 'changes')} to sync" if waiting else "  in agreement")
    lines.extend(f"  ! {plain(problem)}" for problem in (*state.pending.conflicts, *state.pending.problems))
    return "\n".join(lines)
