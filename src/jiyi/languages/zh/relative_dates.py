"""Chinese times seen from now: 昨天, 上周五, 三周前, 以来, 从A到B."""

import re

from ..base import Family, RangeRules, Rule
from ..calendar import DAY, MOST, Amount, Calendar, DayPart, Part, Unit, halves, in_day, one_day
from .dates import CHINESE_NUMBER, DAY_NUMBER, NO_NUMBER, THIRD, WEEKDAYS, chinese_number, part_of_month

_UNITS: dict[str, Unit] = {
    "分钟": "minute", "小时": "hour", "钟头": "hour", "天": "day", "周": "week", "星期": "week", "礼拜": "week",
    "月": "month", "年": "year",
}  # fmt: skip
_SOME = "好?几|数|若干|些"
AMOUNT = (
    rf"{NO_NUMBER}(?!(?:19|20)[0-9]{{2}} 年)(?P<n>{CHINESE_NUMBER}|半|{_SOME}) (?:个(?P<half>半)?)?"
    r"(?P<unit>分钟|小时|钟头|天|周|星期|礼拜|(?<=[个半两几数])月|年)(?P<half2>半)?"
)

_DAYS = {"大前": -3, "前": -2, "昨": -1, "今": 0, "明": 1, "后": 2, "大后": 3}
_DAY_PARTS: dict[str, DayPart] = {"早": "morning", "晨": "morning", "晚": "night", "夜": "night"}

# 早上周五 and 网上周边 are not last week, 一下周五 is not next week, 天上月亮 is no month.
_DIRECTION = (
    "(?P<dir>(?<![早晚马网路身以之地天头桌街线船车床楼手海水湖])上{1,3}一?"
    "|(?<![一以之天地楼手桌脚乡水私底当月])下{1,3}一?|[这本])"
)
# 上周一共, 上周日本队, 上周三次, 下周天气: the week and something else.
_WEEKDAY = (
    "(?P<wd>一(?![共起直些样定般个次家点下切边度同道年月])|日(?![本常记程期语元子])|[二三四五六](?![次个位本名种件条只届回遍])"
    "(?!天(?!气)))(?![百千万]|十(?![一二]?点))"
)
_SUNDAY = "(?P<sunday>天(?![气天]))"
_WEEK_END = "(?![期围边转刊报岁年])"


def amount(match: re.Match[str]) -> Amount:
    """Return a number of units; 两年半 are months."""
    said, unit = match["n"], _UNITS[match["unit"]]
    if said == "半":
        return halves(1, unit)
    if re.fullmatch(_SOME, said):
        return Amount(None, unit)
    count = chinese_number(said)
    return halves(2 * count + 1, unit) if match["half"] or match["half2"] else Amount(count, unit)


def _steps(match: re.Match[str]) -> int:
    """Return -1 for 上, -2 for 上上, 1 for 下."""
    said = match["dir"].rstrip("一")
    return {"上": -len(said), "下": len(said)}.get(said[0], 0)


