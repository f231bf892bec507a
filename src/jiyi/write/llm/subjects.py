"""Compare who a memory is about with whom the cited words are about."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...languages.en import ENGLISH
from . import cues
from .spoken import Clause, Spoken, content_words, depends
from .transcript import USER_LABELS

_USER = tuple(label.casefold() for label in USER_LABELS)


class Subjects:
    """People in what was said. `fail` raises for a reason and a detail."""

    def __init__(self, spoken: Spoken, fail: Callable[[str, str], None]) -> None:
        self._spoken = spoken
        self._fail = fail

    def check(self, told: Sequence[Clause]) -> None:
        """Compare the subject of each claim with that of the clause it comes from."""
        there = " ".join((self._spoken.said, *(one.text for one in self._spoken.context), *self._spoken.speakers))
        there = cues.BABY_THINGS.sub("", there)
        for claim in told:
            for person in cues.persons(claim.text):
                if not any(group.search(person) and group.search(there) for group in cues.KINS):
                    self._fail("a person who was not mentioned", claim.text)
                if not self._may_be_about(person, claim):
                    self._fail("said of another person", claim.text)
            self._hearer(claim)
        self._answers(told[0])
        for at, claim in enumerate(told):
            source = self._spoken.nearest(claim)
            if source is not None and (at == 0 or cues.CAPITALISED.match(claim.text)):
                self._compare_subjects(claim, source)

    def _may_be_about(self, person: str, claim: Clause) -> bool:
        """Return False if a quote that stands alone names no such person, nor somebody whom the claim names."""
        if depends(self._spoken.quote) or any(
            group.search(person) and group.search(self._spoken.quote) for group in cues.KINS
        ):
            return True
        names = [content_words(name) for name in cues.CAPITALISED.findall(claim.text)]
        return any(name and name <= content_words(self._spoken.quote) for name in names)

    def _hearer(self, claim: Clause) -> None:
        """Raise if what the speaker will do is asked of another, or what the hearer must not do is promised."""
        quoted = self._spoken.quoted
        mine = all(cues.I_DO.search(one.text) and not cues.ASKS.search(one.text) for one in quoted)
        forbidden = any(cues.FORBIDS.match(one.text) and not cues.FIRST_PERSON.search(one.text) for one in quoted)
        asks = cues.ASKS.search(claim.text) and not cues.ASSISTANT.search(claim.text)
        if (mine and asks) or (forbidden and cues.PROMISES.search(claim.text)):
            self._fail("said of another person", claim.text)
        if self._is_of_hearer(claim):
            self._fail("said of another person", claim.text)

    def _is_of_hearer(self, claim: Clause) -> bool:
        """Return True if a relative of the hearer ("your father") is taken for one of the speaker."""
        name = next((one for one in self._spoken.speakers if claim.text.casefold().startswith(one.casefold())), "")
        of = re.compile(r"['’]s |的").match(claim.text, len(name)) if name else None
        for group in cues.KINS if of else ():
            theirs = re.search(rf"(?:\byour |[你您]的?)(?:{group.pattern})", self._spoken.whole, re.IGNORECASE)
            mine = re.search(rf"(?:\b(?:my|our) |[我咱]们?的?)(?:{group.pattern})", self._spoken.text, re.IGNORECASE)
            if of and theirs and not mine and group.match(claim.text, of.end()):
                return True
        return False

    def _answers(self, claim: Clause) -> None:
        """Raise if a short answer is taken for one about another person than the question before it."""
        if (
            cues.FIRST_PERSON.search(self._spoken.quote)
            or cues.persons(self._spoken.quote)
            or cues.CAPITALISED.search(self._spoken.quote)
        ):
            return
        asked = cues.persons(self._spoken.answered)
        for person in cues.persons(claim.text) if asked else ():
            groups = [group for group in cues.KINS if group.search(person)]
            if not any(group.search(one) for group in groups for one in asked):
                self._fail("said of another person", claim.text)

    def _reversed(self, claim: Clause, source: Clause) -> bool:
        """Return True if a claim exchanges who does something and whom it is done to."""
        speaker = next(
            (name for name in self._spoken.speakers if claim.text.casefold().startswith(name.casefold())), None
        )
        done_to_me = cues.OBJECT.search(source.text)
        if speaker is not None and done_to_me and not cues.I_DO.search(source.text):
            before = content_words(source.text[: done_to_me.start()])
            rest = claim.text[len(speaker) :]
            if rest.lstrip()[:2] in ("'s", "’s") or rest.lstrip()[:1] == "的":
                return False
            others = [*cues.CAPITALISED.finditer(rest), *(one for group in cues.KINS for one in group.finditer(rest))]
            return any(
                content_words(one.group()) & before and not cues.THROUGH.search(rest[: one.start()]) for one in others
            )
        return False

    def _does_what_others_do(self, claim: Clause) -> bool:
        """Return True if the speaker is said to do what was said of "him" or "her" only: "Ruth suspects" for "He
        suspects"."""
        name = next((one for one in self._spoken.speakers if claim.text.casefold().startswith(one.casefold())), "")
        verb = re.match(r"\s{1,4}([a-z]+)", claim.text[len(name) :])
        does = content_words(verb[1]) - cues.FILLERS if verb else set()
        there = [one for one in self._spoken.quoted if does and does <= one.words]
        subjects = [cues.SOMEBODY.search(one.text) for one in there if not cues.FIRST_PERSON.search(one.text)]
        return bool(there) and len(subjects) == len(there) and all(one and one["he"] for one in subjects)

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
        if about is True and self._does_what_others_do(claim):
            self._fail("said of another person", claim.text)
        mine = first is not None and not cues.HE.search(source.text)  # "him" is not who does it
        misplaced = about is False and (mine or not refers) and not self._mentions(claim, source)
        if misplaced and (cues.FIRST_PERSON.search(source.text) or other):
            self._fail("said of another person", claim.text)
        of_kin = about is False and bool(cues.relatives(claim.text))
        if (about is True or of_kin) and self._continues(source, claim, about_me=about is True):
            self._fail("said of another person", claim.text)
        if cues.ASSISTANT.match(claim.text) and not cues.YOU.search(source.text) and first:
            self._fail("said of another person", claim.text)
        if self._reversed(claim, source):
            self._fail("the other way round", claim.text)
        joined = re.match(r"[^\w'’]{0,20}[\w'’]{1,40}\s{0,20}(?:and\b|和|跟|与|、)", claim.text)
        if joined and first and not cues.WE.search(source.text):
            self._fail("said of one person only", claim.text)

    def _continues(self, source: Clause, claim: Clause, *, about_me: bool) -> bool:
        """Return True if a Chinese clause without a subject follows one about another person than the claim."""
        if not cues.HAN.match(source.text) or cues.FIRST_PERSON.search(source.text) or cues.REFERS.search(source.text):
            return False
        own = self._spoken.own
        if source not in own or cues.persons(source.text):
            return False
        for before in reversed(own[: own.index(source)]):
            somebody = cues.SOMEBODY.search(before.text)
            if cues.HE.search(before.text) or (somebody and self._kin_of(somebody)):
                return about_me and somebody is not None and self._is_other(somebody, claim)
            if cues.I_DO.search(before.text):
                return not about_me
        return False

    @staticmethod
    def _kin_of(somebody: re.Match[str]) -> bool:
        kin = _kin(somebody)
        return kin is not None and any(group.match(kin) for group in cues.KINS)

    def _about(self, claim: Clause) -> bool | None:
        """Return True if a claim is about the speaker, False if about somebody else, None if that is open."""
        text = claim.text
        for name in self._spoken.speakers:
            if text.casefold().startswith(name.casefold()):
                rest = text[len(name) :].lstrip()
                if rest[:2] in ("'s", "’s") or rest[:1] in ("的", "和", "、", "与", "跟") or rest[:4] == "and ":
                    return False if any(group.search(rest[:16]) for group in cues.KINS) else None
                return not any(group.match(rest) for group in cues.KINS)
        if text.casefold().startswith(_USER):
            return False  # none of the speakers is the user
        found = cues.CAPITALISED.match(text)
        if found is None:
            return False if re.match(r"[\u4e00-\u9fff]", text) and self._spoken.speakers and claim is not None else None
        word = re.sub(r"['’]s?$", "", found.group())
        if word.lower() in ENGLISH.stop_words or (
            word != found.group() and not any(group.match(text[found.end() :].lstrip()) for group in cues.KINS)
        ):
            return None  # a thing of somebody
        return False if content_words(word) - self._spoken.speaker_words - cues.FILLERS else None

    def _is_other(self, somebody: re.Match[str], claim: Clause) -> bool:
        """Return True if the subject of a clause is a person who is not in the claim."""
        name, kin = somebody["name"], _kin(somebody)
        if name:
            return not content_words(name) <= self._spoken.speaker_words | content_words(claim.text) | cues.FILLERS
        if kin:
            if any(group.match(kin) for group in cues.KINS):
                return any(group.match(kin) and not group.search(claim.text) for group in cues.KINS)
            return somebody["kin"] is not None and not content_words(kin) & content_words(claim.text)
        return True

    def _mentions(self, claim: Clause, source: Clause) -> bool:
        """Return True if the subject of a claim is in the clause it comes from."""
        lead = claim.text
        for name in self._spoken.speakers:
            lead = lead.replace(name, "", 1)
        if any(group.search(lead) and group.search(source.text) for group in cues.KINS):
            return True
        if cues.I_DO.search(source.text) and any(group.match(cues.POSSESSIVE.sub("", lead)) for group in cues.KINS):
            return False
        subject = cues.SUBJECT.match(lead)
        if subject:
            said = content_words(source.text)
            names = (re.sub(r"['’]s?$", "", name) for name in subject.group().split())
            return any(words and words <= said for words in map(content_words, names))
        start = cues.POSSESSIVE.sub("", lead)[:2]
        return start in source.text or not re.match(r"[\u4e00-\u9fff]{2}", start)


def _kin(somebody: re.Match[str]) -> str | None:
    return next((somebody[name] for name in ("kin", "bare", "zkin", "zbare") if somebody[name]), None)
