"""English times of the calendar (days, months, seasons, quarters, years) and of the day."""

import re
from collections.abc import Callable

from ..base import Family, Rule, group
from ..calendar import DAY, Calendar, Part, one_day
from ..clock import ClockRules, read_clock
from ..numeric import YEAR

# Not inside another word, a file name, an address; beside a Chinese character is fine.
BEFORE = r"(?<![0-9A-Za-z_À-ɏ@#$/\\])(?<![0-9A-Za-z][.'-])(?<![0-9]:)"
AFTER = r"(?![0-9A-Za-z_À-ɏ@])(?!\.[0-9A-Za-z])"

_MONTH_NAMES = "january|february|march|april|may|june|july|august|september|october|november|december"
_WEEKDAY_NAMES = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
# As people type them; they begin like the right ones.
_TYPED_MONTHS = (
    "janurary|januray|janaury|febuary|feburary|febraury|feburay|augest|septmber|sepember|octber|ocotber|octobor"
    "|novemeber|novmber|noveber|decemeber|decmber|decembar"
)
MONTH_NAMES = f"{_MONTH_NAMES}|{_TYPED_MONTHS}"
WEEKDAY_NAMES = (
    f"{_WEEKDAY_NAMES}|tusday|tuseday|tuesaday|wensday|wednsday|wedensday|wendesday|wendsday|thrusday|thurday|thursady"
    "|saterday|satuday|saturaday|sunady"
)
# Short ones only with a capital: the sun, he sat.
SHORT_WEEKDAY_NAMES = "(?-i:Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun)"
# Those that are nothing else: April and June are persons, and one may march in an august way.
_CLEAR_MONTH = f"(?P<month>january|february|july|september|october|november|december|{_TYPED_MONTHS})"
_MONTH = rf"(?P<month>{MONTH_NAMES}|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)(?:\.(?=\s?[0-9]))?)"
_MONTH_NAME = rf"(?P<month>{MONTH_NAMES}|(?-i:Jan|Feb|Apr|Aug|Sept?|Oct|Nov|Dec))"
_NO_VERB = r"(?! (?:be|not|have|also|well|seem)\b)"
_MONTHS = [name[:3] for name in _MONTH_NAMES.split("|")]
_WEEKDAYS = [name[:2] for name in _WEEKDAY_NAMES.split("|")]

DIRECTION = "(?P<dir>this past|this coming|last|this|next|past|coming)"
_STEPS = {"last": -1, "this": 0, "next": 1}

_DAY = "(?P<d>3[01]|[12][0-9]|0?[1-9])(?P<th>st|nd|rd|th)?"
_TO_DAY = "(?P<d2>3[01]|[12][0-9]|0?[1-9])(?:st|nd|rd|th)?"
_DASH = "(?: (?:-|–|—|~|to|through|until|till) |[-–—~])"
_OF_YEAR = rf"(?:,? (?:(?:of|in) )?(?:(?P<y>{YEAR})(?![,.:-]?[0-9])(?!\s?%)|(?P<ry>last|this|next) year))"
# The day of the week adds nothing to a date.
_ON = rf"(?:(?:{WEEKDAY_NAMES}|{SHORT_WEEKDAY_NAMES}\.?),? (?:the )?)?"

_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_ORDINALS = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_ORDINAL = "(?P<nth>first|second|third|fourth|1st|2nd|3rd|4th|last)"
_HOLIDAYS = {"christmas": (12, 25), "christmas day": (12, 25), "christmas eve": (12, 24), "new year's day": (1, 1),
             "new year's eve": (12, 31), "halloween": (10, 31), "valentine's day": (2, 14)}  # fmt: skip

# Before one of these a number is a count, not a year or a day.
_NO_UNIT = (
    r"(?![,.:]?[0-9])(?!-[A-Za-z0-9])(?!\s?%)"
    r"(?!\s?(?:met(?:er|re)s?|kilomet(?:er|re)s?|[kcm]?m|k?gs?|lbs?|pounds?|miles?|feet|foot|ft|inch(?:es)?|degrees"
    r"|people|persons?|users?|items?|steps?|words?|characters?|tokens?|dollars?|bucks|usd|yuan|rmb|euros?|points?"
    r"|calories|kcal|times|pages?|lines?|bytes?|[kmgt]b|ms|seconds?|minutes?|mins?|hours?|days?|weeks?|months?|years?"
    r"|files?|rows?|pieces?|units?|copies|votes?|students?|employees|members|books|photos|[ap]\.?m\.?|or more)\b)"
)
_NO_COUNT = rf"{_NO_UNIT}(?! (?:and|or|to) (?!(?:19|20)[0-9]{{2}}\b)[0-9])"
_COUNT_BEFORE = (
    r"(?:total|maximum|minimum|max|min|sum|limit|cost|price|budget|number|average|amount|out|capacity|population|height"
    r"|width|size|length|distance|weight|score|value|resolution|salary|rent|fee|deposit|balance|debt|loan|fine|bonus"
    r"|room|suite|flight|port|page|line|error|code|id|no\.?|version|model|highway|route|bus|building|apartment|unit"
    r"|is|=|than|about|over|nearly|almost) $"
)


