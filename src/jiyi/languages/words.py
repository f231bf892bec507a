"""Division of text into words: Han runs, runs of other unspaced scripts, words with their joints, emoji."""

import re
from collections.abc import Iterator
from functools import cache

from .en.words import STOP_WORDS
from .normalise import normalise, plain
from .script import HAN, UNSPACED
from .zh.words import PARTICLES
from .zh.words import STOP_WORDS as CHINESE_STOP_WORDS

# Combining marks, which \w leaves out: without them Hindi or pointed Hebrew would fall apart.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
)
# A letter or digit of a script that puts spaces between its words.
LETTER = rf"[^\W{HAN}{UNSPACED}]"
_SPELLED = rf"{LETTER}+(?:[{_MARKS}]+{LETTER}*)*"
# What holds an identifier together: foo::bar, https://x, C:\dir, node.js, X7-Alpha, 10:30, me@x.org, R&D, fix#5, 1,000.
_JOINT = r"(?:::|:?[/\\]{1,2}|[.\-:@'+&#]|(?<=\d),(?=\d{3}(?!\d)))"

# Every class is disjoint from the one after it, so a match never backtracks far: linear on any input.
_PIECE = (
    rf"(?P<han>[{HAN}]+)"
    rf"|(?P<unspaced>[{UNSPACED}]+)"
    rf"|(?P<word>(?:(?<!-)(?<!{LETTER})--(?={LETTER}))?{_SPELLED}(?:{_JOINT}{_SPELLED})*(?:\+\+|[+#](?!{LETTER}))?)"
    r"|(?P<emoji>[\U0001f1e6-\U0001f1ff]{2}|[\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff])"
)

_WIDE_COLON = re.compile(r"(?<!\d)：|：(?!\d)")
_PART = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_LETTERS_OR_DIGITS = re.compile(r"[a-zA-Z]+|\d+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_PLURAL_ACRONYM = re.compile(r"[A-Z]{2,}s")
_CONTRACTION = re.compile(r"'(?:s|re|ll|ve|d|m)$", re.IGNORECASE)

# A longer run of letters is no camelCase name but data, such as base64.
_LONGEST_NAME = 64


@cache
def _pattern() -> re.Pattern[str]:
    # Classes this wide take milliseconds to compile: not at import.
    return re.compile(_PIECE)


def pieces(text: str) -> Iterator[re.Match[str]]:
    """Return the words of a prepared text; `lastgroup` is the kind of each: han, unspaced, word or emoji."""
    return _pattern().finditer(text)


def prepared(text: str) -> str:
    """Return the plain text, ready for `pieces`.

    NFKC makes ， and ： into joints, but a Chinese writer ends a clause with them: "用Rust：Python太慢" has two names.
    """
    if not text.isascii():
        text = text.replace("，", "、")
        if "：" in text:
            text = _WIDE_COLON.sub("、", text)
    return plain(text)


def without_contraction(word: str) -> str:
    """Return the word without its 's, 'll, 've and so on."""
    return _CONTRACTION.sub("", word) if "'" in word else word


def is_spelled_plainly(word: str) -> bool:
    """Return True for letters in ordinary case: tea, Tea, TEA; not iPhone, user_id, v2."""
    return word.isalpha() and (word.islower() or word.istitle() or word.isupper())


def parts(word: str) -> list[str]:
    """Return the pieces between a word's joints and underscores: a/b_c.txt gives a, b, c, txt."""
    return _PART.findall(word)


def inner_parts(part: str) -> list[str]:
    """Return the pieces inside a part: camelCase humps, and letters and digits separately. None for a plain part."""
    if len(part) > _LONGEST_NAME or not part.isascii() or part.isdigit() or is_spelled_plainly(part):
        return []
    if _PLURAL_ACRONYM.fullmatch(part):
        return [part[:-1]]
    if part.isalpha():
        return [hump for hump in _CAMEL.findall(part) if len(hump) > 1]
    stretches: list[str] = _LETTERS_OR_DIGITS.findall(part)
    # v2 and X7 are one name; gpt4 and 500g are a word or a number with something attached.
    has_word = any(len(stretch) > 1 and stretch.isalpha() for stretch in stretches)
    found: list[str] = []
    for stretch in stretches:
        if len(stretch) > 1 or (has_word and stretch.isdigit()):
            found += [stretch, *inner_parts(stretch)]
    return found


def is_stop_word(word: str) -> bool:
    """Return True if a word is too common to search for."""
    folded = normalise(word)
    english = folded.removesuffix("'s") in STOP_WORDS or folded.endswith("n't")
    return english or folded in CHINESE_STOP_WORDS or folded in PARTICLES
