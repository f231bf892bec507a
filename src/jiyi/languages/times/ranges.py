"""Times made of times: from A to B, since A, before A, early A, the week before A."""

from __future__ import annotations

import re
from functools import cache
from itertools import zip_longest

from ..en.dates import WEEKDAY_NAMES, weekday_number
from ..en.relative_dates import AMOUNT as ENGLISH_AMOUNT
from ..en.relative_dates import amount as english_amount
from ..zh.relative_dates import AMOUNT as CHINESE_AMOUNT
from ..zh.relative_dates import amount as chinese_amount
from .calendar import FIRST_YEAR, LAST_YEAR, NOTHING, WEEK, Calendar, Grain, Part, edge, in_bounds, moved, third
from .scan import Atom

# How far back the words before a time are looked at.
_LONGEST_BEFORE = 40

# The last character of everything that can stand there.
_LAST_BEFORE = frozenset(" \t-从自")

_WORD_START = "(?<![0-9A-Za-z_])"
_NARROWING = (
    rf"{_WORD_START}(?:(?P<third>early|mid|late)(?: (?:in )?|-)"
    r"|(?:the )?(?:very )?(?P<edge>beginning|start|middle|end) of )\Z"
)
_ANCHOR_BEFORE = (
    rf"{_WORD_START}(?:(?:the|last) (?P<one>day|week|month|year|weekend|{WEEKDAY_NAMES})|"
    + ENGLISH_AMOUNT
    + r") (?P<dir>before|after|of) \Z"
)
_ANCHOR_AFTER = "的?(?P<dir>[前后])" + CHINESE_AMOUNT.replace(" ", "")

_OPENING = rf"(?:{_WORD_START}(?P<en>from|between) (?:the )?|(?P<zh>自从|从|自) ?)\Z"
_JOINT = (
    r" (?:to|until|till|through|up to) (?:the )?| ?(?:到|至|直到) ?|(?P<and> and (?:the )?| ?和 ?)"
    r"|(?P<dash> ?[-–—~]{1,2} ?)"
)
_TO_NOW = (
    r"(?: (?:to|until|till|through|up to) (?:now|the present|date)|以来|至今|迄今|(?:一直)?到(?:现在|如今|目前))"
    r"(?![A-Za-z])"
)
_ONWARDS = r"(?:开始|起|以来)(?![点床来])"
_LIMIT_BEFORE = rf"{_WORD_START}(?P<word>since|after|before|prior to|until|till|up to) (?:the )?\Z"
# 去年前三个月 is not before last year, 昨天后来 not after yesterday.
_LIMIT_AFTER = (
    "[以之][前后]|前(?![端台面后半任夫妻男女锋卫提途言景几些0-9一二两三四五六七八九十])"
    "|后(?![端台面半来悔果勤卫续天几0-9一二两三四五六七八九十])"
)


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    # A space stands for a blank, never for the end of a line: lists have dates and dashes below each other.
    return re.compile(pattern.replace(" ", r"[ \t]"), re.IGNORECASE | re.ASCII)


def joined(text: str, atoms: list[Atom], calendar: Calendar) -> list[Atom]:
    """The times with those put together that belong together."""
    single: list[Atom] = []
    free = 0
    for atom in atoms:
        if atom.start >= free:
            single.append(_anchored(text, _narrowed(text, atom, free), free))
            free = single[-1].end
    found: list[Atom] = []
    free = 0
    for atom, following in zip_longest(single, single[1:]):
        # What is written before `free` belongs to the time before, which may have taken in this one.
        if atom.start >= free:
            pair = following and _pair(text, atom, following, free)
            found.append(pair or _limited(text, atom, free, calendar))
            free = found[-1].end
    return found


def _before(pattern: str, text: str, atom: Atom, free: int) -> tuple[re.Match[str], int] | None:
    """What stands right before a time, and where it begins."""
    if text[max(free, atom.start - 1) : atom.start] not in _LAST_BEFORE:
        return None
    lowest = max(free, atom.start - _LONGEST_BEFORE)
    found = _pattern(pattern).search(text[lowest : atom.start])
    return (found, lowest + found.start()) if found else None


def _narrowed(text: str, atom: Atom, free: int) -> Atom:
    """Early May, the end of last year."""
    if atom.part.grain not in {"month", "year"} or not (found := _before(_NARROWING, text, atom, free)):
        return atom
    match, start = found
    if match["third"]:
        part = third(atom.part, ["early", "mid", "late"].index(match["third"].lower()))
    elif match["edge"].lower() == "middle" or atom.part.grain == "month":
        part = third(atom.part, {"middle": 1, "end": 2}.get(match["edge"].lower(), 0))
    else:
        part = edge(atom.part, first=match["edge"].lower() != "end")
    return Atom(part, start, atom.end)


