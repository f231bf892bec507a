"""Calendar arithmetic on local days. All of it is done on aware datetimes of one time zone: adding a day to such a one
moves the date and leaves the clock alone, so a day is a day even when summer time starts. An impossible date raises
ValueError, one beyond the calendar OverflowError; `scan` takes both to mean that no time was written there."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

Grain = Literal["minute", "hour", "day", "week", "month", "season", "quarter", "year", "range"]
DayPart = Literal["dawn", "morning", "noon", "afternoon", "dusk", "evening", "night"]
Unit = Literal["minute", "hour", "day", "week", "month", "year"]

# Nothing before or after is found.
FIRST_YEAR, LAST_YEAR = 1900, 2100

DAY = timedelta(days=1)
WEEK = timedelta(days=7)
NOTHING = timedelta()

# What "a few" and 几 may stand for.
FEWEST, MOST = 2, 6

# Hours since midnight; "last night" includes the hours after it.
HOURS: dict[DayPart, tuple[int, int]] = {
    "dawn": (0, 6),
    "morning": (5, 12),
    "noon": (11, 14),
    "afternoon": (12, 18),
    "dusk": (17, 20),
    "evening": (17, 24),
    "night": (18, 28),
}


class Part(NamedTuple):
    """A range of time that words name."""

    start: datetime
    end: datetime
    grain: Grain
    relative: bool = True
    # How often it comes again when the year, or the week, was left unsaid: the other end of a range can move it.
    cycle: Literal["", "week", "year"] = ""
    part: DayPart | None = None


class Atom(NamedTuple):
    """A time and its place in the text."""

    part: Part
    start: int
    end: int


class Amount(NamedTuple):
    """A number of units; None stands for a few."""

    number: int | None
    unit: Unit


_HALVES: dict[Unit, tuple[int, Unit]] = {"year": (6, "month"), "month": (15, "day"), "hour": (30, "minute")}


def halves(count: int, unit: Unit) -> Amount:
    """Return halves of a unit in smaller units."""
    if unit not in _HALVES:
        raise ValueError
    number, smaller = _HALVES[unit]
    return Amount(count * number, smaller)


@dataclass(frozen=True, slots=True)
class Calendar:
    """A calendar as seen from one moment, in that moment's time zone. With `future`, a time that recurs ("in May", "on
    Friday") is the next one instead of the most recent one. With `stated`, for statements, "two weeks ago" is a day; a
    question about it means the whole week."""

    now: datetime
    future: bool = False
    stated: bool = False

    @property
    def year(self) -> int:
        return self.now.year

    @property
    def today(self) -> datetime:
        return self.date(self.now.year, self.now.month, self.now.day)

    @property
    def monday(self) -> datetime:
        return self.today - self.now.weekday() * DAY

    def date(self, year: int, month: int, day: int) -> datetime:
        """Return the midnight at the start of a day."""
        return datetime(year, month, day, tzinfo=self.now.tzinfo)

    def day(self, year: int, month: int, day: int, *, relative: bool = False) -> Part:
        return one_day(self.date(year, month, day), relative=relative)

    def months(self, year: int, month: int, count: int, grain: Grain, *, relative: bool = False) -> Part:
        """Return whole months; `month` may lie outside 1 to 12 and then counts from that year."""
        return Part(self._first(year, month), self._first(year, month + count), grain, relative)

    def _first(self, year: int, month: int) -> datetime:
        years, index = divmod(month - 1, 12)
        return self.date(year + years, index + 1, 1)

    def week(self, distance: int) -> Part:
        """Return the week, Monday to Sunday, at a distance from this one."""
        start = self.monday + distance * WEEK
        return Part(start, start + WEEK, "week")

    def weekend(self, distance: int) -> Part:
        start = self.monday + distance * WEEK + 5 * DAY
        return Part(start, start + 2 * DAY, "range")

    def nearest_weekend(self) -> Part:
        """Return the most recent weekend that has begun; in the future, the first that is not over."""
        this = self.weekend(0)
        return this if self.future or this.start <= self.now else self.weekend(-1)

    def quarter(self, distance: int) -> Part:
        first = (self.now.month - 1) // 3 * 3 + 1
        return self.months(self.year, first + 3 * distance, 3, "quarter", relative=True)

    def unit(self, unit: Unit, distance: int) -> Part:
        """Return the minute, day, week, ... at a distance from now."""
        match unit:
            case "minute" | "hour":
                start = self.elapsed(unit, distance).replace(second=0, microsecond=0)
                start = start.replace(minute=0) if unit == "hour" else start
                # Addition forgets which of the two hours it was when summer time ends.
                return Part(start, (start + timedelta(**{unit + "s": 1})).replace(fold=start.fold), unit)
            case "day":
                return one_day(self.today + distance * DAY)
            case "week":
                return self.week(distance)
            case "month":
                return self.months(self.year, self.now.month + distance, 1, "month", relative=True)
            case "year":
                return self.months(self.year + distance, 1, 12, "year", relative=True)

    def elapsed(self, unit: Literal["minute", "hour"], distance: int) -> datetime:
        # By the hours that pass, not by what the clock on the wall shows: that jumps twice a year.
        passed = timedelta(**{unit + "s": distance})
        return (self.now.astimezone(UTC) + passed).astimezone(self.now.tzinfo)

    def away(self, amount: Amount, sign: int) -> Part:
        """Return the unit at a distance before or after now."""
        if amount.number is None:
            ends = self.unit(amount.unit, sign * FEWEST), self.unit(amount.unit, sign * MOST)
            return Part(min(ends).start, max(ends).end, "range")
        if self.stated and amount.unit == "week":
            return one_day(self.today + sign * amount.number * WEEK)
        return self.unit(amount.unit, sign * amount.number)

    def rolling(self, amount: Amount, sign: int) -> Part:
        """Return the last, or the next, number of units, counted from now."""
        distance = sign * (MOST if amount.number is None else amount.number)
        match amount.unit:
            case "minute" | "hour":
                far = self.elapsed(amount.unit, distance)
            case "day" | "week":
                far = self.today + distance * (DAY if amount.unit == "day" else WEEK)
            case "month" | "year":
                far = self._same_day(distance * (1 if amount.unit == "month" else 12))
        if sign < 0:
            return Part(far, self.now, "range")
        # Ahead, the last day counts in full.
        return Part(self.now, far if amount.unit in {"minute", "hour"} else far + DAY, "range")

    def _same_day(self, months: int) -> datetime:
        """Return this day in another month, or that month's last day."""
        first = self._first(self.year, self.now.month + months)
        last = self._first(self.year, self.now.month + months + 1) - DAY
        return min(first + (self.now.day - 1) * DAY, last)

    def weekday(self, weekday: int, direction: str) -> Part:
        """Return a day of the week: 0 is Monday. "last" is the nearest one before today, "next" the nearest after,
        "this" the one of this week. Without a direction it is the last, or in the future the next: for today people say
        "today"."""
        if direction == "this":
            this = one_day(self.monday + weekday * DAY)
            return this if not self.future or this.end > self.now else one_day(this.end + 6 * DAY)
        if direction == "next" or (self.future and not direction):
            found = one_day(self.today + ((weekday - self.now.weekday() - 1) % 7 + 1) * DAY)
            return found if direction else found._replace(cycle="week")
        found = one_day(self.today - ((self.now.weekday() - weekday - 1) % 7 + 1) * DAY)
        return found if direction else found._replace(cycle="week")

    def yearly(self, make: Callable[[int], Part], direction: str) -> Part:
        """Return something that recurs every year, as `make` gives it for one year. "last" is the most recent that is
        over, "next" the nearest that has not begun, "this" the one of this year. Without a direction it is the most
        recent that has begun, or in the future the first that is not over."""
        if direction == "this":
            before = make(self.year - 1)
            # In January this winter began last year.
            return (before if before.end > self.now else make(self.year))._replace(relative=True)
        # Eight years hold a 29 February even around 1900; a thing that is not there in a year is passed over.
        back = range(self.year, self.year - 9, -1)
        ahead = range(self.year - 1, self.year + 9)
        forwards = direction == "next" or (self.future and not direction)
        for year in ahead if forwards else back:
            try:
                found = make(year)._replace(relative=True)
            except ValueError:
                continue
            if direction == "next" and found.start > self.now:
                return found
            if direction == "last" and found.end <= self.today:
                return found
            if not direction and (found.end > self.now if self.future else found.start <= self.now):
                return found._replace(cycle="year")
        raise ValueError

    def monthly(self, day: int) -> Part:
        """Return the most recent day of a month with this number; in the future, the next one, today included."""
        for distance in range(3):
            start = self._first(self.year, self.now.month + (distance if self.future else -distance)) + (day - 1) * DAY
            if start.day == day and (start >= self.today if self.future else start <= self.now):
                return one_day(start)
        raise ValueError

    def month_part(self, which: int) -> Part:
        """Return a third of a month, 0, 1 or 2: the most recent or, in the future, the next."""
        this = third(self.unit("month", 0), which)
        if self.future:
            return this if this.end > self.now else third(self.unit("month", 1), which)
        return this if this.start <= self.now else third(self.unit("month", -1), which)

    def nth(self, month: Part, number: int, kind: str | int) -> Part:
        """Return the first, second, ... week, weekend or day of the week in a month; -1 is the last."""
        if kind == "week":
            start = month.end - WEEK if number < 0 else month.start + (number - 1) * WEEK
            return month._replace(start=start, end=min(start + WEEK, month.end), grain="week")
        weekday = 5 if kind == "weekend" else int(kind)
        if number < 0:
            last = month.end - DAY
            start = last - (last.weekday() - weekday) % 7 * DAY
        else:
            start = month.start + ((weekday - month.start.weekday()) % 7 + 7 * (number - 1)) * DAY
        if start >= month.end:
            raise ValueError
        if kind == "weekend":
            return month._replace(start=start, end=start + 2 * DAY, grain="range")
        return month._replace(start=start, end=start + DAY, grain="day")