def _away(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.away(amount(match), -1 if match["dir"] == "前" else 1)


def _still_ahead(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.away(amount(match), 1)


def _up_to_now(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.rolling(amount(match), -1)


def _before_now(match: re.Match[str], calendar: Calendar) -> Part:
    """前几天, 前两年: without today, without this year."""
    count, unit = amount(match)
    return Part(calendar.unit(unit, -(count or MOST)).start, calendar.unit(unit, 0).start, "range")


def _week(match: re.Match[str], calendar: Calendar) -> Part:
    if match["end"]:
        return calendar.weekend(_steps(match))
    week = calendar.week(_steps(match))
    if match["wd"] or match["sunday"]:
        return one_day(week.start + _weekday_number(match) * DAY)
    return week


def _weekday_number(match: re.Match[str]) -> int:
    return min(WEEKDAYS.index(match["wd"] or "日"), 6)


def _weekday(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.weekday(_weekday_number(match), "")


def _weekend(_match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.nearest_weekend()


def _month(match: re.Match[str], calendar: Calendar) -> Part:
    month = calendar.unit("month", _steps(match))
    if match["d"]:
        return one_day(month.start.replace(day=chinese_number(match["d"])))
    return part_of_month(month, match["third"] or "")


def _quarter(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.quarter(_steps(match))


def _day(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.unit("day", _DAYS[match["day"]])


def _part_of_day(match: re.Match[str], calendar: Calendar) -> Part:
    return in_day(_day(match, calendar), _DAY_PARTS[match["part"]])


def _same_time(match: re.Match[str], calendar: Calendar) -> Part:
    years = {"去": -1, "前": -2, "明": 1}[match["dir"]]
    if match["day"]:
        return calendar.day(calendar.year + years, calendar.now.month, calendar.now.day, relative=True)
    return calendar.unit("month", 12 * years)


def _so_far(match: re.Match[str], calendar: Calendar) -> Part:
    unit = _UNITS[match["unit"]]
    return calendar.unit(unit, 0)._replace(end=calendar.now, grain="range")


def _day_of_month(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.monthly(chinese_number(match["d"]))


def _part_of_month(match: re.Match[str], calendar: Calendar) -> Part:
    return calendar.month_part({"初": 0, "中": 1}.get(match["third"][0], 2))


_WEEK = "个?(?:周|星期|礼拜)"
_BEFORE = "[以之]?(?P<dir>前)(?![端台面后半任夫妻男女锋卫提途言景])"
_AFTER = "[以之]?(?P<dir>后)(?![端台面半来悔果勤卫续]|天(?!气))"
# 今晚上课 is tonight and a lesson.
_ON = "上(?![课班学网线街山海床映场台门火车去来厕楼市交传])"
_ON_DAY = "(?=那天|这天|凌晨|早上|上午|中午|下午|傍晚|晚上|[我你他她咱])"

_NUMBERED = "线楼店院门房机码桌馆厅台车床井店铺窗口柜库站航球员元首称"

_DAY_RULES: tuple[Rule, ...] = (
    ("(?P<day>昨|今|大前|(?<![以之目从先提])前(?!天[气天空数]))天", _day),
    ("(?P<day>大后|(?<![以之然])后)天(?![气天性培努形因教环])", _day),
    # 说明天气 has no tomorrow in it.
    ("(?P<day>明)天(?!(?<=说明天)气)", _day),
    ("(?P<day>[昨今明])日(?!头条|方舟|之星|重现|报)", _day),
    ("(?P<day>[昨今明])儿(?![童子女媳歌])个?", _day),
    (f"(?P<day>[昨今明前])(?P<part>早|晚(?![点会辈]))(?:{_ON})?", _part_of_day),
    ("(?P<day>[昨今明])(?P<part>[晨夜])里?", _part_of_day),
    (f"{NO_NUMBER}(?<![月A-Za-z#-])(?P<d>{DAY_NUMBER}) [日号]{_ON_DAY}", _day_of_month),
    # 3号线 is a metro line, 1号楼 a building.
    (f"{NO_NUMBER}(?<![月到至A-Za-z#-])(?P<d>{DAY_NUMBER}) 号(?![{_NUMBERED}]|选手|文件|公路|种子|位)", _day_of_month),
)
_WEEK_RULES: tuple[Rule, ...] = (
    (f"{_DIRECTION}{_WEEK}(?:{_WEEKDAY}|{_SUNDAY}|(?P<end>末)|{_WEEK_END})", _week),
    (f"(?:(?<![每个一二两三四五六七八九十几半0-9])|(?<=[周期拜][一二三四五六]))(?:周|星期|礼拜){_WEEKDAY}", _weekday),
    ("(?<![每个一二两三四五六七八九十几半0-9])(?:星期|礼拜)(?P<wd>天)(?![气天])", _weekday),
    ("(?<![每个一二两三四五六七八九十几])周末(?!愉快|快乐)", _weekend),
)
_UNIT_RULES: tuple[Rule, ...] = (
    (f"{_DIRECTION}个?月(?![亮光球饼薪])(?: 的? (?P<d>{DAY_NUMBER}) [日号]| {THIRD})?", _month),
    (
        "(?<![0-9一二三四五六七八九十每个上下这本几半])月(?P<third>[底末]|初(?![一二三四五六七八九十]))(?![0-9])",
        _part_of_month,
    ),
    (f"{_DIRECTION}个?季度", _quarter),
    (f"{AMOUNT}{_BEFORE}", _away),
    # 工作一天后 is after a day of work.
    (f"(?<![了过完作用]){AMOUNT}{_AFTER}", _away),
    # 再过两周, 还有三天就考试; not 还有两年房贷.
    (f"(?:再过|再有){AMOUNT}(?!了)", _still_ahead),
    (f"(?:还有|还剩|过){AMOUNT}(?=[就才要到结开毕])", _still_ahead),
    (f"(?:最近|过去|(?<![最附接靠邻远])近)(?:的|这)? {AMOUNT}(?:以来|之内|[来里内间])?(?![前后了])", _up_to_now),
    (f"这(?=好?几|两|一(?:周|个?星期|个?礼拜|个月|年)){AMOUNT}(?:以来|之内|[来里内间])?(?![前后])", _up_to_now),
    (f"(?<![以之提目])前(?=好?几|两|些){AMOUNT}", _before_now),
    (
        f"(?:未来|接下来|今后|往后)(?:的|这)? {AMOUNT}(?:之内|[里内间])?",
        lambda match, calendar: calendar.rolling(amount(match), 1),
    ),
    ("(?P<dir>[去前明])年的?(?:(?P<day>今天|今日|同一天)|这个?时候|此时|同期)", _same_time),
    ("(?:[今本]|这个?)(?P<unit>[年月周天])早些时候", _so_far),
)

FAMILIES = (
    Family("[天日儿早晚晨夜号]", _DAY_RULES),
    Family("[周期拜]", _WEEK_RULES),
    Family("[月度钟时头天周期拜年]", _UNIT_RULES),
)


_NUMBER = "0-9一二两三四五六七八九十"

RANGES = RangeRules(
    anchor_after="的?(?P<dir>[前后])" + AMOUNT.replace(" ", ""),
    opening=r"(?P<between>(?!))?(?:自从|从|自) ?\Z",
    joint=r" ?(?:到|至|直到) ?|(?P<and> ?和 ?)",
    between_after="之间",
    to_now="(?:以来|至今|迄今|(?:一直)?到(?:现在|如今|目前))(?![A-Za-z])",
    onwards="(?:开始|起|以来)(?![点床来])",
    # 去年前三个月 is not before last year, 昨天后来 not after yesterday.
    after=(
        f"(?=[以之]|前(?![端台面后半任夫妻男女锋卫提途言景几些{_NUMBER}])|后(?![端台面半来悔果勤卫续天几{_NUMBER}]))"
        "[以之]?(?P<word>[前后])"
    ),
    words={"前": "before", "后": "after"},
    amount=amount,
)
