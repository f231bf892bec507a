"""Normal form for comparing text, without differences of width, case, Chinese script and spaces."""

import re
from functools import cache
from unicodedata import combining, normalize

from .zh.traditional import simplified_table

# Characters nobody sees: soft hyphen, zero-width space, word joiner, byte order mark, direction marks,
# variation selectors ("❤" and "❤️" are one). The joiners U+200C and U+200D carry meaning and stay.
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069" + "".join(
    map(chr, range(0xFE00, 0xFE10))
)
# NFKC leaves the typographic apostrophe and hyphen alone, but "don’t" and "don't" are one word.
_TYPEWRITER = {"\u2019": "'", "\u02bc": "'", "\u2010": "-"}
# NFKC is ten times slower on a text it has to change, and nearly every Chinese sentence has one of these.
_WIDE_MARKS = tuple(zip("，！？：；（）", ",!?:;()", strict=True))
# A superset of all combining marks, in runs no language needs.
_MOST_MARKS = 30
_MARK_RUN = re.compile(
    "[\u0300-\u036f\u0483-\u1fff\u20d0-\u20ff\u2c00-\u2fff\u302a-\u302f\u3099\u309a\ua000-\uabff\ufb00-\uffff"
    f"\U00010000-\U0010ffff]{{{_MOST_MARKS + 1},}}"
)


@cache
def _traditional() -> dict[int, str]:
    return simplified_table()


@cache
def _plain_table() -> dict[int, str | None]:
    return {**_traditional(), **{ord(c): None for c in _INVISIBLE}, **{ord(c): to for c, to in _TYPEWRITER.items()}}


@cache
def _to_translate() -> re.Pattern[str]:
    # Looking is ten times faster than translating, and most texts need none. `re` is only fast on classes within
    # the first plane, so any character beyond it counts as one to translate.
    keys = "".join(re.escape(chr(key)) for key in _plain_table() if key <= 0xFFFF)
    return re.compile(rf"[{keys}\U00010000-\U0010ffff]")


def fold_traditional(text: str) -> str:
    """Replace traditional Chinese characters by simplified ones."""
    return text if text.isascii() else text.translate(_traditional())


def _nfkc(text: str) -> str:
    # CPython sorts a run of combining marks in quadratic time: 80,000 of them took 12 seconds. Unicode's own limit
    # for streams is 30. NFKC can lengthen a run, so it is cut before, for time, and after, so that twice is as once.
    text = _MARK_RUN.sub(_fewer_marks, text)
    done = normalize("NFKC", text)
    return done if done is text else _MARK_RUN.sub(_fewer_marks, done)


def _fewer_marks(run: re.Match[str]) -> str:
    kept: list[str] = []
    marks = 0
    for char in run[0]:
        marks = marks + 1 if combining(normalize("NFKD", char)[0]) else 0
        if marks <= _MOST_MARKS:
            kept.append(char)
    return "".join(kept)


def plain(text: str) -> str:
    """Return the text in one width and one Chinese script, with its case and spaces."""
    if text.isascii():
        return text
    for wide, narrow in _WIDE_MARKS:
        text = text.replace(wide, narrow)
    text = _nfkc(text)
    return text.translate(_plain_table()) if _to_translate().search(text) else text


def fold_case(text: str) -> str:
    """Return plain text in one case. Folding can undo NFKC, so that is applied again."""
    return text.lower() if text.isascii() else _nfkc(text.casefold())


def normalise(text: str) -> str:
    """Return the form in which two texts are compared; it is idempotent.

    >>> normalise("  ＡＢＣ　臺灣龍井 ")
    'abc 台湾龙井'
    """
    return " ".join(fold_case(plain(text)).split())
