"""Puts an English clause into the third person: "I'm allergic to nuts" becomes "Mei is allergic to nuts"."""

from __future__ import annotations

from .english_tokens import ADVERBS, VERBS, Token, lemma, tokens
from .lexicon import words

# At first the name, later "they": the words never say whether Mei is a she or a he.
_LATER = {"i": "they", "we": "they", "me": "them", "us": "them", "my": "their", "our": "their"}
_LATER |= {"mine": "theirs", "ours": "theirs", "myself": "themself", "ourselves": "themselves"}
_OWN = frozenset(("my", "mine", "our", "ours"))
_OURS = frozenset(("we", "us", "our", "ours", "ourselves"))
_AGREES = {"am": "is", "'m": " is", "have": "has", "'ve": " has", "do": "does", "are": "is", "were": "was"}
_THEY = {"am": "are", "'m": " are", "was": "were", "'ve": " have"}
_WE = {"'re": " are", "'ve": " have", "'ll": " will", "'d": " would"}
_PAST = frozenset(("last", "yesterday", "ago"))
_AGAIN = frozenset(("every", "usually", "often", "always", "each"))


def third_person(text: str, name: str, group: str, you: str | None, *, dropped: bool = False) -> str:
    """The clause as somebody else would tell it. `dropped` says that it leaves out its subject."""
    toks = tokens(text)
    said = [token.word for token in toks]
    changed: dict[int, str] = {}  # token index → what stands in its place
    mentioned = dropped
    for index, word in enumerate(said):
        if word == "i" and text[toks[index].start] != "I" and not _verb_follows(said, index):
            continue
        if word in _LATER:
            # "our team" is Mei's team, where nobody else is known.
            ours = word in _OURS and not (word in _OWN and group.startswith(name))
            whole = group if ours else name
            changed[index] = _LATER[word] if mentioned else _first(word, whole if index == 0 else inside(whole))
            if word == "i":
                _agree(said, index + 1, changed, plural=mentioned)
            elif word == "we" and index + 1 < len(said) and said[index + 1] in _WE:
                changed[index + 1] = _WE[said[index + 1]]
            mentioned = True
        elif you and word in ("you", "your", "yours"):
            changed[index] = you if word == "you" else possessive(you)
    told = _joined(text, toks, changed)
    if dropped and said:
        return f"{name} {_finite(told, said)}"
    return told[:1].upper() + told[1:]


def _first(word: str, name: str) -> str:
    if word in ("myself", "ourselves"):
        return _LATER[word]
    return possessive(name) if word in _OWN else name


def inside(name: str) -> str:
    """The name in the middle of a sentence: "the user"."""
    return name[0].lower() + name[1:] if name.startswith("The ") else name


def possessive(name: str) -> str:
    return name + ("'" if name.endswith("s") and not name.endswith("ss") else "'s")


def _verb_follows(said: list[str], index: int) -> bool:
    following = said[index + 1] if index + 1 < len(said) else ""
    return (
        following in _AGREES
        or following in words("en", "modals")
        or following in ADVERBS
        or lemma(following)[0] in VERBS
    )


def _agree(said: list[str], index: int, changed: dict[int, str], *, plural: bool) -> None:
    """Makes the verb after the subject agree with it, and the verbs that "and" joins to it."""
    while index < len(said) and (said[index] in ADVERBS or said[index] in ("never", "no", "longer", ",")):
        index += 1
    if index >= len(said):
        return
    word = said[index]
    if word in ("'ll", "'d"):
        changed[index] = " will" if word == "'ll" else _had_or_would(said, index + 1)
    elif plural:
        if word in _THEY:
            changed[index] = _THEY[word]
    elif word in _AGREES:
        changed[index] = _AGREES[word]
    elif not _stays(said, index):
        changed[index] = singular(word)
        _agree_further(said, index, changed)


def _stays(said: list[str], index: int) -> bool:
    """Whether a verb is the same with every subject: a modal, a past form."""
    word = said[index]
    if word in words("en", "same in past"):
        # "quit" is its own past, but "I read every night" is the present.
        return not _AGAIN & set(said)
    if word not in VERBS and _PAST & set(said):
        # A past form that no list holds: "retook last week".
        return True
    return word in words("en", "modals") or lemma(word)[1] != "base" or not word.isalpha()


def _agree_further(said: list[str], index: int, changed: dict[int, str]) -> None:
    """ "gets up early and runs": only a verb in the same form, and none that may be a noun."""
    for further in range(index + 1, len(said) - 1):
        following = said[further + 1]
        joins = said[further] in ("and", "or", "but") and following in VERBS
        if joins and following not in words("en", "also nouns") and "to" not in said[index:further]:
            changed[further + 1] = singular(following)


def _had_or_would(said: list[str], index: int) -> str:
    following = said[index] if index < len(said) else ""
    return " had" if following in ("been", "better", "gone", "had") else " would"


def singular(verb: str) -> str:
    """The form for he, she and it.

    >>> singular("go"), singular("study"), singular("play")
    ('goes', 'studies', 'plays')
    """
    if verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def _finite(told: str, said: list[str]) -> str:
    """A clause without a subject made ready for one: "Going to Rome" needs "is", "Live in Rome" an s."""
    first = next((word for word in said if word not in ADVERBS), said[0])
    told = told[:1].lower() + told[1:]
    base, form = lemma(first)
    if (form == "ing" and base in VERBS) or first in ("allergic", "not", "based", "married"):
        return f"is {told}"
    if first in _AGREES:
        return told.replace(first, _AGREES[first].strip(), 1)
    if first in VERBS and first not in words("en", "same in past"):
        return told.replace(first, singular(first), 1)
    return told


def _joined(text: str, toks: list[Token], changed: dict[int, str]) -> str:
    parts: list[str] = []
    end = 0
    for index, replacement in sorted(changed.items()):
        token = toks[index]
        if token.start < end:
            # The second half of a word that was typed in one: "im", "dont".
            parts.append(replacement)
            continue
        parts += (text[end : token.start], replacement)
        end = token.end
    return "".join((*parts, text[end:])).replace("  ", " ")
