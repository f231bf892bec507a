"""The steps of a sync plan, and the reports about a sync, a verification and the state of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeVar

from pydantic import Field

from ..models import Value
from .format import Labels, Note
from .scan import Line

BY_HAND = "edited by hand"  # the actor, for the history


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    """Create a memory from a line; without a line, from the index's side of a conflict."""

    memory_id: str
    note: Note
    labels: Labels
    line: Line | None = None
    path: str = ""  # file of the new line, for a copy
    instead_of: str | None = None  # the memory it is a copy of


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Update a memory from its line."""

    memory_id: str
    version: int
    note: Note
    fields: frozenset[str]
    line: Line
    revive: bool = False  # it was archived or superseded


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """Archive a memory whose line is gone."""

    memory_id: str
    version: int
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _FromMemory:
    memory_id: str
    version: int
    note: Note
    labels: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Write(_FromMemory):
    """Write a line for a memory."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite(_FromMemory):
    """Rewrite a line from its memory; with a path, move it below the heading of its type there."""

    line: Line
    to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark(_FromMemory):
    """Add the id of the memory that has the same content to a line."""

    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Remove the line of a memory that is gone."""

    memory_id: str
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """Note that a line and its memory agree."""

    memory_id: str
    version: int
    note: Note
    path: str


Step = Create | Update | Archive | Write | Rewrite | Mark | Remove | Same
S = TypeVar("S")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    user_id: str
    steps: tuple[Step, ...] = ()
    gone: tuple[str, ...] = ()  # memories that have no line and need none
    withheld: tuple[Archive, ...] = ()  # too many at once to be intended
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    held_files: frozenset[str] = field(default_factory=frozenset)

    @property
    def quiet(self) -> bool:
        """Return True if neither files nor index change."""
        return all(isinstance(step, Same) for step in self.steps)

    def of(self, kind: type[S]) -> list[S]:
        return [step for step in self.steps if isinstance(step, kind)]


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
        steps=tuple(_reported(step) for step in plan.steps if not isinstance(step, Same)),
        conflicts=plan.conflicts,
        withheld=len(plan.withheld),
        problems=(*plan.problems, *problems),
    )


def _reported(step: Create | Update | Archive | Write | Rewrite | Mark | Remove) -> SyncStep:
    action: SyncAction
    match step:
        case Archive():
            action, path, line, text = "archive", step.path, None, step.text
        case Write():
            action, path, line, text = "write", step.path, None, step.note.content
        case Create(line=None):
            action, path, line, text = "keep both", step.path, None, step.note.content
        case Remove():
            action, path, line, text = "remove", "", step.line, step.line.entry.item.content
        case Create():
            action, path, line, text = "create", "", step.line, step.note.content
        case Update():
            action, path, line, text = "restore" if step.revive else "update", "", step.line, step.note.content
        case Rewrite():
            action, path, line, text = "move" if step.to else "rewrite", "", step.line, step.note.content
        case Mark():
            action, path, line, text = "mark", "", step.line, step.note.content
    return SyncStep(
        action=action,
        memory_id=step.memory_id,
        path=line.path if line else path,
        line=line.entry.line if line else None,
        text=_short(text),
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
