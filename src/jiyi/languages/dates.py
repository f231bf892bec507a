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

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timezone
from functools import cache, cached_property
from itertools import zip_longest
from operator import itemgetter

from ..text_cache import text_cache
from . import numeric
from .base import Family, Language, RangeRules, Resolve
from .calendar import (
    FIRST_YEAR,
    LAST_YEAR,
    NOTHING,
    WEEK,
    Atom,
    Calendar,
    Grain,
    Part,
    edge,
    in_bounds,
    moved,
    third,
)
from .clock import blank_pattern, refined
from .registry import LANGUAGES
from .words import fold_traditional

_LONGEST_CACHED = 1000  # characters

Found = tuple[int, int, re.Match[str], Resolve]  # start, negative end, and the rule that matched


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """A range of time from `start` up to, not including, `end`, with the words for it and their place `at`."""

    start: datetime
    end: datetime
    text: str
    at: tuple[int, int]
    grain: Grain
    relative: bool  # True if the words mean another time when they are said at another time


def dates(text: str, at: datetime, *, future: bool = False, stated: bool = False) -> list[TimeSpan]:
    """Return the dates and times a text names, in order, in the time zone of `at`, the time it was said.

    With `future`, for plans and deadlines, a date without a year lies ahead of `at`, and so does a bare weekday. With
    `stated`, for statements, "by March" and "since March" name March, and "two weeks ago" a day; in questions they are
    all the time before and after, and a week.

    >>> from datetime import UTC
    >>> [span] = dates("What did I do last week?", datetime(2023, 6, 14, tzinfo=UTC))
    >>> span.text, f"{span.start:%F}", f"{span.end:%F}"
    ('last week', '2023-06-05', '2023-06-12')
    """
    if at.utcoffset() is None:
        raise ValueError("at has no time zone: pass an aware datetime, such as datetime.now(UTC)")
    folded, languages, found = _found(text) if len(text) <= _LONGEST_CACHED else _found.__wrapped__(text)
    if not found:
        return []
    calendar = Calendar(at, future, stated)
    clocks = [language.dates.clock for language in languages]
    atoms: list[Atom] = []
    free = 0
    for atom in resolved(found, calendar):
        # A time of day can reach into what comes next.
        if atom.start >= free:
            atoms.append(refined(folded, atom, free, clocks))
            free = atoms[-1].end
    ranges = Ranges(folded, calendar, [language.dates.ranges for language in languages])
    spans = [_span(text, atom) for atom in ranges.joined(atoms, limited=not stated)]
    return [span for span in spans if span is not None]


@text_cache(64)  # the same words are read as past and as future, as a message and as a statement
def _found(text: str) -> tuple[str, tuple[Language, ...], list[Found]]:
    """Return the text in one width and script, the languages it may be in, and the words that may name a time."""
    folded = _folded(text)
    languages = _languages(folded)
    return folded, languages, find(folded, _scanners(languages))


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


# No match, with all that it looks at before and after itself, goes further than this from a core it holds.
REACH = 72


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


def find(text: str, scanners: Iterable[Scanner]) -> list[Found]:
    """Return the words that may name a time, in order; they may overlap."""
    found: list[Found] = []
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
    return found


def resolved(found: Iterable[Found], calendar: Calendar) -> list[Atom]:
    """Return the times that words name, in order, without overlaps."""
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


# How far back the words before a time are looked at.
_LONGEST_BEFORE = 40
_DASH = "(?P<dash> ?[-–—~]{1,2} ?)"


