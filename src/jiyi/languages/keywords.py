"""Keywords a person would recognise, weighted, and the words of a query that look them up."""

import re
from collections.abc import Iterator
from functools import cache
from math import log2
from operator import itemgetter
from types import ModuleType

from ..text_cache import text_cache
from .normalise import normalise
from .stop_words import CHINESE, PARTICLES, is_stop_word
from .tokens import bounded
from .words import is_spelled_plainly, parts, pieces, prepared, without_contraction

_LONGEST = 64
_MOST_IN_QUERY = 32
_LONGEST_HAN_WORD = 16

_NAME = 1.4
_MEASURE = 1.2
_PLAIN = 1.0
_DATE = 0.8
_NUMBER = 0.4
# rjieba's part-of-speech tags, the longest that fits wins; a word with no tag here is no keyword.
_TAGS = {
    "n": _PLAIN, "nr": 0.9, "nrt": _NAME, "nrfg": _NAME, "ns": _NAME, "nt": _NAME, "nz": 1.3, "i": _PLAIN, "j": _PLAIN,
    "l": 0.9, "x": 0.8, "s": 0.7, "v": 0.6, "vn": 0.8, "a": 0.6, "an": 0.8, "b": 0.6, "z": 0.5, "o": 0.5, "t": 0.4,
    "m": _NUMBER,
}  # fmt: skip
_ONE_CHARACTER = 0.6
# The dictionary has 我会 and 你是 among its nouns.
_PRONOUNS = frozenset("我你您他她它")

# Words that nearly every memory has: true keywords, but they set nothing apart.
_PALE = frozenset(
    {"用户", "助手", "喜欢", "觉得", "知道", "想要", "需要", "希望", "认为", "今天", "昨天", "明天", "东西", "问题"}
    | {"user", "assistant", "like", "likes", "liked", "want", "wants", "wanted", "need", "needs", "get", "got", "make"}
    | {"made", "go", "going", "went", "know", "think", "say", "said", "told", "good", "thing", "things", "today"}
    | {"last", "next", "new", "day", "days", "week", "month", "year", "years", "time", "way", "lot", "use", "used"}
)
_PALE_FACTOR = 0.3

# The dictionary tags phrases such as 喝咖啡 as persons; a person's name begins with one of these (or 小, 老, 阿).
_SURNAMES = frozenset(
    "王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧肖程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟"
    "汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文欧司上诸小老阿"
)

_PLAIN_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_UNIT = re.compile(
    r" ?((?:公斤|公里|千克|毫升|厘米|分钟|小时|平方米|平米|块钱|美元|欧元|日元|[万亿]元"
    r"|[元块岁年月日号点分秒天周次个人斤克米度万亿楼层页%])|°[cf]"
    r"|(?:kg|km|cm|mm|mg|ml|kb|mb|gb|tb|hz|khz|mhz|ghz|ms|kw|kwh|mph|usd|rmb|g|m|l)(?![a-z0-9]))",
    re.IGNORECASE,
)
_INSIDE = r"(?=\S)[^\n,.;!?、。{}]{{1,24}}(?<=\S)"
_QUOTED = re.compile(
    "|".join(f"{left}({_INSIDE.format(left + right)}){right}" for left, right in ('""', "“”", "「」", "『』", "《》"))
)
_SENTENCE_END = frozenset(".!?。;:\n")


# A word and how much its kind is worth.
_Candidate = tuple[str, float]


def keywords(text: str, *, limit: int = 5) -> list[tuple[str, float]]:
    """The words that tell most about a text, best first, each with a weight in (0, 1].

    >>> [word for word, weight in keywords("用户喜欢喝咖啡", limit=2)]
    ['咖啡', '用户']
    """
    ranked = _ranked(prepared(text))
    return [(word, max(round(score / ranked[0][1], 4), 0.0001)) for word, score in ranked[: max(limit, 0)]]


def query_keywords(text: str) -> list[str]:
    """The words of a query in the form `keywords` gives them, best first, then the words inside those words."""
    words = [word for word, _ in _ranked(prepared(text))[:_MOST_IN_QUERY]]
    inside = [part for word in words if len(word) > 2 for part in _words_inside(word)]
    return list(dict.fromkeys(words + inside))[:_MOST_IN_QUERY]


