"""Scripts of a text, and the language they suggest."""

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from .en.words import STOP_WORDS
from .neutral import FUNCTION_WORDS

Script = Literal["han", "cjk", "latin", "number", "other"]
Language = Literal["zh", "en", "mixed", "other"]

# Insides of regular-expression character classes.
HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Scripts without spaces between words, or, like hangul, with so many endings that spaces help little:
# Thai, Lao, Tibetan, Burmese, hangul, Khmer, kana, bopomofo.
UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"
    "\u3040-\u30ff\u3100-\u318f\u31a0-\u31bf\u31f0-\u31ff\ua960-\ua97f\uac00-\ud7ff\uff66-\uffdc"
)
_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a"

_RUN = (
    rf"(?P<han>[{HAN}]+)|(?P<cjk>[{UNSPACED}]+)|(?P<latin>[{_LATIN}]+(?:['’][{_LATIN}]+)*)"
    rf"|(?P<number>\d+(?:[.,:]\d+)*)|(?P<other>[^{HAN}{UNSPACED}{_LATIN}\d]+)"
)

# A Han character carries about as much as three Latin letters, and a long identifier no more than a short word.
_HAN_WEIGHT = 3
_LATIN_WORD_CAP = 5

_LATIN_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_LOOK = 2000


@cache
def _pattern() -> re.Pattern[str]:
    # Classes this wide take milliseconds to compile: not at import.
    return re.compile(_RUN)


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text in one script; `start` is its offset."""

    script: Script
    text: str
    start: int


def runs(text: str) -> list[Run]:
    """Divide a text where the script changes; the runs together are the text.

    >>> [(run.script, run.text) for run in runs("用 Rust 写")]
    [('han', '用'), ('other', ' '), ('latin', 'Rust'), ('other', ' '), ('han', '写')]
    """
    return [Run(found.lastgroup, found.group(), found.start()) for found in _pattern().finditer(text)]  # type: ignore[arg-type]


def language(text: str) -> Language:
    """Return the main language of a text; English terms inside a Chinese sentence leave it Chinese."""
    if text.isascii():
        return ("other" if _is_foreign(text) else "en") if any(map(str.isalpha, text)) else "other"
    han = cjk = latin = other = 0
    english_grammar = False
    for found in _pattern().finditer(text):
        script, piece = found.lastgroup, found.group()
        if script == "han":
            han += _HAN_WEIGHT * len(piece)
        elif script == "latin":
            latin += min(len(piece), _LATIN_WORD_CAP)
            # "IT" or "A" in capitals may well be a name; "I" never is.
            english_grammar |= piece == "I" or piece in STOP_WORDS
        elif script == "cjk":
            cjk += _HAN_WEIGHT * len(piece)
        elif script == "other":
            other += sum(map(str.isalpha, piece))
    total = han + cjk + latin + other
    # Japanese has kana in every sentence; one の on a Chinese label is decoration.
    if total == 0 or cjk > total / 5 or other > total / 2:
        return "other"
    share = han / (han + latin) if han + latin else 0.0
    if share >= (0.8 if english_grammar else 0.5):
        return "zh"
    if share <= 0.2:
        return "other" if not han and _is_foreign(text) else "en"
    return "mixed"


def prompt_language(text: str) -> Literal["en", "zh"]:
    """Return the language for prompts about a text: Chinese where it has Chinese sentences, English otherwise."""
    return "zh" if language(text) in ("zh", "mixed") else "en"


def _is_foreign(text: str) -> bool:
    """Return True if Latin text has more function words of other languages than English ones."""
    foreign = english = 0
    for word in _LATIN_WORD.findall(text[:_LONGEST_LOOK].lower()):
        if word in STOP_WORDS:
            english += 1
        elif word in FUNCTION_WORDS or not word.isascii():
            foreign += 1
    return foreign > english