class Ranges:
    """Joins the times of one text, with the rules of the languages it may be in."""

    def __init__(self, text: str, calendar: Calendar, rules: Sequence[RangeRules]) -> None:
        self._text = text
        self._calendar = calendar
        self._rules = rules

    def joined(self, atoms: list[Atom], *, limited: bool = True) -> list[Atom]:
        """Return the times with those put together that belong together; `limited`: also with words such as since."""
        single: list[Atom] = []
        free = 0
        for atom in atoms:
            if atom.start >= free:
                single.append(self._anchored(self._narrowed(atom, free), free))
                free = single[-1].end
        found: list[Atom] = []
        free = 0
        for atom, following in zip_longest(single, single[1:]):
            # Words before `free` belong to the time before, which may have taken in this one.
            if atom.start >= free:
                pair = following and self._pair(atom, following, free)
                found.append(pair or (self._limited(atom, free) if limited else atom))
                free = found[-1].end
        return found

    def _before(self, field: str, atom: Atom, free: int) -> tuple[re.Match[str], int, RangeRules] | None:
        """Return the words right before a time, where they begin, and the rules that know them."""
        last = self._text[max(free, atom.start - 1) : atom.start]
        if not last or (last.isascii() and last not in " \t-"):
            return None
        lowest = max(free, atom.start - _LONGEST_BEFORE)
        for rule in self._rules:
            if found := blank_pattern(getattr(rule, field)).search(self._text[lowest : atom.start]):
                return found, lowest + found.start(), rule
        return None

    def _after(self, field: str, end: int) -> tuple[re.Match[str], RangeRules] | None:
        for rule in self._rules:
            if found := blank_pattern(getattr(rule, field)).match(self._text, end):
                return found, rule
        return None

    def _narrowed(self, atom: Atom, free: int) -> Atom:
        """Early May, the end of last year."""
        if atom.part.grain not in {"month", "year"} or not (found := self._before("narrowing", atom, free)):
            return atom
        match, start, rule = found
        word = (match["third"] or match["edge"]).lower()
        word = rule.words.get(word, word)
        if match["third"]:
            part = third(atom.part, ["early", "mid", "late"].index(word))
        elif word == "middle" or atom.part.grain == "month":
            part = third(atom.part, {"middle": 1, "end": 2}.get(word, 0))
        else:
            part = edge(atom.part, first=word != "end")
        return Atom(part, start, atom.end)

    def _anchored(self, atom: Atom, free: int) -> Atom:
        """The week before A, two days after A, A的前一天."""
        if found := self._before("anchor_before", atom, free):
            match, start, rule = found
            end = atom.end
        elif after := self._after("anchor_after", atom.end):
            match, rule = after
            start, end = atom.start, match.end()
        else:
            return atom
        try:
            part = _near(match, rule, Calendar(atom.part.start), atom.part.grain)
        except (ValueError, OverflowError):
            return atom
        return Atom(part._replace(relative=atom.part.relative), start, end) if part and in_bounds(part) else atom

    def _pair(self, first: Atom, second: Atom, free: int) -> Atom | None:
        """From A to B, if that is what is written."""
        between_words = self._text[first.end : second.start]
        dash = blank_pattern(_DASH).fullmatch(between_words)
        joint = next(filter(None, (blank_pattern(rule.joint).fullmatch(between_words) for rule in self._rules)), None)
        if dash is None and joint is None:
            return None
        opening = self._before("opening", first, free)
        closing = self._after("between_after", second.end)
        if joint and joint["and"] and not (closing or (opening and opening[0]["between"])):
            return None
        # "I met her yesterday - today I am tired": a dash between words is no range.
        if dash and (first.part.relative or second.part.relative) and dash[0].strip() != dash[0]:
            return None
        try:
            start, end = _fitted(first.part, second.part)
        except ValueError:
            return None
        if end.end <= start.start or end.start < start.start:
            return None
        relative = start.relative or end.relative
        last = closing[0].end() if closing else second.end
        return Atom(Part(start.start, end.end, "range", relative), opening[1] if opening else first.start, last)

    def _limited(self, atom: Atom, free: int) -> Atom:
        """Since A, before A, after A; a side that is left open ends now or at the bounds."""
        part, start, end = atom
        if found := self._before("before", atom, free):
            match, start, rule = found
            word = match["word"].lower().split()[0]
            word = rule.words.get(word, word)
        elif after := self._after("to_now", end):
            word, end = "since", after[0].end()
            opening = self._before("opening", atom, free)
            start = opening[1] if opening else start
        elif (opening := self._before("opening", atom, free)) and (after := self._after("onwards", end)):
            word, start, end = "since", opening[1], after[0].end()
        elif after := self._after("after", end):
            match, rule = after
            word, end = rule.words.get(match["word"], match["word"]), match.end()
        else:
            return atom
        limited = _limit(word, part, self._calendar)
        return Atom(limited, start, end) if limited.start < limited.end else atom


def _near(match: re.Match[str], rule: RangeRules, calendar: Calendar, grain: Grain) -> Part | None:
    """Return the time before or after another one, as seen from there."""
    direction = match["dir"].lower()
    sign = {"before": -1, "of": 0, "after": 1}[rule.words.get(direction, direction)]
    if match["n"]:
        return calendar.away(rule.amount(match), sign) if sign and grain == "day" else None
    match match["one"].lower():
        case "day" | "week" | "month" | "year" as unit:
            return calendar.unit(unit, sign) if grain in {"day", unit} and (sign or unit == "week") else None
        case "weekend" if grain == "day":
            on_weekend = calendar.now.weekday() >= 5
            return calendar.weekend(sign if on_weekend else min(sign, 0))
        case weekday if sign and grain == "day":
            return calendar.weekday(rule.weekday(weekday), "next" if sign > 0 else "last")
    return None


def _fitted(first: Part, second: Part) -> tuple[Part, Part]:
    """Return both ends; a year or week that was said once or not at all makes one follow the other."""
    if second.cycle:
        return first, _nearest(second, first, 1)
    return (_nearest(first, second, -1) if first.cycle else first), second


def _nearest(part: Part, other: Part, sign: int) -> Part:
    """Return the first recurrence not before another time, or, with -1, the last not after it."""
    part = part._replace(relative=other.relative)
    if part.cycle == "week":
        return moved(part, weeks=-sign * (sign * (part.start - other.start) // WEEK))
    found = moved(part, years=other.start.year - part.start.year)
    return moved(found, years=sign) if sign * (found.start - other.start) < NOTHING else found


def _limit(word: str, part: Part, calendar: Calendar) -> Part:
    """Return the time on one side of another; it may be empty."""
    highest = calendar.date(LAST_YEAR + 1, 1, 1)
    # A deadline begins now; what was before a time may have been at any time.
    ahead = calendar.future and part.start > calendar.now
    lowest = calendar.now if ahead else calendar.date(FIRST_YEAR, 1, 1)
    match word:
        case "since" if ahead:
            return Part(part.start, highest, "range", part.relative)
        case "since":
            return Part(part.start, calendar.now, "range")
        case "after":
            return Part(part.end, calendar.now if part.end < calendar.now else highest, "range")
        case "before":
            return Part(lowest, part.start, "range", part.relative)
        case _:
            return Part(lowest, part.end, "range", part.relative)
