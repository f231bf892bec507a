"""Times made of times: from A to B, since A, before A, early A, the week before A."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from .calendar import FIRST_YEAR, LAST_YEAR, NOTHING, WEEK, Amount, Calendar, Grain, Part, edge, in_bounds, moved, third
from .scan import Atom

NEVER = "(?!)"


def _no_amount(_match: re.Match[str]) -> Amount:
    raise ValueError


class RangeRules(NamedTuple):
    """Words around a time that make another time of it. A space in a pattern is one blank.

    A pattern for words before a time ends with `\\Z`, one for words after it starts right behind the time.
    """

    narrowing: str = NEVER  # early, the end of: group `third` (early, mid, late) or `edge` (start, middle, end)
    anchor_before: str = NEVER  # two days before: groups of `amount`, or `one`; and `dir` (before, after, of)
    anchor_after: str = NEVER  # the same behind the time
    opening: str = NEVER  # from; between, in the group `between`
    joint: str = NEVER  # to; and, in the group `and`
    between_after: str = NEVER  # a mark behind "A and B" that makes it a range
    to_now: str = NEVER  # A until now
    onwards: str = NEVER  # from A on
    before: str = NEVER  # before A, in words before it: group `word` (since, after, before, until)
    after: str = NEVER  # the same behind the time
    words: Mapping[str, str] = MappingProxyType({})  # to the English words above
    amount: Callable[[re.Match[str]], Amount] = _no_amount
    weekday: Callable[[str], int] = len


# How far back the words before a time are looked at.
_LONGEST_BEFORE = 40
_DASH = "(?P<dash> ?[-–—~]{1,2} ?)"


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    # A space stands for a blank, never for the end of a line: lists have dates and dashes below each other.
    return re.compile(pattern.replace(" ", r"[ \t]"), re.IGNORECASE | re.ASCII)


class Ranges:
    """Joins the times of one text, with the rules of the languages it may be in."""

    def __init__(self, text: str, calendar: Calendar, rules: Sequence[RangeRules]) -> None:
        self._text = text
        self._calendar = calendar
        self._rules = rules

    def joined(self, atoms: list[Atom]) -> list[Atom]:
        """Return the times with those put together that belong together."""
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
                found.append(pair or self._limited(atom, free))
                free = found[-1].end
        return found

    def _before(self, field: str, atom: Atom, free: int) -> tuple[re.Match[str], int, RangeRules] | None:
        """Return the words right before a time, where they begin, and the rules that know them."""
        last = self._text[max(free, atom.start - 1) : atom.start]
        if not last or (last.isascii() and last not in " \t-"):
            return None
        lowest = max(free, atom.start - _LONGEST_BEFORE)
        for rule in self._rules:
            if found := _pattern(getattr(rule, field)).search(self._text[lowest : atom.start]):
                return found, lowest + found.start(), rule
        return None

    def _after(self, field: str, end: int) -> tuple[re.Match[str], RangeRules] | None:
        for rule in self._rules:
            if found := _pattern(getattr(rule, field)).match(self._text, end):
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
        dash = _pattern(_DASH).fullmatch(between_words)
        joint = next(filter(None, (_pattern(rule.joint).fullmatch(between_words) for rule in self._rules)), None)
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
