"""Dates in the texts of a model: resolve and correct them, because models are bad at calendars."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from ...languages.dates import TimeSpan, dates
from ...llm.prompts import PromptLanguage

# Obligations: "reminded Mei to renew it before June 30".
_OBLIGATION = re.compile(
    r"\b(?:reminds?|reminded|asked|told|plans|planned|promised|decided|intends|hopes) (?:\w+ ){0,3}?to \w+\b"
    r"[^,.;]{0,40}$"
    r"|(?:提醒|要求|计划|打算|答应|决定)[^，。；]{0,12}$"
)
_BRACKET = re.compile(r"\s{0,8}[(（]([^()（）]{1,60})[)）]")

_UNKNOWN = re.compile(r" ?[(（](?:unknown|none|null|n/a|未知|无)[)）]", re.IGNORECASE)


def correct_dates(
    text: str, said_at: datetime, language: PromptLanguage, *, ahead: bool, supported: Callable[[TimeSpan], bool]
) -> str:
    """Add absolute dates to relative times, and remove wrong or unsupported dates in brackets.

    >>> from datetime import UTC
    >>> monday = datetime(2023, 5, 8, tzinfo=UTC)
    >>> correct_dates("Mei moved last month (May 8, 2023).", monday, "en", ahead=False, supported=lambda _: True)
    'Mei moved last month (April 2023).'
    """
    text = _UNKNOWN.sub("", text)
    for bracket in reversed(list(_BRACKET.finditer(text))):
        spans = _times(text, said_at, ahead=ahead)
        inside = [span for span in spans if bracket.start() <= span.at[0] and span.at[1] <= bracket.end()]
        explained = [span for span in spans if span.relative and span.at[1] == bracket.start()]
        wrong = not all(map(supported, inside)) or any(_is_wrong(span, inside) for span in explained)
        if (
            inside
            and wrong
            and sum(end - start for start, end in (span.at for span in inside)) >= len(bracket[1].strip())
        ):
            text = text[: bracket.start()] + text[bracket.end() :]
    open_spans = [span for span in _times(text, said_at, ahead=ahead) if not _explained(span, text)]
    return absolute(text, open_spans, said_at, language)


def _times(text: str, said_at: datetime, *, ahead: bool) -> Sequence[TimeSpan]:
    """Find times; a deadline lies ahead although the sentence is in the past tense."""
    ahead_spans = {span.at: span for span in times_in(text, said_at, ahead=True)}
    found = times_in(text, said_at, ahead=ahead)
    return [ahead_spans.get(span.at, span) if _OBLIGATION.search(text, 0, span.at[0]) else span for span in found]


def _is_wrong(span: TimeSpan, inside: Sequence[TimeSpan]) -> bool:
    return not any(other.start < span.end and span.start < other.end for other in inside)


def _explained(span: TimeSpan, text: str) -> bool:
    """Return True if a date in brackets follows, or the time itself is in brackets."""
    return bool(_BRACKET.match(text, span.at[1])) or text[: span.at[0]].rstrip()[-1:] in ("(", "（")


def resolve_day(proposed: datetime | None, text: str, quote: str, said_at: datetime, *, ahead: bool) -> datetime | None:
    """Return the day in the text or the quote, or the proposed one if it agrees."""
    for words in (text, quote):
        spans = [span for span in times_in(words, said_at, ahead=ahead) if (span.end - span.start).days <= 400]
        if spans:
            agrees = proposed is not None and any(span.start <= proposed < span.end for span in spans)
            return proposed if agrees else spans[0].start
    return proposed


# Without one of these a text speaks of no time, and need not be searched.
_CUE = re.compile(
    r"\d|tomorrow|day|week|month|year|night|morning|evening|noon|tonight|ago|last|next|since|until|january|february|march|april|may\b"
    r"|june|july|august|september|october|november|december|\bjan\b|\bfeb\b|\bmar\b|\bapr\b|\bjun\b|\bjul\b|\baug\b|\bsept?\b"
    r"|\boct\b|\bnov\b|\bdec\b|spring|summer|autumn|winter|christmas|easter|just now|hour|minute|the other"
    r"|[年月日号天周晚早前后]|first|second|third|\d(?:st|nd|rd|th)|五一|除夕|端午|中秋|十一|圣诞|星期|礼拜|小时|分钟|季|节|元旦|国庆",
    re.IGNORECASE,
)
_SAYS_PAST = re.compile(
    r"last|ago|past|yesterday|previous|since|this year|(?<![早晚])上(?!午|班|学)|前|昨|[去今]年|过去|以来|起$",
    re.IGNORECASE,
)
# "every Tuesday and Thursday", 每周三和周五: a habit, not a day.
_SAYS_AGAIN = re.compile(
    r"(?:\b(?:every|each)\b[\w ,]{0,20}|每(?:个|周|星期|月|个月|年|[^，。]{1,6}[和、]))\s*$", re.IGNORECASE
)
_SAYS_DAY = re.compile(
    r"jan|feb|mar(?:ch)?\b|apr|may\b|june?\b|july?\b|aug|sept?|oct|nov|dec|\d[/-]\d|[\d一二三四五六七八九十]月",
    re.IGNORECASE,
)
# What comes again every year has no year of its own.
_YEARLY = re.compile(
    r"birthday(?! (?:party|dinner|lunch|trip|drinks|bash|do|meal)\b)|born on|anniversary(?! (?:party|dinner|trip)\b)"
    "|every year|each year|生日(?!会|派对|聚会|宴|趴|蛋糕|party)|纪念日|每年|出生",
    re.IGNORECASE,
)
# "before August", 周五之前: the end of the stretch is what counts.
_LIMIT = re.compile(r"^(?:before|by|until|till)\b|前$", re.IGNORECASE)
# "Saturday mornings", "Sundays"
_AGAIN_AFTER = re.compile(r"s\b(?!')| (?:mornings|afternoons|evenings|nights)\b| of (?:the|every|each) month")
_AGAIN = re.compile(r"\b(?:weekly|daily|monthly|fortnightly|biweekly|every)\b", re.IGNORECASE)
# "I got an offer, joining in April": what comes with it lies ahead.
_TO_COME = re.compile(
    r"\b(?:joining|arriving|starting|leaving|moving|flying|landing|due|coming|opening|ending|expected|delivered|until)\b"
    r"[^,.;]{0,20}$"
)
_MOVED = re.compile(
    r"\b(?:moved|pushed|shifted|changed|rescheduled|postponed|brought forward)\b|改[到成]"
    r"|挪到|推[迟到]|提前到|延[期到]|调到"
)
_WEEKDAYS = re.compile(r"(?<![上下这本])周[一二三四五六日](?:[和、跟]?周?[一二三四五六日](?![点号月]))+")
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


# Verbs by which a date without a year lies behind or ahead.
_DONE = re.compile(
    r"\b(?:was|were|had|did|went|got|came|saw|met|bought|made|took|left|began|gave|ate|won|lost|\w+ed)\b|[了过]|那年|以前",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"\b(?:moved|pushed|shifted|changed|rescheduled|postponed|brought|put)\b[^,.;]{0,20} (?:to|until|till|for)\b"
    r"|\b(?:booked|scheduled|set|planned|due) (?:\w+ ){0,3}(?:for|on)\b|\bwill\b|['’]ll\b|\bgoing to\b"
    r"|[改推挪调延][迟期后]?到|提前到|[定约订][在的到于]|预约|打算|准备|将要?|(?<![只需重不])要(?!求)|会(?!议|员|计)",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[;!?，。；！？\n]|[,.](?!\d)")
_YEARS_APART = timedelta(days=300)
_SOON = timedelta(days=122)


def said_times(text: str, at: datetime) -> list[TimeSpan]:
    """Return the times in a message; one without a year lies ahead or behind, if its clause leaves that open."""
    behind, ahead = dates(text, at), dates(text, at, future=True)
    if [span.at for span in behind] != [span.at for span in ahead]:
        return [*behind, *ahead]
    return [span for one, other in zip(behind, ahead, strict=True) for span in _readings(text, one, other, at)]


def _readings(text: str, behind: TimeSpan, ahead: TimeSpan, at: datetime) -> tuple[TimeSpan, ...]:
    """Return the possible ones of two dates that are a year apart."""
    if ahead.start - behind.start < _YEARS_APART:
        return behind, ahead
    start = max((found.end() for found in _CLAUSE_END.finditer(text, 0, behind.at[0])), default=0)
    end = _CLAUSE_END.search(text, behind.at[1])
    clause = text[start : end.start() if end else len(text)]
    to_come = _AHEAD.search(clause) or _TO_COME.search(text, 0, behind.at[0])
    done = _DONE.search(clause) and not to_come
    if ahead.start - at < _SOON and not done:
        return (ahead,)
    return (behind,) if done and at - behind.start < _SOON else (behind, ahead)


def times_in(text: str, now: datetime, *, ahead: bool) -> tuple[TimeSpan, ...]:
    """The times of a clause. `ahead` says that it speaks of the future: then "Friday" is the next one, not the last."""
    if not _CUE.search(text) or _YEARLY.search(text):
        return ()
    if _WEEKDAYS.search(text):
        return ()
    found = [span for span in dates(text, now) if not _comes_again(text, span)]
    found = [_ahead(span, now) if ahead or _lies_ahead(text, span, now) else span for span in found]
    # "moved from Tuesday to Thursday": the new one counts.
    return tuple(reversed(found)) if len(found) == 2 and _MOVED.search(text) else tuple(found)


def _lies_ahead(text: str, span: TimeSpan, now: datetime) -> bool:
    if _TO_COME.search(text, 0, span.at[0]):
        return True
    coming = _ahead(span, now)
    return coming.start - span.start > _YEARS_APART and _readings(text, span, coming, now) == (coming,)


def _comes_again(text: str, span: TimeSpan) -> bool:
    start, end = span.at
    return (
        _SAYS_AGAIN.search(text[max(0, start - 24) : start]) is not None
        or _AGAIN_AFTER.match(text, end) is not None
        or (span.grain in ("day", "hour") and span.relative and _AGAIN.search(text, 0, start) is not None)
        or (span.text == "来年" and text[start - 1 : start] in "十几多")
    )


_OF_WEEK = re.compile(r"(?<!year's )day\b|weekend|[周期拜][一二三四五六日天末]", re.IGNORECASE)
# "Friday at 9am" is a day of the week, "Friday, May 9" is a date.
_CLOCK = re.compile(
    r"\d{1,2}[:：]\d{2}(?: ?[ap]\.?m)?|\d{1,2} ?(?:[ap]\.?m|o'clock|[点时])|at \d{1,2}\b", re.IGNORECASE
)


def _ahead(span: TimeSpan, now: datetime) -> TimeSpan:
    """The next one of what comes again, where the words leave it open."""
    limit = span.grain == "range" and _LIMIT.search(span.text) is not None
    if span.end > now or not (span.relative or limit) or (_SAYS_PAST.search(span.text) and not limit):
        return span
    if re.search(r"\d{4}", span.text):
        return span
    if _OF_WEEK.search(span.text) and not re.search(r"\d", _CLOCK.sub("", span.text)):
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
        end -= text[start:end].endswith(".")  # "at 9am."
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
