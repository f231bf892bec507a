"""Commands about files that people edit: workspace init, sync, watch, status, verify, rebuild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import InvalidInput
from .session import ALL_USERS, JSON, STORE, User, call, counted, err, general, options, out, plain, show, warn

if TYPE_CHECKING:
    from ..files.steps import Drift, SyncReport, WorkspaceStatus

app = typer.Typer(no_args_is_help=True, context_settings={"help_option_names": ["-h", "--help"]})

FOLDER = "The workspace. Default: JIYI_WORKSPACE__PATH, else this folder."
Folder = Annotated[Path | None, typer.Argument(metavar="DIR", help=FOLDER)]
NewFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder that becomes a workspace.")]
EachUser = Annotated[bool, typer.Option("--each-user", help="For all users, each in a folder of their own.")]
Language = Annotated[
    Literal["auto", "en", "zh"], typer.Option("--lang", metavar="auto|en|zh", help="The language of headings.")
]
Daily = Annotated[bool, typer.Option("--daily-notes", help="Write episodes and events too, in one file per day.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan, and change nothing.")]
Confirm = Annotated[bool, typer.Option("--confirm", help="Archive memories of removed lines, however many.")]
Vectors = Annotated[bool, typer.Option("--vectors", help="Embed every text again and compare; slow.")]
Restore = Annotated[bool, typer.Option("--restore", help="Write removed lines again.")]


@app.callback()
def workspace() -> None:
    """Edit memories as files: memory.md and learnings.md.

    Examples:
    $ jiyi workspace init notes
    $ jiyi workspace sync notes --dry-run
    $ jiyi workspace watch 笔记
    """


@app.command("init")
@general(STORE, JSON)
def init(
    folder: NewFolder,
    each_user: EachUser = False,
    lang: Language = "auto",
    daily_notes: Daily = False,
    user: User = None,
) -> None:
    """Make a folder a workspace and write the memories into it.

    Examples:
    $ jiyi workspace init notes
    $ jiyi workspace init 笔记 --lang zh --user 林梅
    """
    from ..files.workspace import MARKER, init_workspace
    from ..settings import load_settings

    settings = load_settings()  # before anything is written
    owner = None if each_user else user or settings.user
    made = init_workspace(folder, user=owner, language=lang, daily_notes=daily_notes)
    if (daily_notes and not made.daily_notes) or lang not in ("auto", made.language):
        raise InvalidInput("DIR", f"{folder} is a workspace already: change its settings in {made.root / MARKER}")
    _sync(folder)


@app.command("sync")
@general(ALL_USERS, STORE, JSON)
def sync(folder: Folder = None, dry_run: DryRun = False, confirm: Confirm = False, restore: Restore = False) -> None:
    """Sync files and memories: read edits, write new memories.

    Examples:
    $ jiyi workspace sync notes
    $ jiyi workspace sync 笔记 --dry-run

    Exit code 1 if something was skipped or withheld.
    """
    _sync(folder, dry_run=dry_run, confirm=confirm, restore=restore)


def _sync(folder: Path | None, *, dry_run: bool = False, confirm: bool = False, restore: bool = False) -> None:
    user = options().user
    done = call(
        lambda memory, _: memory.workspace.sync(user_id=user, dry_run=dry_run, confirm=confirm, restore=restore),
        workspace=_root(folder),
        create=True,
    )
    _show_reports(done, None if any(report.steps for report in done) else "files and memories are in sync")


@app.command("watch")
@general(STORE)
def watch(folder: Folder = None) -> None:
    """Sync files and memories continuously, until Ctrl-C.

    Examples:
    $ jiyi workspace watch notes
    $ jiyi workspace watch 笔记 --store ./记忆.db
    """
    from asyncio import CancelledError

    root = _root(folder)
    err().print(f"watching {root}; Ctrl-C stops")
    try:
        call(lambda memory, _: memory.workspace.watch(report=_show_report), workspace=root, create=True)
    except (KeyboardInterrupt, CancelledError):
        raise typer.Exit(0) from None


@app.command("status")
@general(ALL_USERS, STORE, JSON)
def status(folder: Folder = None) -> None:
    """Show the files and the changes that a sync would make.

    Examples:
    $ jiyi workspace status notes
    $ jiyi workspace status 笔记 --json
    """
    states = call(lambda memory, user_id: memory.workspace.status(user_id=user_id), workspace=_root(folder), reads=True)
    show(list(states), lambda _: "\n".join(map(_state, states)) or "no user has files or memories")


@app.command("verify")
@general(ALL_USERS, STORE, JSON)
def verify(folder: Folder = None, vectors: Vectors = False) -> None:
    """Compare every line with its memory, and every memory with its index.

    Examples:
    $ jiyi workspace verify notes
    $ jiyi workspace verify 笔记 --vectors

    Nothing is changed. Exit code 1 if differences were found.
    """
    drifts = call(
        lambda memory, user_id: memory.workspace.verify(user_id=user_id, vectors=vectors), workspace=_root(folder)
    )
    show(list(drifts), lambda _: "\n".join(map(_drift, drifts)) or "files and index agree")
    raise typer.Exit(1 if drifts else 0)


@app.command("rebuild")
@general(ALL_USERS, STORE, JSON)
def rebuild(folder: Folder = None, confirm: Confirm = False) -> None:
    """Rebuild the index from the files.

    Examples:
    $ jiyi workspace rebuild notes
    $ jiyi workspace rebuild 笔记 --store ./记忆.db

    Where files and index differ, the files win.
    """
    done = call(
        lambda memory, user_id: memory.workspace.rebuild(user_id=user_id, confirm=confirm),
        workspace=_root(folder),
        create=True,
    )
    indexed = sum(report.indexed for report in done)
    _show_reports(done, f"{counted(indexed, 'memory', 'memories')} indexed again")


def _root(folder: Path | None) -> Path:
    """Return the folder of the given, configured or current workspace; only `init` creates one."""
    from ..files.workspace import open_workspace
    from ..settings import load_settings

    return open_workspace((folder or load_settings().workspace.path or Path()).expanduser().resolve()).root


def _show_reports(done: Sequence[SyncReport], last: str | None) -> None:
    if options().as_json:
        show(list(done), str)
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
    where = f"{drift.path or ''}{f':{drift.line}' if drift.line else ''}"
    return "  ".join(plain(part) for part in (f"{drift.kind:<9}", where, drift.memory_id or "", drift.problem) if part)


def _state(state: WorkspaceStatus) -> str:
    lines = [f"{plain(state.user_id)}  {plain(state.root)}"]
    for file in state.files:
        told = counted(file.lines, "memory", "memories") if file.exists else "not written yet"
        lines.append(f"  {file.path}  {file.problem or told}")
    waiting = len(state.pending.steps)
    lines.append(f"  {counted(waiting, 'change', 'changes')} to sync" if waiting else "  in sync")
    lines.extend(f"  ! {plain(problem)}" for problem in (*state.pending.conflicts, *state.pending.problems))
    return "\n".join(lines)
