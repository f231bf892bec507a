"""The steps of a sync plan, as values."""

from __future__ import annotations

from dataclasses import dataclass, field

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
class Write:
    """Write a line for a memory."""

    memory_id: str
    version: int
    note: Note
    labels: Labels
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """Rewrite a line from its memory; with a path, move it below the heading of its type there."""

    memory_id: str
    version: int
    note: Note
    labels: Labels
    line: Line
    to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Add the id of the memory that has the same content to a line."""

    memory_id: str
    version: int
    note: Note
    labels: Labels
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

    def of(self, *kinds: type) -> list[Step]:
        return [step for step in self.steps if isinstance(step, kinds)]