def _ranked(text: str) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    count: dict[str, int] = {}
    for word, base in _candidates(text) or _last_resort(text):
        best[word] = max(base, best.get(word, 0.0))
        count[word] = count.get(word, 0) + 1
    scored = [
        (word, base * _length_factor(word) * (1 + log2(count[word]) / 4) * (_PALE_FACTOR if word in _PALE else 1.0))
        for word, base in best.items()
    ]
    # Sorting is stable: of two equal words the one found first stays first.
    return sorted(scored, key=itemgetter(1), reverse=True)


def _length_factor(word: str) -> float:
    return 0.7 + 0.05 * min(len(word), 8) if word.isascii() else 0.9 + 0.05 * min(len(word), 5)


def _candidates(text: str) -> list[_Candidate]:
    found: list[_Candidate] = []
    for quoted in _QUOTED.finditer(text):
        phrase = normalise(quoted[quoted.lastindex or 0])
        if len(phrase) > 1 and phrase.count(" ") < 5 and any(map(str.isalnum, phrase)) and not is_stop_word(phrase):
            found.append((phrase, _NAME))
    for span in pieces(text):
        piece = span.group()
        match span.lastgroup:
            case "han":
                for word, tag in _rjieba().tag(piece):
                    # A longer one was guessed from rare characters; it is no word, and must not fill the cache.
                    if len(word) <= _LONGEST_HAN_WORD:
                        found += _han_words(word, tag)
            case "word" if len(piece) <= _LONGEST:
                if _PLAIN_NUMBER.fullmatch(piece):
                    found += _measure(piece, text, span.end())
                elif word := _spelled(piece):
                    found.append((word, _spelled_base(piece, text, span.start())))
            case "unspaced" if 1 < len(piece) <= _LONGEST_HAN_WORD:
                found.append((normalise(piece), 0.8))
    return found


def _measure(number: str, text: str, end: int) -> list[_Candidate]:
    """A number that ends there, with the unit that follows it."""
    number = number.replace(",", "")
    if unit := _UNIT.match(text, end):
        return [(normalise(number + unit[1]), _MEASURE)]
    return [(number, _NUMBER)] if len(number) > 1 else []


@text_cache(1 << 14)
def _spelled(piece: str) -> str:
    """The keyword that a word of letters and digits is, or nothing."""
    word = normalise(without_contraction(piece))
    says_something = 1 < len(word) <= _LONGEST and any(map(str.isalnum, word)) and not is_stop_word(word)
    return word if says_something else ""


def _spelled_base(piece: str, text: str, start: int) -> float:
    word = without_contraction(piece)
    if is_spelled_plainly(word):
        is_name = word[0].isupper() and (word.isupper() or not _starts_sentence(text, start))
        return _NAME if is_name else _PLAIN
    if not any(map(str.isalpha, word)):
        return _DATE
    # mother-in-law is an ordinary word, and so is one in an alphabet without case; user_id, v2.1 and iPhone are names.
    ordinary = word.islower() and word.replace("-", "").replace("'", "").isalpha()
    return _PLAIN if ordinary or not word.isascii() else _NAME


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip(" \t\"'“‘「『《(*#->")
    return not before or before[-1] in _SENTENCE_END


@text_cache(1 << 14)
def _han_words(word: str, tag: str) -> tuple[_Candidate, ...]:
    """The keywords in one segmented word: mostly the word itself, sometimes what is inside it, often nothing."""
    if word in CHINESE or word in PARTICLES or (len(word) == 2 and word[0] in _PRONOUNS):
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
    base = _NAME if is_person else _TAGS.get(tag) or _TAGS.get(tag[0])
    return ((word, base),) if base else ()


def _each(words: list[tuple[str, str]]) -> tuple[_Candidate, ...]:
    return tuple(found for word, tag in words for found in _han_words(word, tag))


def _last_resort(text: str) -> Iterator[_Candidate]:
    """A text of nothing but stop words, digits or single characters is still found by them."""
    for span in pieces(text):
        piece = span.group()
        if span.lastgroup == "han":
            words = _rjieba().cut(piece)
            for word in [word for word in words if not is_stop_word(word)] or words:
                yield bounded(word), _NUMBER
        elif any(map(str.isalnum, piece)):
            yield bounded(normalise(piece)), _NUMBER


def _words_inside(word: str) -> Iterator[str]:
    for span in pieces(word):
        piece = span.group()
        for part in _rjieba().cut_for_search(piece) if span.lastgroup == "han" else parts(piece):
            if 1 < len(part) < len(word) and not is_stop_word(part):
                yield part


@cache
def _rjieba() -> ModuleType:
    import rjieba

    return rjieba
