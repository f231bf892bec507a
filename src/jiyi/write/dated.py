"""Writing absolute dates into statements: "I fly next Friday (2024-05-10)"."""

from __future__ import annotations

import re
from collections import Counter
from datetime import datetime, timedelta

from ..languages import TimeSpan, cue, dates

_KEPT = re.compile(
    r"\d+(?:[.,:]\d+)*|\b[A-Z][\w'-]*|\b(?:not|no|never|none|nobody|nothing|without|cannot)\b|n['’]t\b|[不没未无非别]"
    r"|[\"“「『][^\"“「『”」』]*[\"”」』]"
)
_RECURRING = re.compile(
    r"\b(?:every|each|birthday|born(?! (?:on |last |this )?(?:\w+day|night))|anniversary"
    r"|mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays)\b"
    r"|\bday (?:nights|mornings|evenings)|每|生日|出生|平时",
    re.IGNORECASE,
)
_DIRECTED = re.compile(
    r"\b(?:next|last|this|ago|yesterday|today|tomorrow|tonight|in)\b|day,? (?:the )?\d"
    r"|[上下][个周星礼]|昨|今[天晚早]|明[天年晚早]|后天|前天|去年|今年",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[,.;:!?\n，。；：！？](?!\d)|\s(?:and|but|so|because|when)\s", re.IGNORECASE)
_ARRANGED_FOR = re.compile(r"\b(?:for|by|until|til|till|due|to) (?:the )?$|[到等]$", re.IGNORECASE)
_DAY = re.compile(r"\d|day\b|[\u4e00-\u9fff]", re.IGNORECASE)
_DAY_OF_MONTH = re.compile(r"^the \d+(?:st|nd|rd|th)$", re.IGNORECASE)
_LONG_AGO = timedelta(days=200)  # a day without a year beside a past verb may still be the next one
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
    rewritten, first = text, len(text)
    behind, ahead = ({span.at: span for span in dates(text, said_at, future=way)} for way in (False, True))
    for at in sorted(behind | ahead, reverse=True):
        lies_ahead = _lies_ahead(text, at, future)
        if lies_ahead is False and at in behind and at in ahead and said_at - behind[at].start > _LONG_AGO:
            said_as_past = _lies_ahead(text, at, None) is False
            lies_ahead = behind[at] == ahead[at] or (None if said_as_past else True)
        span = (ahead if lies_ahead else behind).get(at)
        if span is None or at[1] > first:
            continue
        first = at[0]
        note = _note(span)
        certain = lies_ahead is not None or _DIRECTED.search(span.text)
        if note and certain and not re.match(r"^\s*[(（]\d", text[span.at[1] :]):
            brackets = "（{}）" if _is_chinese(span.text) else " ({})"
            rewritten = rewritten[: span.at[1]] + brackets.format(note) + rewritten[span.at[1] :]
    return rewritten if loses_nothing(text, rewritten) else text


def _lies_ahead(text: str, at: tuple[int, int], expected: bool | None) -> bool | None:
    """Return True if a time lies ahead and False if it is over, by the verb of its clause; else what is expected."""
    start = max((cut.end() for cut in _CLAUSE_END.finditer(text, 0, at[0])), default=0)
    after = _CLAUSE_END.search(text, at[1])
    before, rest = text[start : at[0]], text[at[1] : after.start() if after else len(text)]
    if cue("arranged").search(before) or cue("arranged").search(rest):
        return True if _ARRANGED_FOR.search(before) and _DAY.search(text[at[0] : at[1]]) else expected
    if cue("past_event").search(before) or cue("past_event").search(rest):
        return False
    alone = _DAY_OF_MONTH.search(text[at[0] : at[1]]) and not cue("past_event").search(text)
    return True if expected is False and alone else expected


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
