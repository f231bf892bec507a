"""Chinese times of day: 早上, 下午三点半."""

from __future__ import annotations

import re

from ..times.calendar import DayPart
from ..times.clock import Clock, ClockRules, read_clock
from .numbers import chinese_number

_PARTS: dict[str, DayPart] = {
    "凌晨": "dawn", "清晨": "morning", "一大早": "morning", "大清早": "morning", "早上": "morning", "早晨": "morning",
    "上午": "morning", "中午": "noon", "午后": "afternoon", "下午": "afternoon", "傍晚": "dusk", "晚上": "night",
    "夜里": "night", "半夜": "night", "深夜": "night", "夜晚": "night", "早": "morning", "晚": "night",
}  # fmt: skip
# 今天晚点 is later today, 今天早饭 a meal.
_PART = (
    r"的? ?(?P<part>凌晨|清晨|一大早|大清早|早上|早晨|上午|中午|午后|下午|傍晚|晚上|夜里|半夜|深夜|夜晚"
    r"|早(?![点餐饭就已些期日知安教退市])|晚(?![点餐饭会安年期婚些于一宴辈]))"
)
_HOUR = "(?P<h>[0-9]{1,2}|二十[一二三]?|十[一二三四五六七八九]?|[一二两三四五六七八九零])"
_MINUTE = "(?P<min>[0-5]?[0-9]|[零〇]?[一二三四五六七八九]|[二三四五]?十[一二三四五六七八九]?)"
_PAST_HOUR = rf"(?:(?P<half>半)|(?P<quarter>[一三])刻| ?{_MINUTE}分|整)?"
# 昨天一点也不累 and 今天三点建议 have no hour in them.
_NO_HOUR = "(?![点儿心评击赞头餐菜名滴缀子也都没意建要原])"


def _read(match: re.Match[str], part: DayPart | None) -> Clock | None:
    said = match.groupdict()
    minute = {"一": 15, "三": 45}.get(said["quarter"] or "")
    if said["half"]:
        minute = 30
    elif said["min"]:
        minute = chinese_number(said["min"].lstrip("零〇"))
    # 昨晚一点没吃: more often a bit than an hour.
    if minute is None and said["h"] == "一" and part == "night" and match[0].endswith("点"):
        return None
    exact = said["h"].isdecimal() and len(said["h"]) == 2 and bool(said["min"])
    return Clock(chinese_number(said["h"]), minute, exact=exact)


CLOCK = ClockRules(
    parts=_PARTS,
    part_after=_PART,
    after=(
        (rf"的? ?{_HOUR} ?(?:点钟?|时(?![候间刻代常])){_PAST_HOUR}{_NO_HOUR}", _read),
        (r"的(?P<h>[01]?[0-9]|2[0-3]):(?P<min>[0-5][0-9])(?![:0-9A-Za-z_])", read_clock),
    ),
)
