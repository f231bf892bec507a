"""The times that a statement names, as data: "I fly on Friday", said on 2026-11-19, names the day 2026-11-20."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import JsonValue

from ..languages import TimeSpan, cue, dates
from ..languages.recurrence import Recurrence, recurrences, weekly, yearly
from ..models.shown_dates import WHEN

MAX_TIMES = 8  # of one text
_DAY = timedelta(days=1)
_WEEKEND = timedelta(days=2)
_MONTH = timedelta(days=31)
_LONG_AGO = timedelta(days=200)  # a day without a year beside a past verb may still be the next one
_STOP = re.compile(r"[,.;:!?\n，。；：！？](?!\d)")


@dataclass(frozen=True, slots=True)
class Time:
    """A time that a text names: from `start` up to, not including, `end`, or a `recurrence` as an RRULE of RFC 5545."""

    text: str
    start: datetime | None
    end: datetime | None
    precision: str  # minute, hour, day, week, month, season, quarter, year or range; of a recurrence day or week
    recurrence: str | None = None

    def as_data(self) -> dict[str, JsonValue]:
        found: dict[str, JsonValue] = {
            "text": self.text,
            "start": None if self.start is None else self.start.isoformat(),
            "end": None if self.end is None else self.end.isoformat(),
            "precision": self.precision,
        }
        return found if self.recurrence is None else {**found, "recurrence": self.recurrence}


def when_data(times: Sequence[Time]) -> dict[str, JsonValue]:
    """Return times as the data of a memory; {} without any."""
    return {WHEN: [time.as_data() for time in times[:MAX_TIMES]]} if times else {}


def resolve(text: str, said_at: datetime, *, future: bool | None = None) -> list[Time]:
    """Return the times that a text names, in order.

    What is planned, due or arranged lies ahead of `said_at`, what is told behind it, and a habit nowhere. `future` says
    where a bare weekday, or a date without a year, lies if its clause does not; None: unknown, and then it is left out.

    >>> from datetime import UTC
    >>> [time] = resolve("Remind me to pay her back on Friday", datetime(2026, 11, 19, tzinfo=UTC))
    >>> f"{time.start:%F}", time.text, time.precision
    ('2026-11-20', 'Friday', 'day')
    >>> resolve("Trash goes out every Tuesday", datetime(2026, 11, 19, tzinfo=UTC))[0].recurrence
    'FREQ=WEEKLY;BYDAY=TU'
    """
    again = [one for one in recurrences(text) if one.sure or _comes_again(text, one)]
    found = [(one.at[0], Time(one.text, None, None, "day", one.rule)) for one in again]
    behind = {span.at: span for span in dates(text, said_at, stated=True)}
    ahead = {span.at: span for span in dates(text, said_at, stated=True, future=True)}
    taken = [one.at for one in again]
    for at in sorted(behind.keys() | ahead.keys()):
        if any(at[0] < end and start < at[1] for start, end in taken):
            continue
        clause = _Clause.around(text, at)
        time = _time(clause, behind.get(at), ahead.get(at), said_at, future)
        if time is not None:
            taken.append(at)
            found.append((at[0], time))
    return [time for _, time in sorted(found, key=lambda entry: entry[0])]


def _time(
    clause: _Clause, behind: TimeSpan | None, ahead: TimeSpan | None, said_at: datetime, future: bool | None
) -> Time | None:
    """Return the time that words name, of its two readings: behind and ahead of when they were said."""
    if behind is not None and ahead is not None and behind == ahead:
        return _at(behind)
    lies_ahead = clause.lies_ahead(future)
    if behind is None or ahead is None:
        only = behind or ahead
        return _at(only) if only is not None and (lies_ahead is None or lies_ahead == (only is ahead)) else None
    if rule := clause.recurrence(ahead):
        return Time(ahead.text, None, None, "day", rule)
    if lies_ahead is False and said_at - behind.start > _LONG_AGO and behind.end - behind.start <= _DAY:
        lies_ahead = None if clause.is_past else True
    return None if lies_ahead is None else _at(ahead if lies_ahead else behind)


def _at(span: TimeSpan) -> Time:
    return Time(span.text, span.start, span.end, span.grain)


def _comes_again(text: str, several: Recurrence) -> bool:
    """Return True if several weekdays are a timetable, and not days of one week."""
    clause = _Clause.around(text, several.at)
    return clause.lies_ahead(None) is None


@dataclass(frozen=True, slots=True)
class _Clause:
    """The words around a time, up to the next punctuation mark or conjunction."""

    before: str
    words: str
    after: str
    sentence: str

    @classmethod
    def around(cls, text: str, at: tuple[int, int]) -> _Clause:
        start = max((end for _, end in _ends(text, 0, at[0])), default=0)
        end = next((begin for begin, _ in _ends(text, at[1], len(text))), len(text))
        return cls(text[start : at[0]], text[at[0] : at[1]], text[at[1] : end], text)

    def _has(self, field: str) -> bool:
        return bool(cue(field).search(self.before) or cue(field).search(self.after))

    @property
    def is_habit(self) -> bool:
        return self._has("habit")

    @property
    def is_timetable(self) -> bool:
        return self.is_habit or self._has("timetable")

    @property
    def is_past(self) -> bool:
        return self._has("past_event")

    def lies_ahead(self, expected: bool | None) -> bool | None:
        """Return True if the time lies ahead, False if it is over: by the verb of the clause, else what is expected."""
        aims_at = cue("aims_at").search(self.before) is not None
        if self.is_habit or cue("since").search(self.before):
            return False if self.is_past or not self.is_habit else None
        if self._has("arranged") and not self._has("ahead"):
            return True if aims_at else expected
        if self._has("ahead"):
            return True
        if self.is_past or self.is_timetable:
            return False if self.is_past else None
        is_date = any(char.isdigit() for char in self.words) and not cue("past_event").search(self.sentence)
        return True if aims_at or is_date or self._has("present") else expected

    def recurrence(self, span: TimeSpan) -> str | None:
        """Return the rule of a weekday, weekend or day of the year that comes again."""
        length = span.end - span.start
        if length <= _MONTH and cue("yearly").search(self.sentence) and self._names_month(span):
            return yearly(span.start.month, span.start.day if length <= _DAY else None)
        if self.lies_ahead(None) is not None or not self.is_timetable or self._names_month(span):
            return None
        if length <= _DAY:
            return weekly({span.start.weekday()})
        return weekly({5, 6}) if length == _WEEKEND and span.start.weekday() == 5 else None

    def _names_month(self, span: TimeSpan) -> bool:
        """Return True for a day of the year; a day of the week or of the month names no month."""
        other = dates(span.text, span.start - _LONG_AGO, stated=True, future=True)
        starts = [f"{one.start:%m-%d}" for one in (*other, span)]
        return len(set(starts)) == 1 < len(starts)


def _ends(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the places where clauses end."""
    found = [match.span() for pattern in (_STOP, cue("clause_end")) for match in pattern.finditer(text, start, end)]
    yield from sorted(found)
