"""Times that come again: every Tuesday, Mondays and Thursdays, 每周三, 工作日."""

import re
from functools import cache
from typing import NamedTuple

from .base import RecurrenceRule
from .registry import LANGUAGES

WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Recurrence(NamedTuple):
    """A recurrence as an RRULE of RFC 5545, with the words for it and their place. If it is not `sure`, as for "Monday
    and Thursday", the words may also mean two days."""

    rule: str
    text: str
    at: tuple[int, int]
    sure: bool


def recurrences(text: str) -> list[Recurrence]:
    """Return the recurrences that a text names, in order.

    >>> [(found.text, found.rule) for found in recurrences("Trash goes out every Tuesday")]
    [('every Tuesday', 'FREQ=WEEKLY;BYDAY=TU')]
    """
    found = [
        Recurrence(rule.resolve(match), match[0], match.span(), rule.sure)
        for pattern, rule in _rules()
        for match in pattern.finditer(text)
    ]
    found.sort(key=lambda one: (one.at[0], -one.at[1], not one.sure))
    kept: list[Recurrence] = []
    for one in found:
        if not kept or one.at[0] >= kept[-1].at[1]:
            kept.append(one)
    return kept


@cache
def _rules() -> list[tuple[re.Pattern[str], RecurrenceRule]]:
    rules = [rule for language in LANGUAGES for rule in language.recurrences]
    return [(re.compile(rule.pattern, re.IGNORECASE), rule) for rule in rules]


def weekly(days: set[int]) -> str:
    """Return the rule for days of the week, 0 for Monday."""
    return f"FREQ=WEEKLY;BYDAY={','.join(WEEKDAYS[day] for day in sorted(days))}"


def yearly(month: int, day: int | None) -> str:
    """Return the rule for a day of the year, or for a month."""
    return f"FREQ=YEARLY;BYMONTH={month}" + ("" if day is None else f";BYMONTHDAY={day}")
