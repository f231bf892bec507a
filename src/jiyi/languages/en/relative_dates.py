"""English times seen from now: yesterday, last Friday, three weeks ago, since, from A to B."""

import re

from ..base import Family, RangeRules, Rule
from ..calendar import DAY, Amount, Calendar, DayPart, Part, Unit, edge, halves, in_day, one_day
from .dates import DIRECTION, MONTH_NAMES, SHORT_WEEKDAY_NAMES, WEEKDAY_NAMES, direction, step, weekday_number

_UNTIL_TWENTY = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
"""
_WORDS = {word: value for value, word in enumerate(_UNTIL_TWENTY.split())} | {
    "a": 1, "an": 1, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
# Inside of a regular expression.
ENGLISH_NUMBER = "[0-9]{1,4}|an?|" + "|".join(word for word in _WORDS if word not in ("zero", "a", "an"))


def english_number(written: str) -> int:
    """Return the value of 12, twelve or "a"."""
    return int(written) if written.isdecimal() else _WORDS[written.lower()]


_WEEKDAY = rf"(?P<wd>{WEEKDAY_NAMES})"
# Every Friday is no time, and a Black Friday none of the usual ones.
_ONE_OF_MANY = "".join(
    rf"(?<!{word}\s)" for word in ("every", "each", "most", "black", "good", "ash", "fat", "cyber", "palm", "easter")
)
AMOUNT = (
    rf"(?P<n>half an?|(?:a )?couple(?: of)?|(?:a )?few|several|{ENGLISH_NUMBER})(?P<half> and a half)?"
    r" (?P<unit>minute|min|hour|day|week|fortnight|month|year)s?(?P<half2> and a half)?"
)
_UNITS: dict[str, Unit] = {
    "minute": "minute", "min": "minute", "hour": "hour", "day": "day", "week": "week", "fortnight": "week",
    "month": "month", "year": "year",
}  # fmt: skip

_DAYS = {"day before yesterday": -2, "yesterday": -1, "today": 0, "tomorrow": 1, "day after tomorrow": 2}
# As people type them.
_TOMORROW = "tommorr?ow|tomorr?r?ow|tomorro|tmr|tmrw|tmrow|2morr?ow?"
_YESTERDAY = "yesteday|yestarday|yesturday"
# "In two days" is mostly how long something took; only with one of these, or at the start, is it when it will be.
_WILL_BE = (
    r"(?:\A|[.!?;\n])[^A-Za-z0-9]*\Z|(?:\b(?:is|are|be|up|meet|call)|'s)\s\Z|(?:'ll|\b(?:will|won't|shall|going|gonna|due"
    r"|remind|starts?|begins?|leav(?:e|es|ing)|back|again|happen(?:s|ing)|coming|plan(?:s|ning)?|expires?|moving"
    r"|arriv(?:e|es|ing)))\b[^.!?;\n]*\Z"
)
# The first time in three weeks.
_FOR_SO_LONG = r"\b(?:first|only time|best|worst|once|twice|times|not|never|hardly)\b[^.!?;,\n]*\Z|n't\b[^.!?;,\n]*\Z"


def amount(match: re.Match[str]) -> Amount:
    """Return a number of units; "two and a half years" are months."""
    said, unit = " ".join(match["n"].lower().split()), _UNITS[match["unit"].lower()]
    if said.startswith("half"):
        return halves(1, unit)
    if "few" in said or said == "several":
        return Amount(None, unit)
    count = 2 if "couple" in said else english_number(said)
    if match["half"] or match["half2"]:
        return halves(2 * count + 1, unit)
    return Amount(count * 2 if match["unit"].lower() == "fortnight" else count, unit)


def _ago(match: re.Match[str], calendar: Calendar) -> Part:
    if match["today"]:
        # "A year ago today" is one day.
        return one_day(calendar.rolling(amount(match), -1).start)
    return calendar.away(amount(match), -1)


def _ahead(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.away(amount(match), 1)


def _ahead_if_said(match: re.Match[str], calendar: Calendar) -> Part | None:
    before = match.string[max(0, match.start() - 80) : match.start()]
    if re.search(_FOR_SO_LONG, before, re.IGNORECASE):
        return None
    counted = calendar.stated and calendar.future and amount(match).unit not in ("minute", "hour")
    return _ahead(match, calendar) if counted or re.search(_WILL_BE, before, re.IGNORECASE) else None


def _last_one(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.rolling(Amount(1, _UNITS[match["unit"].lower()]), -1)


def _next_one(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.rolling(Amount(1, _UNITS[match["unit"].lower()]), 1)


def _unit(unit: str, distance: int, calendar: Calendar) -> Part:
    match unit.lower():
        case "night":
            return in_day(calendar.unit("day", distance), "night")
        case "weekend":
            return calendar.weekend(distance)
        case "quarter":
            return calendar.quarter(distance)
        case other:
            return calendar.unit(_UNITS[other], distance)


def _directed(match: re.Match[str], calendar: Calendar) -> Part:
    return _unit(match["unit"], step(direction(match)), calendar)


def _weekend(_match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.nearest_weekend()


def _weekday(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.weekday(weekday_number(match["wd"]), direction(match))


def _weekday_of_week(match: re.Match[str], calendar: Calendar) -> Part:
    return one_day(calendar.week(step(match["rw"])).start + weekday_number(match["wd"]) * DAY)


def _day(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.unit("day", _DAYS[" ".join(match["day"].lower().split())])


def _part_of_today(match: re.Match[str], calendar: Calendar) -> Part:
    part: DayPart = match["part"].lower()  # type: ignore[assignment]
    return in_day(calendar.unit("day", 0), part)


def _last_night(match: re.Match[str], calendar: Calendar) -> Part:
    return in_day(calendar.unit("day", -1), "night" if match["part"].lower() == "night" else "evening")


def _this(match: re.Match[str], calendar: Calendar) -> Part:
    return _unit(match["unit"], 0, calendar) if match["unit"] else calendar.unit("day", 0)


def _so_far(match: re.Match[str], calendar: Calendar) -> Part:
    return _this(match, calendar)._replace(end=calendar.now, grain="range")


def _still_to_come(match: re.Match[str], calendar: Calendar) -> Part:
    return _this(match, calendar)._replace(start=calendar.now, grain="range")


def _end_of(match: re.Match[str], calendar: Calendar) -> Part | None:
    """By the end of the month: a deadline, and no date when looking back."""
    if not calendar.future:
        return None
    match match["unit"].lower():
        case "month":
            return calendar.month_part(2)
        case "year":
            return edge(calendar.unit("year", 0), first=False)
        case _:
            week = calendar.week(0)
            return week._replace(start=week.start + 4 * DAY, grain="range")


def _same_time(match: re.Match[str], calendar: Calendar) -> Part:
    if match["unit"].lower() == "day":
        return calendar.day(calendar.year + step(match["ry"]), calendar.now.month, calendar.now.day, relative=True)
    return calendar.unit("month", 12 * step(match["ry"]))


_BARE_UNIT = "(?P<unit>hour|week|month|year)"

# Last Friday, but not in "last Friday before May 7, 2022": see `ranges`.
_FREE = rf"(?! (?:before|after) (?:[0-9]|christmas|{MONTH_NAMES}))"

_DAY_RULES: tuple[Rule, ...] = (
    (r"(?:the )?(?P<day>day before yesterday|day after tomorrow)", _day),
    (r"(?<!usa\s)(?P<day>yesterday|today|tomorrow)", _day),
    (_TOMORROW, lambda _, calendar: calendar.unit("day", 1)),
    (_YESTERDAY, lambda _, calendar: calendar.unit("day", -1)),
    (r"toni(?:ght|te)", lambda _, calendar: in_day(calendar.unit("day", 0), "night")),
    (r"last (?P<part>night|evening)", _last_night),
    (r"this (?P<part>morning|afternoon|evening)", _part_of_today),
    (r"(?:earlier|so far) (?P<unit>)today", _so_far),
    (r"later (?P<unit>)today", _still_to_come),
)
_WEEKDAY_RULES: tuple[Rule, ...] = (
    (rf"{_ONE_OF_MANY}{_WEEKDAY}{_FREE}", _weekday),
    (rf"{DIRECTION} {_WEEKDAY}{_FREE}", _weekday),
    (rf"(?P<dir>last|next) (?P<wd>{SHORT_WEEKDAY_NAMES})", _weekday),
    (r"on (?P<t>(?P<wd>(?-i:Mon|Tues?|Wed|Thur?s?|Fri|Sat)))", _weekday),
    (r"(?:on|by|until|till|for|due) (?P<t>(?P<wd>mon|tues?|wed|thur?s?|fri|sat))", _weekday),
    (r"(?P<wd>tues|thurs?)", _weekday),
    (rf"(?P<wd>{WEEKDAY_NAMES}|tues|thurs?),? (?:of )?(?P<rw>last|this|next) week", _weekday_of_week),
    (rf"(?P<rw>last|this|next) week(?:'s|,)?(?: on)? {_WEEKDAY}", _weekday_of_week),
)
_UNIT_RULES: tuple[Rule, ...] = (
    (rf"{DIRECTION} (?P<unit>weekend){_FREE}", _directed),
    (rf"(?P<dir>last|this past|this|next|this coming) (?P<unit>week|month|year|quarter)(?! of){_FREE}", _directed),
    (r"the end of the (?P<unit>week|month|year)(?! of)", _end_of),
    (
        r"the (?P<unit>night|week|weekend|month|year|quarter) before last",
        lambda match, calendar: _unit(match["unit"], -2, calendar),
    ),
    (r"(?:over|during|on|at) (?P<t>the weekend)(?! (?:of|before|after))", _weekend),
    (rf"{AMOUNT} ago(?P<today> today)?", _ago),
    (rf"{AMOUNT} from (?:now|today)", _ahead),
    (rf"in (?!a min){AMOUNT}(?:'? time)?(?! of| ago)", _ahead_if_said),  # but "moved in three months ago"
    (rf"(?:the )?(?:last|past) {AMOUNT}(?! of)", lambda match, calendar: calendar.rolling(amount(match), -1)),
    (rf"(?:the|this) past {_BARE_UNIT}(?! of)", _last_one),
    (rf"(?:in|over|during|within|for) (?P<t>the last {_BARE_UNIT})(?! of)", _last_one),
    (rf"(?:the )?(?:next|coming) {AMOUNT}(?! of)", lambda match, calendar: calendar.rolling(amount(match), 1)),
    (rf"(?:in|over|during|within|for) (?P<t>the (?:next|coming) {_BARE_UNIT})(?! of)", _next_one),
    (r"(?:earlier|so far) this (?P<unit>week|month|year|quarter)", _so_far),
    (r"this (?P<unit>week|month|year|quarter) so far", _so_far),
    (r"later this (?P<unit>week|month|year|quarter)", _still_to_come),
    (r"this (?P<unit>time|day) (?P<ry>last|next) year", _same_time),
)

FAMILIES = (
    Family("today|yest|tom|tmr|2mo|tonight|tonite|night|evening|morning|afternoon", _DAY_RULES),
    Family("day|mon|tue|wed|thu|fri|sat|sun", _WEEKDAY_RULES),
    Family("minute|min|hour|day|week|fortnight|month|year|quarter|night", _UNIT_RULES),
)


_NOT_INSIDE = "(?<![0-9A-Za-z_])"
_TO = "to|until|till|through|up to"

RANGES = RangeRules(
    narrowing=(
        rf"{_NOT_INSIDE}(?:(?P<third>early|mid|late)(?: (?:in )?|-)"
        r"|(?:the )?(?:very )?(?P<edge>beginning|start|middle|end) of )\Z"
    ),
    anchor_before=(
        rf"{_NOT_INSIDE}(?:(?:the|last) (?P<one>day|week|month|year|weekend|{WEEKDAY_NAMES})|{AMOUNT})"
        r" (?P<dir>before|after|of) \Z"
    ),
    opening=rf"{_NOT_INSIDE}(?:from|(?P<between>between)) (?:the )?\Z",
    joint=rf" (?:{_TO}) (?:the )?|(?P<and> and (?:the )?)",
    to_now=rf" (?:{_TO}) (?:now|the present|date)(?![A-Za-z])",
    before=rf"{_NOT_INSIDE}(?P<word>since|after|before|prior to|until|till|up to) (?:the )?\Z",
    words={"prior": "before", "beginning": "start", "till": "until", "up": "until"},
    amount=amount,
    weekday=weekday_number,
)
