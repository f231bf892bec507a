"""Words in Chinese text, which has no spaces: search terms and keywords, with rjieba's dictionary."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import islice
from operator import add
from types import ModuleType

from ...text_cache import text_cache
from .words import PARTICLES, STOP_PAIRS, STOP_WORDS

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

# A keyword and its weight.
Candidate = tuple[str, float]


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

    return rjieba
