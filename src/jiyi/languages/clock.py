"""Times of day beside a day: yesterday at 7 pm, 昨天下午三点半."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from .calendar import Atom, DayPart, Part, in_day


class Clock(NamedTuple):
    """A time as it is written. `exact` is True if it is by the 24 hours; "7:30" may be morning or evening."""

    hour: int
    minute: int | None = None
    half: str | None = None  # a or p
    exact: bool = False


def read_clock(match: re.Match[str], _part: DayPart | None) -> Clock | None:
    """Read a time in digits from the groups h, min and ap."""
    said = match.groupdict()
    minute = said.get("min")
    return Clock(int(said["h"]), int(minute) if minute else None, said.get("ap"), bool(minute) and len(said["h"]) == 2)


ReadClock = Callable[[re.Match[str], DayPart | None], Clock | None]


class ClockRules(NamedTuple):
    """Words for times of day. A space in a pattern is one blank; the group `part` is a key of `parts`."""

    parts: Mapping[str, DayPart] = MappingProxyType({})
    part_after: str = "(?!)"
    part_before: str = "(?!)"
    after: tuple[tuple[str, ReadClock], ...] = ()
    before: tuple[tuple[str, ReadClock], ...] = ()


@cache
def blank_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern in which a space is one blank, not the end of a line: lists have dates below each other."""
    return re.compile(pattern.replace(" ", r"[ \t]"), re.IGNORECASE | re.ASCII)


_DIGITS_AFTER = (
    r"(?:T|,? |, ?|)(?P<h>[01]?[0-9]|2[0-3]):(?P<min>[0-5][0-9])(?::[0-5][0-9](?:\.[0-9]{1,9})?)?(?![:0-9A-Za-z_])"
)
_START = "(?<![0-9A-Za-z_.:$-])"
_LONGEST_BEFORE = 32
_NO_SEPARATORS = {ord(char): None for char in "-/."}


def refined(text: str, atom: Atom, free: int, rules: Sequence[ClockRules]) -> Atom:
    """Return the time with the time of day written beside it; text before `free` belongs to another time."""
    if atom.part.grain != "day" and not atom.part.part:
        return atom
    # After a date in digits an hour is by the 24 hours too: 2023-05-07 9:30.
    in_digits = text[atom.start : atom.end].translate(_NO_SEPARATORS).isdecimal()
    if atom.part.grain == "day":
        for rule in rules:
            if found := blank_pattern(rule.part_after).match(text, atom.end):
                atom = Atom(in_day(atom.part, rule.parts[found["part"].lower()]), atom.start, found.end())
                break
    clocks = [*(clock for rule in rules for clock in rule.after), (_DIGITS_AFTER, read_clock)]
    for pattern, read in clocks:
        if (found := blank_pattern(pattern).match(text, atom.end)) and (
            part := _at(read(found, atom.part.part), atom.part, exact=in_digits)
        ):
            return Atom(part, atom.start, found.end())
    return _refined_before(text, atom, free, rules) if atom.part.grain == "day" else atom


def _refined_before(text: str, atom: Atom, free: int, rules: Sequence[ClockRules]) -> Atom:
    lowest = max(free, atom.start - _LONGEST_BEFORE)
    before = text[lowest : atom.start]
    if not before.endswith((" ", "\t")):
        return atom
    for rule in rules:
        if found := blank_pattern(_START + rule.part_before).search(before):
            return Atom(in_day(atom.part, rule.parts[found["part"].lower()]), lowest + found.start(), atom.end)
        for pattern, read in rule.before:
            if (found := blank_pattern(_START + pattern).search(before)) and (
                part := _at(read(found, None), atom.part, exact=True)
            ):
                return Atom(part, lowest + found.start(), atom.end)
    return atom


def _at(clock: Clock | None, day: Part, *, exact: bool) -> Part | None:
    """Return that time of the day, or None if it could be in the morning or in the afternoon."""
    if clock is None:
        return None
    hour = _hour(clock.hour, clock.half, day.part, exact=exact or clock.exact)
    if hour is None:
        return None
    start = day.start.replace(hour=0) + timedelta(hours=hour)
    if clock.minute is None:
        return day._replace(start=start, end=start + timedelta(hours=1), grain="hour")
    start += timedelta(minutes=clock.minute)
    return day._replace(start=start, end=start + timedelta(minutes=1), grain="minute")


def _hour(hour: int, half: str | None, part: DayPart | None, *, exact: bool) -> int | None:
    """Return the hour since midnight."""
    if half:
        return hour % 12 + (12 if half.lower() == "p" else 0) if 1 <= hour <= 12 else None
    if hour > 12 or part is None:
        return hour if hour < 24 and (hour > 12 or exact) else None
    match part:
        case "dawn":
            return hour % 12
        case "morning":
            return hour if hour >= 5 else None
        case "noon":
            return hour if hour >= 10 else hour + 12
    # Twelve or one at night is already the next day.
    return hour % 12 + (24 if part == "night" and (hour < 5 or hour == 12) else 12)
