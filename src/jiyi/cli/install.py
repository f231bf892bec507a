"""The command `install`: connect a coding agent to the memory."""

from __future__ import annotations

import difflib
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ..errors import MissingExtra
from . import options as opt
from .agent_files import AGENTS, FileChange, Places, plan_changes, write

AgentName = Annotated[str, typer.Argument(metavar="AGENT", help=f"One of {', '.join(AGENTS)}.")]
Remove = Annotated[bool, typer.Option("--remove", help="Remove what install wrote.")]
Project = Annotated[bool, typer.Option("--project", help="Only for the project in the current folder.")]
APART = "Remember each repository apart: what is said in one is not recalled in another."
PerProject = Annotated[bool, typer.Option("--per-project", help=APART)]


def install(
    agent: AgentName,
    remove: Remove = False,
    project: Project = False,
    per_project: PerProject = False,
    yes: opt.Yes = False,
) -> None:
    """Connect a coding agent: hooks that recall and observe, and the MCP server.

    Examples:
    $ jiyi install claude-code
    $ jiyi install cursor --project
    $ jiyi install claude-code --per-project
    $ jiyi install codex --remove    # 删除写入的配置

    It shows the changes and asks before it writes. Other entries of the files
    stay; running it twice changes nothing. VS Code has the MCP server only.
    """
    places = Places(home=Path.home(), project=Path.cwd() if project else None)
    if not remove and find_spec("mcp") is None:
        raise MissingExtra("mcp", "mcp")
    beside = Path(sys.executable).with_name("jiyi.exe" if sys.platform == "win32" else "jiyi")  # of this environment
    # With its path: coding agents that are started from a desktop have another PATH than this terminal.
    command = str(beside) if beside.exists() else shutil.which("jiyi") or "jiyi"
    changes = plan_changes(agent, places, command=command, remove=remove, per_project=per_project)
    if not changes:
        typer.echo("nothing to remove" if remove else "everything is in place already")
        return
    for change in changes:
        typer.echo(_diff(change))
    if not yes:
        typer.confirm("Write these changes?", abort=True)
    for change in changes:
        write(change)
        done = "removed" if change.after is None else "wrote"
        typer.echo(f"{done} {change.path}")
    if not remove:
        typer.echo(f"start {agent} again; `jiyi serve` in the background makes its hooks faster")
        if agent == "codex":
            typer.echo("Codex runs no hook that nobody has reviewed: open /hooks in it and trust both")


def _diff(change: FileChange) -> str:
    before, after = ((text or "").splitlines(keepends=True) for text in (change.before, change.after))
    name = str(change.path)
    lines = difflib.unified_diff(list(before), list(after), name, name if change.after else "(removed)")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
