"""Search for dates by rules. Of the matches that begin at one place the longest counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from .calendar import Calendar, Part, in_bounds

# What a match means; None, or ValueError for a date that does not exist, if it means no time after all.
Resolve = Callable[[re.Match[str], Calendar], Part | None]
# A pattern, whose group `t`, if it has one, is the time itself without the words around it.
Rule = tuple[str, Resolve]

# No match, with all that it looks at before and after itself, goes further than this from a core it holds.
REACH = 72


class Family(NamedTuple):
    """Rules that share a core: where it is not found in the lower-case text, none of them is tried."""

    core: str
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Scanner:
    """A compiled family; a space in its patterns stands for `gap`, and `before` and `after` go around each."""

    family: Family
    gap: str
    before: str = ""
    after: str = ""

    # The patterns of all families together take a tenth of a second to compile: each family not before it is needed.
    @cached_property
    def core(self) -> re.Pattern[str]:
        return re.compile(self.family.core)

    @cached_property
    def rules(self) -> list[tuple[re.Pattern[str], Resolve]]:
        return [(self._compiled(pattern), resolve) for pattern, resolve in self.family.rules]

    def _compiled(self, pattern: str) -> re.Pattern[str]:
        # No rule repeats anything without a limit, so each looks only so far from every place: linear on any input.
        inside = pattern.replace(" ", self.gap)
        return re.compile(f"{self.before}(?:{inside}){self.after}", re.IGNORECASE | re.ASCII)


class Atom(NamedTuple):
    """A time and its place in the text."""

    part: Part
    start: int
    end: int


def scan(text: str, scanners: Iterable[Scanner], calendar: Calendar) -> list[Atom]:
    """Return the times in a text, in order, without overlaps."""
    found: list[tuple[int, int, re.Match[str], Resolve]] = []
    # Several times faster than searching without regard to case.
    lower = text.lower()
    for scanner in scanners:
        for low, high in _windows(lower, scanner.core):
            for pattern, resolve in scanner.rules:
                group = "t" if "t" in pattern.groupindex else 0
                for match in pattern.finditer(text, low, high):
                    start, end = match.span(group)
                    found.append((start, -end, match, resolve))
    # Sorting is stable: of two rules for the same words the first one counts.
    found.sort(key=itemgetter(0, 1))
    atoms: list[Atom] = []
    free = 0
    for start, negative_end, match, resolve in found:
        if start < free:
            continue
        # Also what comes to nothing keeps its place: 2023-02-30 is not the month 2023-02 either.
        free = -negative_end
        part = _resolved(match, resolve, calendar)
        if part:
            atoms.append(Atom(part, start, free))
    return atoms


def _resolved(match: re.Match[str], resolve: Resolve, calendar: Calendar) -> Part | None:
    """Return the time of a match, if it exists and is within the bounds."""
    try:
        part = resolve(match, calendar)
    except (ValueError, OverflowError):
        return None
    return part if part and in_bounds(part) else None


def _windows(text: str, core: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of a text around the cores."""
    low = high = -1
    for match in core.finditer(text):
        if match.start() - REACH > high:
            if high >= 0:
                yield low, high
            low = max(0, match.start() - REACH)
        high = match.end() + REACH
    if high >= 0:
        yield low, high
