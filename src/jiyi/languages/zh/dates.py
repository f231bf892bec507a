"""Chinese times of the calendar (days, months, seasons, quarters, years) and of the day."""

import re
from collections.abc import Callable

from ..base import Family, Rule, group
from ..calendar import DAY, Calendar, DayPart, Part, edge, one_day, third
from ..clock import Clock, ClockRules, read_clock

# Inside of a regular expression. 半 (half) and 几 (a few) are amounts of their own, see the rules.
CHINESE_NUMBER = "[0-9]{1,4}|[一二两三四五六七八九十百]{1,5}"

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_SCALES = {"十": 10, "百": 100}


def chinese_number(written: str) -> int:
    """Return the value of 12, 十二, 二十 or 一百零五.

    >>> chinese_number("二十三")
    23
    """
    if written.isdecimal():
        return int(written)
    total = digit = 0
    for char in written:
        if scale := _SCALES.get(char):
            total += (digit or 1) * scale
            digit = 0
        else:
            digit = _DIGITS[char]
    return total + digit


def chinese_year(written: str) -> int:
    """Return the value of 2023 or 二〇二三, digit by digit."""
    return int("".join(str(_DIGITS.get(char, char)) for char in written))


_HAN_NUMBER = "零〇一二两三四五六七八九十百"
# Not the end of a longer number.
NO_NUMBER = rf"(?<![0-9{_HAN_NUMBER}几数第.])"
_FULL_YEAR = "(?:(?:19|20)[0-9]{2}|2100|(?:一九|二[〇零])[〇零一二三四五六七八九]{2})"
_YEARS_AWAY = {"大前年": -3, "前年": -2, "去年": -1, "今年": 0, "本年": 0, "明年": 1, "来年": 1, "后年": 2}
# 以前年轻: no year is named there.
_YEAR = (
    rf"(?:{NO_NUMBER}(?P<y>{_FULL_YEAR}) 年|(?P<ry>大前年|(?<![以之])[前后]年|去年|今年|本年|明年|来年))"
    "(?![轻龄纪级])度?"
)
_YEAR_BEFORE = rf"{_YEAR}(?: 的)? "
_MONTH_NUMBER = "1[0-2]|0?[1-9]|十[一二]?|[一二三四五六七八九]"
# A year of two digits counts only here: 23年 alone is how long something took. Lunar months are left out.
_MONTH_START = (
    rf"(?:(?:{_YEAR}|{NO_NUMBER}(?P<yy>[0-9]{{2}}) 年)(?: 的)? |{NO_NUMBER}(?<![个闰])(?<!农历)(?<!阴历)(?<!旧历))"
)
# 一月三次 is how often, 五月初五 lunar, 五月天 a band.
_MONTH_END = (
    rf" 月(?![0-9{_HAN_NUMBER}]{{1,3}}[次回])(?!初[一二三四五六七八九十])"
    "(?![亮龄嫂饼])(?!大[的了宝婴]|怀胎|天(?![气天]))份?"
)
_MONTH = rf"{_MONTH_START}(?P<m>{_MONTH_NUMBER}){_MONTH_END}"
DAY_NUMBER = "3[01]|[12][0-9]|0?[1-9]|三十一?|二十[一二三四五六七八九]?|十[一二三四五六七八九]?|[一二三四五六七八九]"
# The day of the week adds nothing to a date.
_WEEKDAY = r"(?: (?P<open>\()?(?:周|星期|礼拜)[一二三四五六日天](?(open)\)))?"
_DASH = " [到至~—–-] "
_SEASONS = {"春": 3, "夏": 6, "秋": 9, "冬": 12}
_THIRDS = {"上": 0, "初": 0, "中": 1, "下": 2, "底": 2, "末": 2}
THIRD = "(?P<third>[上中下]旬|初(?![一二三四五六七八九十中级恋])|[底末](?![下日线层]))"
WEEKDAYS = "一二三四五六日天"
_HOLIDAYS: dict[str, tuple[int, int, int]] = {
    "元旦": (1, 1, 1), "情人节": (2, 14, 1), "劳动节": (5, 1, 1), "国庆": (10, 1, 7), "万圣节": (10, 31, 1),
    "双十一": (11, 11, 1), "双11": (11, 11, 1), "平安夜": (12, 24, 1), "圣诞": (12, 25, 1),
}  # fmt: skip


# The lunar festivals of the next years, in the solar calendar.
_LUNAR = {
    "春节": "2024-02-10 2025-01-29 2026-02-17 2027-02-06 2028-01-26 2029-02-13 2030-02-03 2031-01-23 2032-02-11",
    "端午": "2024-06-10 2025-05-31 2026-06-19 2027-06-09 2028-05-28 2029-06-16 2030-06-05 2031-06-24 2032-06-12",
    "中秋": "2024-09-17 2025-10-06 2026-09-25 2027-09-15 2028-10-03 2029-09-22 2030-09-12 2031-10-01 2032-09-19",
}


