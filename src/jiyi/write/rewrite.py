"""Additions to a speaker's sentence: absolute dates in brackets. Nothing is ever taken out of it."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta

from ..languages import TimeSpan, dates

_KEPT = re.compile(
    r"\d+(?:[.,:]\d+)*|\b[A-Z][\w'-]*|\b(?:not|no|never|none|nobody|nothing|without|cannot)\b|n['’]t\b|[不没未无非别]"
    r"|[\"“「『][^\"”」』]*[\"”」』]"
)
_RECURRING = re.compile(
    r"\b(?:every|each|birthday|born|anniversary|mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays)\b"
    r"|\bday (?:nights|mornings|evenings)|每|生日|出生|平时",
    re.IGNORECASE,
)
_DIRECTED = re.compile(
    r"\b(?:next|last|this|ago|yesterday|today|tomorrow|tonight|in)\b|[上下][个周星礼]|昨|今[天晚早]|明[天年晚早]|后天|前天|去年|今年",
    re.IGNORECASE,
)
_MOST_DAYS = 31  # a longer stretch of time gets no dates


def loses_nothing(before: str, after: str) -> bool:
    """Return True if every number, name, negation and quotation of a sentence is still in its rewriting."""
    return not Counter(_KEPT.findall(before)) - Counter(_KEPT.findall(after))


def with_dates(text: str, said_at: datetime, *, future: bool | None) -> str:
    """Write the date of each relative time behind it.

    `future` says where a date without a year or a bare weekday lies; None: unknown, and then they get no date.

    >>> from datetime import UTC
    >>> with_dates("I fly next Friday.", datetime(2024, 5, 8, tzinfo=UTC), future=True)
    'I fly next Friday (2024-05-10).'
    """
    if _RECURRING.search(text):
        return text
    rewritten = text
    for span in reversed(dates(text, said_at, future=bool(future))):
        note = _note(span)
        certain = future is not None or _DIRECTED.search(span.text)
        if note and certain and not re.match(r"\s*[(（]\d", text[span.at[1] :]):
            brackets = "（{}）" if _is_chinese(span.text) else " ({})"
            rewritten = rewritten[: span.at[1]] + brackets.format(note) + rewritten[span.at[1] :]
    return rewritten if loses_nothing(text, rewritten) else text


def _note(span: TimeSpan) -> str:
    if not span.relative and re.search(r"\d{4}", span.text):
        return ""
    length = span.end - span.start
    if length > timedelta(days=_MOST_DAYS) or length <= timedelta():
        return ""
    last = span.end - timedelta(microseconds=1)
    if length < timedelta(hours=2) and (span.start.hour, span.start.minute) != (0, 0):
        return f"{span.start:%Y-%m-%d %H:%M}"
    if span.start.date() == last.date() or length < timedelta(days=1):
        return f"{span.start:%Y-%m-%d}"
    if length >= timedelta(days=28):
        return f"{span.start:%Y-%m}"
    return f"{span.start:%Y-%m-%d} to {last:%Y-%m-%d}"


def _is_chinese(text: str) -> bool:
    return any("\u4e00" <= letter <= "\u9fff" for letter in text)
