"""Words that their speaker does not mean: jokes, boasts, lies, dreams, and what is corrected in the same message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from . import cues
from .spoken import Clause, Spoken, clauses, content_words, without_brackets

MOST_CORRECTED = 6  # content words of a correction; more are a new statement

_SERIOUS = r"(?<!not )(?<!n't )(?<!no )(?<!never )(?<!without )"
# What follows in the sentence is not meant.
_FORWARD = re.compile(
    rf"{_SERIOUS}\b(?:jok(?:ed|es|ing)(?: (?:to|with) [\w' ]{{1,20}}?)? (?:that|about|when|and said)\b|jokingly\b"
    r"|pretend(?:ed|s|ing)?\b|(?:bragg(?:ed|ing)|brags?|boast(?:ed|s|ing)?)\b(?! about| of)"
    r"|(?:lied|lies|lying|fibbed)(?: to [\w' ]{1,20}?)? (?:that|about|and said|saying)\b"
    r"|teas(?:ed|es|ing) [\w' ]{1,20}? that\b|dream(?:t|ed|ing) (?:that|about|i|we|he|she|my)\b"
    r"|had a (?:\w+ )?(?:dream|nightmare)\b|(?:as a|for a) joke\b)"
    r"|(?<![不没别])(?:吹牛|吹嘘|假装|装作|装病|谎称|撒谎|梦见|梦到|做了?个?梦"
    r"|开了?个?玩笑地?[说讲]|[骗逗哄](?:了|过)?[^，。！？]{0,6}?说)",
    re.IGNORECASE,
)
# What was said before is not meant.
_BACKWARD = re.compile(
    rf"{_SERIOUS}\b(?:(?:just|only|totally|i'?m|im|was) (?:kidding|joking|messing)|kidding(?: (?:lol|haha))?(?=\W*$)|jk"
    r"|(?:total|complete|a) lie(?=\W*$)|not really(?=\W*$)|as if(?=\W*$))\b"
    r"|(?<![不没别是])(?:开了?个?玩笑[的啦而哈呢吧哒嘛]|开玩笑(?=\W*$)|逗[你您]们?[的玩]|骗[你您]们?的|说着玩|闹着玩|瞎说的|吹牛的)",
    re.IGNORECASE,
)
_TOLD = re.compile(
    r"\b(?:jok(?:e|ed|es|ing|ingly)|kidding|pretend\w*|bragg?\w*|boast\w*|lied|lies|lying|fibb?\w*|teas(?:ed|es|ing)"
    r"|dream\w*|nightmare|prank\w*|fake[ds]?|made up)\b|吹牛|吹嘘|玩笑|骗|逗|哄|假装|装作|装病|谎|梦",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[!?。！？\n])|(?<=\.)(?!\d)")
_IN_FACT = re.compile(r"\b(?:actually|in fact|really|in reality|but)\b|其实|实际上|但是?|不过", re.IGNORECASE)
_NOTHING_AFTER = re.compile(cues.CORRECTION.pattern + r"\W*$", re.IGNORECASE)


class Retracted:
    """Finds what the cited messages take back. `following`: what the same person says next."""

    def __init__(self, spoken: Spoken, following: str = "") -> None:
        self._spoken = spoken
        self._following = following

    def reason(self, text: str) -> str | None:
        """Return why a memory is not meant, or None."""
        text = without_brackets(text)
        told = clauses(text)
        if not _TOLD.search(text) and any(map(self._is_unserious, told)):
            return "not meant seriously"
        if _NOTHING_AFTER.search(text) or any(self._is_corrected(claim, text) for claim in told):
            return "corrected by the speaker"
        return None

    def _is_unserious(self, claim: Clause) -> bool:
        """Return True if a claim shares more words with a joke than with what is meant."""
        words = claim.words - self._spoken.speaker_words
        for message, text in enumerate(self._spoken.cited):
            following = self._following if message == 0 else ""
            for unserious in _unserious(text, following):
                shared = len(content_words(unserious) & words)
                rest = content_words(" ".join(self._spoken.cited).replace(unserious, " "))
                if shared >= (2 if cues.HAN.search(unserious) else 1) and shared >= len(rest & words):
                    return True
        return False

    def _is_corrected(self, claim: Clause, text: str) -> bool:
        """Return True if a claim has what was said before a correction, and the memory has nothing of what follows."""
        for before, after, later in _corrections(self._spoken.cited):
            wrong, right = _values(before, after)
            has, whole = content_words(claim.text) | claim.numbers, Clause(text)
            if not (wrong & has and right) or right & (content_words(text) | whole.numbers):
                continue
            near = len(claim.words & before.words)
            if not any(wrong & (one.words | one.numbers) and len(claim.words & one.words) > near for one in later):
                return True
        return False


def _unserious(text: str, following: str) -> Iterator[str]:
    """Return the parts of a message that are not meant."""
    sentences = [one for one in _SENTENCE.split(text) if any(map(str.isalnum, one))]
    for at, sentence in enumerate(sentences):
        if found := _FORWARD.search(sentence):
            yield _IN_FACT.split(sentence[found.end() :])[0]
        if found := _BACKWARD.search(sentence):
            before = sentence[: found.start()]
            yield before if len(content_words(before)) > 1 else sentences[at - 1] if at else before
    if sentences and (found := _BACKWARD.search(following)) and len(content_words(following[: found.start()])) <= 1:
        yield sentences[-1]


def _corrections(cited: Sequence[str]) -> Iterator[tuple[Clause, Clause, list[Clause]]]:
    """Return the clause before and after each correction, and the further clauses of the message."""
    for text in cited:
        for found in cues.CORRECTION.finditer(text):
            before = clauses(cues.CORRECTION.sub("。", text[: found.start()]))
            after = clauses(cues.CORRECTION.sub("。", text[found.end() :]))
            if before and after and len(after[0].words) <= MOST_CORRECTED:
                yield before[-1], after[0], after[1:]


def _values(before: Clause, after: Clause) -> tuple[set[str], set[str]]:
    """Return the wrong value and the right one: numbers, names, or the last word before and the words after."""
    if before.numbers - after.numbers and after.numbers - before.numbers:
        return {*before.numbers - after.numbers}, {*after.numbers - before.numbers}
    names = [content_words(" ".join(cues.INNER_NAME.findall(f"a {one.text}"))) for one in (before, after)]
    if all(names):
        return names[0] - names[1], names[1] - names[0]
    ordered = [word for word in cues.sequence(before.text) if word in before.words - after.words]
    return {*ordered[-1:]}, after.words - before.words
