"""Particulars of a text: names, numbers and dates, which a condensation must neither lose nor invent."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any
from unicodedata import normalize

from ..languages.en.relative_dates import english_number
from ..languages.en.words import STOP_WORDS
from ..languages.words import fold_traditional
from ..languages.zh.dates import chinese_number
from ..text_cache import text_cache


def _words(listing: str) -> frozenset[str]:
    return frozenset(listing.split())


_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*%?")
_CHINESE_NUMBER = re.compile(
    "[二两三四五六七八九十百][零一二两三四五六七八九十百千万亿]*|一[零二两三四五六七八九十百千万亿]+"
)
_WORD = re.compile("[a-z]+")
_COUNTED = _words("two three four five six seven eight nine ten eleven twelve")
_LATIN = re.compile(r"[A-Za-z][\w’'.+#-]*[\w+#]|[A-Z]")
_TITLED = re.compile("[《「『“]([^》」』”]{1,40})[》」』”]")
_MONTHS_AND_DAYS = _words("""
    January February March April May June July August September October November December
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
""")
_BEGINNINGS = re.compile(r"(?:^|[.!?:;\n\"“(—–-])\s*$")  # a capital letter here does not mark a name
_CHINESE_DATE = re.compile(
    r"\d{1,4}[年月日号]|[一二三四五六七八九十]{1,3}[月日号](?!子)|[周星礼][期拜]?[一二三四五六日天](?!天)"
)
_NAMES = ("nr", "ns", "nt", "nz")  # jieba's tags of people, places, organisations and other names
_NOT_NAMES = _words("谢谢 高兴 明白 小时 好吃 好看 有空 温柔 平安 安静 开心 一下 晚安 太阳 中文 英文")


@text_cache(4096)
def particulars(text: str) -> frozenset[str]:
    """Return the particulars, normalised in width, script and case.

    >>> sorted(particulars("On May 7 I paid Anna 3,500 euros."))
    ['3500', '7', 'anna', 'may']
    >>> sorted(particulars("林晓梅五月七日在上海花了三千块"))
    ['3000', '上海', '五月', '七日', '林晓梅']
    """
    folded = normalize("NFKC", fold_traditional(text))
    return frozenset({*_numbers(folded), *_latin_names(folded), *_chinese_names(folded)} - {""})


def missing(wanted: Iterable[str], text: str) -> list[str]:
    """Return the particulars that a text does not contain in any form."""
    found = particulars(text)
    letters = _letters(text)
    return sorted(one for one in wanted if one not in found and (one.isdigit() or _letters(one) not in letters))


def _numbers(text: str) -> Iterable[str]:
    for number in _NUMBER.findall(text):
        yield number.replace(",", "")
    yield from _CHINESE_DATE.findall(text)
    for numeral in _CHINESE_NUMBER.findall(_CHINESE_DATE.sub(" ", text)):
        yield _value(numeral)
    for word in _WORD.findall(text.lower()):
        if word in _COUNTED:
            yield str(english_number(word))


def _value(numeral: str) -> str:
    """Convert to digits; return the numeral itself if it is not a plain number."""
    whole, rest = 0, numeral
    try:
        for mark, worth in (("亿", 10**8), ("万", 10**4), ("千", 1000)):
            before, found, after = rest.partition(mark)
            if found:
                whole += int(_value(before)) * worth
                rest = after.lstrip("零")
        return str(whole + (chinese_number(rest) if rest else 0))
    except (KeyError, ValueError, IndexError):
        return numeral


def _latin_names(text: str) -> Iterable[str]:
    for found in _LATIN.finditer(text):
        word = found.group()
        plain = re.sub(r"['’]s$", "", word)
        begins = _BEGINNINGS.search(text[: found.start()]) is not None
        marked = any(char.isdigit() for char in plain) or plain[1:] != plain[1:].lower()  # iPhone, K8s, USB
        name = marked or plain in _MONTHS_AND_DAYS or (plain[0].isupper() and not begins)
        among_chinese = not text.isascii() and any("\u4e00" <= char <= "\u9fff" for char in text[:200])
        stop = plain.lower() in STOP_WORDS and plain not in _MONTHS_AND_DAYS
        if (name or among_chinese) and not stop and len(plain) > 1 and not plain.startswith("I'"):
            yield plain.lower()


def _chinese_names(text: str) -> Iterable[str]:
    if text.isascii():
        return
    yield from (title.lower() for title in _TITLED.findall(text))
    for word, kind in _tag()(text):
        if kind[:2] in _NAMES and len(word) > 1 and not word.isascii() and word not in _NOT_NAMES:
            yield word


@cache
def _tag() -> Any:
    import rjieba

    return rjieba.tag


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, normalize("NFKC", fold_traditional(text)).casefold()))
