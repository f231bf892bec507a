"""Dates in digits, which all languages write alike."""

import re
from datetime import UTC, datetime, timedelta

from .base import Family, Rule
from .calendar import Calendar, Part

YEAR = "(?:19[0-9]{2}|20[0-9]{2}|2100)"

# Not inside a path, a version, a telephone number or an identifier.
BEFORE = r"(?<![0-9A-Za-z_À-ɏ@#$€£¥/\\.-])"
AFTER = r"(?!(?!T[0-9]{2}:)[0-9A-Za-z_])(?![/.\\-][0-9A-Za-z])"

_YMD = rf"(?P<y>{YEAR})(?P<sep>[-/])(?P<m>[0-9]{{1,2}})(?P=sep)(?P<d>[0-9]{{1,2}})"
_STAMP = (
    rf"(?P<y>{YEAR})-(?P<m>[0-9]{{2}})-(?P<d>[0-9]{{2}})(?:T|\s)(?P<h>[0-9]{{2}}):(?P<min>[0-9]{{2}})"
    r"(?::(?P<s>[0-9]{2})(?:[.,][0-9]{1,9})?)?\s?(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})"
)


def _year_first(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.day(int(match["y"]), int(match["m"]), int(match["d"]))


def _year_last(match: re.Match[str], calendar: Calendar) -> Part:
    """Read the American order, unless that is impossible."""
    year, first, second = int(match["y"]), int(match["a"]), int(match["b"])
    return calendar.day(year, second, first) if first > 12 else calendar.day(year, first, second)


def _without_year(match: re.Match[str], calendar: Calendar) -> Part:
    month, day = int(match["m"]), int(match["d"])
    return calendar.yearly(lambda year: calendar.day(year, month, day), "")


def _day_first(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.day(int(match["y"]), int(match["b"]), int(match["a"]))


def _month(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.months(int(match["y"]), int(match["m"]), 1, "month")


def _stamp(match: re.Match[str], calendar: Calendar) -> Part:
    """Convert a time with its own zone to the zone of the calendar."""
    year, month, day, hour, minute = (int(match[group]) for group in ("y", "m", "d", "h", "min"))
    zone = match["zone"].upper().replace(":", "")
    ahead = timedelta()
    if zone[0] in "+-":
        ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:])) * (-1 if zone[0] == "-" else 1)
    here = (datetime(year, month, day, hour, minute, tzinfo=UTC) - ahead).astimezone(calendar.now.tzinfo)
    return Part(here, (here + timedelta(minutes=1)).replace(fold=here.fold), "minute", relative=False)


_RULES: tuple[Rule, ...] = (
    (_STAMP, _stamp),
    (_YMD, _year_first),
    # 2023.5.7 is more often a version.
    (rf"(?P<y>{YEAR})\.(?P<m>[0-9]{{2}})\.(?P<d>[0-9]{{2}})", _year_first),
    (rf"(?P<a>[0-9]{{1,2}})(?P<sep>[-/])(?P<b>[0-9]{{1,2}})(?P=sep)(?P<y>{YEAR})", _year_last),
    (rf"(?P<a>[0-9]{{2}})\.(?P<b>[0-9]{{2}})\.(?P<y>{YEAR})", _day_first),
    # Without such a word it may be a fraction or a score.
    (
        r"(?:on|by|until|due|(?:moved|pushed|postponed|changed) to) (?P<t>(?P<m>1[0-2]|0?[1-9])/(?P<d>[0-3]?[0-9]))",
        _without_year,
    ),
    # Without such a word it may be 2010 to 2012, or a telephone number.
    (rf"(?:in|since|during|of|until|在|从|到) (?P<t>(?P<y>{YEAR})-(?P<m>0[1-9]|1[0-2]))", _month),
)

FAMILIES = (Family("[0-9][-/.][0-9]", _RULES),)
