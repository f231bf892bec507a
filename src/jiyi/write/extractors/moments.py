"""Makes relative times absolute: "last week" becomes "last week (May 7, 2023)", 上周 becomes 上周（2023年5月7日）."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from ...text.times import TimeSpan, find_times

# Without one of these a text speaks of no time, and need not be searched.
_CUE = re.compile(
    r"\d|tomorrow|day|week|month|year|night|morning|evening|noon|tonight|ago|last|next|since|until|january|february|march|april|may\b"
    r"|june|july|august|september|october|november|december|\bjan\b|\bfeb\b|\bmar\b|\bapr\b|\bjun\b|\bjul\b|\baug\b|\bsept?\b"
    r"|\boct\b|\bnov\b|\bdec\b|spring|summer|autumn|winter|christmas|easter|just now|hour|minute|the other"
    r"|[年月日号天周晚早前后]|星期|礼拜|小时|分钟|季|节|元旦|国庆",
    re.IGNORECASE,
)
_SAYS_PAST = re.compile(
    r"last|ago|past|yesterday|previous|since|this year|(?<![早晚])上(?!午|班|学)|前|昨|[去今]年|过去|以来|起$",
    re.IGNORECASE,
)
# "every Tuesday and Thursday", 每周三和周五: a habit, not a day.
_SAYS_AGAIN = re.compile(r"(?:\b(?:every|each)\b[\w ,]{0,20}|每(?:个|周|星期|[^，。]{1,6}[和、]))\s*$", re.IGNORECASE)
_SAYS_DAY = re.compile(
    r"jan|feb|mar(?:ch)?\b|apr|may\b|june?\b|july?\b|aug|sept?|oct|nov|dec|\d[/-]\d|[\d一二三四五六七八九十]月",
    re.IGNORECASE,
)
# What comes again every year has no year of its own.
_YEARLY = re.compile(r"birthday|born on|anniversary|every year|each year|生日|纪念日|每年|出生", re.IGNORECASE)
# "before August", 周五之前: the end of the stretch is what counts.
_LIMIT = re.compile(r"^(?:before|by|until|till)\b|前$", re.IGNORECASE)
_WEEKDAYS = re.compile(r"(?<![上下这本])周[一二三四五六日](?:[和、跟]周?[一二三四五六日])+")
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def times_in(text: str, now: datetime, *, ahead: bool) -> tuple[TimeSpan, ...]:
    """The times of a clause. `ahead` says that it speaks of the future: then "Friday" is the next one, not the last."""
    if not _CUE.search(text) or _YEARLY.search(text):
        return ()
    found = find_times(text, now)
    if not found or _DAY_AND_WEEKDAY.search(text):
        found = _day_of_month(text, now) or found
    if _WEEKDAYS.search(text):
        return ()
    found = [span for span in found if not _SAYS_AGAIN.search(text[max(0, span.at[0] - 24) : span.at[0]])]
    return tuple(_ahead(span, now) for span in found) if ahead else tuple(found)


_DAY = re.compile(
    r"(?<!of )(?<!\w )\bthe (\d{1,2})(?:st|nd|rd|th)\b(?! (?:of|floor|time|century|street|grade|birthday))"
    r"|\b(?:on|before|by|until|till|from|mon|tues|wednes|thurs|fri|satur|sun)(?:day)?,? the (\d{1,2})(?:st|nd|rd|th)\b"
    r"|(?<![\d月到至\-~])(\d{1,2})号(?!楼|线|店|院|门|房|机|码)(?:周[一二三四五六日天])?"
)


_DAY_AND_WEEKDAY = re.compile(r"day,? the \d|\d号周|周[一二三四五六日]，?\d{1,2}号", re.IGNORECASE)


def _day_of_month(text: str, now: datetime) -> list[TimeSpan]:
    """ "the 26th", 26号: the next one."""
    found = _DAY.search(text)
    if not found:
        return []
    day = int(found[1] or found[2] or found[3])
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if day < now.day:
        month = (month + timedelta(days=32)).replace(day=1)
    try:
        start = month.replace(day=day)
    except ValueError:
        return []
    return [TimeSpan(start, start + timedelta(days=1), found[0], found.span(), "day", True)]


def _ahead(span: TimeSpan, now: datetime) -> TimeSpan:
    """The next one of what comes again, where the words leave it open."""
    limit = span.grain == "range" and _LIMIT.search(span.text) is not None
    if span.end > now or not (span.relative or limit) or (_SAYS_PAST.search(span.text) and not limit):
        return span
    if re.search(r"\d{4}", span.text):
        return span
    if re.search(r"day\b|weekend|[周期拜][一二三四五六日天末]", span.text, re.IGNORECASE) and not re.search(
        r"\d", span.text
    ):
        return replace(span, start=span.start + timedelta(7), end=span.end + timedelta(7))
    try:
        return replace(span, start=_a_year_on(span.start), end=_a_year_on(span.end))
    except ValueError:  # the 29th of February
        return span


def _a_year_on(moment: datetime) -> datetime:
    return moment.replace(year=moment.year + 1)


def absolute(text: str, spans: Iterable[TimeSpan], now: datetime, language: str) -> str:
    """The text with the date behind each time that would mean something else on another day."""
    for span in sorted(spans, key=lambda span: -span.at[0]):
        written = _date(span, now, language)
        start, end = span.at
        if not written or text[start:end] != span.text:
            continue
        text = text[:end] + (f"（{written}）" if language == "zh" else f" ({written})") + text[end:]
    return text


def _date(span: TimeSpan, now: datetime, language: str) -> str | None:
    if not span.relative or ((span.end - span.start).days > 400 and not _LIMIT.search(span.text)):
        return None
    at = moment(span, now)
    if span.text == "今年":
        return None
    if _SAYS_DAY.search(span.text):
        # "May 3" lacks only its year.
        return f"{at.year}年" if language == "zh" else f"{at.year}"
    if span.grain == "year":
        return f"{at.year}年" if language == "zh" else f"{at.year}"
    if span.grain in ("month", "season", "quarter"):
        return f"{at.year}年{at.month}月" if language == "zh" else f"{_MONTHS[at.month - 1]} {at.year}"
    return f"{at.year}年{at.month}月{at.day}日" if language == "zh" else f"{_MONTHS[at.month - 1]} {at.day}, {at.year}"


def moment(span: TimeSpan, now: datetime) -> datetime:
    """The one day that stands for a stretch: "two weeks ago" is two weeks ago today."""
    if span.grain == "range" and _LIMIT.search(span.text):
        return span.end
    if span.grain == "week":
        return span.start + timedelta(days=now.weekday())
    return span.start


def main_time(spans: tuple[TimeSpan, ...], said_at: datetime) -> datetime:
    """When the thing that a clause speaks of happened: the first time in it that is a moment and not an epoch."""
    for span in spans:
        near = (span.end - span.start).days <= 400 or (span.grain == "range" and _LIMIT.search(span.text))
        if near and span.text not in ("今年", "this year"):
            return moment(span, said_at)
    return said_at
