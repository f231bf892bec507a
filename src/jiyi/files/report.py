"""Reports of a sync, of a verification and of the state of a workspace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Literal

from pydantic import Field

from ..models import Value
from .steps import Archive, Create, Mark, Plan, Remove, Rewrite, Same, Step, Update, Write

SHOWN = 120  # characters of a text

# The first five change the index, the others change files.
SyncAction = Literal[
    "create", "update", "restore", "archive", "keep both", "write", "rewrite", "move", "mark", "remove"
]  # fmt: skip


class SyncStep(Value):
    """A step of a sync."""

    action: SyncAction
    memory_id: str
    path: str
    line: int | None = Field(default=None, description="line number; None if the line does not exist yet, or no longer")
    text: str


class SyncReport(Value):
    """The result of a sync of one user's files, or the plan if it was a dry run."""

    user_id: str
    dry_run: bool = False
    steps: tuple[SyncStep, ...] = ()
    conflicts: tuple[str, ...] = Field(default=(), description="memories changed on both sides, and the outcome")
    withheld: int = Field(default=0, description="memories kept although their lines are gone: too many at once")
    problems: tuple[str, ...] = Field(default=(), description="what was skipped, and why")
    indexed: int = Field(default=0, description="memories that a rebuild has indexed again")


class Drift(Value):
    """A difference between files and index."""

    kind: Literal["file", "line", "memory", "agreement", "words", "vector"] = Field(
        description="a file that is skipped; a line or a memory that differs from the other side; the stored agreement;"
        " the index terms or the vector of a memory"
    )
    user_id: str
    memory_id: str | None = None
    path: str | None = None
    line: int | None = None
    problem: str


class WorkspaceFile(Value):
    """One file of a workspace."""

    path: str
    exists: bool
    lines: int = Field(description="number of memories in it")
    problem: str | None = Field(default=None, description="why it is skipped")


class WorkspaceStatus(Value):
    """The state of one user's files."""

    root: str
    user_id: str
    files: tuple[WorkspaceFile, ...]
    synced_at: datetime | None = Field(description="time of the last sync")
    pending: SyncReport = Field(description="the plan of a sync")


def make_report(plan: Plan, *, problems: Sequence[str] = (), dry_run: bool = False) -> SyncReport:
    return SyncReport(
        user_id=plan.user_id,
        dry_run=dry_run,
        steps=tuple(reported for step in plan.steps for reported in _steps(step)),
        conflicts=plan.conflicts,
        withheld=len(plan.withheld),
        problems=(*plan.problems, *problems),
    )


def _steps(step: Step) -> Iterator[SyncStep]:
    if isinstance(step, Archive):
        yield SyncStep(action="archive", memory_id=step.memory_id, path=step.path, text=_short(step.text))
    elif isinstance(step, Remove):
        entry = step.line.entry
        yield SyncStep(
            action="remove",
            memory_id=step.memory_id,
            path=step.line.path,
            line=entry.line,
            text=_short(entry.item.content),
        )
    elif isinstance(step, Write):
        yield SyncStep(action="write", memory_id=step.memory_id, path=step.path, text=_short(step.note.content))
    elif isinstance(step, Create) and step.line is None:
        yield SyncStep(action="keep both", memory_id=step.memory_id, path=step.path, text=_short(step.note.content))
    elif isinstance(step, (Create, Update, Rewrite, Mark)) and step.line is not None:
        yield SyncStep(
            action=_action(step),
            memory_id=step.memory_id,
            path=step.line.path,
            line=step.line.entry.line,
            text=_short(step.note.content),
        )
    elif not isinstance(step, Same):
        raise TypeError(step)


def _action(step: Create | Update | Rewrite | Mark) -> SyncAction:
    if isinstance(step, Update):
        return "restore" if step.revive else "update"
    if isinstance(step, Rewrite):
        return "move" if step.to else "rewrite"
    return "create" if isinstance(step, Create) else "mark"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
