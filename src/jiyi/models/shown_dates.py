"""Texts with the dates that they mean in brackets before them: "(2026-11-20) I fly on Friday". The dates are data; the
text is shown as it was said."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pydantic import JsonValue

WHEN = "when"  # key in the data of a memory: the times that its text names
MAX_SHOWN = 3  # times of one text
WITH_DATES = "dated"  # the same key of earlier versions: the text with dates written into it
_A_DAY, _A_MONTH, _A_YEAR = timedelta(days=1), timedelta(days=31), timedelta(days=366)  # longer ones are not shown
_YEAR = re.compile(r"(?:19|20)\d\d")


def with_dates(text: str, data: Mapping[str, object], *, named: bool = False) -> str:
    """Return a text with the dates of its times before it; with `named`, each beside the words that it is for.

    >>> friday = {"text": "Friday", "start": "2026-11-20T00:00Z", "end": "2026-11-21T00:00Z", "precision": "day"}
    >>> with_dates("I fly on Friday", {"when": [friday]})
    '(2026-11-20) I fly on Friday'
    >>> with_dates("I fly on Friday", {"when": [friday]}, named=True)
    '(Friday = 2026-11-20) I fly on Friday'
    """
    earlier = data.get(WITH_DATES)
    if isinstance(earlier, str) and not data.get(WHEN):
        return earlier
    found = shown_dates(data)
    if not found:
        return text
    if len(found) == 1 and not named:
        return f"({found[0][1]}) {text}"
    return f"({', '.join(f'{words} = {date}' for words, date in found)}) {text}"


def shown_dates(data: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return the words for each time of a memory and its date, without times that the words say in full."""
    shown: dict[str, str] = {}
    times = data.get(WHEN)
    for time in times if isinstance(times, Sequence) else ():
        words = time.get("text") if isinstance(time, Mapping) else None
        if isinstance(words, str) and not _YEAR.search(words) and (date := date_label(time)):
            shown.setdefault(words, date)
    return list(shown.items())[:MAX_SHOWN]


def kept_times(text: str, data: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the data of a memory for another text of it: without the times that this does not name."""
    kept = {name: value for name, value in data.items() if name not in (WHEN, WITH_DATES)}
    times = data.get(WHEN)
    named: list[JsonValue] = [
        time
        for time in (times if isinstance(times, list) else ())
        if isinstance(time, dict) and isinstance(words := time.get("text"), str) and words in text
    ]
    return {**kept, WHEN: named} if named else kept


def has_dates(data: Mapping[str, object]) -> bool:
    """Return True if a memory names a time that is known."""
    times = data.get(WHEN)
    return isinstance(times, Sequence) and any(isinstance(time, Mapping) and time.get("start") for time in times)


def date_label(time: Mapping[str, object]) -> str:
    """Return a time as a date, as exact as it is: a day, a month, a year, or from a day to another one; "" without."""
    try:
        start, end = datetime.fromisoformat(str(time["start"])), datetime.fromisoformat(str(time["end"]))
        length = end - start
    except (KeyError, ValueError, TypeError):
        return ""
    last = end - timedelta(microseconds=1)
    if length < timedelta(hours=2) and time.get("precision") in ("minute", "hour"):
        return f"{start:%Y-%m-%d %H:%M}"
    if length < _A_DAY:
        return f"{start:%Y-%m-%d}"  # a night, too, is shown as the day on which it begins
    whole_months = start.day == 1 and (last + _A_DAY).day == 1
    whole_years = whole_months and start.month == 1 and last.month == 12
    if not whole_years and length > (_A_YEAR if whole_months else _A_MONTH):
        return ""
    form = "%Y" if whole_years else "%Y-%m" if whole_months else "%Y-%m-%d"
    first, final = start.strftime(form), last.strftime(form)
    return first if first == final else f"{first} to {final}"
