"""Chinese times that come again: 每周三, 周一三五, 工作日, 每月15号."""

import re

from ..base import RecurrenceRule
from .dates import DAY_NUMBER, WEEKDAYS, chinese_number

_DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_WEEK = "(?:周|星期|礼拜)"
_DAY = f"[{WEEKDAYS}]"
_JOIN = f"(?:[、和跟及,，/]{{0,2}}{_WEEK}?)"
_NUMBERED = re.compile(_DAY)
_UNITS = {"天": "DAILY", "日": "DAILY", "周": "WEEKLY", "月": "MONTHLY", "年": "YEARLY"}


def _days(match: re.Match[str]) -> str:
    days = {min(WEEKDAYS.index(day), 6) for day in _NUMBERED.findall(match["days"])}
    return f"FREQ=WEEKLY;BYDAY={','.join(_DAYS[day] for day in sorted(days))}"


def _from_to(match: re.Match[str]) -> str:
    first, last = (min(WEEKDAYS.index(day), 6) for day in _NUMBERED.findall(match["days"]))
    return f"FREQ=WEEKLY;BYDAY={','.join(_DAYS[(first + day) % 7] for day in range((last - first) % 7 + 1))}"


def _day_of_month(match: re.Match[str]) -> str:
    return f"FREQ=MONTHLY;BYMONTHDAY={chinese_number(match['d'])}"


def _every(match: re.Match[str]) -> str:
    return f"FREQ={_UNITS.get(match['unit'], 'DAILY')}"


_NO_WEEKDAY = f"(?!{_DAY}(?![个次]))"

RECURRENCES = (
    RecurrenceRule(
        f"(?:每隔一|隔|每两个?|每2个?){_WEEK}的?(?:{_WEEK}?(?P<wd>{_DAY}))?",
        lambda match: (
            "FREQ=WEEKLY;INTERVAL=2" + (f";BYDAY={_DAYS[min(WEEKDAYS.index(match['wd']), 6)]}" if match["wd"] else "")
        ),
    ),
    RecurrenceRule(f"(?:每个?|逢){_WEEK}(?P<days>{_DAY}[到至]{_WEEK}?{_DAY})", _from_to),
    RecurrenceRule(f"(?:每个?|逢){_WEEK}(?P<days>{_DAY}(?:{_JOIN}{_DAY}){{0,6}})", _days),
    RecurrenceRule(f"每个?月的?(?P<d>{DAY_NUMBER})[号日]?", _day_of_month),
    RecurrenceRule(
        f"每年的?(?P<m>1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九])月(?P<d>{DAY_NUMBER})[号日]?",
        lambda match: f"FREQ=YEARLY;BYMONTH={chinese_number(match['m'])};BYMONTHDAY={chinese_number(match['d'])}",
    ),
    RecurrenceRule(
        "每个?周末|(?<![这上下本])工作日",
        lambda match: "FREQ=WEEKLY;BYDAY=SA,SU" if match[0].endswith("末") else "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
    ),
    RecurrenceRule("每个?(?:早上?|晚上?|天(?!气)|日)", lambda _: "FREQ=DAILY"),
    RecurrenceRule(f"每个?{_WEEK}{_NO_WEEKDAY}(?!末)", lambda _: "FREQ=WEEKLY"),
    RecurrenceRule("每个?(?P<unit>月|年)(?!初|底|[0-9一二三四五六七八九十])", _every),
    # 周一三五 is a timetable, 周二周四 may be two days.
    RecurrenceRule(f"(?<![上下这本每个]){_WEEK}(?P<days>{_DAY}{{2,6}})(?!月|号|点|十|个)", _days, sure=False),
    RecurrenceRule(
        f"(?<![上下这本每个]){_WEEK}(?P<days>{_DAY}(?:[、和跟及,，/]?{_WEEK}{_DAY}){{1,6}})", _days, sure=False
    ),
    RecurrenceRule(f"(?<![上下这本每个]){_WEEK}(?P<days>{_DAY}[到至~—–-]{_WEEK}?{_DAY})", _from_to, sure=False),
)
