"""Chinese words: lists, and the division of text without spaces by rjieba's dictionary."""

import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib.resources import files
from itertools import islice, product
from operator import add
from types import ModuleType
from typing import Literal

from ...text_cache import text_cache
from ..base import word_set

# Single characters that only colour a sentence. The list is short on purpose: 地, 得 or 过 can be content.
PARTICLES = frozenset("的了着吗呢吧啊呀嘛啦哦喔噢呗么什们哇嗯哎唉诶咯嘞")

_QUESTIONS = word_set("什么 怎么 怎样 哪里 哪儿 哪个 哪些 为什么 什么样 怎么样 多少 如何 为何 何时 几时")

STOP_WORDS = _QUESTIONS | word_set("""
    谁 哪 几 何 啥 咋 是否 是不是 有没有 能不能 可不可以 什么时候
    我 你 您 他 她 它 咱 我们 你们 您们 他们 她们 它们 咱们 自己 大家 别人 人家 某 某个 某些
    这 那 这个 那个 这些 那些 这里 那里 这儿 那儿 这样 那样 这么 那么 这是 那是 此 该 各 每 每个
    是 在 有 和 与 及 或 或者 以及 并 并且 而 而且 但 但是 不过 可是 然而 所以 因此 因为 由于 如果 假如 虽然 尽管
    即使 只要 只有 除了 无论 不管 既然 于是 然后 接着 还是 还有 就是 也是 都是 不是 而是 只是 可以 可能 应该 能够
    一定 已经 曾经 正在 刚刚 刚才 现在 一直 一些 一下 一点 一个 一样 一起 有些 有点 有的 没有 不会 不能 非常 十分
    特别 比较 真的 其实 其中 关于 对于 根据 按照 通过 为了 从 把 被 让 给 对 向 往 到 跟 同 为 以 于 之 其 所 将
    就 才 又 再 也 都 很 太 更 最 还 只 不 没 会 能 要 想 去 来 说 做 用 上 下 里 中 个 些 点 次 人 事 时 时候
    年 月 日 天 等 等等 之前 之后 以前 以后 的话 请 请问 告诉 比如 例如 好像 似乎 大概 左右
""")

# Pairs of characters that are no search terms: question words, pronouns, and any two particles.
STOP_PAIRS = (
    frozenset(word for word in STOP_WORDS if len(word) == 2)
    | frozenset(word[i : i + 2] for word in _QUESTIONS for i in range(len(word) - 1))
    | frozenset(map("".join, product(PARTICLES, repeat=2)))
)

# Words that nearly every memory has: true keywords, but they set nothing apart.
COMMON_KEYWORDS = word_set("用户 助手 喜欢 觉得 知道 想要 需要 希望 认为 今天 昨天 明天 东西 问题")
# Keywords that a memory type adds to its memories; "fact" is too general for one.
TYPE_KEYWORDS = {
    "preference": ("偏好",),
    "task": ("任务", "待办"),
    "event": ("事件",),
    "episode": ("经历",),
    "profile": ("个人资料",),
    "pattern": ("习惯",),
    "skill": ("技能",),
    "lesson": ("经验",),
    "decision": ("决定",),
    "config": ("配置",),
    "command_output": ("命令", "输出"),
}
UNITS = (
    "公斤|公里|千克|毫升|厘米|分钟|小时|平方米|平米|块钱|美元|欧元|日元|[万亿]元"
    "|[元块岁年月日号点分秒天周次个人斤克米度万亿楼层页%]"
)


NAME = 1.4  # weight of a name as a keyword
# rjieba's part-of-speech tags, the longest that fits wins; a word with no tag here is no keyword.
_TAGS = {
    "n": 1.0, "nr": 0.9, "nrt": NAME, "nrfg": NAME, "ns": NAME, "nt": NAME, "nz": 1.3, "i": 1.0, "j": 1.0,
    "l": 0.9, "x": 0.8, "s": 0.7, "v": 0.6, "vn": 0.8, "a": 0.6, "an": 0.8, "b": 0.6, "z": 0.5, "o": 0.5, "t": 0.4,
    "m": 0.4,
}  # fmt: skip
_ONE_CHARACTER = 0.6
_LONGEST_WORD = 16
# The dictionary has 我会 and 你是 among its nouns.
_PRONOUNS = frozenset("我你您他她它")

# The dictionary tags phrases such as 喝咖啡 as persons; a person's name begins with one of these (or 小, 老, 阿).
_SURNAMES = frozenset(
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧肖程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟"
    "汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文欧司上诸小老阿"
)

# The dictionary divides 跟张伟去 into 跟 and 张伟去.
_AFTER_NAMES = frozenset("去来说在是也都到跟给会要")

# The dictionary has 吉他 among its places, so that a word before it or its end must say so too.
_GOING = word_set("在 去 到 来 从 回 飞 往 住 搬 搬到 搬去 来自 离开 位于 老家 去过 住在")
_PLACE_ENDS = "市省县区国州镇岛"
_PLACES: dict[str, Literal["place", "organisation"]] = {"ns": "place", "nt": "organisation"}

