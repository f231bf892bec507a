"""`jiyi import`: past chats from files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options as opt
from .output import counted, err, plain, show, warn
from .run import call

if TYPE_CHECKING:
    from ..models import ImportReport

PATH = "A file, a folder of them, or the zip file as it was downloaded."
Chats = Annotated[Path, typer.Argument(metavar="FILE|DIR", help=PATH, show_default=False)]


def import_(
    path: Chats,
    agent_id: opt.Agent = None,
    group_id: opt.Group = None,
    user: opt.User = None,
    store: opt.Store = None,
    as_json: opt.Json = False,
) -> None:
    """Take in past chats with their original times.

    Examples:
    $ jiyi import conversations.json --user mei
    $ jiyi import 聊天记录/ --user mei
    $ jiyi import chatgpt-export.zip

    Understands the exports of ChatGPT and Claude, OpenAI-style messages in
    JSON or JSONL, LoCoMo and LongMemEval. All is checked before anything is
    stored; what is known already is not stored twice, so it can be stopped
    with Ctrl-C and started again.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = err()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("reading", total=None)
        report = call(
            lambda memory, user_id: memory.import_chats(
                path,
                user_id=user_id,
                agent_id=agent_id,
                group_id=group_id,
                progress=lambda done, whole: bar.update(task, description="messages", completed=done, total=whole),
            ),
            store=store,
            user=user,
        )
    warn(report.notes)
    show(report, _told, as_json)


def _told(report: ImportReport) -> str:
    files, messages = counted(report.files, "file", "files"), counted(report.messages, "message", "messages")
    conversations = counted(report.conversations, "conversation", "conversations")
    known = report.messages - report.new
    lines = [f"{files}, {conversations}, {messages}: {report.new:,} new, {known:,} known already"]
    lines += [f"left out: {number:,} × {why}" for why, number in sorted(report.left_out.items())]
    return plain("\n".join(lines))