def direction(match: re.Match[str]) -> str:
    """Return last, this, next or an empty string."""
    said = " ".join(group(match, "dir").lower().split())
    return {"this past": "last", "past": "last", "this coming": "next", "coming": "next"}.get(said, said)


def step(word: str) -> int:
    """Return -1 for last, 0 for this, 1 for next."""
    return _STEPS[word.lower()]


def weekday_number(name: str) -> int:
    return _WEEKDAYS.index(name[:2].lower())


def _year_of(match: re.Match[str], calendar: Calendar) -> int | None:
    if year := group(match, "y"):
        return int(year)
    relative = group(match, "ry")
    return calendar.year + step(relative) if relative else None


def _in_year(match: re.Match[str], calendar: Calendar, make: Callable[[int], Part]) -> Part:
    """Return `make` of the year that is written, or of the year that fits."""
    year = _year_of(match, calendar)
    if year is None:
        return calendar.yearly(make, direction(match))
    return make(year)._replace(relative=not group(match, "y"))


def _month_number(match: re.Match[str]) -> int:
    return _MONTHS.index(match["month"][:3].lower()) + 1


def _may_be_verb(match: re.Match[str]) -> bool:
    # "may" and "march"; only the capital shows that a month is meant.
    return match["month"] in {"may", "march", "mar"}


def _date(match: re.Match[str], calendar: Calendar) -> Part | None:
    if _may_be_verb(match) and not any(match.group("th", "y", "ry", "sign")):
        return None
    month, day = _month_number(match), int(match["d"])
    return _in_year(match, calendar, lambda year: calendar.day(year, month, day))


def _days(match: re.Match[str], calendar: Calendar) -> Part | None:
    first = _date(match, calendar)
    if first is None or int(match["d"]) >= int(match["d2"]):
        return None
    last = one_day(first.start.replace(day=int(match["d2"])))
    return first._replace(end=last.end, grain="range", cycle="")


def _month(match: re.Match[str], calendar: Calendar) -> Part | None:
    if _may_be_verb(match) and direction(match) == "this":
        return None
    month = _month_number(match)
    return _in_year(match, calendar, lambda year: calendar.months(year, month, 1, "month"))


def _capital_month(match: re.Match[str], calendar: Calendar) -> Part | None:
    return None if _may_be_verb(match) else _month(match, calendar)


def _nth_of_month(match: re.Match[str], calendar: Calendar) -> Part | None:
    month = _month(match, calendar)
    kind = match["kind"].lower()
    number = _ORDINALS[match["nth"].lower()]
    return month and calendar.nth(month, number, kind if kind.startswith("week") else weekday_number(kind))


