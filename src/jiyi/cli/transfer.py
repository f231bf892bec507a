"""Commands that move data: import, export, backup, migrate-store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from . import options as opt
from .output import counted, err, plain, show, warn
from .session import call

if TYPE_CHECKING:
    from ..models import ImportReport
    from ..transfer.export import ExportReport
    from ..transfer.imports import MemoryImportReport

PATH = "A file, a folder of them, or the zip file as it was downloaded."
Chats = Annotated[Path, typer.Argument(metavar="FILE|DIR", help=PATH, show_default=False)]
Target = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; .gz packs it.", show_default=False)]
FORMAT = "jsonl (nothing is lost) or markdown (for people)."
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help=FORMAT)]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
WHOSE = "Whose they become; of an export of Jiyi: only this user's part, default all."
Whose = Annotated[
    str | None, typer.Option("--user", "-u", metavar="ID", help=WHOSE, rich_help_panel="General", show_default=False)
]


def import_(
    path: Chats,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
    user: Whose = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Import past chats, or memories of another system, with their times.

    Examples:
    $ jiyi import conversations.json --user mei
    $ jiyi import 聊天记录/ --user mei
    $ jiyi import chatgpt-export.zip
    $ jiyi import everything.jsonl
    $ jiyi import ~/basic-memory --user mei

    Understands the exports of ChatGPT and Claude, OpenAI-style messages in
    JSON or JSONL, LoCoMo and LongMemEval; and memories: an export of Jiyi,
    mem0's get_all as JSON, the memory.jsonl of MCP's reference server, a
    folder of Markdown notes. All is checked before anything is stored; what
    is known already is not stored twice, so it can be stopped with Ctrl-C
    and started again.
    """
    from ..transfer.readers import kind_of

    if kind_of(path) == "memories":
        if agent_id is not None or group_id is not None:
            raise InvalidInput("--agent", "and --group are for chats; memories bring their own")
        _import_memories(path, user, store, as_json)
        return
    with progress("reading") as advance:
        report = call(
            lambda memory, user_id: memory.transfer.import_chats(
                path,
                user_id=user_id,
                agent_id=agent_id,
                group_id=group_id,
                progress=lambda done, whole: advance("messages", done, whole),
            ),
            store=store,
            user=user,
        )
    warn(report.notes)
    show(report, _told, as_json)


def _import_memories(path: Path, user: str | None, store: str | None, as_json: bool) -> None:
    with progress("reading") as advance:
        report = call(
            lambda memory, _: memory.transfer.import_memories(path, user_id=user, progress=advance),
            store=store,
            user=user,
        )
    warn(report.notes)
    show(report, _told_memories, as_json)


def export(
    path: Target,
    format_: Format = "jsonl",
    force: Force = False,
    user: opt.OneUser = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Export all memories of one user or all users to a file.

    Examples:
    $ jiyi export everything.jsonl
    $ jiyi export 林梅.jsonl.gz --user 林梅
    $ jiyi export mei.md --format markdown --user mei

    As jsonl nothing is lost: history, relations, sources, messages, vectors.
    It is what the store held at one moment, while others go on writing;
    jiyi import takes it in, on SQLite or PostgreSQL.
    """
    with progress("exporting") as advance:
        done = call(
            lambda memory, _: memory.transfer.export(
                path, user_id=user, format=format_, overwrite=force, progress=advance
            ),
            store=store,
        )
    show(done, _told_export, as_json)


def backup(path: Target, force: Force = False, store: opt.Store = None, as_json: opt.Json = False) -> None:
    """Back up the whole store to one file while it is in use.

    Examples:
    $ jiyi backup memory-2026-05-07.db
    $ jiyi backup 备份.db --force

    It holds all that was acknowledged before it began, as it was at one
    moment. The file is a SQLite store of its own, whatever the database:
    jiyi restore --from FILE puts it in place of another one.
    """
    from .render import backup_line

    with progress("copying") as advance:
        done = call(lambda memory, _: memory.transfer.backup(path, overwrite=force, progress=advance), store=store)
    show(done, backup_line, as_json)


@contextmanager
def progress(first: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar on stderr if it is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(first, total=None)
        yield lambda what, done, whole: bar.update(task, description=what, completed=done, total=whole or None)


def _told_export(done: ExportReport) -> str:
    kinds = ", ".join(f"{number:,} × {kind}" for kind, number in sorted(done.records.items()))
    return plain(f"{done.path}: {kinds or 'nothing'}; {done.size_bytes / 1e6:,.1f} MB")


def _told_memories(report: MemoryImportReport) -> str:
    kinds = [f"{kind}: {number:,}, {report.new[kind]:,} new" for kind, number in sorted(report.read.items())]
    return plain("\n".join([f"format: {report.format}", *kinds]))


def _told(report: ImportReport) -> str:
    files, messages = counted(report.files, "file", "files"), counted(report.messages, "message", "messages")
    conversations = counted(report.conversations, "conversation", "conversations")
    known = report.messages - report.new
    lines = [f"{files}, {conversations}, {messages}: {report.new:,} new, {known:,} known already"]
    lines += [f"left out: {number:,} × {why}" for why, number in sorted(report.left_out.items())]
    return plain("\n".join(lines))


SourceStore = Annotated[str, typer.Argument(metavar="FROM", help="The store that is copied: a file or a URL.")]
TargetStore = Annotated[str, typer.Argument(metavar="TO", help="An empty one, or one that this command began to fill.")]


def migrate_store(source: SourceStore, target: TargetStore, as_json: opt.Json = False) -> None:
    """Copy a whole store into another one, and compare the two.

    Examples:
    $ jiyi migrate-store memory.db postgresql://localhost/jiyi
    $ jiyi migrate-store postgresql://localhost/jiyi ./备份.db

    Stop whoever writes first. It can be stopped with Ctrl-C, or by a crash,
    and goes on from there the next time.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from ..transfer.backup import migrate_store as migrate

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err()) as bar:
        task = bar.add_task("copying", total=None)
        moved = asyncio.run(
            migrate(
                source,
                target,
                progress=lambda what, done, whole: bar.update(task, description=what, completed=done, total=whole),
            )
        )
    whole = sum(moved.rows.values())
    said = (
        f"{whole:,} rows of {len(moved.rows)} tables are equal in both stores; {moved.copied:,} were copied this time"
    )
    show(moved, lambda _: said, as_json)