KIN = (
    "爸爸?|妈妈?|父亲|母亲|爷爷|奶奶|外公|外婆|哥哥?|姐姐?|弟弟|妹妹?|老公|老婆|丈夫|妻子|爱人|先生|太太|男友|女友|男朋友|女朋友"
    "|对象|未婚[夫妻]|儿子|女儿|孩子|表[哥姐弟妹]|堂[哥姐弟妹]|叔叔|阿姨|舅舅|姑姑|朋友|闺蜜|同事|同学|室友|邻居|老板|经理|领导|主管|上司|导师|老师|医生"
)
_PET = "猫咪?|狗狗?|兔子|仓鼠|鹦鹉|宠物"
# 我女儿叫朵朵，我老板叫陈建国，家里的猫叫团子.
_CALLED = re.compile(
    rf"(?:(?P<kin>{KIN})|{_PET})(?:的名字)?(?:就叫|名叫|叫做?)(?P<name>[^\W我你您他她它\da-zA-Z]{{1,4}})(?=\W|$)"
)

# A keyword and its weight.
Candidate = tuple[str, float]


def proper_names(
    text: str, places: Collection[str] = ()
) -> dict[str, Literal["person", "place", "organisation", "thing"]]:
    """Return the names of people, places, organisations and animals in a text; the speaker's own is left out.
    `places`: words that name one wherever they stand.

    >>> proper_names("我同事王芳下周去上海出差，我家的猫叫团子。")
    {'团子': 'thing', '王芳': 'person', '上海': 'place'}
    """
    found: dict[str, Literal["person", "place", "organisation", "thing"]] = {
        match["name"]: "person" if match["kin"] else "thing" for match in _CALLED.finditer(text)
    }
    before = ["", ""]
    for word, tag in _rjieba().tag(text):
        is_own = before in (["我", "叫"], ["我", "是"])
        if 1 < len(word) <= 4 and tag.startswith("nr") and not is_own:
            if word[0] in _SURNAMES or re.fullmatch(KIN, before[1]):
                found.setdefault(word[:2] if len(word) == 3 and word[2] in _AFTER_NAMES else word, "person")
        elif word in places:
            found.setdefault(word, "place")
        elif len(word) > 1 and tag in _PLACES:
            verb = before[0] if before[1] in ("了", "过") else before[1]
            if tag == "nt" or verb in _GOING or word[-1] in _PLACE_ENDS:
                found.setdefault(word, _PLACES[tag])
        before = [before[1], word]
    return found


def characters_and_pairs(run: str) -> list[str]:
    """Return the search terms of a run of Han characters, without the longer words of `long_words`."""
    found = [char for char in run if char not in PARTICLES]
    found += [pair for pair in map(add, run, islice(run, 1, None)) if pair not in STOP_PAIRS]
    return found


def long_words(text: str) -> list[str]:
    """Return the words of three and more characters; words of two are pairs already."""
    return [word for word in cut(text) if len(word) > 2 and word not in STOP_WORDS]


def cut(text: str) -> list[str]:
    """Divide a text into words."""
    words: list[str] = _rjieba().cut(text)
    return words


def words_inside(word: str) -> list[str]:
    """Return the shorter words of which a word is made."""
    words: list[str] = _rjieba().cut_for_search(word)
    return words


def keyword_candidates(run: str) -> Iterator[Candidate]:
    """Yield the keywords in a run of Han characters."""
    for word, tag in _rjieba().tag(run):
        # A longer one was guessed from rare characters; it is no word, and must not fill the cache.
        if len(word) <= _LONGEST_WORD:
            yield from han_keywords(word, tag)


@text_cache(1 << 14)
def han_keywords(word: str, tag: str) -> tuple[Candidate, ...]:
    """Return the keywords in one segmented word: the word itself, words inside it, or nothing."""
    if word in STOP_WORDS or word in PARTICLES or (len(word) == 2 and word[0] in _PRONOUNS):
        return ()
    if len(word) == 1:
        return ((word, _ONE_CHARACTER),) if tag.startswith("n") else ()
    if not _rjieba().has_word(word) and tag[0] not in "nx":
        # Guessed and not a noun: 我养, 做后. Trust the dictionary instead.
        return _each(_rjieba().tag(word, False))
    is_person = tag == "nr" and word[0] in _SURNAMES
    if tag == "nr" and not is_person and len(word) > 2:
        inside = [part for part in _rjieba().cut_for_search(word) if 1 < len(part) < len(word)]
        if inside:
            return _each([(part, "n") for part in inside])
    if tag.startswith("m") and word.startswith("一"):
        return ()
    base = NAME if is_person else _TAGS.get(tag) or _TAGS.get(tag[0])
    return ((word, base),) if base else ()


def _each(words: list[tuple[str, str]]) -> tuple[Candidate, ...]:
    return tuple(found for word, tag in words for found in han_keywords(word, tag))


@cache
def _rjieba() -> ModuleType:
    import rjieba

    for word in _new_words():
        # A word of which the dictionary knows neither the whole nor a part was divided into its characters.
        if not rjieba.has_word(word) and all(len(part) == 1 for part in rjieba.cut(word, False)):
            rjieba.add_word(word, rjieba.suggest_freq(word), "n")
    return rjieba


def _new_words() -> Iterator[str]:
    """Yield the Chinese words that have synonyms: one that is not found as a word could never match them."""
    for line in files("jiyi.languages").joinpath("synonyms.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield from (word for word in map(str.strip, line.split("|")) if len(word) > 1 and not word.isascii())
