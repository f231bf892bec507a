"""Compare what a memory claims with the words it cites, clause by clause: polarity, people, numbers, invented words.

Each clause of the memory is compared with the clause of the cited messages that shares the most words with it. What the
conversation says elsewhere counts only where the cited words refer to it ("she", "the party"), or say the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...languages.en import ENGLISH
from ...languages.en.relative_dates import english_number
from ...languages.terms import builtin_synonyms, tokens
from ...languages.zh import CHINESE
from ...languages.zh.dates import chinese_number
from . import cues

LEAST_OF_ALL = 0.5  # share of a memory's words that were said
MOST_NEW, MOST_NEW_SHARE = 2, 0.34  # words of a clause that nobody said: a paraphrase needs some
SHORTENED = 6  # letters of a word that may be shortened to three


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


def clauses(text: str, message: int = -1) -> list[Clause]:
    parts = (part.strip() for part in cues.BREAK.split(text))
    return [Clause(part, message) for part in parts if any(map(str.isalnum, part))]


def beginnings(text: str) -> Iterator[str]:
    """Return a text, and then its beginnings without the last part, the longest first.

    >>> list(beginnings("Mei has a dog; it is old, because she likes dogs."))
    ['Mei has a dog; it is old, because she likes dogs.', 'Mei has a dog; it is old.', 'Mei has a dog.']
    """
    yield text
    for place in reversed([found.start() for found in cues.PART.finditer(text)]):
        yield text[:place].rstrip() + ("。" if cues.HAN.match(text[place - 1]) else ".")


class Claims:
    """The clauses that a memory may be compared with. `fail` raises for a reason and a detail."""

    def __init__(
        self,
        cited: Sequence[str],
        quote: str,
        context: Sequence[str],
        speakers: Sequence[str],
        fail: Callable[[str, str], None],
    ) -> None:
        self._own = [clause for at, text in enumerate(cited) for clause in _real_clauses(text, at, quote)]
        quoted = content_words(quote)
        self._quoted = [one for one in clauses(cited[0], 0) if _overlap(one.text, quote)] or self._own[:1]
        self._quote = " ".join(one.text for one in self._quoted)
        self._whole = " ".join(cited)
        self._said = " ".join(one.text for one in self._own)
        self._context = [clause for text in context for clause in clauses(text)]
        self._speakers = [name for name in speakers if name]
        self._speaker_words = content_words(" ".join(self._speakers))
        self._depends = (
            bool(cues.REFERS.search(self._whole)) or len(quoted) <= 3 or not cues.FIRST_PERSON.search(self._quote)
        )
        self._own_words = content_words(self._said) | self._speaker_words
        self._context_words = set().union(*(one.words for one in self._context)) if self._context else set()
        self._text = " ".join((self._said, *(one.text for one in self._context)))
        self._fail = fail

    def check(self, text: str) -> None:
        """Raise for a claim that the cited words do not support."""
        told = clauses(_without_brackets(text))
        for claim in told:
            self._known_words(claim)
            self._polarity(claim)
            self._numbers(claim)
        self._all_words(told)
        if told:
            self._quoted_words(told)
            self._subjects(told)

    # -- words and names

    def _known_words(self, claim: Clause) -> None:
        words = claim.words - self._speaker_words
        new = {word for word in words if not self._known(word)}
        if len(new) >= MOST_NEW and len(new) > MOST_NEW_SHARE * len(words):
            self._fail("not what was said", claim.text)
        for name in self._names(claim):
            if not self._licensed(name, claim):
                self._fail("a name that was not said", name)
        near = self._nearest(claim)
        if near is None or near not in self._quoted or not near.words & claim.words:
            return
        there, told = content_words(near.text), content_words(claim.text) | self._speaker_words
        named = [content_words(name) for name in cues.INNER_NAME.findall(claim.text)]
        instead = any(content_words(name) - told - cues.FILLERS for name in cues.INNER_NAME.findall(near.text))
        if instead and any(words - there - self._speaker_words - cues.FILLERS for words in named):
            self._fail("a name of something else", claim.text)

    def _known(self, word: str) -> bool:
        """Return True if the conversation has a word, or one that means the same."""
        there = self._own_words | self._context_words
        if word in there or word.isdigit():  # numbers are compared exactly, elsewhere
            return True
        if any(set(tokens(other)) & there for other in builtin_synonyms(word)):
            return True
        parts = re.split("[-'’]", word)
        if len(parts) > 1:
            return all(not part or part in cues.FILLERS or self._known(part) for part in parts)
        return word.isascii() and any(_same_beginning(word, other) for other in there)

    def _all_words(self, told: Sequence[Clause]) -> None:
        words = set().union(*(one.words for one in told)) - self._speaker_words if told else set()
        known = {word for word in words if self._known(word)}
        if words and len(known) / len(words) < LEAST_OF_ALL:
            self._fail("not what was said", "")

    def _names(self, claim: Clause) -> Iterator[str]:
        for found in cues.PLACED.findall(claim.text):
            if not set(found) & (content_words(self._whole) | self._context_words | CHINESE.stop_words | cues.FILLERS):
                yield found
        for found in cues.CAPITALISED.findall(claim.text):
            name = re.sub(r"['’]s?$", "", found)
            if name.lower() not in ENGLISH.stop_words and content_words(name) - cues.FILLERS - self._own_words:
                yield name

    def _licensed(self, name: str, claim: Clause) -> bool:
        """Return True if the name belongs to what is cited: it is said nearby of the same thing, or referred to."""
        wanted = content_words(name)
        near = [one for one in self._context if wanted <= content_words(one.text)]
        if any((one.words & claim.words) - wanted for one in near):
            return True
        return self._depends and bool(near)

    # -- polarity

    def _polarity(self, claim: Clause) -> None:
        source = self._nearest(claim)
        if source is None or len(claim.words) < 2:
            return
        others = claim.words - source.words - self._speaker_words
        denied = claim.denies and any(
            (one.denies or one.softly) and one.words & claim.words - self._speaker_words for one in self._quoted
        )
        for one in (source, *(one for one in self._own if one is not source and len(one.words & others) > 1)):
            if not denied and self._contradicts(claim, one):
                self._fail("the opposite was said", claim.text)
        if cues.UNREAL.search(self._sentence(source)) and not cues.HEDGED.search(claim.text):
            self._fail("only imagined", claim.text)

    @staticmethod
    def _contradicts(claim: Clause, source: Clause) -> bool:
        if claim.denies and not (source.denies or source.softly):
            return True
        if source.denies and not (claim.denies or claim.softly):
            return True
        loves, hates = cues.LIKES.search(claim.text), cues.HATES.search(claim.text)
        if loves and not hates and not claim.denies and cues.HATES.search(source.text):
            return True
        if hates and cues.LIKES.search(source.text) and not source.denies and not cues.HATES.search(source.text):
            return True
        return not claim.denies and any(
            mine.search(claim.text)
            and not theirs.search(claim.text)
            and theirs.search(source.text)
            and not mine.search(source.text)
            for one, other in cues.OPPOSITES
            for mine, theirs in ((one, other), (other, one))
        )

    def _sentence(self, source: Clause) -> str:
        """Return the sentence of a clause: an "if" stands at its beginning."""
        for text in re.split(r"[.!?。！？](?!\d)|\n", self._whole):
            if source.text in text:
                return text.strip()
        return source.text

    def _nearest(self, claim: Clause, without: str = "") -> Clause | None:
        """Return the cited clause that shares most words with a claim, the quoted one among equals."""
        best, most = None, 0.0
        names = set().union(*map(content_words, cues.CAPITALISED.findall(claim.text)))
        people = names.union(*(content_words(kin) for group in cues.KINS for kin in group.findall(claim.text)))
        told = (claim.words - people or claim.words - names or claim.words) - self._speaker_words - {without}
        for one in self._own:
            shared = len(one.words & told) + (0.5 if one in self._quoted else 0.0) + (0.25 if one.words & names else 0.0)
            if shared > most:
                best, most = one, shared
        return best

    # -- numbers

    def _quoted_words(self, told: Sequence[Clause]) -> None:
        """Require that a memory says something of its quote, beside the person it is about."""
        quoted = set().union(*(one.words for one in self._quoted)) - self._speaker_words
        words = set().union(*(one.words for one in told)) - self._speaker_words
        people = {word for group in cues.KINS for found in group.findall(self._quote) for word in content_words(found)}
        if len(quoted - people) > 1 and words & people and not (words & quoted) - people:
            self._fail("not what was quoted", self._quote)

    def _numbers(self, claim: Clause) -> None:
        there = {str(chinese_number(one)) for one in cues.NUMERAL.findall(self._text)} | set(
            cues.NUMBER.findall(self._text)
        )
        there |= set(map(str, filter(None, map(_number_word, re.findall(r"[a-z]+", self._text.lower())))))
        for numeral in cues.COUNTED.findall(claim.text):
            if str(chinese_number(numeral)) not in there:
                self._fail("a number that was not said", numeral)
        for word in re.findall(r"[a-z]+", claim.text):
            value = _number_word(word)
            if value is not None and value > 2 and str(value) not in there:
                self._fail("a number that was not said", word)
        for number in cues.NUMBER.findall(claim.text):
            holding = [one for one in self._own if number in cues.NUMBER.findall(one.text)]
            near = self._nearest(claim, number)
            if holding and near is not None and near not in holding and cues.NUMBER.search(near.text):
                self._fail("a number of something else", number)

    # -- people

    def _subjects(self, told: Sequence[Clause]) -> None:
        """Compare the subject of each claim with that of the clause it comes from."""
        there = " ".join((self._said, *(one.text for one in self._context), *self._speakers))
        for claim in told:
            for person in cues.persons(claim.text):
                if not any(group.search(person) and group.search(there) for group in cues.KINS):
                    self._fail("a person who was not mentioned", claim.text)
        for at, claim in enumerate(told):
            source = self._nearest(claim)
            if source is not None and (at == 0 or cues.CAPITALISED.match(claim.text)):
                self._compare_subjects(claim, source)

    def _compare_subjects(self, claim: Clause, source: Clause) -> None:
        about, somebody, refers = self._about(claim), cues.SOMEBODY.search(source.text), cues.REFERS.search(source.text)
        first = cues.I_DO.search(source.text)
        other = somebody is not None and self._is_other(somebody, claim)
        if (
            about is True
            and other
            and not first
            and not (somebody and somebody["he"] and cues.FIRST_PERSON.search(source.text))
        ):
            self._fail("said of another person", claim.text)
        misplaced = about is False and not refers and not self._mentions(claim, source)
        if misplaced and (cues.FIRST_PERSON.search(source.text) or other):
            self._fail("said of another person", claim.text)
        if cues.ASSISTANT.match(claim.text) and not cues.YOU.search(source.text) and first:
            self._fail("said of another person", claim.text)
        joined = re.match(r"[^\w'’]{0,20}[\w'’]{1,40}\s{0,20}(?:and\b|和|跟|与|、)", claim.text)
        if joined and first and not cues.WE.search(source.text):
            self._fail("said of one person only", claim.text)

    def _about(self, claim: Clause) -> bool | None:
        """Return True if a claim is about the speaker, False if about somebody else, None if that is open."""
        text = claim.text
        for name in self._speakers:
            if text.casefold().startswith(name.casefold()):
                rest = text[len(name) :].lstrip()
                if rest[:2] in ("'s", "’s") or rest[:1] in ("的", "和", "、", "与", "跟") or rest[:4] == "and ":
                    return False if any(group.search(rest[:16]) for group in cues.KINS) else None
                return not any(group.match(rest) for group in cues.KINS)
        found = cues.CAPITALISED.match(text)
        if found is None:
            return False if re.match(r"[\u4e00-\u9fff]", text) and self._speakers and claim is not None else None
        word = re.sub(r"['’]s?$", "", found.group())
        if word.lower() in ENGLISH.stop_words:
            return None
        return False if content_words(word) - self._speaker_words - cues.FILLERS else None

    def _is_other(self, somebody: re.Match[str], claim: Clause) -> bool:
        """Return True if the subject of a clause is a person who is not in the claim."""
        name, kin = somebody["name"], somebody["kin"] or somebody["zkin"]
        if name:
            return not content_words(name) <= self._speaker_words | content_words(claim.text) | cues.FILLERS
        if kin:
            if any(group.match(kin) for group in cues.KINS):
                return any(group.match(kin) and not group.search(claim.text) for group in cues.KINS)
            return somebody["kin"] is not None and not content_words(kin) & content_words(claim.text)
        return True

    def _mentions(self, claim: Clause, source: Clause) -> bool:
        """Return True if the subject of a claim is in the clause it comes from."""
        lead = claim.text
        for name in self._speakers:
            lead = lead.replace(name, "", 1)
        if any(group.search(lead) and group.search(source.text) for group in cues.KINS):
            return True
        names = [re.sub(r"['’]s?$", "", name) for name in cues.CAPITALISED.findall(lead)]
        if names:
            said = content_words(source.text)
            return any(words and words <= said for words in map(content_words, names[:2]))
        start = cues.POSSESSIVE.sub("", lead)[:2]
        return start in source.text or not re.match(r"[\u4e00-\u9fff]{2}", start)


def _real_clauses(text: str, message: int, quote: str) -> Iterator[Clause]:
    """Return the clauses of a message without sentences that are only imagined, unless they are quoted."""
    for sentence in re.split(r"(?<=[!?。！？\n])|(?<=\.)(?!\d)", text):
        if not cues.UNREAL.search(sentence) or _overlap(sentence, quote):
            yield from clauses(sentence, message)


def _same_beginning(one: str, other: str) -> bool:
    """Return True for forms and short forms of a word: "pav" and "pavlova", "aunt" and "auntie"."""
    short, long = sorted((one, other), key=len)
    return long.startswith(short) and len(short) >= (4 if len(long) < SHORTENED else 3)


def _number_word(word: str) -> int | None:
    try:
        return english_number(word)
    except KeyError:
        return None


def _overlap(clause: str, quote: str) -> bool:
    one, other = ("".join(filter(str.isalnum, part.casefold())) for part in (clause, quote))
    return bool(one and other) and (one in other or other in one or bool(_common(one, other)))


def _common(one: str, other: str) -> bool:
    """Return True if the end of one text is the beginning of the other, by some letters."""
    most = min(len(one), len(other))
    return any(one[-size:] == other[:size] or other[-size:] == one[:size] for size in range(4, most + 1))


def _without_brackets(text: str) -> str:
    return re.sub(r"[(（][^()（）]*[)）]", "", text)
