"""Keywords a person would recognise, weighted, and the words of a query that look them up."""

import re
from collections.abc import Iterator
from math import log2
from operator import itemgetter

from ..text_cache import text_cache
from .en import words as en
from .normalise import normalise
from .tokens import bounded
from .words import is_spelled_plainly, is_stop_word, parts, pieces, prepared, without_contraction
from .zh import words as zh
from .zh.segment import NAME, Candidate, cut, keyword_candidates, words_inside

_LONGEST = 64
_MOST_IN_QUERY = 32
_LONGEST_UNSPACED = 16

_MEASURE = 1.2
_PLAIN = 1.0
_DATE = 0.8
_NUMBER = 0.4

_COMMON = en.COMMON_KEYWORDS | zh.COMMON_KEYWORDS
_COMMON_FACTOR = 0.3

_PLAIN_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_UNIT = re.compile(rf" ?((?:{zh.UNITS})|°[cf]|(?:{en.UNITS})(?![a-z0-9]))", re.IGNORECASE)
_INSIDE = r"(?=\S)[^\n,.;!?、。{}]{{1,24}}(?<=\S)"
_QUOTED = re.compile(
    "|".join(f"{left}({_INSIDE.format(left + right)}){right}" for left, right in ('""', "“”", "「」", "『』", "《》"))
)
_SENTENCE_END = frozenset(".!?。;:\n")


def keywords(text: str, *, limit: int = 5) -> list[tuple[str, float]]:
    """Return the most important words of a text, best first, each with a weight in (0, 1].

    >>> [word for word, weight in keywords("用户喜欢喝咖啡", limit=2)]
    ['咖啡', '用户']
    """
    ranked = _ranked(prepared(text))
    return [(word, max(round(score / ranked[0][1], 4), 0.0001)) for word, score in ranked[: max(limit, 0)]]


def query_keywords(text: str) -> list[str]:
    """Return the words of a query in the form `keywords` gives them, best first, then the words inside them."""
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
        (word, base * _length_factor(word) * (1 + log2(count[word]) / 4) * (_COMMON_FACTOR if word in _COMMON else 1.0))
        for word, base in best.items()
    ]
    # Sorting is stable: of two equal words the one found first stays first.
    return sorted(scored, key=itemgetter(1), reverse=True)


def _length_factor(word: str) -> float:
    return 0.7 + 0.05 * min(len(word), 8) if word.isascii() else 0.9 + 0.05 * min(len(word), 5)


def _candidates(text: str) -> list[Candidate]:
    found: list[Candidate] = []
    for quoted in _QUOTED.finditer(text):
        phrase = normalise(quoted[quoted.lastindex or 0])
        if len(phrase) > 1 and phrase.count(" ") < 5 and any(map(str.isalnum, phrase)) and not is_stop_word(phrase):
            found.append((phrase, NAME))
    for span in pieces(text):
        piece = span.group()
        match span.lastgroup:
            case "han":
                found += keyword_candidates(piece)
            case "word" if len(piece) <= _LONGEST:
                if _PLAIN_NUMBER.fullmatch(piece):
                    found += _measure(piece, text, span.end())
                elif word := _spelled(piece):
                    found.append((word, _spelled_base(piece, text, span.start())))
            case "unspaced" if 1 < len(piece) <= _LONGEST_UNSPACED:
                found.append((normalise(piece), 0.8))
    return found


def _measure(number: str, text: str, end: int) -> list[Candidate]:
    """Return a number that ends at `end`, with the unit that follows it."""
    number = number.replace(",", "")
    if unit := _UNIT.match(text, end):
        return [(normalise(number + unit[1]), _MEASURE)]
    return [(number, _NUMBER)] if len(number) > 1 else []


@text_cache(1 << 14)
def _spelled(piece: str) -> str:
    """Return the keyword for a word of letters and digits, or an empty string."""
    word = normalise(without_contraction(piece))
    says_something = 1 < len(word) <= _LONGEST and any(map(str.isalnum, word)) and not is_stop_word(word)
    return word if says_something else ""


def _spelled_base(piece: str, text: str, start: int) -> float:
    word = without_contraction(piece)
    if is_spelled_plainly(word):
        is_name = word[0].isupper() and (word.isupper() or not _starts_sentence(text, start))
        return NAME if is_name else _PLAIN
    if not any(map(str.isalpha, word)):
        return _DATE
    # mother-in-law is an ordinary word, and so is one in an alphabet without case; user_id, v2.1 and iPhone are names.
    ordinary = word.islower() and word.replace("-", "").replace("'", "").isalpha()
    return _PLAIN if ordinary or not word.isascii() else NAME


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 4) : start].rstrip(" \t\"'“‘「『《(*#->")
    return not before or before[-1] in _SENTENCE_END


def _last_resort(text: str) -> Iterator[Candidate]:
    """Yield stop words, digits and single characters, for a text that has nothing else."""
    for span in pieces(text):
        piece = span.group()
        if span.lastgroup == "han":
            words = cut(piece)
            for word in [word for word in words if not is_stop_word(word)] or words:
                yield bounded(word), _NUMBER
        elif any(map(str.isalnum, piece)):
            yield bounded(normalise(piece)), _NUMBER


def _words_inside(word: str) -> Iterator[str]:
    for span in pieces(word):
        piece = span.group()
        for part in words_inside(piece) if span.lastgroup == "han" else parts(piece):
            if 1 < len(part) < len(word) and not is_stop_word(part):
                yield part
