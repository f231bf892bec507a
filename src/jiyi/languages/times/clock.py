"""Times of day, as far as they say more about a day: yesterday at 7 pm, 昨天下午三点半."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache
from typing import NamedTuple

from ..numbers import chinese_number
from .calendar import DayPart, Part, in_day
from .scan import Atom

_CHINESE_PARTS: dict[str, DayPart] = {
    "凌晨": "dawn", "清晨": "morning", "一大早": "morning", "大清早": "morning", "早上": "morning", "早晨": "morning",
    "上午": "morning", "中午": "noon", "午后": "afternoon", "下午": "afternoon", "傍晚": "dusk", "晚上": "night",
    "夜里": "night", "半夜": "night", "深夜": "night", "夜晚": "night", "早": "morning", "晚": "night",
}  # fmt: skip
_ENGLISH_PARTS: dict[str, DayPart] = {
    "morning": "morning",
    "afternoon": "afternoon",
    "evening": "evening",
    "night": "night",
    "noon": "noon",
}
# 今天晚点 is later today, 今天早饭 a meal.
_PART_AFTER = (
    r"(?:,? (?:in the |at )?(?P<en>morning|afternoon|evening|night|noon)(?![A-Za-z0-9_])"
    r"|的? ?(?P<zh>凌晨|清晨|一大早|大清早|早上|早晨|上午|中午|午后|下午|傍晚|晚上|夜里|半夜|深夜|夜晚"
    r"|早(?![点餐饭就已些期日知安教退市])|晚(?![点餐饭会安年期婚些于一宴辈])))"
)
_PART_BEFORE = r"(?:the )?(?P<en>morning|afternoon|evening|night) of \Z"

_HOUR = "(?P<h>[01]?[0-9]|2[0-3])"
_MINUTE = "(?P<min>[0-5][0-9])"
_AM_PM = r"(?P<ap>[ap])\.?m(?:\.(?! [A-Z]))?(?![A-Za-z0-9_])"
_AT = r"(?:,? (?:at|around|about|by) |,? |, ?)"
_CHINESE_HOUR = "(?P<h>[0-9]{1,2}|二十[一二三]?|十[一二三四五六七八九]?|[一二两三四五六七八九零])"
_CHINESE_MINUTE = "(?P<min>[0-5]?[0-9]|[零〇]?[一二三四五六七八九]|[二三四五]?十[一二三四五六七八九]?)"
_PAST_HOUR = rf"(?:(?P<half>半)|(?P<quarter>[一三])刻| ?{_CHINESE_MINUTE}分|整)?"
# 昨天一点也不累 and 今天三点建议 have no hour in them.
_NO_HOUR = "(?![点儿心评击赞头餐菜名滴缀子也都没意建要原])"
_CLOCKS_AFTER = (
    rf"{_AT}{_HOUR}(?::{_MINUTE})? ?{_AM_PM}",
    rf"(?:{_AT}|T|的?){_HOUR}:{_MINUTE}(?::[0-5][0-9](?:\.[0-9]{{1,9}})?)?(?![:0-9A-Za-z_])",
    r" (?:at|around|about) (?P<h>1[0-2]|[1-9])(?: o'clock)?(?![:0-9A-Za-z_%.]| [a-z])",
    rf"的? ?{_CHINESE_HOUR} ?(?:点钟?|时(?![候间刻代常])){_PAST_HOUR}{_NO_HOUR}",
)
_CLOCKS_BEFORE = (
    rf"(?:(?:at|around|about) )?{_HOUR}(?::{_MINUTE})? ?{_AM_PM},? (?:on )?\Z",
    rf"(?P<h>[01][0-9]|2[0-3]):{_MINUTE} on \Z",
)
_LONGEST_BEFORE = 32


class _Patterns(NamedTuple):
    part_after: re.Pattern[str]
    part_before: re.Pattern[str]
    clocks_after: list[re.Pattern[str]]
    clocks_before: list[re.Pattern[str]]


@cache
def _patterns() -> _Patterns:
    def ready(pattern: str) -> re.Pattern[str]:
        # A space stands for a blank, not for the end of a line.
        return re.compile(pattern.replace(" ", r"[ \t]"), re.IGNORECASE | re.ASCII)

    start = "(?<![0-9A-Za-z_.:$-])"
    return _Patterns(
        ready(_PART_AFTER),
        ready(start + _PART_BEFORE),
        [ready(clock) for clock in _CLOCKS_AFTER],
        [ready(start + clock) for clock in _CLOCKS_BEFORE],
    )


def refined(text: str, atom: Atom, free: int) -> Atom:
    """The time with the time of day that is written beside it; text before `free` belongs to another."""
    if atom.part.grain != "day" and not atom.part.part:
        return atom
    patterns = _patterns()
    # After a date in digits an hour is by the 24 hours too: 2023-05-07 9:30.
    in_digits = text[atom.start : atom.end].translate(_NO_SEPARATORS).isdecimal()
    if atom.part.grain == "day" and (found := patterns.part_after.match(text, atom.end)):
        atom = Atom(in_day(atom.part, _part_name(found)), atom.start, found.end())
    for clock in patterns.clocks_after:
        if (found := clock.match(text, atom.end)) and (part := _at(found, atom.part, exact=in_digits)):
            return Atom(part, atom.start, found.end())
    return _refined_before(text, atom, free) if atom.part.grain == "day" else atom


_NO_SEPARATORS = {ord(char): None for char in "-/."}


def _refined_before(text: str, atom: Atom, free: int) -> Atom:
    lowest = max(free, atom.start - _LONGEST_BEFORE)
    before = text[lowest : atom.start]
    if not before.endswith((" ", "\t")):
        return atom
    patterns = _patterns()
    if found := patterns.part_before.search(before):
        return Atom(in_day(atom.part, _part_name(found)), lowest + found.start(), atom.end)
    for clock in patterns.clocks_before:
        if (found := clock.search(before)) and (part := _at(found, atom.part, exact=True)):
            return Atom(part, lowest + found.start(), atom.end)
    return atom


def _part_name(found: re.Match[str]) -> DayPart:
    said = found[found.lastindex or 0]
    return _CHINESE_PARTS.get(said) or _ENGLISH_PARTS[said.lower()]


def _at(found: re.Match[str], day: Part, *, exact: bool) -> Part | None:
    """That time of the day, unless it could be in the morning or in the afternoon."""
    said = found.groupdict()
    # 19:30 and 07:30 are by the 24 hours; 7:30 and 三点 may be either.
    exact = exact or (said["h"].isdecimal() and len(said["h"]) == 2 and bool(said.get("min")))
    hour = _hour(chinese_number(said["h"]), said.get("ap"), day.part, exact=exact)
    if hour is None:
        return None
    start = day.start.replace(hour=0) + timedelta(hours=hour)
    minutes = {"一": 15, "三": 45}.get(said.get("quarter") or "")
    if said.get("half"):
        minutes = 30
    elif said.get("min"):
        minutes = chinese_number(said["min"].lstrip("零〇"))
    if minutes is None:
        # 昨晚一点没吃: more often a bit than an hour.
        if said["h"] == "一" and day.part == "night" and found[0].endswith("点"):
            return None
        return day._replace(start=start, end=start + timedelta(hours=1), grain="hour")
    start += timedelta(minutes=minutes)
    return day._replace(start=start, end=start + timedelta(minutes=1), grain="minute")


def _hour(hour: int, half: str | None, part: DayPart | None, *, exact: bool) -> int | None:
    """The hour since midnight."""
    if half:
        return hour % 12 + (12 if half.lower() == "p" else 0) if 1 <= hour <= 12 else None
    if hour > 12 or part is None:
        return hour if hour < 24 and (hour > 12 or exact) else None
    match part:
        case "dawn":
            return hour % 12
        case "morning":
            return hour if hour >= 5 else None
        case "noon":
            return hour if hour >= 10 else hour + 12
    # Twelve or one at night is already the next day.
    return hour % 12 + (24 if part == "night" and (hour < 5 or hour == 12) else 12)