def _anchored(text: str, atom: Atom, free: int) -> Atom:
    """The week before A, two days after A, A的前一天."""
    if found := _before(_ANCHOR_BEFORE, text, atom, free):
        match, start = found
        end = atom.end
    elif after := _pattern(_ANCHOR_AFTER).match(text, atom.end):
        match, start, end = after, atom.start, after.end()
    else:
        return atom
    try:
        part = _near(match, Calendar(atom.part.start), atom.part.grain)
    except (ValueError, OverflowError):
        return atom
    return Atom(part._replace(relative=atom.part.relative), start, end) if part and in_bounds(part) else atom


def _near(match: re.Match[str], calendar: Calendar, grain: Grain) -> Part | None:
    """What lies before or after a time, seen from there."""
    sign = {"before": -1, "of": 0, "after": 1, "前": -1, "后": 1}[match["dir"].lower()]
    if match["n"]:
        amount = chinese_amount(match) if match["dir"] in "前后" else english_amount(match)
        return calendar.away(amount, sign) if sign and grain == "day" else None
    match match["one"].lower():
        case "day" | "week" | "month" | "year" as unit:
            return calendar.unit(unit, sign) if grain in {"day", unit} and (sign or unit == "week") else None
        case "weekend" if grain == "day":
            on_weekend = calendar.now.weekday() >= 5
            return calendar.weekend(sign if on_weekend else min(sign, 0))
        case weekday if sign and grain == "day":
            return calendar.weekday(weekday_number(weekday), "next" if sign > 0 else "last")
    return None


def _pair(text: str, first: Atom, second: Atom, free: int) -> Atom | None:
    """From A to B, if that is what is written."""
    joint = _pattern(_JOINT).fullmatch(text, first.end, second.start)
    if joint is None:
        return None
    opening = _before(_OPENING, text, first, free)
    between = text.startswith("之间", second.end)
    if joint["and"] and not (between or (opening and (opening[0]["en"] or "").lower() == "between")):
        return None
    # "I met her yesterday - today I am tired": a dash between words is no range.
    if joint["dash"] and (first.part.relative or second.part.relative) and joint["dash"].strip() != joint["dash"]:
        return None
    try:
        start, end = _fitted(first.part, second.part)
    except ValueError:
        return None
    if end.end <= start.start or end.start < start.start:
        return None
    relative = start.relative or end.relative
    place = opening[1] if opening else first.start
    return Atom(Part(start.start, end.end, "range", relative), place, second.end + 2 * between)


def _fitted(first: Part, second: Part) -> tuple[Part, Part]:
    """Both ends, where a year or week that was said only once, or not at all, makes one follow the other."""
    if second.cycle:
        return first, _nearest(second, first, 1)
    return (_nearest(first, second, -1) if first.cycle else first), second


def _nearest(part: Part, other: Part, sign: int) -> Part:
    """Of what comes again, the first that is not before another time, or, with -1, the last that is not after it."""
    part = part._replace(relative=other.relative)
    if part.cycle == "week":
        return moved(part, weeks=-sign * (sign * (part.start - other.start) // WEEK))
    found = moved(part, years=other.start.year - part.start.year)
    return moved(found, years=sign) if sign * (found.start - other.start) < NOTHING else found


def _limited(text: str, atom: Atom, free: int, calendar: Calendar) -> Atom:
    """Since A, before A, after A; a side that is left open ends now or at the bounds."""
    part, start, end = atom
    if found := _before(_LIMIT_BEFORE, text, atom, free):
        match, start = found
        word = match["word"].lower().split()[0]
    elif after := _pattern(_TO_NOW).match(text, end):
        word, end = "since", after.end()
        opening = _before(_OPENING, text, atom, free)
        start = opening[1] if opening else start
    elif (opening := _before(_OPENING, text, atom, free)) and (after := _pattern(_ONWARDS).match(text, end)):
        word, start, end = "since", opening[1], after.end()
    elif after := _pattern(_LIMIT_AFTER).match(text, end):
        word, end = "before" if "前" in after[0] else "after", after.end()
    else:
        return atom
    limited = _limit(word, part, calendar)
    return Atom(limited, start, end) if limited.start < limited.end else atom


def _limit(word: str, part: Part, calendar: Calendar) -> Part:
    """What lies on one side of a time; it may be nothing."""
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
        case "before" | "prior":
            return Part(lowest, part.start, "range", part.relative)
        case _:
            return Part(lowest, part.end, "range", part.relative)
