"""The words that a memory cites, clause by clause, and what was said around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...languages.en.relative_dates import english_number
from ...languages.terms import tokens
from ...languages.zh import CHINESE
from ...languages.zh.dates import chinese_number
from . import cues


def content_words(text: str) -> set[str]:
    """Return stems of words, and single Chinese characters except the most common ones."""
    return {term for term in tokens(text) if (len(term) == 1 or term.isascii()) and term not in CHINESE.stop_words}


@dataclass(frozen=True)
class Clause:
    text: str
    message: int = -1  # -1: no cited message

    @cached_property
    def words(self) -> set[str]:
        return content_words(self.text) - cues.FILLERS

    @cached_property
    def denies(self) -> bool:
        return cues.HARD.search(cues.QUESTION_FORM.sub("", self.text)) is not None

    @cached_property
    def softly(self) -> bool:
        return cues.SOFT.search(self.text) is not None

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Numbers in digits, numerals and words."""
        found = {str(chinese_number(one)) for one in cues.SAID_NUMERAL.findall(self.text)}
        digits = [one.replace(",", "") for one in cues.NUMBER.findall(self.text)]
        found |= {part for one in digits for part in (one, one.lstrip("0"))}
        words = map(number_word, re.findall(r"[a-z]+", self.text.lower()))
        found |= {"half"} if cues.HALF.search(self.text) else set()
        return frozenset(found | {str(value) for value in words if value})


def without_brackets(text: str) -> str:
    return re.sub(r"[(（][^()（）]*[)）]", "", text)


def clauses(text: str, message: int = -1) -> list[Clause]:
    """Return the clauses of a text. What is corrected ("at 9, no wait, at 11") is one clause with its correction."""
    parts = (part.strip() for part in cues.BREAK.split(cues.CORRECTION.sub(" / ", text)))
    return [Clause(part, message) for part in parts if any(map(str.isalnum, part))]


def beginnings(text: str) -> Iterator[str]:
    """Return a text, and then its beginnings without the last part, the longest first.

    >>> list(beginnings("Mei has a dog; it is old, because she likes dogs."))
    ['Mei has a dog; it is old, because she likes dogs.', 'Mei has a dog; it is old.', 'Mei has a dog.']
    """
    yield text
    for place in reversed([found.start() for found in cues.PART.finditer(text)]):
        yield text[:place].rstrip() + ("。" if cues.HAN.search(text) else ".")


def depends(quote: str) -> bool:
    """Return True if a quote cannot be understood without what was said around it."""
    few = len(content_words(quote)) <= 3
    return few or not cues.FIRST_PERSON.search(quote) or cues.REFERS.search(quote) is not None


class Spoken:
    """Cited messages as clauses, the quote among them, and the context: messages near them and known memories."""

    def __init__(
        self, cited: Sequence[str], quote: str, context: Sequence[str], answered: str, speakers: Sequence[str]
    ) -> None:
        quote = cues.CORRECTION.sub(" / ", quote)  # as in clauses
        self.own = [clause for at, text in enumerate(cited) for clause in _real_clauses(text, at, quote)]
        self.quoted = [one for one in clauses(cited[0], 0) if _overlap(one.text, quote)] or self.own[:1]
        self.quote = " ".join(one.text for one in self.quoted)
        self.cited = cited
        self.whole = " ".join(cited)
        self.said = " ".join(one.text for one in self.own)
        self.context = [clause for text in context for clause in clauses(text)]
        self.answered = answered  # the message before
        self.speakers = [name for name in speakers if name]
        self.speaker_words = content_words(" ".join(self.speakers))
        self.own_words = content_words(self.said) | self.speaker_words
        self.context_words = set().union(*(one.words for one in self.context)) if self.context else set()
        self.text = " ".join((self.said, *(one.text for one in self.context)))

    def sentence(self, source: Clause) -> str:
        """Return the sentence of a clause: an "if" stands at its beginning."""
        for text in re.split(r"[.!?。！？](?!\d)|\n", self.whole):
            if source.text in text:
                return text.strip()
        return source.text

    def nearest(self, claim: Clause, *, without_numbers: bool = False) -> Clause | None:
        """Return the cited clause that shares most words with a claim, the quoted one among equals; of the context if
        no cited one does."""
        best, most = None, 0.0
        names = set().union(*map(content_words, cues.CAPITALISED.findall(claim.text)))
        people = names.union(*(content_words(kin) for group in cues.KINS for kin in group.findall(claim.text)))
        told = (claim.words - people or claim.words - names or claim.words) - self.speaker_words
        told = {word for word in told if not word.isdigit()} if without_numbers else told
        for one in self.own:
            shared = len(one.words & told) + (0.5 if one in self.quoted else 0.0) + (0.25 if one.words & names else 0.0)
            if shared > most:
                best, most = one, shared
        if most < 1 and not without_numbers:  # none of it is in the cited words
            elsewhere = max(self.context, key=lambda one: len(one.words & told), default=None)
            if elsewhere is not None and len(elsewhere.words & told) > 1:
                return elsewhere
        return best


def _real_clauses(text: str, message: int, quote: str) -> Iterator[Clause]:
    """Return the clauses of a message without sentences that are only imagined, unless they are quoted."""
    for sentence in re.split(r"(?<=[!?。！？\n])|(?<=\.)(?!\d)", text):
        if not cues.UNREAL.search(sentence) or _overlap(sentence, quote):
            yield from clauses(sentence, message)


def number_word(word: str) -> int | None:
    try:
        return cues.ORDINALS.get(word) or english_number(word)
    except KeyError:
        return None


def _overlap(clause: str, quote: str) -> bool:
    one, other = ("".join(filter(str.isalnum, part.casefold())) for part in (clause, quote))
    return bool(one and other) and (one in other or other in one or bool(_common(one, other)))


def _common(one: str, other: str) -> bool:
    """Return True if the end of one text is the beginning of the other, by some letters."""
    most = min(len(one), len(other))
    return any(one[-size:] == other[:size] or other[-size:] == one[:size] for size in range(4, most + 1))
