"""Chinese."""

from ..base import DateRules, Language
from . import dates, relative_dates
from .dates import CLOCK, chinese_number
from .relative_dates import RANGES
from .words import STOP_WORDS

CHINESE = Language(
    code="zh",
    name="Chinese",
    script="han",
    joiner="",
    stop_words=STOP_WORDS,
    first_person="我|咱",
    negation="[不没未无非别]",
    past_question=(
        "以前|之前|先前|此前|原来|原先|原本|从前|过去|曾经|曾[在是有]|当初|当时|那时|最初|起初|一开始|早先|历史|旧(?!金山)|最早|最开始|刚开始|刚[到来](?!的)|本[来來]|原计划"
        "|第一次|[家工走作伤价職职学婚院店](?:之?前|以前)(?!面|台|后|天|年|进|往)"
        "|上一[个份任次]|前一[个份任次]|变化|改变|换过|改过"
    ),
    assistant_question=(
        "[你您](?:之前|上次|刚才|曾经|以前)?.{0,4}(?:说|推荐|建议|告诉|提到|讲|给我|列)"
        "|我们(?:之前|上次|刚才|以前).{0,4}(?:聊|说|谈|讨论)"
    ),
    past_event="(?<![对为除行好算])了|过(?!来|去|年|生日)|昨|刚(?!好)",
    arranged="[要会想]|打算|准备|计划|预约|约[了好]|[订定买]了|报名|报了|推迟|[改不没才再]|延期|提前|截止|之前|[到等]$|安排|通知|决定|快",
    standing=(
        "过敏|不耐受|忌口|吃素|素食|清真|糖尿病|怀孕|孕妇|孕期|哮喘|癫痫|轮椅|色盲|色弱|戒酒"
        "|(?:不能|不可以|不得|不许|不准|从不|绝不)(?:再)?(?:吃|喝|碰|用|穿|坐|沾|接触)"
        "|以后(?:都|请|不要|别|回答|写|用|叫)|从现在起|从今以后|叫我|称呼我|请?(?:一律|始终|永远)(?:用|不|以|别|要|先)"
        "|(?:回答|回复|答复)(?:我)?(?:时|的时候|都|请|要|用|尽量|不要|别|简短|简洁)|用(?:中文|英文|英语|普通话|粤语|日语|繁体)(?:回答|回复|写)"
    ),
    ending=(
        r"[和跟](?P<thing_zh3>\w{2,6}?)(?:分手|掰|离婚)|(?P<thing_zh1>[^\W我把和跟][^\W我把和跟]{1,7}?)"
        "(?:昨天|前天|今天|昨晚|上周|上个?月|已经|刚刚?|最近|终于|都|就|也|给|被|先|彻底)*"
        "(?:去世|走丢|死|停|取消|黄|卖|退|戒)[掉了]"
        r"|(?:卖|退|取消|停|辞|戒)[掉了]+(?P<thing_zh2>\w{2,6})"
    ),
    asked_question=r"问过|问了|提问|问题|请求",
    dates=DateRules(families=dates.FAMILIES + relative_dates.FAMILIES, gap=r"[ \t]{0,2}", clock=CLOCK, ranges=RANGES),
    number=chinese_number,
)