def in_bounds(part: Part) -> bool:
    # The last moment of all is the midnight after the last year.
    return part.start.year >= FIRST_YEAR and (part.end.year, part.end.month, part.end.day) <= (LAST_YEAR + 1, 1, 1)


def one_day(start: datetime, *, relative: bool = True) -> Part:
    return Part(start, start + DAY, "day", relative)


def in_day(day: Part, part: DayPart) -> Part:
    """Return a part of a day."""
    start, end = HOURS[part]
    return day._replace(
        start=day.start + timedelta(hours=start), end=day.start + timedelta(hours=end), grain="hour", part=part
    )


def third(whole: Part, which: int) -> Part:
    """Return the first, second or last third of a month or a year: 0, 1 or 2."""
    if whole.grain == "year":
        cuts = [whole.start.replace(month=1 + 4 * index) for index in range(3)]
    else:
        cuts = [whole.start + 10 * index * DAY for index in range(3)]
    return whole._replace(start=cuts[which], end=[*cuts, whole.end][which + 1], grain="range")


def edge(year: Part, *, first: bool) -> Part:
    """Return the first or the last three months of a year."""
    if first:
        return year._replace(end=year.start.replace(month=4), grain="range")
    return year._replace(start=year.start.replace(month=10), grain="range")


def moved(part: Part, *, years: int = 0, weeks: int = 0) -> Part:
    """Return the same range in another year or week."""
    start = part.start.replace(year=part.start.year + years) + weeks * WEEK
    if part.grain in {"minute", "hour", "day"} or not years:
        return part._replace(start=start, end=start + (part.end - part.start))
    return part._replace(start=start, end=part.end.replace(year=part.end.year + years))