def _in_year(match: re.Match[str], calendar: Calendar, make: Callable[[int], Part]) -> Part:
    """Return `make` of the year that is written, or of the year that fits."""
    if year := group(match, "y"):
        return make(chinese_year(year))
    if year := group(match, "yy"):
        number = int(year) if year.isdecimal() else chinese_year(year)
        return make(number + (1900 if number >= 60 else 2000))
    if year := group(match, "ry"):
        return make(calendar.year + _YEARS_AWAY[year])._replace(relative=True)
    return calendar.yearly(make, "")


def _date(match: re.Match[str], calendar: Calendar) -> Part:
    month, day = chinese_number(match["m"]), chinese_number(match["d"])
    return _in_year(match, calendar, lambda year: calendar.day(year, month, day))


def _days(match: re.Match[str], calendar: Calendar) -> Part | None:
    first, last = _date(match, calendar), chinese_number(match["d2"])
    if last <= first.start.day:
        return None
    return first._replace(end=one_day(first.start.replace(day=last)).end, grain="range", cycle="")


def part_of_month(month: Part, written: str) -> Part:
    """Return 上旬, 中旬 or 下旬 of a month; 初 is the first, 底 the last."""
    return third(month, _THIRDS[written[0]]) if written else month


def _month(match: re.Match[str], calendar: Calendar) -> Part:
    number, written = chinese_number(match["m"]), group(match, "third")
    return _in_year(match, calendar, lambda year: part_of_month(calendar.months(year, number, 1, "month"), written))


def _months(match: re.Match[str], calendar: Calendar) -> Part | None:
    first, last = chinese_number(match["m"]), chinese_number(match["m2"])
    if last == first:
        return None
    count = (last - first) % 12 + 1
    return _in_year(match, calendar, lambda year: calendar.months(year, first, count, "range"))


def _nth_of_month(match: re.Match[str], calendar: Calendar) -> Part:
    number = chinese_number(match["nth"]) if match["nth"] else -1
    kind: str | int = "week"
    if match["wd"]:
        kind = "weekend" if match["wd"] == "末" else min(WEEKDAYS.index(match["wd"]), 6)
    return calendar.nth(_month(match, calendar), number, kind)


def _year(match: re.Match[str], calendar: Calendar) -> Part:
    return _in_year(match, calendar, lambda year: calendar.months(year, 1, 12, "year"))


def _years(match: re.Match[str], calendar: Calendar) -> Part | None:
    first, last = chinese_year(match["y"]), chinese_year(match["y2"])
    return calendar.months(first, 1, 12 * (last - first + 1), "range") if first < last else None


def _decade(match: re.Match[str], calendar: Calendar) -> Part:
    said = match["y"]
    start = int(said) if len(said) == 4 else 1900 + chinese_number(said)
    return calendar.months(start, 1, 120, "range")


def _season(match: re.Match[str], calendar: Calendar) -> Part:
    return _in_year(match, calendar, lambda year: calendar.months(year, _SEASONS[match["season"]], 3, "season"))


def _quarter(match: re.Match[str], calendar: Calendar) -> Part:
    quarter = chinese_number(match["q"] or group(match, "qq"))
    return _in_year(match, calendar, lambda year: calendar.months(year, 3 * quarter - 2, 3, "quarter"))


def _half_year(match: re.Match[str], calendar: Calendar) -> Part:
    first = 1 if match["half"] in "上前" else 7
    return _in_year(match, calendar, lambda year: calendar.months(year, first, 6, "range"))


def _edge_of_year(match: re.Match[str], calendar: Calendar) -> Part:
    def of(year: int) -> Part:
        whole = calendar.months(year, 1, 12, "year")
        return third(whole, 1) if match["edge"] == "中" else edge(whole, first=match["edge"] == "初")

    return _in_year(match, calendar, of)


def _holiday(match: re.Match[str], calendar: Calendar) -> Part:
    month, day, days = _HOLIDAYS[match["holiday"]]

    def of(year: int) -> Part:
        first = calendar.day(year, month, day)
        if days == 1:
            return first
        return first._replace(end=one_day(first.start.replace(day=day + days - 1)).end, grain="range")

    return _in_year(match, calendar, of)


def _lunar_holiday(match: re.Match[str], calendar: Calendar) -> Part | None:
    """The next lunar festival. Looking back, 春节 names no year and is no date."""
    name = {"除夕": "春节", "过年": "春节"}.get(match["holiday"], match["holiday"])
    days = [calendar.date(*map(int, day.split("-"))) for day in _LUNAR[name].split()]
    if match["holiday"] == "除夕":
        days = [day - DAY for day in days]
    return next((one_day(day) for day in days if day >= calendar.today), None) if calendar.future else None


_HOLIDAY = "元旦|情人节|劳动节|万圣节|双十一|双11(?![0-9])|平安夜"
_NTH = "(?:第(?P<nth>[一二三四五1-5])|最后一)个? (?:周|星期|礼拜)(?P<wd>[一二三四五六日天末])?"

