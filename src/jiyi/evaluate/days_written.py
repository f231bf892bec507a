"""Absolute dates named in a text. Independent of `jiyi.languages.times`, which is part of what is measured."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
CHINESE_MONTHS = ("一", "二", "三", "四", "五", "六", "七", "八", "九", "十", "十一", "十二")
_MONTH = r"(?P<month>" + "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in MONTHS) + r")\.?"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})-(?P<number>\d{1,2})(?:-(?P<day>\d{1,2}))?(?!\d)",
        r"(?P<year>\d{4})/(?P<number>\d{1,2})(?:/(?P<day>\d{1,2}))?(?!\d)",
        r"(?P<year>\d{4})\s*年(?:\s*(?P<number>\d{1,2})\s*月(?:\s*(?P<day>\d{1,2})\s*[日号])?)?",
        rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})\b",
        rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH},?\s+(?P<year>\d{{4}})\b",
        rf"\b{_MONTH},?\s+(?:of\s+)?(?P<year>\d{{4}})\b",
        rf"\b{_MONTH}(?:\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?)?\s*\((?P<year>\d{{4}})\)",
        r"(?P<number>\d{1,2})\s*月(?:\s*(?P<day>\d{1,2})\s*[日号])?[^（(，。；]{0,12}[（(](?P<year>\d{4})\s*年?[)）]",
        r"(?P<chinese>十[一二]|[一二三四五六七八九十])月[^（(，。；]{0,12}[（(](?P<year>\d{4})\s*年?[)）]",
        r"(?<![\d.,:/-])(?P<year>(?:19|20)\d\d)(?![\d.,:/年-]\d|\d|年)",
    )
)


def days_written(text: str) -> Iterator[tuple[date, date]]:
    """The first and the last day of each date; a day, a month or a year.

    >>> [str(first) for first, _ in days_written("last week (May 7, 2023), 上周（2023年5月7日）")]
    ['2023-05-07', '2023-05-07']
    """
    for form in _FORMS:
        for found in form.finditer(text):
            parts = found.groupdict()
            month = int(parts["number"]) if parts.get("number") else _number(parts.get("month") or parts.get("chinese"))
            day = int(parts["day"]) if parts.get("day") else None
            span = _span(int(parts["year"]), month, day)
            if span is not None:
                yield span


def _number(month: str | None) -> int | None:
    if month is None:
        return None
    if month in CHINESE_MONTHS:
        return CHINESE_MONTHS.index(month) + 1
    return next(at for at, name in enumerate(MONTHS, 1) if name.startswith(month.lower()))


def _span(year: int, month: int | None, day: int | None) -> tuple[date, date] | None:
    try:
        if month is None:
            return date(year, 1, 1), date(year, 12, 31)
        if day is None:
            return date(year, month, 1), date(year, month, monthrange(year, month)[1])
        return date(year, month, day), date(year, month, day)
    except ValueError:  # the 31st of June
        return None
