"""Commands that move data: import, export, backup, migrate-store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import InvalidInput
from . import options as opt
from .session import ALL_USERS, JSON, STORE, call, counted, general, plain, progress, show, warn

if TYPE_CHECKING:
    from ..models import ImportedFile, ImportReport
    from ..transfer.export import ExportReport
    from ..transfer.imports import MemoryImportReport

PATH = "A file, a folder of files, a downloaded zip file, or the mongodb:// address of a database."
Chats = Annotated[str, typer.Argument(metavar="FILE|DIR|URL", help=PATH, show_default=False)]
TARGET = "The file to write; .gz compresses it."
Target = Annotated[Path, typer.Argument(metavar="FILE", help=TARGET, show_default=False)]
FORMAT = "jsonl (complete) or markdown (for reading)."
Format = Annotated[str, typer.Option("--format", metavar="FORMAT", help=FORMAT)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
WHOSE = "The user to import for; of an export of Jiyi: only this user's part, default all."
Whose = Annotated[
    str | None, typer.Option("--user", "-u", metavar="ID", help=WHOSE, rich_help_panel="General", show_default=False)
]
SourceStore = Annotated[str, typer.Argument(metavar="FROM", help="The store to copy: a file or a URL.")]
TO = "An empty store, or one that an interrupted run of this command left."
TargetStore = Annotated[str, typer.Argument(metavar="TO", help=TO)]


MOST_FILES = 20  # in a report
KINDS = (("conversation", "conversations"), ("message", "messages"), ("memory", "memories"))


@general(STORE, JSON)
def import_(
    path: Chats,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
    user_names: opt.UserNames = None,
    user: Whose = None,
) -> None:
    """Import past chats, or memories of another system, with their times.

    Examples:
    $ jiyi import conversations.json --user mei
    $ jiyi import 聊天记录/ --user mei
    $ jiyi import chatgpt-export.zip
    $ jiyi import everything.jsonl
    $ jiyi import ~/basic-memory --user mei
    $ jiyi import mongodb://localhost/memories

    Chats: exports of ChatGPT and Claude, with what they remember of you, and
    OpenAI-style messages in JSON or JSONL. Memories: an export of Jiyi, mem0's
    get_all as JSON, the memory.jsonl of MCP's reference server, a folder of
    Markdown notes, documents in MongoDB. Everything is checked before anything is stored. Known
    messages and memories are not stored twice, so an import that was
    stopped with Ctrl-C can be started again.
    """
    try:
        _import(path, agent_id, group_id, user_names, user)
    except KeyboardInterrupt:
        said = "stopped: what was imported so far stays. Run the same command again to go on; nothing is stored twice"
        typer.echo(f"\n{said}", err=True)
        raise


def _import(
    path: str, agent_id: str | None, group_id: str | None, user_names: list[str] | None, user: str | None
) -> None:
    from ..transfer.readers import kind_of

    if path.startswith(("mongodb://", "mongodb+srv://")) or kind_of(Path(path)) == "memories":
        if agent_id is not None or group_id is not None:
            raise InvalidInput("--agent", "and --group are for chats; memories have their own")
        with progress("reading") as advance:
            memories = call(
                lambda memory, _: memory.transfer.import_memories(path, user_id=user, progress=advance), create=True
            )
        warn(memories.notes)
        show(memories, _memories_report)
        return
    with progress("reading") as advance:
        report = call(
            lambda memory, user_id: memory.transfer.import_chats(
                path,
                user_id=user_id,
                agent_id=agent_id,
                group_id=group_id,
                progress=lambda done, total: advance("messages", done, total),
                user_names=user_names,
            ),
            user=user,
            create=True,
        )
    warn(report.notes)
    show(report, _chats_report)


@general(ALL_USERS, STORE, JSON)
def export(path: Target, format_: Format = "jsonl", force: Force = False) -> None:
    """Export all memories of one user or all users to a file.

    Examples:
    $ jiyi export everything.jsonl
    $ jiyi export 林梅.jsonl.gz --user 林梅
    $ jiyi export mei.md --format markdown --user mei

    jsonl is complete: history, relations, sources, messages, vectors. It is
    a snapshot of the store, which stays writable meanwhile; jiyi import
    reads it, on SQLite or PostgreSQL.
    """
    with progress("exporting") as advance:
        done = call(
            lambda memory, user_id: memory.transfer.export(
                path, user_id=user_id, format=format_, overwrite=force, progress=advance
            ),
            reads=True,
        )
    show(done, _export_report)


@general(STORE, JSON)
def backup(path: Target, force: Force = False) -> None:
    """Back up the whole store to one file while it is in use.

    Examples:
    $ jiyi backup memory-2026-05-07.db
    $ jiyi backup 备份.db --force

    It is a snapshot with everything that was acknowledged before it began.
    The file is a SQLite store, whatever the database: jiyi restore --from
    FILE replaces a store by it.
    """
    from .render import backup_line

    with progress("copying") as advance:
        done = call(lambda memory, _: memory.transfer.backup(path, overwrite=force, progress=advance), reads=True)
    show(done, backup_line)


@general(JSON)
def migrate_store(source: SourceStore, target: TargetStore) -> None:
    """Copy a whole store into another one, and compare the two.

    Examples:
    $ jiyi migrate-store memory.db postgresql://localhost/jiyi
    $ jiyi migrate-store postgresql://localhost/jiyi ./备份.db

    Stop all writers first. A run that was interrupted, by Ctrl-C or a
    crash, continues the next time.
    """
    from asyncio import run

    from ..transfer.schema_change import migrate_store as migrate

    with progress("copying") as advance:
        moved = run(migrate(source, target, progress=advance))
    rows, tables = sum(moved.rows.values()), len(moved.rows)
    said = f"{rows:,} rows of {tables} tables are equal in both stores; {moved.copied:,} were copied this time"
    show(moved, lambda _: said)


def _export_report(done: ExportReport) -> str:
    kinds = ", ".join(f"{number:,} × {kind}" for kind, number in sorted(done.records.items()))
    return plain(f"{done.path}: {kinds or 'nothing'}; {done.size_bytes / 1e6:,.1f} MB")


def _memories_report(report: MemoryImportReport) -> str:
    kinds = [f"{kind}: {number:,}, {report.new[kind]:,} new" for kind, number in sorted(report.read.items())]
    return plain("\n".join([f"format: {report.format}", *kinds, *_by_file(report.by_file)]))


def _by_file(some: Sequence[ImportedFile]) -> list[str]:
    """Say how much of each file went to which user."""
    lines = []
    for one in some[:MOST_FILES]:
        counts = (one.conversations, one.messages, one.memories)
        what = ", ".join(counted(number, *KINDS[at]) for at, number in enumerate(counts) if number)
        named = f" of {one.named}" if one.named not in (None, one.user_id) else ""
        lines.append(f"{one.file}: {what}{named} → user {one.user_id}")
    more = len(some) - MOST_FILES
    return [*lines, f"… and {more:,} more (--json shows all)"] if more > 0 else lines


def _chats_report(report: ImportReport) -> str:
    files, messages = counted(report.files, "file", "files"), counted(report.messages, "message", "messages")
    conversations = counted(report.conversations, "conversation", "conversations")
    known = report.messages - report.new
    lines = [f"{files}, {conversations}, {messages}: {report.new:,} new, {known:,} known already"]
    if report.memories:
        known = report.memories - report.new_memories
        remembered = counted(report.memories, "memory", "memories")
        lines.append(f"{remembered} of the assistant: {report.new_memories:,} new, {known:,} known already")
    lines += _by_file(report.by_file)
    lines += [f"skipped: {number:,} × {why}" for why, number in sorted(report.left_out.items())]
    return plain("\n".join(lines))
