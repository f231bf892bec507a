"""English words, their base forms, and what is read from a clause."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .lexicon import named, words

ADVERBS = words("en", "adverbs") | words("en", "habitual")
HABITUAL = words("en", "habitual")
VERBS = words("en", "verbs")

_TOKEN = re.compile(r"[^\W\d_]+(?:['\-][^\W\d_]+)*|\d[\d.,:/%]{0,20}\w{0,4}|[^\s\w]|_")
_ENDINGS = ("n't", "'m", "'re", "'ve", "'ll", "'d", "'s")
_WHOLE = {"won't": "will", "can't": "can", "shan't": "shall", "ain't": "am"}
# Written without the apostrophe, as people type.
_TYPED = {
    "im": ("i", "'m"), "ive": ("i", "'ve"), "dont": ("do", "n't"), "doesnt": ("does", "n't"), "didnt": ("did", "n't"),
    "cant": ("can", "n't"), "wont": ("will", "n't"), "isnt": ("is", "n't"), "cannot": ("can", "n't"),
    "gonna": ("going", "to"), "wanna": ("want", "to"), "gotta": ("have", "to"), "id": ("id",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Token:
    word: str  # in lower case, contractions apart: "don't" is do + n't
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        word, start, end = match[0].lower(), match.start(), match.end()
        if word in _TYPED:
            found += (Token(part, start, end) for part in _TYPED[word])
        elif "'" in word and (ending := next((e for e in _ENDINGS if word.endswith(e) and word != e), None)):
            stem = _WHOLE.get(word, word[: -len(ending)])
            cut = end - len(ending)
            found += (Token(stem, start, cut), Token(ending, cut, end))
        else:
            found.append(Token(word, start, end))
    return found


def lemma(word: str) -> tuple[str, str]:
    """A verb's base form and which form this is: base, s, ing, past or other.

    >>> lemma("studying"), lemma("went"), lemma("likes")
    (('study', 'ing'), ('go', 'past'), ('like', 's'))
    """
    irregular = named("en", "past").get(word)
    if irregular:
        return irregular, "past"
    if word in words("en", "no verbs") or _COUNTED.match(word):
        return word, "other"
    if word in VERBS:
        return word, "base"
    for ending, form in _FORMS:
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return _stem(word[: -len(ending)]) if ending[0] != "i" or ending == "ing" else word[
                : -len(ending)
            ] + "y", form
    return word, "base"


_COUNTED = re.compile("(?:one|two|three|four|five|six|half)-")  # "two-bed" is no verb
_FORMS = (("ing", "ing"), ("ied", "past"), ("ed", "past"), ("ies", "s"), ("es", "s"), ("s", "s"))


def _stem(cut: str) -> str:
    for base in (cut, cut + "e"):
        if base in VERBS:
            return base
    if len(cut) > 2 and cut[-1] == cut[-2] and cut[:-1] in VERBS:
        return cut[:-1]
    return cut


@dataclass(slots=True)
class Parsed:
    """What was read; `Clause` is made from it."""

    about: str = "nobody"
    noun: str = ""
    name: str = ""  # of kin: "my sister Anna"
    topic: str = ""  # what stands before the subject in Chinese: 咖啡我不喝
    verb: str = ""
    chain: list[str] = field(default_factory=list)
    text_at: int = 0  # the character where the statement begins, behind "well", "by the way"
    rest_at: int = 0  # the character where the rest begins
    subject_at: int = 0
    verb_at: int = 0
    negated: bool = False
    ended: bool = False
    begun: bool = False
    past: bool = False
    perfect: bool = False
    progressive: bool = False
    future: bool = False
    doubtful: bool = False
    conditional: bool = False
    habitual: bool = False
    marked: bool = False
    dropped: bool = False  # no subject: "Moved to Berlin!"
