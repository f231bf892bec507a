"""Words that a model names: usable only if they stand in the text that they are of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..text.normal import normalise
from ..text.tokens import tokens

LONGEST_WORD = 64


class WordsOf:
    """Whether a word stands in a text, itself or in another form: allergies in "any allergy"."""

    def __init__(self, text: str) -> None:
        self._text = normalise(text)
        self._terms = set(tokens(text))

    def have(self, word: str) -> bool:
        if not word.isascii():
            return word in self._text
        if re.search(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])", self._text):
            return True
        terms = tokens(word)
        return bool(terms) and self._terms.issuperset(terms)


def usable_words(value: object) -> Iterator[str]:
    """The words in a list that can be keywords, normalised; nothing of anything else."""
    for entry in value if isinstance(value, list) else []:
        word = normalise(entry) if isinstance(entry, str) and len(entry) <= LONGEST_WORD else ""
        if word and len(word) <= LONGEST_WORD and any(map(str.isalnum, word)) and word.isprintable():
            yield word


def standing_in(words: Iterable[str], text: str) -> Iterator[str]:
    there = WordsOf(text)
    return (word for word in dict.fromkeys(usable_words(list(words))) if there.have(word))
