"""What a sync of files tells."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from ..models import Value

# The first five change the index, the others the files.
SyncAction = Literal["take", "change", "restore", "archive", "keep both", "write", "rewrite", "move", "mark", "drop"]


class SyncStep(Value):
    """One thing that a sync of files does, or would do."""

    action: SyncAction
    memory_id: str
    path: str
    line: int | None = Field(default=None, description="where it stands; none: it is not there yet, or no longer")
    text: str


class SyncReport(Value):
    """What a sync of one user's files did; after a dry run, what it would do."""

    user_id: str
    dry_run: bool = False
    steps: tuple[SyncStep, ...] = ()
    conflicts: tuple[str, ...] = Field(default=(), description="what was changed on both sides, and what came of it")
    withheld: int = Field(default=0, description="memories whose lines are gone, too many at once to believe it")
    problems: tuple[str, ...] = Field(default=(), description="what was left alone, and why")
    indexed: int = Field(default=0, description="memories whose index was worked out anew, by a rebuild")


class Drift(Value):
    """Something in which files and index do not agree."""

    kind: Literal["file", "line", "memory", "agreement", "words", "vector"] = Field(
        description="a file that is left alone; a line, or a memory, that the other side does not know of or knows"
        " otherwise; a note of what both agreed on; the words or the vector that a memory is found by"
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
    lines: int = Field(description="how many memories stand in it")
    problem: str | None = Field(default=None, description="why it is left alone")


class WorkspaceStatus(Value):
    """How one user's files stand."""

    root: str
    user_id: str
    files: tuple[WorkspaceFile, ...]
    synced_at: datetime | None = Field(description="when files and index last agreed")
    pending: SyncReport = Field(description="what a sync would do now")
