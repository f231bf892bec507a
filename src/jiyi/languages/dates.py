"""Dates and times that a text names, as ranges, seen from the moment it was said.

Where words leave a choice:

- A week starts on Monday. "Last Friday" is the nearest Friday before today, "next Friday" the nearest after; 上周五 and
  下周五, like "Friday last week", are the Fridays of the last and the next calendar week.
- A time that recurs ("in May", 5月, 年底) is the most recent one that has begun; a bare day of the week ("on Friday",
  周五) is never today. "Last May" is the most recent May that is over.
- "Three weeks ago", 三周前, is the whole week three weeks back, and so for months and years; "a few" is two to six.
- "The past week", 最近一周, and "since May" end now; "last week", 上周, is a calendar week.
- Seasons are northern, of three whole months: winter 2022 ends in February 2023.
- 5/7/2023 is in American order. "Before" begins at 1900; "after" ends now, or, in the future, with 2100.
- Night lasts until four in the morning. An hour that may be either, such as 三点 or "at 3:30", is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timezone
from functools import cache

from .base import Language
from .normalise import fold_traditional
from .registry import LANGUAGES
from .times import numeric
from .times.calendar import Calendar, Grain, Part, in_bounds
from .times.clock import refined
from .times.ranges import Ranges
from .times.scan import Atom, Scanner, scan

__all__ = ["TimeSpan", "dates"]


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A range of time from `start` up to, not including, `end`, with the words for it and their place `at`."""

    start: datetime
    end: datetime
    text: str
    at: tuple[int, int]
    grain: Grain
    relative: bool  # True if the words mean another time when they are said at another time


def dates(text: str, at: datetime, *, future: bool = False) -> list[TimeSpan]:
    """Return the dates and times a text names, in order, in the time zone of `at`, the time it was said.

    With `future`, for plans and deadlines, a date without a year lies ahead of `at`, and so does a bare weekday.

    >>> from datetime import UTC
    >>> [span] = dates("What did I do last week?", datetime(2023, 6, 14, tzinfo=UTC))
    >>> span.text, f"{span.start:%F}", f"{span.end:%F}"
    ('last week', '2023-06-05', '2023-06-12')
    """
    if at.utcoffset() is None:
        raise ValueError("at has no time zone: pass an aware datetime, such as datetime.now(UTC)")
    folded = _folded(text)
    calendar = Calendar(at, future)
    languages = _languages(folded)
    clocks = [language.dates.clock for language in languages]
    atoms: list[Atom] = []
    free = 0
    for atom in scan(folded, _scanners(languages), calendar):
        # A time of day can reach into what comes next.
        if atom.start >= free:
            atoms.append(refined(folded, atom, free, clocks))
            free = atoms[-1].end
    ranges = Ranges(folded, calendar, [language.dates.ranges for language in languages])
    spans = [_span(text, atom) for atom in ranges.joined(atoms)]
    return [span for span in spans if span is not None]


def _folded(text: str) -> str:
    """Return the text in one width and script, with every character in its place."""
    return text if text.isascii() else fold_traditional(text).translate(_narrow())


@cache
def _narrow() -> dict[int, str]:
    wide = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    return wide | {0x3000: " ", 0xA0: " ", 0x2019: "'", 0x2010: "-", 0x2011: "-", 0x301C: "~", 0x130: "I"}


def _languages(text: str) -> tuple[Language, ...]:
    """Return the languages whose dates can occur in a text."""
    return tuple(language for language in LANGUAGES if not (language.script and text.isascii()))


@cache
def _scanners(languages: tuple[Language, ...]) -> list[Scanner]:
    digits = [Scanner(family, r"[ \t]{1,3}", numeric.BEFORE, numeric.AFTER) for family in numeric.FAMILIES]
    rules = [language.dates for language in languages]
    return digits + [Scanner(family, rule.gap, rule.before, rule.after) for rule in rules for family in rule.families]


def _span(text: str, atom: Atom) -> TimeSpan | None:
    part, start, end = atom
    if not in_bounds(part):
        return None
    first, last = _existing(part)
    return TimeSpan(first, last, text[start:end], (start, end), part.grain, part.relative) if first < last else None


def _existing(part: Part) -> tuple[datetime, datetime]:
    """Return both ends as clocks showed them: some midnights, and an hour in spring, do not exist."""
    zone = part.start.tzinfo
    if isinstance(zone, timezone):
        return part.start, part.end
    start, end = (moment.astimezone(UTC).astimezone(zone) for moment in (part.start, part.end))
    return start, end if start < end else start + (part.end - part.start)