# 12月20 without 日, as people type it.
_DAY_END = r"(?=\s|\Z|[,.;!?、。)]|[早晚]上|[上中下]午|凌晨|[以之]?[前后]|[我你他她咱要去来到回出开交还])(?!\.[0-9])"
_TO_MONTH = rf"(?P<m2>{_MONTH_NUMBER}){_MONTH_END}(?! (?:{DAY_NUMBER}) [日号])"

_MONTH_RULES: tuple[Rule, ...] = (
    (rf"{_MONTH} (?P<d>{DAY_NUMBER}) [日号]{_WEEKDAY}", _date),
    (rf"{_MONTH}(?P<d>3[01]|[12][0-9]|[1-9]){_DAY_END}", _date),
    (rf"{_MONTH} (?P<d>{DAY_NUMBER}) [日号]?{_DASH}(?P<d2>{DAY_NUMBER}) [日号]", _days),
    (rf"{_MONTH}(?: {THIRD})?", _month),
    (rf"{_MONTH_START}(?P<m>{_MONTH_NUMBER}) 月?{_DASH}{_TO_MONTH}", _months),
    (rf"{_MONTH}的? {_NTH}", _nth_of_month),
)
_SHORT_YEAR = "九[零〇一二三四五六七九]|八[零〇一二三四五六八]|七[零〇一二三四五七九]|[零〇][一二三四五六七八九]"
_YEAR_RULES: tuple[Rule, ...] = (
    (rf"{_YEAR}(?! [0-9{_HAN_NUMBER}]{{1,3}} 月)(?!代)", _year),
    # 88年的, 九二年: a year; 八九年 may be how long something took.
    (rf"{NO_NUMBER}(?P<yy>[6-9][0-9]) 年(?=的|出?生|毕业|结婚|属)", _year),
    (rf"{NO_NUMBER}(?P<yy>{_SHORT_YEAR}) 年(?!代|级|[前后来])", _year),
    (rf"{NO_NUMBER}(?P<y>{_FULL_YEAR}) 年?{_DASH}(?P<y2>{_FULL_YEAR}) 年(?!代)(?! (?:{_MONTH_NUMBER}) 月)", _years),
    (rf"(?:上世纪|二十世纪|20世纪)?{NO_NUMBER}(?P<y>[5-9]0|[五六七八九]十|(?:19|20)[0-9]0) 年代", _decade),
    (rf"{_YEAR_BEFORE}(?P<season>[春夏秋冬])[天季]", _season),
    (rf"{_YEAR_BEFORE}(?:第? (?P<q>[一二三四1-4]) 季度|Q(?P<qq>[1-4])(?![0-9A-Za-z]))", _quarter),
    (rf"(?:{_YEAR_BEFORE})?(?P<half>[上下前后])半年", _half_year),
    (rf"{_YEAR_BEFORE}年?(?P<edge>初(?![一二三四五六七八九十中级恋])|[底末](?![下日线层]))", _edge_of_year),
    (rf"{_YEAR_BEFORE}年(?P<edge>中)(?![国文午心学秋间级])", _edge_of_year),
    (r"(?<![每到个年])年(?P<edge>[初底])(?![一二三四五六七八九十])", _edge_of_year),
    (rf"{_YEAR_BEFORE}(?P<holiday>{_HOLIDAY}|国庆|圣诞)节?", _holiday),
)
_OTHER_RULES: tuple[Rule, ...] = (
    (rf"{NO_NUMBER}第? (?P<q>[一二三四1-4]) 季度", _quarter),
    (rf"(?<!每年)(?P<holiday>{_HOLIDAY}|国庆(?=节|假期|长假|期间)|圣诞(?=节))节?", _holiday),
    ("(?P<holiday>春节|端午|中秋|除夕|过年)节?(?!以来)", _lunar_holiday),
)

FAMILIES = (
    Family("月", _MONTH_RULES),
    Family("年", _YEAR_RULES),
    Family("季度|[旦节夜]|双1|双十|国庆|端午|中秋|除夕|过年", _OTHER_RULES),
)


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
# 7点40 and 六点四十, as people type them; not 三点十个人.
_BARE_MINUTE = (
    "(?P<bare>[0-5][0-9]|(?:[二三四五]十[一二三四五六七八九]?|十[一二三四五六七八九]))"
    "(?![0-9一二三四五六七八九十百.:%]| ?(?:个|人|位|块|元|斤|公里|公斤|米|岁|名|多|几|分钟))"
)
_PAST_HOUR = rf"(?:(?P<half>半)|(?P<quarter>[一三])刻| ?{_MINUTE}分|整| ?{_BARE_MINUTE})?"
# 昨天一点也不累 and 今天三点建议 have no hour in them.
_NO_HOUR = "(?![点儿心评击赞头餐菜名滴缀子也都没意建要原])"


def _read(match: re.Match[str], part: DayPart | None) -> Clock | None:
    said = match.groupdict()
    minute = {"一": 15, "三": 45}.get(said["quarter"] or "")
    if said["half"]:
        minute = 30
    elif written := said["min"] or said["bare"]:
        minute = chinese_number(written.lstrip("零〇"))
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
