"""Compare what a memory claims with the words it cites, clause by clause: polarity, people, numbers, invented words.

Each clause of the memory is compared with the clause of the cited messages that shares the most words with it. What the
conversation says elsewhere counts only where the cited words refer to it ("she", "the party"), or say the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from ...languages.en import ENGLISH
from ...languages.terms import builtin_synonyms, tokens
from ...languages.zh import CHINESE
from ...languages.zh.dates import chinese_number
from . import cues
from .relations import wrong_relation
from .spoken import Clause, Spoken, clauses, content_words, depends, number_word, without_brackets
from .subjects import Subjects

LEAST_OF_ALL = 0.5  # share of a memory's words that were said
MOST_NEW, MOST_NEW_SHARE = 2, 0.34  # words of a clause that nobody said: a paraphrase needs some
DENIED = 4  # words or Chinese characters after a denial
SHORTENED = 6  # letters of a word that may be shortened to three


class Claims:
    """The clauses that a memory may be compared with. `fail` raises for a reason and a detail."""

    def __init__(self, spoken: Spoken, fail: Callable[[str, str], None]) -> None:
        self._spoken = spoken
        self._depends = bool(cues.REFERS.search(spoken.whole)) or depends(spoken.quote)
        self._groups = [group for group in cues.SAME if group.search(spoken.text)]
        self._fail = fail

    def check(self, text: str) -> None:
        """Raise for a claim that the cited words do not support."""
        self._cause(text)
        told = clauses(without_brackets(text))
        for claim in told:
            self._known_words(claim)
            self._polarity(claim)
            self._numbers(claim)
        self._all_words(told)
        if told:
            self._quoted_words(told)
            Subjects(self._spoken, self._fail).check(told)
        if relation := wrong_relation(told, self._spoken):
            self._fail("a relation that was not said", relation)

    def _cause(self, text: str) -> None:
        """Raise if something is said to be the reason of what was said in another message."""
        for found in cues.CAUSE.finditer(text):
            sides = [
                content_words(part) - cues.FILLERS - self._spoken.speaker_words
                for part in (text[: found.start()], text[found.end() :])
            ]
            if all(sides) and not any(all(side & content_words(one) for side in sides) for one in self._spoken.cited):
                self._fail("a reason that was not said", text[found.start() :])

    # -- words and names

    def _known_words(self, claim: Clause) -> None:
        words = claim.words - self._spoken.speaker_words
        persons = {
            word for group in self._groups for found in group.findall(claim.text) for word in content_words(found)
        }
        new = {word for word in words - persons if not self._known(word)}
        if len(new) >= MOST_NEW and len(new) > MOST_NEW_SHARE * len(words):
            self._fail("not what was said", claim.text)
        for part in cues.ADJUNCT.split(claim.text)[1:]:
            added = content_words(cues.PREPOSITION.split(part)[0]) - cues.FILLERS - self._spoken.speaker_words
            if added and added <= new:
                self._fail("not what was said", part)
        if any(one in new and two in new and cues.HAN.match(one) for one, two in pairwise(cues.sequence(claim.text))):
            self._fail("not what was said", claim.text)
        if any(self._instead(word, claim, one) for word in new for one in self._spoken.own):
            self._fail("something else was said", claim.text)
        for name in self._names(claim):
            if not self._licensed(name, claim):
                self._fail("a name that was not said", name)
        near = self._spoken.nearest(claim)
        if near is None or near not in self._spoken.quoted or not near.words & claim.words:
            return
        there, told = content_words(near.text), content_words(claim.text) | self._spoken.speaker_words
        named = [content_words(name) for name in cues.INNER_NAME.findall(claim.text)]
        instead = any(content_words(name) - told - cues.FILLERS for name in cues.INNER_NAME.findall(near.text))
        if instead and any(words - there - self._spoken.speaker_words - cues.FILLERS for words in named):
            self._fail("a name of something else", claim.text)

    def _instead(self, word: str, claim: Clause, source: Clause) -> bool:
        """Return True if a new word stands where another one was said: "allergic to nuts" for "allergic to eggs"."""
        told, said = cues.sequence(claim.text), cues.sequence(source.text)
        meaning = content_words(source.text) - self._spoken.speaker_words
        places = [at for at, one in enumerate(told) if one == word and at]
        places += [at - 1 for at in places if at > 1 and not word.isascii()]  # the second character of a word
        for at in places:
            for before in (told[max(0, at - 2) : at], told[at - 1 : at]):
                if not set(before) & meaning or (
                    len(before) == 1 and (before[0] in cues.FILLERS or not word.isascii())
                ):
                    continue
                for place in range(len(before), len(said)):
                    if said[place - len(before) : place] == before and said[place] in source.words - set(told):
                        same_after = said[place + 1 : place + 2] == told[at + 1 : at + 2]
                        if word.isascii() or same_after or "".join(told[at : at + 2]) not in self._spoken.text:
                            return True
        return False

    def _known(self, word: str) -> bool:
        """Return True if the conversation has a word, or one that means the same."""
        there = self._spoken.own_words | self._spoken.context_words
        if word in there or word.isdigit():  # numbers are compared exactly, elsewhere
            return True
        if any(set(tokens(other)) & there for other in builtin_synonyms(word)):
            return True
        parts = re.split("[-'’]", word)
        if len(parts) > 1:
            return all(not part or part in cues.FILLERS or self._known(part) for part in parts)
        return word.isascii() and any(_same_beginning(word, other) for other in there)

    def _all_words(self, told: Sequence[Clause]) -> None:
        words = set().union(*(one.words for one in told)) - self._spoken.speaker_words if told else set()
        known = {word for word in words if self._known(word)}
        if words and len(known) / len(words) < LEAST_OF_ALL:
            self._fail("not what was said", "")

    def _names(self, claim: Clause) -> Iterator[str]:
        for found in cues.PLACED.findall(claim.text):
            if not set(found) & (
                content_words(self._spoken.whole) | self._spoken.context_words | CHINESE.stop_words | cues.FILLERS
            ):
                yield found
        for found in cues.CAPITALISED.findall(claim.text):
            name = re.sub(r"['’]s?$", "", found)
            if name.lower() not in ENGLISH.stop_words and content_words(name) - cues.FILLERS - self._spoken.own_words:
                yield name

    def _licensed(self, name: str, claim: Clause) -> bool:
        """Return True if the name belongs to what is cited: it is said nearby of the same thing, or referred to."""
        wanted = content_words(name)
        near = [one for one in self._spoken.context if wanted <= content_words(one.text)]
        if any((one.words & claim.words) - wanted for one in near):
            return True
        return self._depends and bool(near)

    # -- polarity

    def _polarity(self, claim: Clause) -> None:
        source = self._spoken.nearest(claim)
        if source is None:
            return
        self._given_up(claim)
        about = claim.words - self._spoken.speaker_words
        if not about:  # "loves it"
            self._taste(claim)
        quoted = [one for one in self._spoken.quoted if self._same_thing(one, claim)]
        denied = claim.denies and any(one.denies or one.softly for one in quoted)
        if not denied and any(_denied(one.text, claim) and self._contradicts(claim, one) for one in quoted):
            self._fail("the opposite was said", claim.text)
        if len(claim.words) < 2:
            return
        others = about - source.words
        for one in (source, *(one for one in self._spoken.own if one is not source and len(one.words & others) > 1)):
            if not denied and self._contradicts(claim, one):
                self._fail("the opposite was said", claim.text)
        if cues.UNREAL.search(self._spoken.sentence(source)) and not cues.HEDGED.search(claim.text):
            self._fail("only imagined", claim.text)

    def _same_thing(self, quoted: Clause, claim: Clause) -> bool:
        """Return True if a claim is about the same as a quoted clause."""
        mine = quoted.words - self._spoken.speaker_words
        return bool(mine & claim.words) if mine else _denied(quoted.text, claim)

    def _taste(self, claim: Clause) -> None:
        """Raise if somebody is said to like what they dislike, or the other way round."""
        loves, hates = cues.LIKES.search(claim.text), cues.HATES.search(claim.text)
        for mine, theirs in ((loves, cues.HATES), (hates, cues.LIKES)):
            if mine and not claim.denies and any(theirs.search(one.text) for one in self._spoken.quoted):
                self._fail("the opposite was said", claim.text)

    def _given_up(self, claim: Clause) -> None:
        """Raise if a claim says that somebody still does what was given up."""
        if claim.denies or claim.softly or cues.GIVEN_UP.search(claim.text):
            return
        for one in self._spoken.own:
            for found in cues.GIVEN_UP.finditer(one.text):
                ended = content_words(found[1] or found[2]) - cues.FILLERS
                if ended & claim.words and cues.STILL.search(claim.text):
                    self._fail("the opposite was said", claim.text)
                if ended and ended & claim.words and not (claim.words - ended - self._spoken.speaker_words) - one.words:
                    self._fail("the opposite was said", claim.text)

    @staticmethod
    def _contradicts(claim: Clause, source: Clause) -> bool:
        if claim.denies and not (source.denies or source.softly):
            return True
        scope = not cues.HAN.search(source.text) or _denied(source.text, claim)
        if source.denies and scope and not (claim.denies or claim.softly):
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

    # -- numbers

    def _quoted_words(self, told: Sequence[Clause]) -> None:
        """Require that a memory says something of its quote, beside the person it is about."""
        quoted = set().union(*(one.words for one in self._spoken.quoted)) - self._spoken.speaker_words
        words = set().union(*(one.words for one in told)) - self._spoken.speaker_words
        people = {
            word for group in cues.KINS for found in group.findall(self._spoken.quote) for word in content_words(found)
        }
        subject = cues.CAPITALISED.match(told[0].text)
        people |= content_words(subject.group()) if subject else set()
        elsewhere = self._spoken.context_words.union(
            *(one.words for one in self._spoken.own if one not in self._spoken.quoted)
        )
        told_there = content_words(self._spoken.quote) - people - self._spoken.speaker_words
        enough = 0 if cues.HAN.search(self._spoken.quote) else 1
        if len(told_there) > enough and words & people and not (words & quoted) - people and words & elsewhere - people:
            self._fail("not what was quoted", self._spoken.quote)

    def _numbers(self, claim: Clause) -> None:
        there = Clause(self._spoken.text).numbers
        told = [(one, str(chinese_number(one))) for one in cues.COUNTED.findall(claim.text)]
        told += [(one, str(value)) for one in re.findall(r"[a-z]+", claim.text) if (value := number_word(one) or 0) > 2]
        for written, number in told:
            if number not in there:
                self._fail("a number that was not said", written)
        told += [(one, one.replace(",", "")) for one in cues.NUMBER.findall(claim.text)]
        told += [("two", "2")] if re.search(r"\btwo\b", claim.text) else []
        near = self._spoken.nearest(claim, without_numbers=True)
        near = near if near in self._spoken.own else None
        in_quote = frozenset[str]().union(*(one.numbers for one in self._spoken.quoted if one.words & claim.words))
        for written, number in told:
            if cues.YEAR.fullmatch(number) or self._is_known(number, claim):
                continue
            elsewhere = near is None or near not in self._spoken.quoted
            quoted = elsewhere and any(number in one.numbers for one in self._spoken.quoted)
            if near is not None and near.numbers and number not in near.numbers and not quoted:
                self._fail("a number of something else", written)
            if in_quote and number not in in_quote:
                self._fail("a number of something else", written)

    def _is_known(self, number: str, claim: Clause) -> bool:
        """Return True if the context has a number with words of the claim."""
        return any(number in one.numbers and one.words & claim.words for one in self._spoken.context)


def _denied(text: str, claim: Clause) -> bool:
    """Return True if what follows a denial is in the claim."""
    for one in cues.HARD.finditer(text):
        told, said = cues.sequence(claim.text), cues.sequence(text[one.end() :])[:DENIED]
        if set(told) & set(said) - {"的", "了", "a", "the"}:
            return True
    return False


def _same_beginning(one: str, other: str) -> bool:
    """Return True for forms and short forms of a word: "pav" and "pavlova", "aunt" and "auntie"."""
    short, long = sorted((one, other), key=len)
    if long.startswith(short):
        return len(short) >= (4 if len(long) < SHORTENED else 3)
    same = max(SHORTENED, len(short) - 1)
    return short[:same] == long[:same] and len(short) >= same
