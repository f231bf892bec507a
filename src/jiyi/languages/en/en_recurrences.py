"""English times that come again: every Tuesday, Mondays and Thursdays, on weekdays, the 5th of every month."""

import re

from ..base import RecurrenceRule
from .dates import SHORT_WEEKDAY_NAMES, WEEKDAY_NAMES, weekday_number

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_UNITS = {"day": "DAILY", "week": "WEEKLY", "fortnight": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
_DAY_PARTS = "morning|afternoon|evening|night|lunchtime"
_COUNTS = {"other": 2, "second": 2, "2nd": 2, "two": 2, "2": 2, "third": 3, "3rd": 3, "three": 3, "3": 3}
_NTH = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_DAY = rf"(?:{WEEKDAY_NAMES}|{SHORT_WEEKDAY_NAMES})"
_JOIN = r"(?:,? (?:and|or|&) |, | ?[/&+] ?)"
_TO = r"(?: (?:to|through|till|until) | ?[-–] ?)"
_WEEKDAY = re.compile(_DAY, re.IGNORECASE)


def _days(match: re.Match[str]) -> str:
    days = {weekday_number(name) for name in _WEEKDAY.findall(match["days"])}
    return f"FREQ=WEEKLY;BYDAY={','.join(_DAYS[day] for day in sorted(days))}"


def _from_to(match: re.Match[str]) -> str:
    first, last = map(weekday_number, _WEEKDAY.findall(match["days"]))
    return f"FREQ=WEEKLY;BYDAY={','.join(_DAYS[(first + day) % 7] for day in range((last - first) % 7 + 1))}"


def _every_other(match: re.Match[str]) -> str:
    count, unit = _COUNTS[match["count"].lower()], match["unit"].lower().rstrip("s")
    if unit in _UNITS:
        return f"FREQ={_UNITS[unit]};INTERVAL={count}"
    return f"FREQ=WEEKLY;INTERVAL={count};BYDAY={_DAYS[weekday_number(unit)]}"


def _every(match: re.Match[str]) -> str:
    unit = match["unit"].lower()
    if unit.startswith("weekday"):
        return "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
    if unit.startswith("weekend"):
        return "FREQ=WEEKLY;BYDAY=SA,SU"
    return f"FREQ={_UNITS.get(unit, 'DAILY')}"


def _weekday_of_month(match: re.Match[str]) -> str:
    return f"FREQ=MONTHLY;BYDAY={_NTH[match['nth'].lower()]}{_DAYS[weekday_number(match['wd'])]}"


def _day_of_month(match: re.Match[str]) -> str:
    return f"FREQ=MONTHLY;BYMONTHDAY={match['d']}"


_EVERY = r"\b(?:every|each)(?: single)?"
_OF_MONTH = r"(?:of|in) (?:every|each|the) month\b"

RECURRENCES = (
    RecurrenceRule(
        rf"\bevery (?P<count>{'|'.join(_COUNTS)}) (?P<unit>(?:day|week|month|year)s?|{_DAY})\b", _every_other
    ),
    RecurrenceRule(rf"\bthe (?P<nth>{'|'.join(_NTH)}) (?P<wd>{_DAY}) {_OF_MONTH}", _weekday_of_month),
    RecurrenceRule(rf"\bthe (?P<d>3[01]|[12]\d|[1-9])(?:st|nd|rd|th) {_OF_MONTH}", _day_of_month),
    RecurrenceRule(rf"{_EVERY} (?P<days>{_DAY}s?(?:{_JOIN}{_DAY}s?){{0,6}})\b", _days),
    RecurrenceRule(rf"{_EVERY} (?P<unit>day|weekday|weekend|fortnight|week|month|year|{_DAY_PARTS})\b", _every),
    RecurrenceRule(rf"\b(?P<days>(?:{WEEKDAY_NAMES})s(?:{_JOIN}{_DAY}s?){{0,6}})\b", _days),
    RecurrenceRule(rf"\b(?P<days>{_DAY}(?:{_JOIN}{_DAY}){{0,5}}{_JOIN}(?:{WEEKDAY_NAMES})s)\b", _days),
    RecurrenceRule(r"\b(?:on |at )?(?P<unit>weekdays|weekends)\b", _every),
    RecurrenceRule(rf"\b(?P<days>{_DAY} (?:{_DAY_PARTS})s)\b", _days),
    RecurrenceRule(rf"\b(?P<days>{_DAY}(?:{_JOIN}{_DAY}){{1,6}})\b", _days, sure=False),
    RecurrenceRule(rf"\b(?:from )?(?P<days>{_DAY}{_TO}{_DAY})\b", _from_to, sure=False),
)