def _year(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.months(int(match["y"]), 1, 12, "year")


def _year_or_count(match: re.Match[str], calendar: Calendar) -> Part | None:
    before = match.string[max(0, match.start() - 16) : match.start()]
    return None if re.search(_COUNT_BEFORE, before, re.IGNORECASE) else _year(match, calendar)


def _years(match: re.Match[str], calendar: Calendar) -> Part | None:
    first, last = int(match["y"]), int(match["y2"])
    return calendar.months(first, 1, 12 * (last - first + 1), "range") if first < last else None


def _decade(match: re.Match[str], calendar: Calendar) -> Part:
    said = int(match["y"])
    return calendar.months(said if said > 99 else 1900 + said, 1, 120, "range")


def _season(match: re.Match[str], calendar: Calendar) -> Part:
    first = _SEASONS[match["season"].lower()]
    return _in_year(match, calendar, lambda year: calendar.months(year, first, 3, "season"))


def _quarter(match: re.Match[str], calendar: Calendar) -> Part:
    said = match["q"].lower()
    first = 3 * (int(said) if said.isdecimal() else _ORDINALS[said]) - 2
    return _in_year(match, calendar, lambda year: calendar.months(year, first, 3, "quarter"))


def _half_year(match: re.Match[str], calendar: Calendar) -> Part:
    first = 1 if match["nth"].lower() in {"first", "1st", "h1"} else 7
    return _in_year(match, calendar, lambda year: calendar.months(year, first, 6, "range"))


def _day_of_month(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.monthly(int(match["d"]))


def _weekday_of_month(match: re.Match[str], calendar: Calendar) -> Part | None:
    """Friday the 11th: the nearest 11th that is a Friday."""
    found = []
    for months in range(-6, 7):
        month = calendar.unit("month", months)
        day = month.start + (int(match["d"]) - 1) * DAY
        if day < month.end and day.weekday() == weekday_number(match["wd"]):
            found.append(one_day(day))
    return min(found, key=lambda day: abs(day.start - calendar.now), default=None)


def _next_day_of_month(match: re.Match[str], calendar: Calendar) -> Part | None:
    return _day_of_month(match, calendar) if calendar.future else None


def _holiday(match: re.Match[str], calendar: Calendar) -> Part:
    month, day = _HOLIDAYS[" ".join(match["holiday"].lower().split())]
    return _in_year(match, calendar, lambda year: calendar.day(year, month, day))


_SIGN = "(?:(?P<sign>on|by|since|until|till|from|to|before|after|between|and) )?"
_SEASON = "(?P<season>spring|summer|autumn|fall|winter)"
_QUARTER = "(?P<q>first|second|third|fourth|1st|2nd|3rd|4th)"
_NO_GIFT = (
    "(?! (?:gifts?|presents?|trees?|cards?|part(?:y|ies)|horror|shopping|dinner|lights?|music|songs?|movies?|cookies"
    "|decorations?|costumes?|carols?|time|sales?|spirit|markets?|candy)\\b)"
)
_TO = "(?: (?:to|until|till|through|-|–|—) |[-–—])"
_PART_OF = "(?:early |late |mid-)?"
_YEAR = rf"(?:the year )?(?P<t>(?P<y>{YEAR})){_NO_COUNT}"

_MONTH_RULES: tuple[Rule, ...] = (
    (rf"{_SIGN}(?P<t>{_ON}{_MONTH} (?:the )?{_DAY}(?:{_OF_YEAR}|{_NO_UNIT}))", _date),
    (rf"{_ON}(?:the )?{_DAY}(?P<sign> of)? {_MONTH}(?!\s?[0-9]{{1,2}}(?![0-9])){_OF_YEAR}?", _date),
    (rf"(?:(?P<sign>from) )?{_MONTH} (?:the )?{_DAY}{_DASH}(?:the )?{_TO_DAY}(?:{_OF_YEAR}|{_NO_UNIT})", _days),
    (rf"(?:from )?(?:the )?{_DAY}{_DASH}(?:the )?{_TO_DAY}(?P<sign> of)? {_MONTH}{_OF_YEAR}?", _days),
    (rf"between (?:the )?{_DAY} and (?:the )?{_TO_DAY}(?P<sign> of)? {_MONTH}{_OF_YEAR}?", _days),
    (rf"{_MONTH}{_OF_YEAR}", _month),
    (rf"(?P<ry>last|this|next) year,? in {_MONTH}", _month),
    (rf"(?P<ry>last|this|next) year,? (?P<sign>on) {_MONTH} {_DAY}(?P<y>)", _date),
    (rf"{DIRECTION} {_MONTH_NAME}{_NO_VERB}", _month),
    (rf"(?:in|during|since|by|until|till|before|after|early|late|mid)(?: |-)(?P<t>{_MONTH_NAME}{_NO_VERB})", _month),
    (rf"of (?P<t>{_MONTH_NAME}{_NO_VERB})", _capital_month),
    (rf"(?P<t>{_MONTH_NAME})(?={_TO}{_PART_OF}(?:{MONTH_NAMES}))", _capital_month),
    (rf"(?:{MONTH_NAMES})(?: (?:and|or) |{_TO}){_PART_OF}(?P<t>{_MONTH_NAME})", _capital_month),
    (_CLEAR_MONTH, _month),
    (rf"(?:the )?{_ORDINAL} (?P<kind>week|weekend|{WEEKDAY_NAMES}) (?:of|in) {_MONTH}{_OF_YEAR}?", _nth_of_month),
)
_DAY_OF_MONTH = "3[01]|[12][0-9]|[1-9]"
# The 3rd floor, the 20th century, the 5th Avenue.
_NO_ORDINAL = (
    "(?! (?:of|floor|time|century|street|avenue|grade|birthday|place|edition|anniversary|month|week|year|day|row|round"
    "|(?-i:[A-Z])))"
)
_NO_MONTH = rf"(?! (?:{MONTH_NAMES}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b)"
_DIGIT_RULES: tuple[Rule, ...] = (
    (rf"(?:in|since|during|until|till|before|after|throughout|early|late|mid)(?: |-){_YEAR}", _year),
    (rf"in {YEAR},? (?:and|or) {_YEAR}", _year),
    (rf"(?:of|by) {_YEAR}", _year_or_count),
    (rf"(?<![-+*=.,:€£¥])(?P<y>{YEAR})(?=\s?\?)", _year_or_count),
    (rf"from (?P<y>{YEAR}){_DASH}(?P<y2>{YEAR}){_NO_COUNT}", _years),
    (rf"between (?P<y>{YEAR}) and (?P<y2>{YEAR}){_NO_COUNT}", _years),
    (rf"(?:in|during|of|for) (?P<t>(?P<y>{YEAR}){_DASH}(?P<y2>{YEAR})){_NO_COUNT}", _years),
    (r"(?:the )?(?P<y>(?:19|20)[0-9]0)'?s", _decade),
    # In the 60s it is warm.
    (r"the '?(?P<y>[5-9]0)'?s(?! to| degrees| fahrenheit|°)", _decade),
    (rf"Q(?P<q>[1-4]){_OF_YEAR}", _quarter),
    (rf"(?P<y>{YEAR})\s?Q(?P<q>[1-4])", _quarter),
    (r"(?:in|during|since|of|for) (?P<t>(?-i:Q)(?P<q>[1-4]))", _quarter),
    (rf"(?P<nth>H[12]){_OF_YEAR}", _half_year),
    (rf"(?P<wd>{WEEKDAY_NAMES}),? (?:the )?(?P<d>{_DAY_OF_MONTH})(?:st|nd|rd|th)(?! of){_NO_MONTH}", _weekday_of_month),
    (r"on (?P<t>the (?P<d>3[01]|[12][0-9]|[1-9])(?:st|nd|rd|th))(?=\s?(?:[,.?!;)]|\Z))", _day_of_month),
    (
        rf"(?:on|by|before|until|till|to|from|for|is) (?P<t>the (?P<d>{_DAY_OF_MONTH})(?:st|nd|rd|th)){_NO_ORDINAL}",
        _next_day_of_month,
    ),
)
_SEASON_RULES: tuple[Rule, ...] = (
    (rf"{DIRECTION} {_SEASON}(?! of)", _season),
    (rf"(?:the )?{_SEASON}{_OF_YEAR}{_NO_COUNT}", _season),
    (rf"(?:the )?{_QUARTER} quarter{_OF_YEAR}", _quarter),
    (rf"(?:the )?(?P<nth>first|second|1st|2nd) half{_OF_YEAR}", _half_year),
)
_HOLIDAY_RULES: tuple[Rule, ...] = (
    (
        rf"(?:{DIRECTION} )?(?P<holiday>christmas (?:eve|day)|new year's (?:eve|day)|valentine's day){_OF_YEAR}?",
        _holiday,
    ),
    (rf"{DIRECTION} (?P<holiday>christmas|halloween)", _holiday),
    (rf"(?:on|over|at|since|before|after) (?P<t>(?P<holiday>christmas|halloween)){_NO_GIFT}", _holiday),
    (rf"(?P<holiday>christmas|halloween){_OF_YEAR}", _holiday),
)

FAMILIES = (
    Family("jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec", _MONTH_RULES),
    Family("[12][0-9]{3}|[0-9](?:0'?s|st|nd|rd|th)|[hq][1-4]", _DIGIT_RULES),
    Family("spring|summer|autumn|fall|winter|quarter|half", _SEASON_RULES),
    Family("christmas|halloween|new|valentine", _HOLIDAY_RULES),
)


_HOUR = "(?P<h>[01]?[0-9]|2[0-3])"
_MINUTE = "(?P<min>[0-5][0-9])"
_AM_PM = r"(?P<ap>[ap])\.?m(?:\.(?! [A-Z]))?(?![A-Za-z0-9_])"
_AT = r"(?:,? (?:at|around|about|by) |,? |, ?)"

CLOCK = ClockRules(
    parts={"morning": "morning", "afternoon": "afternoon", "evening": "evening", "night": "night", "noon": "noon"},
    part_after=r",? (?:in the |at )?(?P<part>morning|afternoon|evening|night|noon)(?![A-Za-z0-9_])",
    part_before=r"(?:the )?(?P<part>morning|afternoon|evening|night) of \Z",
    after=(
        (rf"{_AT}{_HOUR}(?::{_MINUTE})? ?{_AM_PM}", read_clock),
        (rf"{_AT}{_HOUR}:{_MINUTE}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?![:0-9A-Za-z_])", read_clock),
        (r" (?:at|around|about) (?P<h>1[0-2]|[1-9])(?: o'clock)?(?![:0-9A-Za-z_%.]| [a-z])", read_clock),
    ),
    before=(
        (rf"(?:(?:at|around|about) )?{_HOUR}(?::{_MINUTE})? ?{_AM_PM},? (?:on )?\Z", read_clock),
        (rf"(?P<h>[01][0-9]|2[0-3]):{_MINUTE} on \Z", read_clock),
    ),
)
