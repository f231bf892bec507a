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
_SAYS_PAST = re.compile(r"last|ago|past|yesterday|previous|上|前|昨|去年|过去", re.IGNORECASE)
_SAYS_AGAIN = re.compile(r"(?:every|each|每个?)\s*$", re.IGNORECASE)
_SAYS_DAY = re.compile(
    r"jan|feb|mar(?:ch)?\b|apr|may\b|june?\b|july?\b|aug|sept?|oct|nov|dec|\d[/-]\d|[\d一二三四五六七八九十]月",
    re.IGNORECASE,
)
# What comes again every year has no year of its own.
_YEARLY = re.compile(r"birthday|born on|anniversary|every year|each year|生日|纪念日|每年|出生", re.IGNORECASE)
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
    if not _CUE.search(text):
        return ()
    found = find_times(text, now)
    return tuple(_ahead(span, now) for span in found) if ahead else tuple(found)


def _ahead(span: TimeSpan, now: datetime) -> TimeSpan:
    """The next one of what comes again, where the words leave it open."""
    if span.end > now or not span.relative or span.grain == "range" or _SAYS_PAST.search(span.text):
        return span
    if re.search(r"\d{4}", span.text):
        return span
    if re.search(r"day\b|[周期拜][一二三四五六日天]", span.text, re.IGNORECASE) and not re.search(r"\d", span.text):
        return replace(span, start=span.start + timedelta(7), end=span.end + timedelta(7))
    try:
        return replace(span, start=_a_year_on(span.start), end=_a_year_on(span.end))
    except ValueError:  # the 29th of February
        return span


def _a_year_on(moment: datetime) -> datetime:
    return moment.replace(year=moment.year + 1)


def absolute(text: str, spans: Iterable[TimeSpan], language: str) -> str:
    """The text with the date behind each time that would mean something else on another day."""
    if _YEARLY.search(text):
        return text
    for span in sorted(spans, key=lambda span: -span.at[0]):
        written = _date(span, language)
        start, end = span.at
        if not written or text[start:end] != span.text or _SAYS_AGAIN.search(text[max(0, start - 8) : start]):
            continue
        text = text[:end] + (f"（{written}）" if language == "zh" else f" ({written})") + text[end:]
    return text


def _date(span: TimeSpan, language: str) -> str | None:
    if not span.relative or (span.end - span.start).days > 400:
        return None
    at = span.start
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


def main_time(spans: tuple[TimeSpan, ...], said_at: datetime) -> datetime:
    """When the thing that a clause speaks of happened: the first time in it that is a moment and not an epoch."""
    for span in spans:
        if (span.end - span.start).days <= 400 and span.text not in ("今年", "this year"):
            return span.start
    return said_at
