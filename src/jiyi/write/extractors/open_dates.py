"""Dates that leave something out which everybody knows: "the 26th", 26号, 月底, 五一, "the first"."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from ...languages.dates import TimeSpan
from ...languages.times.calendar import Grain
from .lexicon import named

_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九十")}
_NUMBER = "[一二三]?十[一二三四五六七八九]?|[一二三四五六七八九]"
_DAY = re.compile(
    r"(?:(?<=\bon )|(?<=\bby )|(?<=day ))?\bthe (?P<th>\d{1,2})(?:st|nd|rd|th)\b"
    r"(?! (?:of|floor|time|century|street|grade|birthday|place|edition|anniversary|(?-i:[A-Z])))"
    r"|\b(?:on|by|before|until|from) the (?P<word>first|second|third)\b"
    r"(?! \w*(?:day|time|floor|of|row|page|try|attempt|round|place|street|avenue|year|week|half|shelf|date)\b)"
    rf"|(?<![\d月到至\-~第])(?P<figure>\d{{1,2}})号(?!楼|线|店|院|门|房|机|码|桌|馆)(?:周[一二三四五六日天])?"
    rf"|(?<![月到至第十])(?P<han>{_NUMBER})号(?!楼|线|店|院|门|房|机|码|桌|馆)",
    re.IGNORECASE,
)
_MONTH_DAY = re.compile(rf"(?P<month>{_NUMBER}|1[0-2]|[1-9])月(?P<day>{_NUMBER}|[12]\d|3[01]|[1-9])(?![\d号日月个十])")
_MONTH_END = re.compile(
    r"\b(?:the )?end of (?:the|this) month\b|(?<!\d)(?<![一二三四五六七八九十每])(?:这个|本)?月底", re.IGNORECASE
)
_YEAR_END = re.compile(r"\b(?:the )?end of (?:the|this) year\b|(?<![\d去明前后])(?:今)?年底", re.IGNORECASE)
_FEAST = re.compile(
    "(?<![二三四五六七八九十])(?:五一|国庆|十一(?=放假|假期|长假|黄金周|回|去)|元旦|圣诞|春节|过年|端午|中秋|除夕)"
    "(?!节?(?:那年|以来))"
)
# "from April", 从八月起: the nearest one.
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_FROM = re.compile(
    rf"\b(?:from|until|till|starting)(?: in)? (?P<name>(?-i:[JFMASOND])(?:{'|'.join(m[1:] for m in _MONTHS)}))\b(?! \d)"
    rf"|从?(?P<month>{_NUMBER}|1[0-2]|[1-9])月份?(?:起|开始)",
    re.IGNORECASE,
)
_WORDS = {"first": 1, "second": 2, "third": 3}
_FIXED = {"五一": (5, 1), "国庆": (10, 1), "十一": (10, 1), "元旦": (1, 1), "圣诞": (12, 25)}


def open_dates(text: str, now: datetime, *, ahead: bool, named_last: datetime | None = None) -> Iterator[TimeSpan]:
    """The next one, or the last one where the clause speaks of the past; after a date ahead, the next from there."""
    for found in _MONTH_DAY.finditer(text):
        yield from _span(found, now, _of_year(_number(found["month"]), _number(found["day"]), now, ahead))
    for found in _DAY.finditer(text):
        near = named_last if ahead and named_last and named_last > now else now
        yield from _span(found, now, _of_month(_day(found), near, ahead))
    for found in _MONTH_END.finditer(text):
        yield from _span(found, now, _of_month(monthrange(now.year, now.month)[1], now, ahead=True))
    for found in _YEAR_END.finditer(text):
        yield from _span(found, now, date(now.year if ahead or now.month == 12 else now.year - 1, 12, 31))
    for found in _FROM.finditer(text):
        month = _MONTHS.index(found["name"].lower()) + 1 if found["name"] else _number(found["month"])
        yield from _span(found, now, _nearest(month, now), "month")
    for found in _FEAST.finditer(text):
        yield from _span(found, now, _feast(found[0], now, ahead))


def _span(found: re.Match[str], now: datetime, day: date | None, grain: Grain = "day") -> Iterator[TimeSpan]:
    if day is not None:
        start = datetime(day.year, day.month, day.day, tzinfo=now.tzinfo)
        yield TimeSpan(start, start + timedelta(days=1), found[0], found.span(), grain, True)


def _day(found: re.Match[str]) -> int:
    if found["word"]:
        return _WORDS[found["word"].lower()]
    return _number(found["th"] or found["figure"] or found["han"])


def _number(written: str) -> int:
    """
    >>> _number("26"), _number("二十六"), _number("十"), _number("十八")
    (26, 26, 10, 18)
    """
    if written.isdigit():
        return int(written)
    tens, _, ones = written.rpartition("十") if "十" in written else ("", "", written)
    return (10 * (_DIGITS[tens] if tens else 1) if "十" in written else 0) + (_DIGITS[ones] if ones else 0)


def _of_month(day: int, now: datetime, ahead: bool) -> date | None:
    month = now.date().replace(day=1)
    if ahead and day < now.day:
        month = (month + timedelta(days=32)).replace(day=1)
    elif not ahead and day > now.day:
        month = (month - timedelta(days=1)).replace(day=1)
    return month.replace(day=day) if 1 <= day <= monthrange(month.year, month.month)[1] else None


def _of_year(month: int, day: int, now: datetime, ahead: bool) -> date | None:
    if not (1 <= month <= 12 and 1 <= day <= monthrange(2024, month)[1]):
        return None
    this = date(now.year, month, min(day, monthrange(now.year, month)[1]))
    if ahead and this < now.date():
        return this.replace(year=now.year + 1)
    return this.replace(year=now.year - 1) if not ahead and this > now.date() else this


def _nearest(month: int, now: datetime) -> date:
    years = (now.year - 1, now.year, now.year + 1)
    return min((date(year, month, 1) for year in years), key=lambda day: abs((day - now.date()).days + 15))


def _feast(name: str, now: datetime, ahead: bool) -> date | None:
    if name in _FIXED:
        return _of_year(*_FIXED[name], now, ahead)
    feast = _SAME.get(name, name)
    known = sorted(date.fromisoformat(day) for day, of in named("zh", "feasts").items() if of == feast)
    if name == "除夕":
        known = [day - timedelta(days=1) for day in known]
    fitting = [day for day in known if (day >= now.date() if ahead else day <= now.date())]
    near = (fitting[0] if ahead else fitting[-1]) if fitting else None
    return near if near and abs((near - now.date()).days) < 400 else None


_SAME = {"过年": "春节", "除夕": "春节"}
