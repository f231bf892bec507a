"""The steps of a plan. A plan is a value: it can be looked at, printed and thrown away."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .format import Home, Note
from .scan import Line

Removed = Literal["archive", "drop"]

BY_HAND = "edited by hand"  # the actor, for the history


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """A line becomes a memory. Without a line: what the index said beside a person's edit is kept, too."""

    memory_id: str
    note: Note
    home: Home
    line: Line | None = None
    path: str = ""  # of a copy's new line
    instead_of: str | None = None  # the memory that it is a copy of


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A line changes its memory."""

    memory_id: str
    version: int
    note: Note
    fields: frozenset[str]
    line: Line
    revive: bool = False  # it was archived or over


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """A line is gone, and its memory with it."""

    memory_id: str
    version: int
    path: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A memory gets a line."""

    memory_id: str
    version: int
    note: Note
    home: Home
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """A line changes with its memory. With a path, it moves below the heading of its type there."""

    memory_id: str
    version: int
    note: Note
    home: Home
    line: Line
    to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A line gets the id of the memory that says this already."""

    memory_id: str
    version: int
    note: Note
    home: Home
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A line goes with its memory."""

    memory_id: str
    line: Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """A line and its memory agree, and that was not known yet."""

    memory_id: str
    version: int
    note: Note
    path: str


Step = Take | Edit | Archive | Write | Rewrite | Mark | Drop | Same


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    user_id: str
    steps: tuple[Step, ...] = ()
    gone: tuple[str, ...] = ()  # memories that have neither line nor a right to one
    withheld: tuple[Archive, ...] = ()  # too many at once to believe it
    conflicts: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    held_files: frozenset[str] = field(default_factory=frozenset)

    @property
    def quiet(self) -> bool:
        """Nothing to do, neither in the files nor in the index."""
        return all(isinstance(step, Same) for step in self.steps)

    def of(self, *kinds: type) -> list[Step]:
        return [step for step in self.steps if isinstance(step, kinds)]
