"""Condense memories to their informative sentences, verbatim. Particulars (names, numbers and dates) are neither lost
nor invented."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from ..languages.base import word_set
from ..languages.dates import dates
from ..languages.en.relative_dates import english_number
from ..languages.en.words import STOP_WORDS as EN_STOP_WORDS
from ..languages.terms import tokens
from ..languages.words import fold_traditional, language, nfkc
from ..languages.zh.dates import chinese_number
from ..languages.zh.words import STOP_WORDS
from ..text_cache import text_cache

_END = re.compile(
    r"(?<=[。！？；!?\n])\s*|(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\bNo\.)(?<=\.)\s+(?=[^a-z])"
)
DUPLICATE = 0.8  # Jaccard similarity of the words of two sentences that say the same
# An informative sentence without particulars needs this many words, or Chinese characters, besides small talk.
MIN_WORDS, MIN_CHARACTERS = 2, 3
SMALL_TALK = word_set(
    """
    thank sound good ok okay sure great nice hello hi hey bye morn even night see later fine cool perfect welcom lol
    haha glad idea love well 好 的 谢 行 嗯 哈 早 晚 安 再 见 不 客 气 对 是 啊 哦 收 到 明 白 知 道 了 辛 苦
    """
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedText:
    """The text of a memory and when it was said."""

    id: str
    text: str
    at: datetime
    by_assistant: bool = False


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    at: datetime
    words: frozenset[str]
    particulars: frozenset[str]
    informative: bool


def condense(members: Sequence[DatedText]) -> str:
    """Return one line per day, oldest first; empty if nothing is informative. Repeated sentences are kept once, on the
    last day. Questions and small talk are dropped, unless a name, number or date would be lost with them."""
    kept: list[_Sentence] = []
    for one in sorted(members, key=lambda member: member.at):
        for sentence in _sentences(one):
            kept = _merge(kept, sentence)
    needed = _needed(kept)
    return _lines(sentence for at, sentence in enumerate(kept) if at in needed)


@text_cache(8192)  # grouping condenses the same members many times
def _sentences(one: DatedText) -> tuple[_Sentence, ...]:
    return tuple(_read(one))


def _read(one: DatedText) -> Iterable[_Sentence]:
    """Split into sentences; a line of an earlier compression starts with its own day."""
    for line in one.text.splitlines():
        day, rest = _day_of(line, one.at)
        for text in filter(None, (part.strip() for part in _END.split(rest))):
            words, found = _words(text), particulars(text)
            is_question = "?" in text or "？" in text
            informative = bool(found or dates(text, day)) or (_is_informative(words) and not one.by_assistant)
            if words:
                yield _Sentence(text, day, words, found, informative and not is_question)


def _is_informative(words: frozenset[str]) -> bool:
    content = words - SMALL_TALK
    return sum(word.isascii() for word in content) >= MIN_WORDS or (
        sum(not word.isascii() for word in content) >= MIN_CHARACTERS
    )


_DAY = re.compile(r"(\d{4}-\d{2}-\d{2}): ")


def _day_of(line: str, at: datetime) -> tuple[datetime, str]:
    found = _DAY.match(line)
    if found is None:
        return at, line
    try:
        day = datetime.fromisoformat(found.group(1)).replace(tzinfo=at.tzinfo, hour=12)
    except ValueError:
        return at, line
    return day, line[found.end() :]


def _words(text: str) -> frozenset[str]:
    """English stems and single Chinese characters."""
    return frozenset(term for term in tokens(text) if (len(term) == 1 or term.isascii()) and term not in STOP_WORDS)


def _merge(kept: list[_Sentence], new: _Sentence) -> list[_Sentence]:
    """Add a newer sentence, or replace the one that it repeats."""
    for at, old in enumerate(kept):
        similarity = len(old.words & new.words) / len(old.words | new.words)
        if similarity >= DUPLICATE and old.particulars <= new.particulars:
            return [*kept[:at], *kept[at + 1 :], new]
        if similarity >= DUPLICATE and new.particulars <= old.particulars:
            return kept
    return [*kept, new]


def _needed(kept: Sequence[_Sentence]) -> set[int]:
    """Indexes of informative sentences, and of others without which a particular would be lost."""
    needed = {at for at, sentence in enumerate(kept) if sentence.informative}
    covered = frozenset().union(*(kept[at].particulars for at in needed))
    for at, sentence in enumerate(kept):
        if at not in needed and not sentence.particulars <= covered:
            needed.add(at)
            covered |= sentence.particulars
    return needed


def _lines(sentences: Iterable[_Sentence]) -> str:
    days: dict[str, list[str]] = {}
    for sentence in sentences:
        days.setdefault(f"{sentence.at:%Y-%m-%d}", []).append(sentence.text)
    return "\n".join(f"{day}: {_join(texts)}" for day, texts in sorted(days.items()))


def _join(texts: Sequence[str]) -> str:
    joined = texts[0]
    for text in texts[1:]:
        if joined[-1] in "。！？；":
            separator = ""
        elif joined[-1] in ".!?;)":
            separator = " "
        else:
            separator = "；" if _is_chinese(joined) else "; "
        joined += separator + text
    return joined


def _is_chinese(text: str) -> bool:
    return language(text) in ("zh", "mixed")


_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*%?")
_CHINESE_NUMBER = re.compile(
    "[二两三四五六七八九十百][零一二两三四五六七八九十百千万亿]*|一[零二两三四五六七八九十百千万亿]+"
)
_WORD = re.compile("[a-z]+")
_COUNTED = word_set("two three four five six seven eight nine ten eleven twelve")
_LATIN = re.compile(r"[A-Za-z][\w’'.+#-]*[\w+#]|[A-Z]")
_TITLED = re.compile("[《「『“]([^》」』”]{1,40})[》」』”]")
_MONTHS_AND_DAYS = word_set("""
    January February March April May June July August September October November December
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
""")
_BEGINNINGS = re.compile(r"(?:^|[.!?:;\n\"“(—–-])\s{0,8}$")  # a capital letter here does not mark a name
_CHINESE_DATE = re.compile(
    r"\d{1,4}[年月日号]|[一二三四五六七八九十]{1,3}[月日号](?!子)|[周星礼][期拜]?[一二三四五六日天](?!天)"
)
_NAMES = ("nr", "ns", "nt", "nz")  # jieba's tags of people, places, organisations and other names
_NOT_NAMES = word_set("谢谢 高兴 明白 小时 好吃 好看 有空 温柔 平安 安静 开心 一下 晚安 太阳 中文 英文")


@text_cache(4096)
def particulars(text: str) -> frozenset[str]:
    """Return the particulars, normalised in width, script and case.

    >>> sorted(particulars("On May 7 I paid Anna 3,500 euros."))
    ['3500', '7', 'anna', 'may']
    >>> sorted(particulars("林晓梅五月七日在上海花了三千块"))
    ['3000', '上海', '五月', '七日', '林晓梅']
    """
    folded = nfkc(fold_traditional(text))
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
        begins = _BEGINNINGS.search(text, max(0, found.start() - 10), found.start()) is not None
        marked = any(char.isdigit() for char in plain) or plain[1:] != plain[1:].lower()  # iPhone, K8s, USB
        name = marked or plain in _MONTHS_AND_DAYS or (plain[0].isupper() and not begins)
        among_chinese = not text.isascii() and any("\u4e00" <= char <= "\u9fff" for char in text[:200])
        stop = plain.lower() in EN_STOP_WORDS and plain not in _MONTHS_AND_DAYS
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
    return "".join(filter(str.isalnum, nfkc(fold_traditional(text)).casefold()))
