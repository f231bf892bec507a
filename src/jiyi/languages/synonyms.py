"""The built-in synonyms in Chinese and English, from synonyms.txt."""

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from .normalise import normalise

_SEPARATOR = re.compile(r"[,，、]")
_HAN_PHRASE = 3  # characters; shorter words the segmenter finds by itself


def builtin_synonyms(word: str) -> tuple[str, ...]:
    """Return the synonyms of a word, best first, without the word itself.

    >>> builtin_synonyms("Allergies")
    ('过敏', 'allergy', 'allergic')
    >>> builtin_synonyms("business trips")
    ('出差',)
    """
    word = normalise(word)
    table = _table()
    return next((table[form] for form in _forms(word) if form in table), ())


def builtin_phrases(text: str) -> list[str]:
    """Return the entries in a text that are no single keyword: "business trip", "截止日期"."""
    found = _phrases().finditer(normalise(text))
    return list(dict.fromkeys(phrase["english"] or phrase.group() for phrase in found))


def words_of_line(line: str) -> list[str]:
    """Return the words of one group, normalised and each once. They are separated by | or, without it, by commas.

    >>> words_of_line("咖啡 | Coffee")
    ['咖啡', 'coffee']
    """
    words = line.split("|") if "|" in line else _SEPARATOR.split(line)
    return [word for word in dict.fromkeys(map(normalise, words)) if word]


def is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


@cache
def _groups() -> list[list[str]]:
    listing = files(__package__).joinpath("synonyms.txt").read_text(encoding="utf-8")
    return [words_of_line(line) for line in listing.splitlines() if not is_comment(line)]


@cache
def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _groups():
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return {word: tuple(others) for word, others in found.items()}


@cache
def _phrases() -> re.Pattern[str]:
    words = sorted(_table(), key=len, reverse=True)  # of two that begin alike the longer one is meant
    english = "|".join(re.escape(word) for word in words if " " in word)
    han = "|".join(re.escape(word) for word in words if not word.isascii() and len(word) >= _HAN_PHRASE)
    return re.compile(rf"(?<![a-z0-9])(?P<english>{english})s?(?![a-z0-9])|{han}")


def _forms(word: str) -> Iterator[str]:
    """Yield the word and its possible base forms. A stemmer would be too bold here: it makes "business" of "busy"."""
    yield word
    if not word.isascii():
        return
    if word.endswith(("ies", "ied")):
        yield word[:-3] + "y"
    if word.endswith("s") and not word.endswith("ss"):
        yield word[:-1]
    if word.endswith("es"):
        yield word[:-2]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if len(stem) > 2 and stem != word:
            yield stem
            yield stem + "e"
            if stem[-1] == stem[-2]:
                yield stem[:-1]
