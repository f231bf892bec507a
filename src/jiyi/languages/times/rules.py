"""The words with which one language names dates: what a language gives to `jiyi.languages.dates`."""

from __future__ import annotations

from typing import NamedTuple

from .clock import ClockRules
from .ranges import RangeRules
from .scan import Family


class DateRules(NamedTuple):
    """Rules for dates, times of day and ranges.

    A space in the patterns of `families` stands for `gap`; `before` and `after` go around each of them.
    """

    families: tuple[Family, ...] = ()
    gap: str = r"[ \t]{1,3}"
    before: str = ""
    after: str = ""
    clock: ClockRules = ClockRules()
    ranges: RangeRules = RangeRules()
